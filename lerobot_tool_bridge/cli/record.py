"""``record``: keeps what is called and answered in a session, as a LeRobot data set.

Exit status: 0 it was written, 1 the folder can't be used, 2 the command line is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args
from std_msgs.msg import String

from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.dataset.writer import SessionWriter
from lerobot_tool_bridge.ros.qos import COMMANDS, LATCHED


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = argparse.ArgumentParser(
        prog="python -m lerobot_tool_bridge record",
        description="Keeps the calls and the answers of a session until Ctrl-C: every message in "
        "session.jsonl at once, and at the end a LeRobot data set (needs pyarrow). It has no "
        "observations.",
    )
    result.add_argument("folder", help="a new folder")
    result.add_argument("--fps", type=_rate, default=30, help="frames a second (30)")
    result.add_argument("--task", default="", help="what the session is about, in words")
    result.add_argument(
        "--duration", type=float, default=0.0, metavar="S", help="end by itself after so long"
    )
    result.add_argument("--namespace", default="", help="namespace of the robot")
    result.add_argument("--bridge", default="tool_bridge", help="name of the bridge's node")
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``record``; returns its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    args = parser().parse_args(remove_ros_args(["record", *words])[1:])
    try:
        writer = SessionWriter(args.folder, args.fps, args.task)
    except LoadError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 1
    namespace = args.namespace.strip("/")
    bridge = f"/{namespace}/{args.bridge}" if namespace else args.bridge
    ended: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        ended.append(number)

    before = {n: signal.signal(n, on_signal) for n in (signal.SIGINT, signal.SIGTERM)}
    recorder = _Recorder(
        writer, bridge, words[words.index("--ros-args") :] if "--ros-args" in words else ()
    )
    try:
        print(f"recording {bridge}; Ctrl-C ends", flush=True)
        while not ended and not (args.duration and recorder.age > args.duration):
            recorder.spin()
    finally:
        recorder.close()
        print(writer.close(recorder.tools))
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


def _rate(text: str) -> int:
    rate = int(text)
    if not 1 <= rate <= 1000:
        raise argparse.ArgumentTypeError("should be 1 to 1000")
    return rate


class _Recorder:
    """Listens to a bridge, and hands everything to a writer."""

    def __init__(self, writer: SessionWriter, bridge: str, ros_args: Sequence[str]) -> None:
        self._writer = writer
        self._start = time.monotonic()
        self.tools: list[Any] | None = None
        self._context = rclpy.Context()
        rclpy.init(
            args=list(ros_args),
            context=self._context,
            signal_handler_options=SignalHandlerOptions.NO,
        )
        self._node = Node(f"record_{os.getpid()}", context=self._context, enable_rosout=False)
        for topic, take, qos in (
            ("tool_calls", self._on_calls, COMMANDS),
            ("tool_results", self._on_result, COMMANDS),
            ("tools", self._on_tools, LATCHED),
        ):
            self._node.create_subscription(String, f"{bridge}/{topic}", take, qos)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)

    @property
    def age(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._start

    def spin(self) -> None:
        """Handles what arrives for a short while."""
        self._executor.spin_once(timeout_sec=0.05)

    def close(self) -> None:
        """Ends the node."""
        self._executor.shutdown(timeout_sec=1.0)
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)

    def _on_calls(self, message: String) -> None:
        for lost in self._writer.called(self.age, message.data):
            print(f"not kept: {lost}", file=sys.stderr, flush=True)

    def _on_result(self, message: String) -> None:
        self._writer.answered(self.age, json.loads(message.data))

    def _on_tools(self, message: String) -> None:
        self.tools = json.loads(message.data)


if __name__ == "__main__":
    sys.exit(main())
