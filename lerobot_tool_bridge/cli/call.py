"""``call``: sends one tool call to a running bridge and prints its result.

Exit status: 0 it succeeded, 1 it did not, 2 the command line is wrong, 3 no bridge answers,
130 ended by a second Ctrl-C.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import String

from lerobot_tool_bridge.core.messages import new_id
from lerobot_tool_bridge.policy.chat import assistant_message, failed, show_arguments
from lerobot_tool_bridge.ros.qos import COMMANDS, LATCHED

FIND_LIMIT = 5.0
"""Seconds within which something of a bridge has to be found."""

_CATALOGUE_LIMIT = 10.0
"""Seconds within which it has to be found whole: discovery takes up to 3 s, more under load."""

_GONE_LIMIT = 2.0
"""Seconds without the bridge on the graph after which it counts as ended."""


class UsageError(Exception):
    """The command line can't be understood; the text says what is expected."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = argparse.ArgumentParser(
        prog="python -m lerobot_tool_bridge call",
        description="Sends one tool call and prints its result. Ctrl-C cancels it.",
        epilog="example: call arm_grab_object x:=0.2 y:=0.0 z:=0.02",
    )
    result.add_argument("tool", nargs="?", help="name of the tool, or the whole call as JSON")
    result.add_argument("arguments", nargs="*", help="name:=value ..., or one JSON object")
    result.add_argument("--list", action="store_true", help="print the tools and their arguments")
    result.add_argument(
        "--stats", action="store_true", help="print how often each tool was called, and its times"
    )
    result.add_argument("--namespace", default="", help="namespace of the robot")
    result.add_argument("--bridge", default="tool_bridge", help="name of the bridge's node")
    result.add_argument(
        "--timeout",
        type=float,
        default=0.0,
        metavar="S",
        help="cancel the call after so many seconds (default: the tool's own limit counts)",
    )
    return result


def read_words(tool: str, words: Sequence[str]) -> tuple[str, dict[str, Any], dict[str, str]]:
    """What was asked for.

    Returns:
        The tool's name, the arguments that came as JSON, and those that came as texts
        (``name:=value``); one of the two is empty.

    Raises:
        UsageError: It is neither.
    """
    if tool.lstrip().startswith("{"):
        call = read_json(tool)
        call = call.get("function", call)
        if words or not isinstance(call, dict) or not isinstance(call.get("name"), str):
            raise UsageError('a call as JSON is one object: {"name": "...", "arguments": {...}}')
        arguments = call.get("arguments", {})
        if isinstance(arguments, str):
            arguments = read_json(arguments)
        if not isinstance(arguments, dict):
            raise UsageError("arguments should be a JSON object")
        return call["name"], arguments, {}
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return tool, read_json(words[0]), {}
    texts: dict[str, str] = {}
    for word in words:
        name, separator, value = word.partition(":=")
        if not separator or not name:
            hint = f" (did you mean {word.replace('=', ':=', 1)}?)" if "=" in word else ""
            raise UsageError(f"{word!r} should be name:=value{hint}")
        if name in texts:
            raise UsageError(f"{name} is given twice")
        texts[name] = value
    return tool, {}, texts


