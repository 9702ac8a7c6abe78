"""Waveshare's pan/tilt heads: one JSON object a line to the ESP32 that drives their servos.

``{"T":133,"X":0,"Y":0,"SPD":0,"ACC":0}`` turns the head to an angle from its middle: X to the
right, -180 to 180 degrees, Y up, -30 to 90; SPD is in degrees a second, 0 for as fast as it can.
``{"T":135}`` stops it. There is no command that asks where it is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from lerobot_tool_bridge.drivers.gimbal.line import Line
from lerobot_tool_bridge.drivers.gimbal.protocol import CENTER_DEG, Axis, State
from lerobot_tool_bridge.robot import Range

BAUD_RATE = 115_200
PAN_DEG = (-180.0, 180.0)
TILT_DEG = (-30.0, 90.0)

_SINGLE = 0.2
"""Seconds from which on a move is one of its own, and not a step of the driver's."""


class WaveshareJson:
    """See ``HeadProtocol``."""

    measures = False

    def __init__(self, port: str, baud_rate: int, axes: Sequence[Axis]) -> None:
        self._axes = tuple(axes)
        self._line = Line(port, baud_rate or BAUD_RATE)

    @staticmethod
    def reach_deg(axis: Axis) -> Range:
        low, high = TILT_DEG if axis.index else PAN_DEG
        ends = [CENTER_DEG + _sign(axis) * v for v in (low, high)]
        return min(ends), max(ends)

    def read(self) -> State | None:
        self._line.drop_input()  # what it tells of its battery and its tilt
        return None

    def hold(self) -> list[float] | None:
        return None

    def write(self, positions: Sequence[float], duration: float) -> None:
        x, y = (
            round(_sign(axis) * (math.degrees(position) - CENTER_DEG), 2) + 0.0
            for axis, position in zip(self._axes, positions, strict=True)
        )
        # how far it has to go on a move of its own is not known: no faster than the joints may
        slowest = min(math.degrees(axis.joint.speed) for axis in self._axes)
        speed = max(1, int(slowest)) if duration >= _SINGLE else 0
        self._send({"T": 133, "X": x, "Y": y, "SPD": speed, "ACC": 0})

    def stop(self) -> None:
        self._send({"T": 135})

    def release(self) -> None:
        """There is no command for it: the servos hold while they have power."""

    def close(self) -> None:
        self._line.close()

    def _send(self, command: dict[str, Any]) -> None:
        self._line.write(json.dumps(command, separators=(",", ":")).encode() + b"\n")


def _sign(axis: Axis) -> float:
    """X grows to the right, where the pan joint's angle grows to the left."""
    sign = 1.0 if axis.index else -1.0
    return -sign if axis.inverted else sign
