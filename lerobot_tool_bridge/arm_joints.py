"""The joints of an arm and its gripper as a model reads and asks for them.

Degrees for what turns and millimetres for what slides. A gripper whose position is in metres is
told by its opening, the way between its fingers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lerobot_tool_bridge.core import show
from lerobot_tool_bridge.kinematics.chain import Chain, joint_range
from lerobot_tool_bridge.robot import Gripper, Robot

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


@dataclass(frozen=True, slots=True)
class ToldJoint:
    """One joint, in the model's unit.

    Attributes:
        name: As in the joint states.
        unit: ``degrees`` or ``mm``.
        low, high: Limits, rounded to what is told; infinite where there are none.
        range: Limits in radians or metres, as the driver has them.
        widths: Of a gripper in metres: pairs (position, width), by rising position.
    """

    name: str
    unit: str
    low: float
    high: float
    range: tuple[float, float]
    widths: tuple[tuple[float, float], ...] = ()

    def told(self, position: float) -> float:
        """A position in the model's unit."""
        if self.widths:
            positions, widths = zip(*self.widths, strict=True)
            return 1000.0 * float(np.interp(position, positions, widths))
        return math.degrees(position) if self.unit == "degrees" else 1000.0 * position

    def position(self, value: float) -> float:
        """The position for a value of the model's; what rounding adds to a limit is cut off."""
        if self.widths:
            widths, positions = zip(*sorted((w, p) for p, w in self.widths), strict=True)
            return float(np.interp(value / 1000.0, widths, positions))
        position = math.radians(value) if self.unit == "degrees" else value / 1000.0
        return max(self.range[0], min(self.range[1], position))

    def says(self, position: float) -> str:
        """``elbow_flex 31.0°``."""
        return f"{self.name} {self.value(position)}"

    def value(self, position: float) -> str:
        """``31.0°``, or ``12.0 mm``."""
        value = round(self.told(position), 1) + 0.0
        return f"{value:.1f}°" if self.unit == "degrees" else f"{value:.1f} mm"

    @property
    def limits(self) -> str:
        """``-96.8 to 96.8 degrees``."""
        if not math.isfinite(self.low):
            return f"any number of {self.unit}"
        return f"{show.number(self.low)} to {show.number(self.high)} {self.unit}"


def arm_joints(robot: Robot, chain: Chain) -> list[ToldJoint]:
    """The arm's joints in the order of every trajectory, and then the gripper.

    Raises:
        LoadError: The URDF can't be read.
    """
    told = [
        _joint(j.name, "mm" if j.kind == "prismatic" else "degrees", (j.lower, j.upper))
        for j in chain.joints
    ]
    if robot.gripper is not None:
        told.append(_gripper(robot, robot.gripper))
    return told


def faults(joints: Sequence[ToldJoint], values: Sequence[float]) -> list[str]:
    """What is out of its limits, each with the joint's name."""
    return [
        f"{joint.name} ({_ordinal(i)} angle): {show.number(value)} given, {joint.limits} allowed"
        for i, (joint, value) in enumerate(zip(joints, values, strict=True))
        if not joint.low <= value <= joint.high
    ]


def _joint(name: str, unit: str, limits: tuple[float, float]) -> ToldJoint:
    factor = 180.0 / math.pi if unit == "degrees" else 1000.0
    low, high = (round(v * factor, 1) + 0.0 for v in limits)
    return ToldJoint(name, unit, low, high, limits)


def _gripper(robot: Robot, gripper: Gripper) -> ToldJoint:
    positions, widths = zip(*gripper.widths, strict=True)
    if gripper.unit == "m":
        low, high = (round(1000.0 * v, 1) for v in (min(widths), max(widths)))
        return ToldJoint(
            gripper.joint, "mm", low, high, (positions[0], positions[-1]), gripper.widths
        )
    limits = joint_range(robot.urdf, gripper.joint) or (positions[0], positions[-1])
    return _joint(gripper.joint, "degrees", limits)


def _ordinal(index: int) -> str:
    return _ORDINALS[index] if index < len(_ORDINALS) else f"{index + 1}th"
