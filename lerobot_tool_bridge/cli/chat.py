"""``chat``: talk to the virtual robot.

Starts virtual robot, drivers, bridge and language policy on a ROS domain of their own, and takes
what you type as instructions; shows every call, its progress and its result, and the answer.
LLM_URL and LLM_MODEL (or --url, --model) choose an OpenAI-compatible server, LLM_API_KEY holds
its key; without a server, the built-in policy of rules answers. Ctrl-C ends what runs, and
the chat where nothing runs.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lerobot_tool_bridge.bringup import Bringup, NodeSpec, free_port
from lerobot_tool_bridge.cli.demo import make_room
from lerobot_tool_bridge.cli.own_domain import own_domain
from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.policy.chat import show_arguments

_START_LIMIT = 120.0
_POLICY = "language_policy"
_BRIDGE = "tool_bridge"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = argparse.ArgumentParser(
        prog="python -m lerobot_tool_bridge chat",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("instructions", nargs="*", help="say these, and end")
    env = os.environ
    result.add_argument("--url", default=env.get("LLM_URL", ""), help="up to /v1 ($LLM_URL)")
    result.add_argument("--model", default=env.get("LLM_MODEL", ""), help="($LLM_MODEL)")
    result.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME:=VALUE",
        help="a parameter of language_policy, such as text_format:=hermes",
    )
    result.add_argument("--scene", default="", help="another scene (.yaml file)")
    result.add_argument(
        "--output", type=Path, default=Path("chat_output"), help="folder for pictures and logs"
    )
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the chat; returns its exit status."""
    arguments = parser()
    args = arguments.parse_args(argv)
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    try:
        given = _parameters(args.param)
        output = args.output.absolute()
        make_room(output)
        with tempfile.TemporaryDirectory(prefix="virtual_robot-") as devices:
            nodes = Bringup(
                scene=args.scene,
                device_dir=devices,
                camera_port=free_port(),
                output_dir=str(output),
            ).nodes()
            policy = NodeSpec(
                _POLICY,
                _POLICY,
                parameters={
                    "url": args.url,
                    "model": args.model,
                    "conversation": str(output / "conversation.jsonl"),
                    **given,
                },
            )
            return _run([*nodes, policy], args.instructions, output)
    except LoadError as error:
        print(f"chat: {error}", file=sys.stderr)
        return 1


def _parameters(words: Sequence[str]) -> dict[str, Any]:
    """``name:=value`` as ROS reads it: JSON where it is some, else a text."""
    found: dict[str, Any] = {}
    for word in words:
        name, separator, value = word.partition(":=")
        if not separator or not name:
            raise LoadError("bad_option", f"--param {word!r} should be NAME:=VALUE")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def _run(nodes: list[NodeSpec], instructions: Sequence[str], output: Path) -> int:
    from lerobot_tool_bridge.cli.stack import Processes, Signals, Stack

    log = (output / "nodes.log").open("w", encoding="utf-8")
    lock = threading.Lock()

    def echo(name: str, line: str) -> None:
        with lock:
            log.write(f"{name}: {line}\n")
            log.flush()
        if name == _POLICY and ("[WARN]" in line or "[ERROR]" in line):
            print(f"  ! {line.partition(']: ')[2] or line}", flush=True)

    processes = Processes(echo)
    with own_domain() as domain, Signals() as signals:
        stack = Stack(nodes, processes, domain)
        begin = time.monotonic()

        def watch() -> None:
            for name, end in processes.newly_dead():
                raise _Ended(f"{name} ended by itself ({end}); {output}/nodes.log says why")
            if signals.stop.is_set() and stack.waiting_for():
                raise _Ended("ended by a signal")
            if stack.waiting_for() and time.monotonic() - begin > _START_LIMIT:
                raise _Ended(f"waited in vain for {', '.join(stack.waiting_for())}")

        try:
            print("Starting the virtual robot, its drivers, the bridge and the policy ...")
            stack.start(watch)
            stack.wait_active(nodes, watch)
            chat = _Chat(stack, signals, watch)
            chat.find()
            print(
                f"Ready after {time.monotonic() - begin:.0f} s, on ROS_DOMAIN_ID {domain}. Say "
                "what the robot should do, such as: pick up the red cube and put it at 0.2, "
                "-0.1. An empty line ends it.",
                flush=True,
            )
            return chat.talk(instructions)
        except _Ended as why:
            print(f"chat: {why}", file=sys.stderr)
            return 1
        finally:
            stack.close()
            processes.end(signals.hurry)
            log.close()


