"""``scripted_policy``: plays a YAML script of assistant messages, as a language policy would.

Reads the catalogue from the bridge's ``~/tools``, publishes one turn after the other on its
``~/tool_calls`` and waits for all results of a turn, by id, before the next. The conversation is
logged as it happens. The process ends with the script: status 0 where every call ended as the
script says.
"""

from __future__ import annotations

import json
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from std_msgs.msg import String

from lerobot_tool_bridge.core.messages import new_id
from lerobot_tool_bridge.node.managed import ManagedNode, NodeError, run
from lerobot_tool_bridge.node.parameters import Param
from lerobot_tool_bridge.policy.chat import assistant_message, failed, show_arguments
from lerobot_tool_bridge.policy.files import open_new
from lerobot_tool_bridge.policy.script import Script, ScriptedCall, Turn
from lerobot_tool_bridge.ros.qos import COMMANDS, LATCHED

PARAMETERS = (
    Param("script", "", "YAML file with the conversation to play."),
    Param("bridge", "tool_bridge", "Name of the bridge's node, relative to this one's namespace."),
    Param(
        "conversation",
        "",
        "JSONL file for the conversation, one message a line; empty for none. An existing file "
        "is kept: the new one gets a number.",
    ),
    Param(
        "result_timeout",
        120.0,
        "Seconds to wait for the bridge, and for the results of one turn.",
        low=1.0,
        high=3600.0,
    ),
)


class ScriptedPolicy(ManagedNode):
    """The node; a timer looks whether the next turn can begin."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("scripted_policy", PARAMETERS, **kwargs)
        self._turns: Iterator[Turn] = iter(())
        self._pending: dict[str, ScriptedCall] = {}
        self._wrong: list[str] = []
        self._catalogue: list[str] = []
        self._subscriptions_made: list[Any] = []
        self._timer: Any = None
        self._file: IO[str] | None = None

    def configure(self) -> None:
        if not self.param("script"):
            raise NodeError("The parameter script should name a YAML file to play.")
        self._turns = iter(Script.load(Path(self.param("script")).expanduser()).turns)
        bridge = self.param("bridge")
        self._calls = self.create_publisher(String, f"{bridge}/tool_calls", COMMANDS)
        # The catalogue's subscription comes last: when it has its message, the bridge knows of
        # the results' subscription too.
        self._subscriptions_made = [
            self.create_subscription(String, f"{bridge}/tool_results", self._on_result, COMMANDS),
            self.create_subscription(String, f"{bridge}/tools", self._on_tools, LATCHED),
        ]

    def activate(self) -> None:
        if path := self.param("conversation"):
            self._file = open_new(Path(path).expanduser())
        self._deadline = time.monotonic() + self.param("result_timeout")
        self._timer = self.steady_timer(0.05, self._look)

    def deactivate(self) -> None:
        if self._timer is not None:
            self.destroy_timer(self._timer)
            self._timer = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def cleanup(self) -> None:
        for subscription in self._subscriptions_made:
            self.destroy_subscription(subscription)
        if self._subscriptions_made:
            self.destroy_publisher(self._calls)
        self._subscriptions_made = []
        self._pending.clear()

    # --- the conversation -----------------------------------------------------------------

    def _on_tools(self, message: String) -> None:
        first = not self._catalogue
        self._catalogue = [entry["function"]["name"] for entry in json.loads(message.data)]
        if first:
            self.get_logger().info(f"The robot offers: {', '.join(self._catalogue)}")

    def _on_result(self, message: String) -> None:
        result = json.loads(message.data)
        call = self._pending.pop(result.get("tool_call_id"), None)
        if call is None:
            return  # somebody else's
        content = str(result.get("content"))
        self._save(result)
        self._tell("tool", f"{call.name}: {content}")
        if failed(content) != call.fails:
            self._wrong.append(f"{call.name} should have {'failed' if call.fails else 'worked'}")

    def _look(self) -> None:
        """Begins the next turn when there is nothing left to wait for."""
        ready = self._catalogue and self._calls.get_subscription_count()
        if self._pending or not ready:
            if time.monotonic() > self._deadline:
                what = (
                    f"the results of {', '.join(c.name for c in self._pending.values())}"
                    if self._pending
                    else f"the bridge {self.param('bridge')}"
                )
                self._finish(f"waited in vain for {what}")
            return
        if self._wrong:
            self._finish("; ".join(self._wrong))
            return
        turn = next(self._turns, None)
        if turn is None:
            self._finish("")
            return
        self._deadline = time.monotonic() + self.param("result_timeout")
        self._play(turn)

    def _play(self, turn: Turn) -> None:
        self._tell(turn.role, turn.content)
        if turn.role != "assistant":
            self._save({"role": turn.role, "content": turn.content})
            return
        self._pending = {new_id(): call for call in turn.calls}
        message = assistant_message(
            turn.content, [(i, call.name, call.arguments) for i, call in self._pending.items()]
        )
        if not turn.calls:
            del message["tool_calls"]
        self._save(message)
        for call in turn.calls:
            self._tell("", f"→ {call.name}({show_arguments(call.arguments)})")
        self._calls.publish(String(data=json.dumps(message, ensure_ascii=False)))

    def _finish(self, wrong: str) -> None:
        if wrong:
            self.get_logger().error(f"The script ends here: {wrong}.")
        self.deactivate()
        self.end_process(1 if wrong else 0)

    def _tell(self, who: str, text: str) -> None:
        indent = " " * 11
        self.get_logger().info(
            textwrap.fill(f"{who:<10} {text}", 99, subsequent_indent=indent) if text else who
        )

    def _save(self, message: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(message, ensure_ascii=False) + "\n")
            self._file.flush()


def main() -> int:
    """Runs the node."""
    return run(ScriptedPolicy)


if __name__ == "__main__":
    sys.exit(main())
