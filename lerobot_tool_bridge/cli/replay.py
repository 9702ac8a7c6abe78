"""``replay``: plays the tool calls of a LeRobot data set through a bridge, at their times.

Exit status: 0 every call succeeded (or would, with ``--dry-run``), 1 one did not or the episode
can't be read, 2 the command line is wrong, 3 no bridge answers, 130 ended by Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any

from lerobot_tool_bridge.core.catalog import Catalogue
from lerobot_tool_bridge.core.check import check_message
from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.core.messages import ToolCall
from lerobot_tool_bridge.core.registry import Registry
from lerobot_tool_bridge.core.toolsfile import load_tools_file
from lerobot_tool_bridge.dataset.reader import Episode, read_episode
from lerobot_tool_bridge.dataset.rows import row_message
from lerobot_tool_bridge.policy.chat import failed, show_arguments
from lerobot_tool_bridge.ports import Ports
from lerobot_tool_bridge.robot import Robot

_GATHER = 1.0
"""Seconds without a new listener after which all are there; discovery takes half of that."""
_GONE_LIMIT = 2.0
_SPIN = 0.05
_SHOWN = 160


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = argparse.ArgumentParser(
        prog="python -m lerobot_tool_bridge replay",
        description="Plays the tool calls of one episode through a bridge, at their times. "
        "The robot moves. Ctrl-C cancels what runs and ends.",
        epilog="example: replay ~/data/my_set --episode 3 --dry-run",
    )
    result.add_argument(
        "dataset", help="a LeRobot data set's folder (v3), or a session.jsonl of record"
    )
    result.add_argument("--episode", type=int, default=0, metavar="N", help="which one (0)")
    result.add_argument(
        "--speed", type=_speed, default=1.0, metavar="X", help="times as fast as it was (1)"
    )
    result.add_argument(
        "--dry-run",
        action="store_true",
        help="run nothing and need no bridge: list the calls and what would fail",
    )
    result.add_argument("--namespace", default="", help="namespace of the robot")
    result.add_argument("--bridge", default="tool_bridge", help="name of the bridge's node")
    dry = result.add_argument_group("for --dry-run")
    dry.add_argument("--robot", default="so101", help="a robot's name or file, for its limits")
    dry.add_argument("--tools-file", help="the site's tools file (YAML), with its limits")
    dry.add_argument("--tools", help="a catalogue, as check takes it (default: built-in tools)")
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``replay``; returns its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    ros_args = words[words.index("--ros-args") :] if "--ros-args" in words else []
    args = parser().parse_args(words[: len(words) - len(ros_args)])
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    try:
        episode = read_episode(args.dataset, args.episode)
        for warning in episode.warnings:
            print(f"warning: {warning}", file=sys.stderr)
        print(f"episode {episode.index}: {episode.frames} frames, {_count(episode)}")
        if args.dry_run:
            return _check(episode, args)
    except LoadError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 1
    if not episode.events:
        return 0
    return _play(episode, args, ros_args)


def _speed(text: str) -> float:
    speed = float(text)
    if not 0.01 <= speed <= 1000:
        raise argparse.ArgumentTypeError("should be 0.01 to 1000")
    return speed


def _count(episode: Episode) -> str:
    calls = sum(len(event.row["tool_calls"]) for event in episode.events)
    return f"{calls} tool call{'' if calls == 1 else 's'}"


def _line(at: float, call: ToolCall, what: str) -> str:
    name = call.name or "a call that can't be read"
    arguments = show_arguments(call.arguments or {})
    shown = arguments if len(arguments) <= _SHOWN else f"{arguments[:_SHOWN]}…"
    return f"{at:8.2f} s  {name}({shown})  {what}"


# --- without a bridge ---------------------------------------------------------------------------


def _check(episode: Episode, args: argparse.Namespace) -> int:
    registry = Registry.load(
        Ports(robot=Robot.load(args.robot)),
        load_tools_file(args.tools_file) if args.tools_file else None,
        Catalogue.load(args.tools) if args.tools else None,
        offline=True,
    )
    bad = 0
    for event in episode.events:
        message, calls = row_message(event.row)
        judged = {c["id"]: c for c in check_message(message, registry)["calls"]} if message else {}
        for call in calls:
            verdict = judged.get(call.id)
            if call.fault is not None:
                code, detail = call.fault.code, call.fault.message
            else:
                code, detail = (verdict["code"], verdict["detail"]) if verdict else ("", "")
            bad += bool(code)
            print(_line(event.time, call, f"would fail: {code}: {detail}" if code else "good"))
    print(f"{bad} would fail" if bad else "all good")
    return 1 if bad else 0


# --- through the bridge -------------------------------------------------------------------------


def _play(episode: Episode, args: argparse.Namespace, ros_args: Sequence[str]) -> int:
    from lerobot_tool_bridge.cli.call import find

    namespace = args.namespace.strip("/")
    bridge = f"/{namespace}/{args.bridge}" if namespace else args.bridge
    interrupts: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)

    before = {n: signal.signal(n, on_signal) for n in (signal.SIGINT, signal.SIGTERM)}
    client = _client(bridge, ros_args)
    try:
        if not find(client, interrupts):
            return 130 if interrupts else 3
        _gather(client, interrupts)
        return _Player(client, args.speed, interrupts).play(episode)
    finally:
        client.close()
        for number, handler in before.items():
            signal.signal(number, handler)


def _gather(client: Any, interrupts: list[int]) -> None:
    """Waits until nobody more turns up who listens: a recorder is to get the first call too."""
    listeners, since = 0, time.monotonic()
    while not interrupts and time.monotonic() - since < _GATHER:
        client.spin(_SPIN)
        if client.listeners != listeners:
            listeners, since = client.listeners, time.monotonic()


def _client(bridge: str, ros_args: Sequence[str]) -> Any:
    """A client for many calls at once. rclpy is needed from here on only."""
    from std_msgs.msg import String

    from lerobot_tool_bridge.cli.call import Client

    class Many(Client):
        def __init__(self) -> None:
            self.answers: dict[str, str] = {}
            super().__init__(bridge, ros_args)

        def publish(self, message: dict[str, Any]) -> None:
            text = json.dumps(message, ensure_ascii=False, allow_nan=False)
            self._calls.publish(String(data=text))

        def cancel_call(self, call_id: str) -> None:
            self._cancel.publish(String(data=call_id))

        @property
        def listeners(self) -> int:
            return int(self._calls.get_subscription_count())

        def _on_result(self, message: String) -> None:
            result = json.loads(message.data)
            self.answers[str(result.get("tool_call_id"))] = str(result.get("content", ""))

    return Many()


class _Player:
    """Sends the messages of an episode when they are due, and prints every answer."""

    def __init__(self, client: Any, speed: float, interrupts: list[int]) -> None:
        self._client = client
        self._speed = speed
        self._interrupts = interrupts
        self._waiting: dict[str, tuple[float, ToolCall]] = {}
        self._bad = 0

    def play(self, episode: Episode) -> int:
        start = time.monotonic()
        events = list(episode.events)
        cancelled, gone = False, 0.0
        while (events and not cancelled) or self._waiting:
            now = time.monotonic()
            if len(self._interrupts) > 1:
                return 130
            if self._interrupts and not cancelled:
                cancelled = True
                print("cancelling ... (once more leaves it alone)", file=sys.stderr)
                for call_id in self._waiting:
                    self._client.cancel_call(call_id)
            due = start + events[0].time / self._speed if events else now + _SPIN
            if events and not cancelled and due <= now:
                self._send(events.pop(0).row, (now - start) * self._speed)
                continue
            self._client.spin(max(0.001, min(_SPIN, due - now)))
            self._take()
            gone = (gone or now) if self._client.gone else 0.0
            if gone and now - gone > _GONE_LIMIT:
                print("error: the bridge ended", file=sys.stderr)
                return 1
        if cancelled:
            return 130
        print(f"{self._bad} failed" if self._bad else "all succeeded", flush=True)
        return 1 if self._bad else 0

    def _send(self, row: Any, at: float) -> None:
        message, calls = row_message(row)
        for call in calls:
            if call.fault is not None:
                self._bad += 1
                print(_line(at, call, f"not sent: {call.fault.code}: {call.fault.message}"))
            else:
                self._waiting[call.id] = (at, call)
        if message.get("tool_calls"):
            self._client.publish(message)

    def _take(self) -> None:
        for call_id in [i for i in self._waiting if i in self._client.answers]:
            at, call = self._waiting.pop(call_id)
            content = self._client.answers.pop(call_id)
            self._bad += failed(content)
            print(_line(at, call, f"→ {content}"), flush=True)


if __name__ == "__main__":
    sys.exit(main())
