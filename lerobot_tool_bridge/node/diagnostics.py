"""Health on ``/diagnostics``, once a second and at every change of level."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

OK, WARN, ERROR, STALE = (
    DiagnosticStatus.OK,
    DiagnosticStatus.WARN,
    DiagnosticStatus.ERROR,
    DiagnosticStatus.STALE,
)
Check = Callable[[], tuple[bytes, str, Mapping[str, Any]]]


class Diagnostics:
    """Publishes what a node's checks say.

    Args:
        node: The node that they speak for.
        hardware_id: Which device, for a fleet's dashboard.
    """

    def __init__(self, node: Node, hardware_id: str = "") -> None:
        self._node = node
        self.hardware_id = hardware_id
        self._checks: dict[str, Check] = {}
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)

    def add(self, name: str, check: Check) -> None:
        """Adds a check: it returns level, a sentence, and values to show."""
        self._checks[name] = check

    def clear(self) -> None:
        """Forgets all checks."""
        self._checks.clear()

    def publish(self) -> None:
        """Runs the checks and publishes them now."""
        message = DiagnosticArray()
        message.header.stamp = self._node.get_clock().now().to_msg()
        for name, check in self._checks.items():
            level, text, values = check()
            message.status.append(
                DiagnosticStatus(
                    level=level,
                    name=f"{self._node.get_fully_qualified_name().lstrip('/')}: {name}",
                    message=text,
                    hardware_id=self.hardware_id,
                    values=[KeyValue(key=str(k), value=str(v)) for k, v in values.items()],
                )
            )
        if message.status:
            self._publisher.publish(message)
