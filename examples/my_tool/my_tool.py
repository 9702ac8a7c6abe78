"""``nod``: the camera head says yes."""

from __future__ import annotations

import math
from typing import Any

from lerobot_tool_bridge.core.errors import ToolFailure
from lerobot_tool_bridge.core.tool import CallContext, Tool


class Nod(Tool):
    """Nods with the pan/tilt head and looks where it looked before.

    Settings:
        angle_deg: How deep it nods (15).
    """

    name = "nod"
    needs = ("gimbal",)  # not offered on a robot without a head
    resources = frozenset({"gimbal"})  # never at the same time as gimbal_control
    motion = True  # refused while stopped, ended by stop
    timeout = 20.0

    @property
    def description(self) -> str:
        return "Nod with the camera head to say yes. Afterwards it looks where it did before."

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {
                "times": {
                    "type": "integer",
                    "description": "How often, 1 to 5.",
                    "minimum": 1,
                    "maximum": 5,
                }
            },
            "required": ["times"],
            "additionalProperties": False,
        }

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        head = self.ports.gimbal
        if head is None:
            raise ToolFailure("unavailable", "This robot has no pan/tilt head.")
        pan, tilt = await head.positions()
        depth = math.radians(float(self.settings.get("angle_deg", 15.0)))
        for number in range(arguments["times"]):
            context.feedback(f"nod {number + 1}")
            await head.move(pan, tilt - depth, 0.5)
            await head.move(pan, tilt, 0.5)
        _, end = await head.positions()
        return f"nodded; tilt is {math.degrees(end):.1f}° again"
