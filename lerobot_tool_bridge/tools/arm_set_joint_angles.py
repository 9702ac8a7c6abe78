"""``arm_set_joint_angles``: turns every joint of the arm, and the gripper, to an angle."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lerobot_tool_bridge import manipulation
from lerobot_tool_bridge.arm_joints import ToldJoint, arm_joints, faults
from lerobot_tool_bridge.core import show
from lerobot_tool_bridge.core.errors import Rejection, ToolFailure
from lerobot_tool_bridge.core.tool import CallContext, Tool
from lerobot_tool_bridge.kinematics import path as paths
from lerobot_tool_bridge.kinematics.chain import Array
from lerobot_tool_bridge.kinematics.grasp import Unreachable
from lerobot_tool_bridge.manipulation import Manipulator, Mover
from lerobot_tool_bridge.ports import Ports

_SAME = {"degrees": 2.0, "mm": 1.0}
"""A gripper that is as near as that is left alone, so that what it holds stays held."""
_DIP = 0.002  # metres below the floor that measuring alone can make
_MOST = 8


class ArmSetJointAngles(Tool):
    """Turns all joints in step, straight in joint space; then the gripper.

    Settings:
        max_tool_speed: A lower speed than the robot's, m/s.
        tolerance_deg: How far from its angle a joint may end (5; as many mm for what slides).
    """

    name = "arm_set_joint_angles"
    needs = ("arm",)
    resources = frozenset({"arm"})
    motion = True
    timeout = 40.0

    def __init__(self, ports: Ports, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(ports, settings)
        self._arm = manipulation.mover(ports, self.settings)
        self._joints: list[ToldJoint] = []
        if self._arm is not None:
            self._joints = arm_joints(self._arm.robot, self._arm.planner.chain)

    @property
    def description(self) -> str:
        text = (
            "Turn every joint of the arm to an angle, all at the same time in a straight way "
            "through the joints' angles. For poses and gestures; to bring the tool to a place use "
            "arm_move_to_position. "
        )
        if isinstance(self._arm, Manipulator):
            text += (
                "The last angle is the gripper's; it moves after the arm, and is left alone where "
                "it is there already, so that something held stays held. "
            )
        return text + (
            "Refuses what would push the fingertips into the table; it does not see what else is "
            "in the way. Answers with the angles that were measured afterwards."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        # limits stand in words: a refusal names the joint, and every model server takes the schema
        angles: dict[str, Any] = {
            "type": "array",
            "items": {"type": "number"},
            "description": "One number for each joint.",
        }
        if self._joints:
            angles["description"] = (
                f"{len(self._joints)} numbers, in this order: {'; '.join(self._says())}."
            )
            angles["minItems"] = angles["maxItems"] = len(self._joints)
        return {
            "type": "object",
            "properties": {"angles": angles},
            "required": ["angles"],
            "additionalProperties": False,
        }

    def check(self, arguments: Mapping[str, Any]) -> None:
        if self._arm is None:
            return
        angles = arguments["angles"]
        wrong = faults(self._joints, angles)
        if wrong:
            raise Rejection("invalid_arguments", f"{show.listed(wrong, limit=_MOST)}.")
        height = float(self._arm.planner.chain.fk(self._target(angles)).position[2])
        if height < self._floor - _DIP:
            raise Unreachable(
                f"With these angles the fingertips would be in the table: z={height:.3f} m; at "
                f"least {self._floor:g} m is allowed."
            )

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        arm = self._arm
        if arm is None:
            raise ToolFailure("unavailable", "This robot has no arm.")
        angles = arguments["angles"]
        start = np.array(await arm.port.positions())
        target = arm.planner.chain.nearest(self._target(angles), start)
        way = paths.straight(start, target)
        await asyncio.to_thread(self._refuse_table, arm, way)
        try:
            ended = await arm.follow(way, None)
        except ToolFailure as failure:
            raise await arm.explained(failure, "moving the arm") from None
        count = len(target)
        self._judge(self._joints[:count], ended, angles[:count], arm.where(ended))
        says = [j.says(p) for j, p in zip(self._joints, ended, strict=False)]
        if isinstance(arm, Manipulator):
            says.append(await self._grip(arm, self._joints[-1], float(angles[-1])))
        return f"{', '.join(says)} (measured)."

    async def _grip(self, arm: Manipulator, joint: ToldJoint, wanted: float) -> str:
        state = await arm.port.gripper_state()
        if not abs(joint.told(state.position) - wanted) <= _SAME[joint.unit]:
            try:
                state = await arm.port.gripper(joint.position(wanted), arm.gripper.max_effort)
            except ToolFailure as failure:
                raise await arm.explained(failure, "moving the gripper") from None
        if not arm.holds(state):
            self._judge([joint], [state.position], [wanted])
            return joint.says(state.position)
        wide = f"{arm.width(state) * 1000:.0f} mm wide"
        return f"{joint.says(state.position)}, holding something {wide}"

    def _refuse_table(self, arm: Mover, way: Array) -> None:
        """Refuses a way that goes lower than both the floor and where it starts."""
        heights = arm.planner.chain.fk(way).position[:, 2]
        lowest = float(heights.min())
        if lowest < min(self._floor, float(heights[0])) - _DIP:
            raise Unreachable(
                "On the straight way there the fingertips would go down to "
                f"z={lowest:.3f} m, into the table. Take a way over a higher pose."
            )

    def _judge(
        self,
        joints: Sequence[ToldJoint],
        ended: Sequence[float],
        wanted: Sequence[float],
        where: str = "",
    ) -> None:
        tolerance = float(self.settings.get("tolerance_deg", 5.0))
        off = []
        for joint, position, value in zip(joints, ended, wanted, strict=True):
            error = joint.told(position) - value
            if joint.unit == "degrees":
                error = math.remainder(error, 360.0)
            if not abs(error) <= tolerance:
                goal = joint.value(joint.position(value))
                off.append(f"{joint.name} stopped at {joint.value(position)} instead of {goal}")
        if off:
            place = f" The arm holds still with its fingers at {where}." if where else ""
            raise ToolFailure(
                "tool_error", f"{show.listed(off)}. Something may be in the way.{place}"
            )

    def _target(self, angles: Sequence[float]) -> list[float]:
        """Of the arm's joints, radians or metres."""
        count = len(self._joints) - isinstance(self._arm, Manipulator)
        return [j.position(float(v)) for j, v in zip(self._joints[:count], angles, strict=False)]

    @property
    def _floor(self) -> float:
        assert self._arm is not None
        return self._arm.planner.grasp.floor

    def _says(self) -> list[str]:
        says = [f"{j.name} {j.limits}" for j in self._joints]
        if isinstance(self._arm, Manipulator):
            gripper, joint = self._arm.gripper, self._joints[-1]
            what = " between the fingers" if joint.unit == "mm" else ""
            says[-1] += (
                f"{what} ({joint.told(gripper.closed):.0f} is closed, "
                f"{joint.told(gripper.open):.0f} is open)"
            )
        return says
