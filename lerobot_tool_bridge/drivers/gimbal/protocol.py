"""What the driver needs of a pan/tilt head, whatever its servos speak.

Another protocol is one file with a class of this form, and one line in ``PROTOCOLS``.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from lerobot_tool_bridge.drivers.arm.control import Joint
from lerobot_tool_bridge.robot import Range

PROTOCOLS = {
    "zl_ascii": "lerobot_tool_bridge.drivers.gimbal.zl_ascii:ZlAscii",
    "feetech": "lerobot_tool_bridge.drivers.gimbal.feetech:FeetechHead",
    "lx16a": "lerobot_tool_bridge.drivers.gimbal.lx16a:Lx16a",
    "waveshare_json": "lerobot_tool_bridge.drivers.gimbal.waveshare_json:WaveshareJson",
}

CENTER_DEG = 135.0
"""Joint angle in the middle of a servo's range."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One joint of the head and its servo.

    Attributes:
        joint: Name and limits, radians.
        servo_id: The servo.
        pulse_us: Pulses (µs) at both ends of ``pulse_deg``; the second one is the smaller one
            where the servo counts against the joint. For PWM servos.
        pulse_deg: Joint angles at these pulses, degrees.
        center_ticks: Reading of a bus servo where the joint is at 135°; 0 for the middle of its
            range.
        inverted: Whether a bus servo counts against the joint.
        index: 0 for pan, 1 for tilt.
    """

    joint: Joint
    servo_id: int
    pulse_us: tuple[float, float] = (500.0, 2500.0)
    pulse_deg: tuple[float, float] = (0.0, 270.0)
    center_ticks: int = 0
    inverted: bool = False
    index: int = 0

    def pulse(self, position: float) -> float:
        """The pulse (µs) for a joint position (radians)."""
        (low, high), (first, last) = self.pulse_deg, self.pulse_us
        share = (math.degrees(position) - low) / (high - low)
        return first + share * (last - first)


@dataclass(frozen=True, slots=True)
class State:
    """What the servos measured, in radians and radians per second."""

    positions: list[float]
    velocities: list[float]


class HeadProtocol(Protocol):
    """The servos of one head on an open port. Every method raises ``BusError``."""

    def __init__(self, port: str, baud_rate: int, axes: Sequence[Axis]) -> None:
        """Opens the port; ``baud_rate`` 0 is the protocol's own."""

    @property
    def measures(self) -> bool:
        """Whether the servos can say where they are."""

    @staticmethod
    def reach_deg(axis: Axis) -> Range:
        """From where to where the servo can turn the joint, degrees."""

    def read(self) -> State | None:
        """Where the head is; None where that can't be measured. Notices a port that is gone."""

    def hold(self) -> list[float] | None:
        """Turns torque on where the head is; returns what it holds, None where nobody knows."""

    def write(self, positions: Sequence[float], duration: float) -> None:
        """Sends the head to a position (radians) within a time (seconds)."""

    def stop(self) -> None:
        """Stops a long ``write`` half-way, as well as the servos can."""

    def release(self) -> None:
        """Turns torque off, where there is a command for it."""

    def close(self) -> None:
        """Gives the port back."""


def find(name: str) -> type[HeadProtocol]:
    """The class of a protocol of ``PROTOCOLS``."""
    module, _, kind = PROTOCOLS[name].partition(":")
    return cast("type[HeadProtocol]", getattr(importlib.import_module(module), kind))
