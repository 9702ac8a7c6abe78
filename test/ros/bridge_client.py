"""A bridge process and everything that a policy sees of it."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from fake_robot import FakeRobot
from harness import Ros, Spawner, wait_for
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from std_msgs.msg import String

from lerobot_tool_bridge.ros.qos import COMMANDS, LATCHED

HERE = Path(__file__).parent
_ids = itertools.count()


class BridgeProcess:
    """Starts the bridge with the tests' tools, and talks to it.

    Args:
        ros: The test's node.
        spawn: Starts the process.
        ros_args: More arguments after ``--ros-args``.
        parameters: Of the bridge.
    """

    def __init__(self, ros: Ros, spawn: Spawner, *ros_args: str, **parameters: Any) -> None:
        self.ros = ros
        given = {"robot": str(HERE / "robot.yaml"), "speech": "log", **parameters}
        command = [sys.executable, str(HERE / "bridge_for_tests.py"), "--ros-args", *ros_args]
        for name, value in given.items():
            command += ["-p", f"{name}:={json.dumps(value)}"]
        self.process = spawn(*command)
        self.results: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.catalogues: list[list[Any]] = []
        node = ros.node
        for topic, into, qos in (
            ("tool_results", self.results, COMMANDS),
            ("tool_events", self.events, COMMANDS),
            ("tools", self.catalogues, LATCHED),
        ):
            node.create_subscription(
                String,
                f"tool_bridge/{topic}",
                lambda message, into=into: into.append(json.loads(message.data)),
                qos,
            )
        self.calls = node.create_publisher(String, "tool_bridge/tool_calls", COMMANDS)
        self.cancels = node.create_publisher(String, "tool_bridge/cancel", COMMANDS)
        if parameters.get("autostart", True):
            self.process.wait_output("Active")
            self.wait_matched()

    def wait_matched(self) -> None:
        """Waits until the topics are connected both ways."""
        wait_for(
            lambda: (
                self.calls.get_subscription_count()
                and self.cancels.get_subscription_count()
                and self.ros.node.count_publishers("tool_bridge/tool_results")
                and self.catalogues
            ),
            name="the bridge's topics",
        )
        # the writer of the results may know our reader later than we know it: ask until it answers
        wait_for(self._answers, name="the bridge's first answer")

    def _answers(self) -> bool:
        sent = self.send("echo", text="hello?")
        try:
            wait_for(lambda: self.answers(sent), 0.5)
        except TimeoutError:
            return False
        return bool(self.events)

    def send(self, name: str, /, **arguments: Any) -> str:
        """Publishes one call; returns its id."""
        call_id = f"call{next(_ids):05d}"
        function = {"name": name, "arguments": arguments}
        self.publish(
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": call_id, "type": "function", "function": function}],
            }
        )
        return call_id

    def publish(self, message: Any) -> None:
        """Publishes a message, or a text as it is."""
        text = message if isinstance(message, str) else json.dumps(message)
        self.calls.publish(String(data=text))

    def call(self, name: str, /, **arguments: Any) -> str:
        """Sends a call and waits for the content of its answer."""
        return self.answer(self.send(name, **arguments))

    def answer(self, call_id: str, limit: float = 20.0) -> str:
        """Waits for the answer to a call, and for its last event."""
        try:
            wait_for(lambda: self.answers(call_id) and self.finished(call_id), limit)
        except TimeoutError:
            raise AssertionError(
                f"no answer to {call_id}; the bridge said:\n{self.process.output}"
            ) from None
        return str(self.answers(call_id)[0]["content"])

    def answers(self, call_id: str) -> list[dict[str, Any]]:
        """All results under an id; there must never be two."""
        return [r for r in self.results if r["tool_call_id"] == call_id]

    def finished(self, call_id: str) -> dict[str, Any] | None:
        """The ``finished`` event of a call."""
        for event in self.events:
            if event["tool_call_id"] == call_id and event["event"] == "finished":
                return event
        return None

    def code(self, call_id: str) -> str:
        """Status and code of a call that has ended: ``failed unavailable``."""
        event = self.finished(call_id)
        assert event is not None
        return f"{event['status']} {event['code']}".strip()

    def cancel(self, call_id: str) -> None:
        """Publishes a cancel."""
        self.cancels.publish(String(data=call_id))

    def wait_event(self, call_id: str, event: str) -> None:
        """Waits for an event of a call."""
        wait_for(
            lambda: any(e["tool_call_id"] == call_id and e["event"] == event for e in self.events),
            name=f"{event} of {call_id}",
        )

    def change(self, transition: int) -> bool:
        """Changes the state of the node's life cycle."""
        request = ChangeState.Request(transition=Transition(id=transition))
        return bool(self.ros.call(ChangeState, "tool_bridge/change_state", request).success)

    def state(self) -> str:
        """The state of the node's life cycle."""
        return str(self.ros.call(GetState, "tool_bridge/get_state").current_state.label)

    def check_alive(self) -> None:
        """A good call still works, and nothing was answered twice."""
        assert self.call("echo", text="still here") == "still here"
        ids = [r["tool_call_id"] for r in self.results]
        assert len(ids) == len(set(ids)), "a call was answered twice"


class World(NamedTuple):
    """A domain, a bridge in it, and a robot in the test's own node."""

    ros: Ros
    spawn: Spawner
    bridge: BridgeProcess
    robot: FakeRobot
