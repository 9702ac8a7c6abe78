"""``arm_grab_object``: picks a thing up, and measures whether it did."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any

from lerobot_tool_bridge import manipulation
from lerobot_tool_bridge.core.errors import Rejection, ToolFailure
from lerobot_tool_bridge.core.tool import CallContext, Tool
from lerobot_tool_bridge.kinematics.grasp import Plan
from lerobot_tool_bridge.manipulation import Manipulator
from lerobot_tool_bridge.ports import GripperState, Ports
from lerobot_tool_bridge.robot import Grasp

_OFF = 0.008  # metres from its goal at which the arm counts as stopped by something
_CORNER = 0.29  # share of its width that a cube's corner stands out, and a little


class ArmGrabObject(Tool):
    """Opens, hovers, approaches, closes, lifts; judges by opening and effort.

    Settings:
        workspace: A narrower one than the robot's: radius, height, azimuth_deg, two numbers each.
        max_tool_speed: A lower speed than the robot's, m/s.
    """

    name = "arm_grab_object"
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
            "Pick up one small object and lift it. x, y and z are the object's centre in metres: "
            "x ahead of the robot's base, y to the left, z up from the table. "
        )
        if self._arm is not None:
            text += (
                f"{manipulation.area(self._arm.planner.workspace)} The object may be up to "
                f"{self._arm.max_width * 1000:.0f} mm wide. "
            )
        return text + (
            "Measures whether the object is held: the answer nothing_grasped means that it was "
            "not there. It does not look for the object; you have to know where it is. It "
            "refuses while the gripper holds something."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        grasp = self.ports.robot.grasp if self.ports.robot is not None else Grasp()
        workspace = self._arm.planner.workspace if self._arm is not None else None
        width: dict[str, Any] = {
            "type": "number",
            "description": "Width of the object along the line on which the fingers close, "
            f"metres. Left out, {grasp.object_width:g}.",
            "exclusiveMinimum": 0,
        }
        if self._arm is not None:
            width["maximum"] = self._arm.max_width
        return {
            "type": "object",
            "properties": {
                **manipulation.coordinates("the object's centre", workspace),
                "yaw_deg": {
                    "type": "number",
                    "description": "Direction of the line on which the fingers close, seen from "
                    "above, degrees from x towards y, for an object that lies askew: for a cube, "
                    "the direction that one of its sides faces. Without width, the object counts "
                    "as square. Leave it out to have a direction chosen.",
                    "minimum": -360,
                    "maximum": 360,
                },
                "width": width,
            },
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
        # an open gripper that doesn't measure its effort could as well hold something wide
        if arm.gripper.held_effort > 0 and arm.holds(held):
            raise Rejection(
                "already_holding",
                f"The gripper holds something already, {_mm(arm.width(held))} wide. Put it down "
                "with arm_place_object first.",
            )
        width = float(arguments.get("width", arm.robot.grasp.object_width))
        plan = await self._plan(arm, arguments, width)
        between = width + 2 * self._clearance(arm, arguments, width)
        doing = "opening the gripper"
        try:
            context.feedback("Opening the gripper")
            opened = await arm.open()
            if arm.width(opened) < width:
                raise ToolFailure(
                    "tool_error",
                    f"The gripper opened to {_mm(arm.width(opened))} only; the object is "
                    f"{_mm(width)} wide. Something may be in its way.",
                )
            doing = "moving over the object"
            context.feedback("Moving over the object")
            await arm.go(plan.hover)
            doing = "approaching the object"
            context.feedback("Approaching the object")
            at = await self._approach(arm, plan, between)
            doing = "closing the gripper"
            context.feedback("Closing the gripper")
            closed = await arm.close()
        except ToolFailure as failure:
            raise await arm.explained(failure, doing) from None
        if not arm.holds(closed):
            context.feedback("Nothing between the fingers; going back")
            where = arm.where(at, between)
            raise await self._nothing(arm, plan, where, closed, "The fingers closed")
        context.feedback(f"Holding something {_mm(arm.width(closed))} wide; lifting it")
        try:
            await arm.follow(plan.way[::-1])
            lifted = await arm.port.gripper_state()
        except ToolFailure as failure:
            raise await arm.explained(failure, "lifting the object") from None
        if not arm.holds(lifted):
            context.feedback("It slipped out; going back")
            where = arm.where(at, arm.width(closed))
            what = "It slipped out while it was lifted: the fingers closed"
            raise await self._nothing(arm, plan, where, lifted, what)
        return (
            f"Grasped at {arm.where(at, arm.width(closed))} and lifted; the fingers are "
            f"{_mm(arm.width(lifted))} apart."
        )

    async def _approach(self, arm: Manipulator, plan: Plan, between: float) -> tuple[float, ...]:
        """Moves down to the object; goes back up where something stops the arm on the way.

        A finger that lands on the object must not go on pressing. ``between`` is the room
        between the fingers that the plan has, metres.
        """
        trouble = ""
        try:
            at = await arm.follow(plan.way)
        except ToolFailure as failure:
            if failure.code != "tool_error":
                raise
            trouble = failure.message
        else:
            off = arm.off(at, plan.end)
            if off <= _OFF:
                return at
            where = arm.where(at, between)
            trouble = f"The fingers stopped around {where}, {_mm(off)} from where they should."
        await arm.follow(plan.way[::-1])
        raise ToolFailure(
            "tool_error",
            f"{trouble} Something is in the way, maybe the object itself: is its position right? "
            "The arm went back up.",
        )

    async def _plan(self, arm: Manipulator, arguments: Mapping[str, Any], width: float) -> Plan:
        """How to get at the object."""
        yaw = arguments.get("yaw_deg")
        return await asyncio.to_thread(
            arm.planner.plan,
            [float(arguments[k]) for k in "xyz"],
            width,
            self._clearance(arm, arguments, width),
            None if yaw is None else math.radians(yaw),
            "width" not in arguments,
            await arm.port.positions(),
        )

    def _clearance(self, arm: Manipulator, arguments: Mapping[str, Any], width: float) -> float:
        """Free way beside the object; clear of its corners where its direction is not known."""
        clearance = arm.robot.grasp.clearance
        return clearance if "yaw_deg" in arguments else max(clearance, _CORNER * width)

    async def _nothing(
        self, arm: Manipulator, plan: Plan, where: str, state: GripperState, what: str
    ) -> ToolFailure:
        """The failure, after the arm went back to where it is safe."""
        text = f"Nothing was grasped at {where}. {what} to {_mm(arm.width(state))}"
        if arm.gripper.held_effort > 0:
            text += (
                f" with an effort of {abs(state.effort):.2f} (from {arm.gripper.held_effort:.2f} "
                "on counts as holding)"
            )
        try:
            await arm.open()
            await arm.follow(plan.way[::-1])
            await arm.go_home()
        except ToolFailure as failure:
            after = await arm.explained(failure, "going back")
            if after.code == "cancel_unconfirmed":
                return after
            return ToolFailure("nothing_grasped", f"{text}. {after.message}")
        return ToolFailure(
            "nothing_grasped",
            f"{text}. The gripper is open and the arm is back at its home pose. Look where the "
            "object is, then try again there.",
        )


def _mm(width: float) -> str:
    return f"{width * 1000:.0f} mm"
