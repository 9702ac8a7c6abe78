"""Heads with hobby servos behind a ZL ASCII controller.

``#000P1500T1000!`` sends servo 0 to a pulse of 1500 µs within 1000 ms, several commands in braces
start together, ``#000PDST!`` stops one. The controller turns the servos evenly from where it sent
them last. A position can't be read from a PWM servo.
"""

from __future__ import annotations

import os
import termios
from collections.abc import Iterable, Sequence

from lerobot_tool_bridge.drivers.feetech.bus import PortError, open_port
from lerobot_tool_bridge.drivers.gimbal.protocol import Axis, State

BAUD_RATE = 115_200
PULSE_US = (500, 2500)
LONGEST_MS = 9999

_WRITE_TIMEOUT = 0.2


class ZlAscii:
    """See ``HeadProtocol``."""

    measures = False

    def __init__(self, port: str, baud_rate: int, axes: Sequence[Axis]) -> None:
        self._axes = tuple(axes)
        self._port = open_port(port, baud_rate or BAUD_RATE)
        self._port.write_timeout = _WRITE_TIMEOUT

    def read(self) -> State | None:
        try:
            if self._port.in_waiting:  # an unplugged adapter is an error here
                self._port.reset_input_buffer()
        except (OSError, TypeError, termios.error) as error:
            raise self._gone(error) from None
        return None

    def hold(self) -> list[float] | None:
        return None

    def write(self, positions: Sequence[float], duration: float) -> None:
        time_ms = max(0, min(LONGEST_MS, round(duration * 1000)))
        self._send(
            f"P{_clamp(axis.pulse(position)):04d}T{time_ms:04d}"
            for axis, position in zip(self._axes, positions, strict=True)
        )

    def stop(self) -> None:
        self._send("PDST" for _ in self._axes)

    def release(self) -> None:
        """The controller has no command for it: the servos hold while they have power."""

    def close(self) -> None:
        self._port.close()

    def _send(self, commands: Iterable[str]) -> None:
        words = [
            f"#{axis.servo_id:03d}{command}!"
            for axis, command in zip(self._axes, commands, strict=True)
        ]
        try:
            self._port.write(f"{{{''.join(words)}}}".encode())
        except (OSError, TypeError) as error:
            raise self._gone(error) from None

    def _gone(self, error: Exception) -> PortError:
        code = getattr(error, "errno", None)
        why = os.strerror(code) if isinstance(code, int) else str(error)
        return PortError(f"{self._port.port} is gone ({why}). Plug the head's USB cable in again.")


def _clamp(pulse: float) -> int:
    return max(PULSE_US[0], min(PULSE_US[1], round(pulse)))
