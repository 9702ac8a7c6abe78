"""The virtual robot's pan/tilt head, behind what its driver is told that it speaks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from lerobot_tool_bridge.node.managed import NodeError
from lerobot_tool_bridge.sim.devices.feetech import FeetechBus
from lerobot_tool_bridge.sim.devices.lx16a import Lx16aHead
from lerobot_tool_bridge.sim.devices.waveshare_json import WaveshareHead
from lerobot_tool_bridge.sim.devices.zl_ascii import ZlAsciiHead
from lerobot_tool_bridge.sim.physics import Servo
from lerobot_tool_bridge.sim.servos import BusServo, HobbyServo

_MIDDLE = math.radians(135.0)
_LX16A_TICK = math.radians(0.24)
_LX16A_MIDDLE = 500


class Head(Protocol):
    """An emulated head on a pseudo-terminal."""

    path: str

    def close(self) -> None: ...


class _Feetech:
    def __init__(self, servos: Mapping[int, Servo]) -> None:
        self._bus = FeetechBus({i: BusServo(s, _MIDDLE) for i, s in servos.items()}).start()
        self.path = self._bus.port
        self.close = self._bus.stop


class _Lx16aServo:
    """A joint behind an LX-16A: 0.24 degrees a tick, its middle at 500."""

    def __init__(self, servo: Servo) -> None:
        self._servo = servo

    def position_ticks(self) -> float:
        return _LX16A_MIDDLE + (self._servo.position - _MIDDLE) / _LX16A_TICK

    def set_target(self, ticks: float, time_ms: float) -> None:
        _send(self._servo, _MIDDLE + (ticks - _LX16A_MIDDLE) * _LX16A_TICK, time_ms / 1000.0)

    def set_torque(self, on: bool) -> None:
        if on:
            self._servo.set_goal(self._servo.position)
        self._servo.set_torque(on)


class _WaveshareServo:
    """A joint behind a Waveshare head: degrees from its middle, pan to the right."""

    def __init__(self, servo: Servo, sign: float) -> None:
        self._servo = servo
        self._sign = sign
        servo.set_goal(servo.position)
        servo.set_torque(True)

    def position_deg(self) -> float:
        return self._sign * math.degrees(self._servo.position - _MIDDLE)

    def set_target(self, degrees: float, speed: float) -> None:
        self._servo.set_speed_limit(math.radians(speed))
        self._servo.set_goal(_MIDDLE + self._sign * math.radians(degrees))


def _send(servo: Servo, goal: float, seconds: float) -> None:
    """Sends a joint somewhere within a time."""
    way = abs(goal - servo.position)
    servo.set_speed_limit(way / seconds if seconds > 0 else 0.0)
    servo.set_goal(goal)
    servo.set_torque(True)


_PROTOCOLS: Mapping[str, Callable[[Mapping[int, Servo]], Head]] = {
    "zl_ascii": lambda servos: ZlAsciiHead({i: HobbyServo(s) for i, s in servos.items()}),
    "feetech": _Feetech,
    "lx16a": lambda servos: Lx16aHead({i: _Lx16aServo(s) for i, s in servos.items()}),
    "waveshare_json": lambda servos: WaveshareHead(
        [_WaveshareServo(s, sign) for s, sign in zip(servos.values(), (-1.0, 1.0), strict=True)]
    ),
}


def make_head(protocol: str, ids: Sequence[int], servos: Sequence[Servo]) -> Head:
    """Makes the device.

    Args:
        protocol: As the driver's parameter.
        ids: Of the pan and the tilt servo.
        servos: Pan and tilt.

    Raises:
        NodeError: There is no such device.
    """
    make = _PROTOCOLS.get(protocol)
    if make is None:
        raise NodeError(
            f"No head that speaks {protocol} is emulated; known: {', '.join(_PROTOCOLS)}."
        )
    return make(dict(zip(ids, servos, strict=True)))
