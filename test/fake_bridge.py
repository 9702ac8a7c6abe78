"""A bridge in the test's own node, for tests of what talks to bridges."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from harness import Ros
from std_msgs.msg import String

from lerobot_tool_bridge.ros.qos import COMMANDS, LATCHED

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "move",
            "description": "Moves. Slowly.",
            "parameters": {
                "type": "object",
                "properties": {
                    "x": {"type": "number"},
                    "steps": {"type": "integer"},
                    "label": {"type": "string"},
                    "wait": {"type": "boolean"},
                },
                "required": ["x"],
            },
        },
    }
]


class FakeBridge:
    """Publishes a catalogue, keeps every call, and answers with what ``answer`` returns.

    Args:
        ros: The test's node.
        answer: Gets name and arguments; returns status and content, or None for no answer.
        name: The node's name that it plays.
    """

    def __init__(
        self,
        ros: Ros,
        answer: Callable[[str, dict[str, Any]], tuple[str, str] | None],
        name: str = "/tool_bridge",
    ) -> None:
        self.messages: list[dict[str, Any]] = []
        self.cancelled: list[str] = []
        self._answer = answer
        node = ros.node
        self._results = node.create_publisher(String, f"{name}/tool_results", COMMANDS)
        self._events = node.create_publisher(String, f"{name}/tool_events", COMMANDS)
        self._tools = node.create_publisher(String, f"{name}/tools", LATCHED)
        node.create_subscription(String, f"{name}/tool_calls", self._on_calls, COMMANDS)
        node.create_subscription(String, f"{name}/cancel", self._on_cancel, COMMANDS)
        self._tools.publish(String(data=json.dumps(TOOLS)))

    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        return [
            (c["function"]["name"], c["function"]["arguments"])
            for m in self.messages
            for c in m.get("tool_calls", ())
        ]

    def _on_calls(self, message: String) -> None:
        data = json.loads(message.data)
        self.messages.append(data)
        for call in data.get("tool_calls", ()):
            function = call["function"]
            self._event(call["id"], "started")
            answer = self._answer(function["name"], function["arguments"])
            if answer is not None:
                self._finish(call["id"], function["name"], *answer)

    def _on_cancel(self, message: String) -> None:
        self.cancelled.append(message.data)
        self._finish(message.data, "move", "cancelled", "Error: cancelled.")

    def _finish(self, call_id: str, name: str, status: str, content: str) -> None:
        result = {"role": "tool", "tool_call_id": call_id, "name": name, "content": content}
        self._results.publish(String(data=json.dumps(result)))
        self._event(call_id, "finished", status=status)

    def _event(self, call_id: str, event: str, **more: Any) -> None:
        data = {"event": event, "tool_call_id": call_id, **more}
        self._events.publish(String(data=json.dumps(data)))
