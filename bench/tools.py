"""Tools that only the benchmarks have."""

from __future__ import annotations

from typing import Any

from lerobot_tool_bridge.core.tool import CallContext, Tool


class Noop(Tool):
    """Answers with the number that it got."""

    name = "bench_noop"
    resources = frozenset({"bench"})

    @property
    def description(self) -> str:
        return "Does nothing."

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"value": {"type": "number"}},
            "required": ["value"],
        }

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        return str(arguments["value"])


class OneAction(Noop):
    """Sends one goal to the head's controller, as every motion tool does."""

    name = "bench_action"
    needs = ("gimbal",)
    resources = frozenset({"gimbal"})
    motion = True

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        assert self.ports.gimbal is not None
        reached = await self.ports.gimbal.move(2.356, arguments["value"], 0.0)
        return f"{reached[0]:.3f} {reached[1]:.3f}"