class _Ended(Exception):
    """The chat can't go on; one sentence."""


class _Chat:
    """What talks to the policy, and shows what happens."""

    def __init__(self, stack: Any, signals: Any, watch: Callable[[], None]) -> None:
        from std_msgs.msg import String

        from lerobot_tool_bridge.ros.qos import COMMANDS

        self._string = String
        self._stack, self._signals, self._watch = stack, signals, watch
        self._answers: list[dict[str, Any]] = []
        node = stack.node
        self._instruct = node.create_publisher(String, f"{_POLICY}/instruction", COMMANDS)
        self._cancel = node.create_publisher(String, f"{_POLICY}/cancel", COMMANDS)
        self._subscriptions = [
            node.create_subscription(
                String, topic, lambda m, take=take: take(json.loads(m.data)), COMMANDS
            )
            for topic, take in (
                (f"{_POLICY}/conversation", self._on_message),
                (f"{_BRIDGE}/tool_events", self._on_event),
                (f"{_POLICY}/answer", self._answers.append),
            )
        ]

    def find(self) -> None:
        """Waits until everything is connected, so that nothing gets lost."""
        while not all(
            p.get_subscription_count() for p in (self._instruct, self._cancel)
        ) or not all(self._stack.node.count_publishers(s.topic_name) for s in self._subscriptions):
            self._watch()
            self._stack.spin(0.05)

    def talk(self, instructions: Sequence[str]) -> int:
        """Says the instructions, or what is typed; returns the exit status."""
        if instructions:
            return max(self._say(text, show=True) for text in instructions)
        lines: queue.Queue[str] = queue.Queue()
        while True:
            threading.Thread(target=_read, args=(lines,), daemon=True).start()
            while lines.empty():
                self._watch()
                self._stack.spin(0.05)
                if self._signals.stop.is_set():
                    print()
                    return 0
            text = lines.get().strip()
            if not text:
                return 0
            self._say(text, show=not sys.stdin.isatty())

    def _say(self, text: str, show: bool) -> int:
        """One instruction, up to its answer; 0 when it was answered."""
        if show:
            print(f"you   {text}", flush=True)
        self._answers.clear()
        self._instruct.publish(self._string(data=text))
        while not self._answers:
            self._watch()
            self._stack.spin(0.05)
            if self._signals.stop.is_set():
                self._signals.stop.clear()
                print("  cancelling ...", flush=True)
                self._cancel.publish(self._string(data="*"))
        answer = self._answers[0]
        status = "" if answer["status"] == "answered" else f"{answer['status']}; "
        ran, good = answer["calls_ran"], answer["calls_succeeded"]
        print(
            f"robot {answer['answer']}\n      ({status}calls that ran: {ran}, that did what they "
            f"should: {good}; {answer['duration_s']:.1f} s)",
            flush=True,
        )
        return 0 if answer["status"] == "answered" else 1

    def _on_message(self, message: dict[str, Any]) -> None:
        if message["role"] == "tool":
            first, *more = message["content"].splitlines() or [""]
            print(f"  ← {first}", *(f"    {line}" for line in more), sep="\n", flush=True)
        for call in message.get("tool_calls", ()):
            function = call["function"]
            print(f"  → {function['name']}({show_arguments(function['arguments'])})", flush=True)

    def _on_event(self, event: dict[str, Any]) -> None:
        if event.get("event") == "feedback":
            print(f"    … {event.get('detail', '')}", flush=True)


def _read(lines: queue.Queue[str]) -> None:
    try:
        lines.put(input("you > " if sys.stdin.isatty() else ""))
    except (EOFError, ValueError):
        lines.put("")
