"""A head's serial port, with errors that say what to do."""

from __future__ import annotations

import os
import termios

from lerobot_tool_bridge.drivers.feetech.bus import PortError, open_port

_WRITE_TIMEOUT = 0.2


class Line:
    """An open port. Every method raises ``PortError`` where it is gone.

    Args:
        port: Its path.
        baud_rate: Bits per second.
    """

    def __init__(self, port: str, baud_rate: int) -> None:
        self._port = open_port(port, baud_rate)
        self._port.write_timeout = _WRITE_TIMEOUT

    def write(self, data: bytes) -> None:
        """Sends bytes."""
        try:
            self._port.write(data)
        except (OSError, TypeError) as error:
            raise self._gone(error) from None

    def read(self, timeout: float) -> bytes:
        """What has come, or what comes first within a time (seconds)."""
        try:
            self._port.timeout = max(0.0, timeout)
            return bytes(self._port.read(max(1, self._port.in_waiting)))
        except (OSError, TypeError, termios.error) as error:
            raise self._gone(error) from None

    def drop_input(self) -> None:
        """Throws away what has come. An unplugged adapter is noticed here."""
        try:
            if self._port.in_waiting:
                self._port.reset_input_buffer()
        except (OSError, TypeError, termios.error) as error:
            raise self._gone(error) from None

    def close(self) -> None:
        """Gives the port back."""
        self._port.close()

    def _gone(self, error: Exception) -> PortError:
        code = getattr(error, "errno", None)
        why = os.strerror(code) if isinstance(code, int) else str(error)
        return PortError(f"{self._port.port} is gone ({why}). Plug the head's USB cable in again.")
