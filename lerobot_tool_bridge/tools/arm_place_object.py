"""``arm_place_object``: sets down what the gripper holds, and tells where it let go."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from lerobot_tool_bridge import manipulation
from lerobot_tool_bridge.core.errors import Rejection, ToolFailure
from lerobot_tool_bridge.core.tool import CallContext, Tool
from lerobot_tool_bridge.manipulation import Manipulator
from lerobot_tool_bridge.ports import Ports


class ArmPlaceObject(Tool):
    """Hovers, lowers, opens, retreats and goes home.

    Settings:
        workspace: A narrower one than the robot's: radius, height, azimuth_deg, two numbers each.
        max_tool_speed: A lower speed than the robot's, m/s.
    """

    name = "arm_place_object"
    needs = ("arm", "gripper")
    resources = frozenset({"arm"})
    motion = True
    timeout = 40.0

    def __init__(self, ports: Ports, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(ports, settings)
        self._arm = Manipulator.of(ports, self.settings)

    @property
    def description(self) -> str:
        text = (
            "Set down the object that the gripper holds, and move the arm out of the way. x, y "
            "and z are where the object's centre shall be, in metres: x ahead of the robot's "
            "base, y to the left, z up from the table. Use the z at which it was grasped to put "
            "it on the table again. "
        )
        if self._arm is not None:
            text += f"{manipulation.area(self._arm.planner.workspace)} "
        return text + (
            "The place has to be free. It refuses with not_holding when nothing is held: use "
            "arm_grab_object first."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        workspace = self._arm.planner.workspace if self._arm is not None else None
        return {
            "type": "object",
            "properties": manipulation.coordinates("the object's centre", workspace),
            "required": ["x", "y", "z"],
            "additionalProperties": False,
        }

    def check(self, arguments: Mapping[str, Any]) -> None:
        manipulation.refuse_millimetres(arguments)
        if self._arm is not None:
            self._arm.planner.check([arguments[k] for k in "xyz"])

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        if self._arm is None:
            raise ToolFailure("unavailable", "This robot has no arm with a gripper.")
        arm = self._arm
        held = await arm.port.gripper_state()
        if not arm.holds(held):
            raise Rejection(
                "not_holding",
                "The gripper holds nothing (its fingers are "
                f"{arm.width(held) * 1000:.0f} mm apart). Grasp something with arm_grab_object "
                "first.",
            )
        width = arm.width(held)
        plan = await asyncio.to_thread(
            arm.planner.plan,
            [float(arguments[k]) for k in "xyz"],
            width,
            now=await arm.port.positions(),
            keep=True,
        )
        doing = "carrying the object"
        try:
            context.feedback("Carrying the object")
            await arm.go(plan.hover)
            if not arm.holds(await arm.port.gripper_state()):
                raise ToolFailure(
                    "not_holding",
                    "The object was lost on the way: nothing is held any more. Look where it is.",
                )
            doing = "lowering the object"
            context.feedback("Lowering the object")
            at = await arm.follow(plan.way)
            doing = "opening the gripper"
            context.feedback("Letting go")
            opened = await arm.open()
            if arm.width(opened) <= width:
                raise ToolFailure(
                    "tool_error", "The gripper did not open: the object is still held."
                )
            doing = "moving away from the object"
            context.feedback("Moving away")
            await arm.follow(plan.way[::-1])
            doing = "going home"
            await arm.go_home()
        except ToolFailure as failure:
            raise await arm.explained(failure, doing) from None
        return f"Let go of the object at {arm.where(at, width)}; the arm is back at home."
