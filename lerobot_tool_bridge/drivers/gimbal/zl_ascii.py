"""Heads with hobby servos behind a ZL ASCII controller.

``#000P1500T1000!`` sends servo 0 to a pulse of 1500 µs within 1000 ms, several commands in braces
start together, ``#000PDST!`` stops one. The controller turns the servos evenly from where it sent
them last. A position can't be read from a PWM servo.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lerobot_tool_bridge.drivers.gimbal.line import Line
from lerobot_tool_bridge.drivers.gimbal.protocol import Axis, State
from lerobot_tool_bridge.robot import Range

BAUD_RATE = 115_200
PULSE_US = (500, 2500)
LONGEST_MS = 9999


class ZlAscii:
    """See ``HeadProtocol``."""

    measures = False

    def __init__(self, port: str, baud_rate: int, axes: Sequence[Axis]) -> None:
        self._axes = tuple(axes)
        self._line = Line(port, baud_rate or BAUD_RATE)

    @staticmethod
    def reach_deg(axis: Axis) -> Range:
        return min(axis.pulse_deg), max(axis.pulse_deg)

    def read(self) -> State | None:
        self._line.drop_input()
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
        self._line.close()

    def _send(self, commands: Iterable[str]) -> None:
        words = [
            f"#{axis.servo_id:03d}{command}!"
            for axis, command in zip(self._axes, commands, strict=True)
        ]
        self._line.write(f"{{{''.join(words)}}}".encode())


def _clamp(pulse: float) -> int:
    return max(PULSE_US[0], min(PULSE_US[1], round(pulse)))
