"""``arm_get_state``: where the arm is and what its gripper holds, as measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lerobot_tool_bridge import manipulation
from lerobot_tool_bridge.arm_joints import ToldJoint, arm_joints
from lerobot_tool_bridge.core.errors import ToolFailure
from lerobot_tool_bridge.core.tool import CallContext, Tool
from lerobot_tool_bridge.manipulation import Manipulator
from lerobot_tool_bridge.ports import Ports
from lerobot_tool_bridge.tools.arm_move_to_position import pointing


class ArmGetState(Tool):
    """Reads the joint states; it waits for motions that were asked for before."""

    name = "arm_get_state"
    needs = ("arm",)
    resources = frozenset({"arm"})
    timeout = 10.0

    def __init__(self, ports: Ports, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(ports, settings)
        self._arm = manipulation.mover(ports, self.settings)
        self._joints: list[ToldJoint] = []
        if self._arm is not None:
            self._joints = arm_joints(self._arm.robot, self._arm.planner.chain)

    @property
    def description(self) -> str:
        text = (
            "Tell where the arm is, as measured: the angle of every joint in degrees, the point "
            "between the fingertips in metres (x ahead of the robot's base, y to the left, z up "
            "from the table)"
        )
        if isinstance(self._arm, Manipulator):
            text += ", how far the gripper is open in millimetres, and whether it holds something"
        return f"{text}. Moves nothing. The angles are in the order of arm_set_joint_angles."

    @property
    def parameters(self) -> dict[str, Any]:
        return {"type": "object", "properties": {}, "additionalProperties": False}

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        arm = self._arm
        if arm is None:
            raise ToolFailure("unavailable", "This robot has no arm.")
        q = await arm.port.positions()
        says = [j.says(p) for j, p in zip(self._joints, q, strict=False)]
        width, gripper = 0.0, ""
        if isinstance(arm, Manipulator):
            state = await arm.port.gripper_state()
            opening = arm.width(state)
            says.append(self._joints[-1].says(state.position))
            held = arm.holds(state)
            width = opening if held else 0.0
            gripper = (
                f" The gripper holds something {opening * 1000:.0f} mm wide."
                if held
                else f" The gripper is {opening * 1000:.0f} mm open and holds nothing."
            )
        what = "The held object" if width > 0 else "The tool"
        direction = pointing(arm.planner.chain.fk(q).rotation[2, 2])
        return (
            f"Joints: {', '.join(says)}. {what} is at {arm.where(q, width)}, {direction}.{gripper}"
        )
