"""``stop``: ends all motion. The dispatcher does the work, ahead of every queue."""

from __future__ import annotations

from typing import Any

from lerobot_tool_bridge.core.tool import CallContext, Tool


class Stop(Tool):
    """What the model sees of stopping.

    Arguments are never a reason to refuse it: whatever stands in them, the robot stops.
    """

    name = "stop"
    timeout = 10.0

    @property
    def description(self) -> str:
        return (
            "Stop all motion of the robot at once: running and waiting motion calls end. "
            "Afterwards motion calls are refused until a person resets the robot. Use it when "
            "something goes wrong. Takes no arguments."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        return {"type": "object", "properties": {}, "additionalProperties": True}

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        return "stopped"
