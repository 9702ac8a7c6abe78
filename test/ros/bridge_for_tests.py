"""The bridge as it is, with a few plain tools in its list."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from lerobot_tool_bridge import tools
from lerobot_tool_bridge.core.tool import CallContext, Tool
from lerobot_tool_bridge.ports import Waypoint
from lerobot_tool_bridge.ros import bridge


class Echo(Tool):
    """Answers with the text that it got."""

    name = "echo"

    @property
    def description(self) -> str:
        return "Answers with the text."

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        }

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        return str(arguments["text"])


class Wait(Echo):
    """Waits for some seconds."""

    name = "wait"
    resources = frozenset({"clock"})

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"seconds": {"type": "number"}},
            "required": ["seconds"],
        }

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        context.feedback("waiting")
        await asyncio.sleep(arguments["seconds"])
        return "waited"


class MoveJoints(Echo):
    """Moves the arm to joint angles."""

    name = "move_joints"
    needs = ("arm",)
    resources = frozenset({"arm"})
    motion = True
    timeout = 3.0

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {
                "degrees": {"type": "array", "items": {"type": "number"}},
                "seconds": {"type": "number"},
            },
            "required": ["degrees", "seconds"],
        }

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        assert self.ports.arm is not None
        target = tuple(math.radians(v) for v in arguments["degrees"])
        ended = await self.ports.arm.move([Waypoint(target, arguments["seconds"])])
        return " ".join(f"{math.degrees(v):.1f}" for v in ended)


class Grip(Echo):
    """Moves the gripper and tells everything that it measured."""

    name = "grip"
    needs = ("arm", "gripper")
    resources = frozenset({"arm"})
    motion = True

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"position": {"type": "number"}},
            "required": ["position"],
        }

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        assert self.ports.arm is not None
        state = await self.ports.arm.gripper(arguments["position"], 5.0)
        return f"{state.position:.3f} {state.effort:.2f} {state.stalled} {state.reached_goal}"


if __name__ == "__main__":
    kinds = ("Echo", "Wait", "MoveJoints", "Grip")
    tools.BUILTIN = (*tools.BUILTIN, *(f"{__name__}:{kind}" for kind in kinds))
    raise SystemExit(bridge.main())
