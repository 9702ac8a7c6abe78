"""The loop with a stub server and a bridge that lives in the test's own loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from stub_server import Stub

from lerobot_tool_bridge.core.messages import result_message
from lerobot_tool_bridge.policy.conversation import Conversation
from lerobot_tool_bridge.policy.endpoint import Endpoint, Server
from lerobot_tool_bridge.policy.loop import Answer, Loop, Settings

Reply = Callable[[str, Any], str | None]


def tool(name: str, required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    """A function schema."""
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {
        "type": "function",
        "function": {"name": name, "description": name, "parameters": parameters},
    }


NUMBER, TEXT = {"type": "number"}, {"type": "string"}
TOOLS = [
    tool("gimbal_control", ("pan", "tilt"), pan=NUMBER, tilt=NUMBER),
    tool("record_observation", ("label",), label=TEXT),
    tool("arm_grab_object", ("x", "y", "z"), x=NUMBER, y=NUMBER, z=NUMBER),
    tool("say", ("text",), text=TEXT),
]


class LocalBridge:
    """Answers as the bridge does, one call after the other, each under its id."""

    def __init__(self, reply: Reply) -> None:
        self.tools = TOOLS
        self.sent: list[dict[str, Any]] = []
        self.cancelled: list[str] = []
        self.executed: list[tuple[str, Any]] = []
        self._reply = reply
        self.loop: Loop | None = None
        self.reverse = False
        self.on_cancel = True

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [c for m in self.sent for c in m["tool_calls"]]

    def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)
        calls = message["tool_calls"]
        for call in reversed(calls) if self.reverse else calls:
            function = call["function"]
            content = self._reply(function["name"], function["arguments"])
            if content is None:
                self._soon(self._event(call["id"]))
                continue
            if not content.startswith("Error: invalid"):
                self.executed.append((function["name"], function["arguments"]))
                self._soon(self._event(call["id"]))
            result = result_message(call["id"], function["name"], content)
            self._soon(lambda result=result: self.loop.on_result(result))

    def cancel(self, call_id: str) -> None:
        self.cancelled.append(call_id)
        if self.on_cancel:
            result = result_message(call_id, "x", "Error: cancelled: It was cancelled.")
            self._soon(lambda: self.loop.on_result(result))

    def _event(self, call_id: str) -> Callable[[], None]:
        return lambda: self.loop.on_event({"event": "started", "tool_call_id": call_id})

    @staticmethod
    def _soon(work: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(work)


class Talk:
    """What a test looks at afterwards."""

    def __init__(self, stub: Stub, reply: Reply, server: dict[str, Any], **settings: Any) -> None:
        self.said: list[dict[str, Any]] = []
        self.hints: list[str] = []
        self.stub = stub
        self.bridge = LocalBridge(reply)
        self.picture = settings.pop("picture", None)
        self.conversation = Conversation(
            settings.pop("turns", 20), settings.pop("characters", 60_000), self.said.append
        )
        quick = {"delay": 0.001, "time_limit": 10.0}
        self.server = Server(**{"url": stub.url, "model": "test", **quick, **server})
        self.settings = Settings(**settings)

    def __call__(
        self,
        *instructions: str,
        meanwhile: Callable[[asyncio.Task[Answer]], Any] | None = None,
    ) -> list[Answer]:
        """Says the instructions one after the other."""

        async def work() -> list[Answer]:
            endpoint = Endpoint(self.server)
            loop = self.bridge.loop = Loop(
                endpoint, self.bridge, self.settings, self.conversation, self.hints.append,
                self.picture,
            )  # fmt: skip
            answers = []
            for text in instructions:
                task = asyncio.create_task(loop.run(text))
                if meanwhile is not None:
                    await meanwhile(task)
                answers.append(await task)
            await endpoint.close()
            return answers

        return asyncio.run(work())
