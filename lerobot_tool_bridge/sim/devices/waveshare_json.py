"""An emulated Waveshare pan/tilt head: one JSON object a line.

Understood: ``T`` 133 (turn to X and Y at SPD), 134 (turn by X and Y at SX and SY), 135 (stop).
Everything else, and what is no JSON, is ignored without an answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

from lerobot_tool_bridge.sim.devices.pty import PtyDevice

PAN_DEG = (-180.0, 180.0)
TILT_DEG = (-30.0, 90.0)

_LONGEST = 1024


class Servo(Protocol):
    """One joint of the head; degrees from its middle, pan to the right and tilt up."""

    def position_deg(self) -> float:
        """Where it is."""

    def set_target(self, degrees: float, speed: float) -> None:
        """Goes there at a speed in degrees a second; 0 is as fast as it can."""


class WaveshareHead:
    """The head on a pseudo-terminal.

    Args:
        servos: Pan and tilt.

    Attributes:
        path: The terminal that a driver opens.
    """

    def __init__(self, servos: Sequence[Servo]) -> None:
        self._servos = servos
        self._rest = b""
        self._pty = PtyDevice(self._receive, "waveshare_json")
        self.path = self._pty.path

    def close(self) -> None:
        """Pulls the plug. Safe to call twice."""
        self._pty.close()

    def _receive(self, data: bytes) -> bytes:
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[-_LONGEST:]
        for line in lines:
            try:
                command = json.loads(line)
                if isinstance(command, dict):
                    self._do(command)
            except (ValueError, TypeError, KeyError):
                continue
        return b""

    def _do(self, command: dict[str, Any]) -> None:
        kind = command.get("T")
        pan, tilt = self._servos
        if kind == 133:
            speed = float(command["SPD"])
            pan.set_target(_clamp(command["X"], PAN_DEG), speed)
            tilt.set_target(_clamp(command["Y"], TILT_DEG), speed)
        elif kind == 134:
            x, y = pan.position_deg() + command["X"], tilt.position_deg() + command["Y"]
            pan.set_target(_clamp(x, PAN_DEG), float(command["SX"]))
            tilt.set_target(_clamp(y, TILT_DEG), float(command["SY"]))
        elif kind == 135:
            for servo in self._servos:
                servo.set_target(servo.position_deg(), 0.0)


def _clamp(value: Any, limits: tuple[float, float]) -> float:
    return max(limits[0], min(limits[1], float(value)))
