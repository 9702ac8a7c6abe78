"""The log of plain Python code, on ROS's log."""

from __future__ import annotations

import logging
from typing import Any


class RosHandler(logging.Handler):
    """Passes records on to a node's logger.

    Args:
        logger: What ``node.get_logger()`` gave.
    """

    def __init__(self, logger: Any) -> None:
        super().__init__()
        self._logger = logger

    def emit(self, record: logging.LogRecord) -> None:
        """One line each: rclpy fixes the severity of a place in the code at its first use."""
        text = self.format(record)
        if record.levelno >= logging.ERROR:
            self._logger.error(text)
        elif record.levelno >= logging.WARNING:
            self._logger.warning(text)
        elif record.levelno >= logging.INFO:
            self._logger.info(text)
        else:
            self._logger.debug(text)
