"""A dispatcher with plain test tools that note what ran."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from cases import FOLDER

from lerobot_tool_bridge.core.catalog import Catalogue
from lerobot_tool_bridge.core.dispatcher import Dispatcher
from lerobot_tool_bridge.core.gate import Limits
from lerobot_tool_bridge.core.registry import Registry
from lerobot_tool_bridge.core.tool import CallContext, Tool
from lerobot_tool_bridge.ports import Frame, Ports
from lerobot_tool_bridge.tools import BUILTIN

Work = Callable[[dict[str, Any], CallContext], Awaitable[str]]


def make_tool(
    name: str,
    work: Work | None = None,
    *,
    motion: bool = False,
    resources: tuple[str, ...] = (),
    timeout: float = 30.0,
    parameters: Mapping[str, Any] | None = None,
) -> type[Tool]:
    """A tool of a few lines; without ``work`` it answers with its name."""

    async def run(self: Tool, arguments: dict[str, Any], context: CallContext) -> str:
        return await work(arguments, context) if work is not None else name

    return type(
        name,
        (Tool,),
        {
            "name": name,
            "motion": motion,
            "resources": frozenset(resources),
            "timeout": timeout,
            "description": f"{name}.",
            "parameters": dict(parameters or {"type": "object", "additionalProperties": True}),
            "run": run,
        },
    )


class Still:
    """A camera whose picture is one grey pixel."""

    async def still(self) -> Frame:
        return Frame("mono8", b"\x80", 1, 1, 1, False, False, 1.0, "camera", "test")

    def publish_observation(self, data: bytes, media: str, frame: Frame) -> None:
        pass


class Bench:
    """A dispatcher and all that came out of it.

    Attributes:
        ran: Names of the tools that were run, in order.
    """

    def __init__(self, registry: Registry, limits: Limits | None = None, **kwargs: Any) -> None:
        self.results: list[dict[str, str]] = []
        self.events: list[dict[str, Any]] = []
        self.ran: list[str] = []
        self.dispatcher = Dispatcher(
            registry, self.results.append, self._event, limits=limits, **kwargs
        )

    @classmethod
    def of(cls, *tools: type[Tool], limits: Limits | None = None, **kwargs: Any) -> Bench:
        return cls(Registry.load(Ports(), tools=[*tools, *_STOP]), limits, **kwargs)

    @classmethod
    def for_cases(cls, folder: Path, work: Work | None = None, timeout: float = 30.0) -> Bench:
        """The catalogue of the cases: built-in tools, and move_joint and gripper."""
        tools: list[str | type[Tool]] = [t for t in BUILTIN if "arm_" not in t]
        arm = ("arm",)
        tools += [
            make_tool("move_joint", work, motion=True, resources=arm, timeout=timeout),
            make_tool("gripper", work, motion=True, resources=arm, timeout=timeout),
        ]
        ports = Ports(camera=Still(), output_dir=folder)
        registry = Registry.load(ports, None, Catalogue.load(FOLDER / "tools.json"), tools=tools)
        return cls(registry, Limits(cancel_limit=0.5))

    def _event(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        if event["event"] == "started":
            self.ran.append(event["name"])

    async def answers(self, count: int, limit: float = 10.0) -> list[dict[str, str]]:
        """Waits until so many calls are answered, and a moment longer."""
        end = time.monotonic() + limit
        while len(self.results) < count and time.monotonic() < end:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)
        return self.results

    def finished(self, call_id: str) -> dict[str, Any]:
        (event,) = [
            e for e in self.events if e["event"] == "finished" and e["tool_call_id"] == call_id
        ]
        return event

    @property
    def codes(self) -> list[str]:
        """``ok`` or the code of each finished call, in the order of the answers."""
        return [
            "ok" if e["status"] == "succeeded" else e["code"]
            for e in self.events
            if e["event"] == "finished"
        ]


_STOP = ["lerobot_tool_bridge.tools.stop:Stop"]


def call(name: str, arguments: Any = None, call_id: str | None = None) -> dict[str, Any]:
    """One call in OpenAI's form."""
    body: dict[str, Any] = {"type": "function", "function": {"name": name}}
    if arguments is not None:
        body["function"]["arguments"] = arguments
    if call_id is not None:
        body["id"] = call_id
    return body


def message(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": list(calls)}