def read_json(text: str) -> dict[str, Any]:
    """One JSON object, without NaN and Infinity.

    Raises:
        UsageError: It is none.
    """
    try:
        value = json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        raise UsageError(f"{text!r} is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise UsageError(f"{text!r} is no JSON object")
    return value


def typed(texts: Mapping[str, str], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Texts of the command line as the values that the tool's schema asks for.

    A text that doesn't fit its type is sent as it is: the bridge's answer says what is wrong.
    """
    properties = parameters.get("properties", {})
    return {name: _value(text, properties.get(name)) for name, text in texts.items()}


def _value(text: str, schema: Any) -> Any:
    kinds = schema.get("type") if isinstance(schema, dict) else None
    kinds = {kinds} if isinstance(kinds, str) else set(kinds or ())
    if kinds == {"string"}:
        return text
    try:
        value = json.loads(text, parse_constant=_refuse)
    except ValueError:
        return text
    if isinstance(value, str) and kinds and "string" not in kinds:
        return text
    return value


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number of JSON")


class Client:
    """What talks to the bridge; everything happens in ``spin``.

    Args:
        bridge: The bridge's node name, with the namespace.
        ros_args: ``--ros-args ...`` of the command line.
    """

    def __init__(self, bridge: str, ros_args: Sequence[str] = ()) -> None:
        self.bridge = bridge
        self.catalogue: list[dict[str, Any]] | None = None
        self.result: dict[str, Any] | None = None
        self.status = ""
        self.statistics: DiagnosticStatus | None = None
        self._id = ""
        self._said: Callable[[dict[str, Any]], None] = lambda event: None
        self._context = rclpy.Context()
        rclpy.init(
            args=list(ros_args),
            context=self._context,
            signal_handler_options=SignalHandlerOptions.NO,
        )
        self._node = Node(f"call_{os.getpid()}", context=self._context, enable_rosout=False)
        self._calls = self._node.create_publisher(String, f"{bridge}/tool_calls", COMMANDS)
        self._cancel = self._node.create_publisher(String, f"{bridge}/cancel", COMMANDS)
        # The catalogue's subscription comes last: when it has its message, the bridge knows of
        # the others too, and no result can get lost.
        self._results = self._node.create_subscription(
            String, f"{bridge}/tool_results", self._on_result, COMMANDS
        )
        self._node.create_subscription(String, f"{bridge}/tool_events", self._on_event, COMMANDS)
        self._node.create_subscription(String, f"{bridge}/tools", self._on_tools, LATCHED)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)

    @property
    def found(self) -> bool:
        """Whether the bridge's catalogue is here and the bridge listens."""
        return self.catalogue is not None and all(
            p.get_subscription_count() > 0 for p in (self._calls, self._cancel)
        )

    @property
    def gone(self) -> bool:
        """Whether nobody could answer any more."""
        return bool(self._node.count_publishers(self._results.topic_name) == 0)

    def spin(self, seconds: float = 0.05) -> None:
        """Handles what arrives for a short while."""
        self._executor.spin_once(timeout_sec=seconds)

    def watch_statistics(self) -> None:
        """From now on ``statistics`` is what the bridge says of its calls on /diagnostics."""
        name = f"{self.bridge.lstrip('/')}: calls"

        def take(message: DiagnosticArray) -> None:
            for status in message.status:
                if status.name == name:
                    self.statistics = status

        self._node.create_subscription(DiagnosticArray, "/diagnostics", take, 10)

    def parameters(self, tool: str) -> dict[str, Any]:
        """The schema of a tool's arguments; empty where the bridge has no such tool."""
        for entry in self.catalogue or ():
            if entry["function"]["name"] == tool:
                return dict(entry["function"].get("parameters") or {})
        return {}

    def send(
        self, name: str, arguments: Mapping[str, Any], said: Callable[[dict[str, Any]], None]
    ) -> None:
        """Sends one call under an id of its own; ``said`` gets its events."""
        self._id = new_id()
        self._said = said
        message = assistant_message("", [(self._id, name, arguments)])
        self._calls.publish(String(data=json.dumps(message, ensure_ascii=False)))

    def cancel(self) -> None:
        """Asks the bridge to cancel the call."""
        self._cancel.publish(String(data=self._id))

    def close(self) -> None:
        """Ends the node."""
        self._executor.shutdown(timeout_sec=1.0)
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)

    def _on_tools(self, message: String) -> None:
        self.catalogue = json.loads(message.data)

    def _on_result(self, message: String) -> None:
        result = json.loads(message.data)
        if self._id and result.get("tool_call_id") == self._id:
            self.result = result

    def _on_event(self, message: String) -> None:
        event = json.loads(message.data)
        if self._id and event.get("tool_call_id") == self._id:
            if event.get("event") == "finished":
                self.status = str(event.get("status"))
            self._said(event)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``call``; returns its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    # by hand: rclpy would take label:=table for a remapping of its own
    own = list(itertools.takewhile(lambda word: word != "--ros-args", words))
    arguments = parser()
    args = arguments.parse_intermixed_args(own)
    try:
        if args.tool is None and not (args.list or args.stats):
            raise UsageError("which tool? --list prints them")
        name, given, texts = read_words(args.tool or "", args.arguments)
    except UsageError as error:
        arguments.error(str(error))
    namespace = args.namespace.strip("/")
    bridge = f"/{namespace}/{args.bridge}" if namespace else args.bridge
    interrupts: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)

    before = {n: signal.signal(n, on_signal) for n in (signal.SIGINT, signal.SIGTERM)}
    client = Client(bridge, words[len(own) :])
    try:
        if not find(client, interrupts):
            return 130 if interrupts else 3
        if args.list:
            print(listing(client.catalogue or []))
            return 0
        if args.stats:
            return _stats(client, interrupts)
        given = given or typed(texts, client.parameters(name))
        return _call(client, name, given, args.timeout, interrupts)
    finally:
        client.close()
        for number, handler in before.items():
            signal.signal(number, handler)


