"""``arm_move_to_position``: brings the tool to a point, and measures where it came to."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from lerobot_tool_bridge import manipulation
from lerobot_tool_bridge.core.errors import ToolFailure
from lerobot_tool_bridge.core.tool import CallContext, Tool
from lerobot_tool_bridge.ports import Ports

DEFAULT_SPEED = 50.0
"""Percent."""
_SLOWEST = 5.0


class ArmMoveToPosition(Tool):
    """Goes up, over and down to the point, pointing down as far as the arm can.

    Settings:
        workspace: A narrower one than the robot's: radius, height, azimuth_deg, two numbers each.
        max_tool_speed: A lower speed than the robot's, m/s; it is what 100 percent means.
        tolerance: How far from the point the tool may end, metres (0.02).
    """

    name = "arm_move_to_position"
    needs = ("arm",)
    resources = frozenset({"arm"})
    motion = True
    timeout = 120.0  # a metre at the lowest speed

    def __init__(self, ports: Ports, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(ports, settings)
        self._arm = manipulation.mover(ports, self.settings)

    @property
    def description(self) -> str:
        text = (
            "Move the arm so that the point between its fingertips is at x, y, z, in metres: x "
            "ahead of the robot's base, y to the left, z up from the table. While the gripper "
            "holds something, that thing's centre goes there. "
        )
        if self._arm is not None:
            text += f"{manipulation.area(self._arm.planner.workspace)} "
        return text + (
            "The gripper points down, or leans where that can't be reached. "
            "This does not open or close the gripper, and does not see what is in the way. "
            "Answers with where the tool was measured afterwards. To pick something up use "
            "arm_grab_object."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        workspace = self._arm.planner.workspace if self._arm is not None else None
        note = ""
        if self._arm is not None:
            note = f" With empty fingers at least {self._arm.planner.grasp.floor:g}."
        return {
            "type": "object",
            "properties": {
                **manipulation.coordinates("the point", workspace, note),
                "speed": {
                    "type": "number",
                    "description": "Percent of the speed that is allowed here. Left out, "
                    f"{DEFAULT_SPEED:g}.",
                    "minimum": _SLOWEST,
                    "maximum": 100,
                },
            },
            "required": ["x", "y", "z"],
            "additionalProperties": False,
        }

    def check(self, arguments: Mapping[str, Any]) -> None:
        manipulation.refuse_millimetres(arguments)
        if self._arm is not None:
            self._arm.planner.check([arguments[k] for k in "xyz"], level=True)

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        arm = self._arm
        if arm is None:
            raise ToolFailure("unavailable", "This robot has no arm.")
        point = np.array([float(arguments[k]) for k in "xyz"])
        width = await arm.held()
        now = await arm.port.positions()
        goal = await asyncio.to_thread(arm.planner.pose, point, width, now, width > 0)
        try:
            ended = await arm.go(goal, float(arguments.get("speed", DEFAULT_SPEED)) / 100.0)
        except ToolFailure as failure:
            raise await arm.explained(failure, "moving the arm") from None
        off = float(np.linalg.norm(arm.planner.center(ended, width) - point))
        if off > float(self.settings.get("tolerance", 0.02)):
            raise ToolFailure(
                "tool_error",
                f"The arm stopped at {arm.where(ended, width)}, {off * 1000:.0f} mm from where it "
                "should be. Something may be in its way.",
            )
        what = "The held object" if width > 0 else "The tool"
        approach = arm.planner.chain.fk(ended).rotation[2, 2]
        return f"{what} is at {arm.where(ended, width)} (measured), {pointing(approach)}."


def pointing(z: float) -> str:
    """The direction of the tool in words, by the z of its approach."""
    degrees = math.degrees(math.asin(max(-1.0, min(1.0, -z))))
    if degrees > 85:
        return "pointing straight down"
    if abs(degrees) < 2.5:
        return "pointing level"
    return f"pointing {abs(degrees):.0f}° {'below' if degrees > 0 else 'above'} level"