def find(client: Client, interrupts: list[int]) -> bool:
    """Waits for the bridge; says so and returns False where none is there."""
    start = time.monotonic()
    while not client.found:
        if interrupts:
            return False
        if time.monotonic() - start > (FIND_LIMIT if client.gone else _CATALOGUE_LIMIT):
            domain = os.environ.get("ROS_DOMAIN_ID", "0")
            what = (
                f"{client.bridge} is there but has published no catalogue; is it active?"
                if not client.gone
                else f"no bridge answers as {client.bridge} on ROS domain {domain}. Start one "
                "with: python -m lerobot_tool_bridge up (and mind --namespace)"
            )
            print(f"error: {what}", file=sys.stderr)
            return False
        client.spin()
    return True


def _stats(client: Client, interrupts: list[int]) -> int:
    client.watch_statistics()
    start = time.monotonic()
    while client.statistics is None:
        if interrupts or time.monotonic() - start > _CATALOGUE_LIMIT:
            print(f"error: {client.bridge} says nothing on /diagnostics", file=sys.stderr)
            return 130 if interrupts else 3
        client.spin()
    lines = {value.key: value.value for value in client.statistics.values}
    width = max(map(len, lines), default=0)
    print(client.statistics.message)
    for name, text in lines.items():
        print(f"  {name:{width}}  {text}")
    return 0


def _call(
    client: Client, name: str, given: Mapping[str, Any], timeout: float, interrupts: list[int]
) -> int:
    print(f"{name}({show_arguments(given)})", file=sys.stderr)
    client.send(name, given, _show_event)
    start = time.monotonic()
    gone = cancelled = 0.0
    while client.result is None:
        client.spin()
        now = time.monotonic()
        if len(interrupts) > 1:
            return 130
        if not cancelled and (interrupts or (timeout and now - start > timeout)):
            cancelled = now
            print("cancelling ... (once more leaves it alone)", file=sys.stderr)
            client.cancel()
        gone = (gone or now) if client.gone else 0.0
        if gone and now - gone > _GONE_LIMIT:
            print("error: the bridge ended and did not answer", file=sys.stderr)
            return 1
    limit = time.monotonic() + 1.0
    while not client.status and time.monotonic() < limit:  # its event, for the status
        client.spin()
    content = str(client.result.get("content", ""))
    print(content, flush=True)
    good = client.status == "succeeded" if client.status else not failed(content)
    return 0 if good else 1


def _show_event(event: dict[str, Any]) -> None:
    kind = event.get("event")
    if kind == "started":
        print("started", file=sys.stderr)
    elif kind == "feedback":
        print(f"  {event.get('detail', '')}", file=sys.stderr)
    elif kind == "finished":
        code = f" ({event['code']})" if event.get("code") else ""
        duration = event.get("duration_s")
        after = f" after {duration:.1f} s" if isinstance(duration, int | float) else ""
        print(f"{event.get('status')}{code}{after}", file=sys.stderr)


def listing(catalogue: Sequence[Mapping[str, Any]]) -> str:
    """The catalogue as lines: name, arguments with their types, and the description."""
    lines = []
    for entry in catalogue:
        function = entry["function"]
        parameters = function.get("parameters") or {}
        required = parameters.get("required", [])
        words = [function["name"]]
        for name, schema in parameters.get("properties", {}).items():
            kind = schema.get("type", "value")
            kind = "|".join(kind) if isinstance(kind, list) else kind
            words.append(f"{name}:={kind}" if name in required else f"[{name}:={kind}]")
        lines.append(" ".join(words))
        lines += textwrap.wrap(
            function.get("description", ""), 95, initial_indent="    ", subsequent_indent="    "
        )
    return "\n".join(lines)
