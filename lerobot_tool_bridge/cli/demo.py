"""``demo``: the whole thing on a virtual robot.

Starts virtual robot, drivers, bridge and the scripted policy on a ROS domain of their own on this
machine, plays a conversation, and checks by the true poses that the things are where they should
be. Leaves ``conversation.jsonl``, ``audit.jsonl``, ``nodes.log`` and the pictures in
``demo_output``; what an earlier run left there is moved to ``demo_output/earlier/<number>``.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from lerobot_tool_bridge import share
from lerobot_tool_bridge.bringup import Bringup, NodeSpec, free_port
from lerobot_tool_bridge.cli.own_domain import own_domain
from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.policy.script import Check, Script

_LIMIT = 180.0
"""Seconds after which the demo gives up."""
_SETTLE = 10.0
"""Seconds that things may take to come to rest where they should be."""


Position = tuple[float, float, float]


class _Failed(Exception):
    """The demo did not show what it should; one sentence."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the demo; returns its exit status: 0 when everything is as it should be."""
    parser = argparse.ArgumentParser(
        prog="python -m lerobot_tool_bridge demo", description=__doc__
    )
    parser.add_argument(
        "--script",
        type=Path,
        default=share.path("examples", "pick_and_place.yaml"),
        help="the conversation (default: examples/pick_and_place.yaml)",
    )
    parser.add_argument("--scene", default="", help="another scene (.yaml file)")
    parser.add_argument("--output", type=Path, default=Path("demo_output"), help="folder to fill")
    args = parser.parse_args(argv)
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    share.quick_discovery()
    begin = time.monotonic()
    try:
        output = args.output.absolute()
        script = Script.load(args.script)
        make_room(output)
        with tempfile.TemporaryDirectory(prefix="virtual_robot-") as devices:
            nodes = Bringup(
                scene=args.scene,
                device_dir=devices,
                camera_port=free_port(),
                output_dir=str(output),
                audit_file=str(output / "audit.jsonl"),
            ).nodes()
            _run(nodes, args.script.absolute(), script.checks, output)
    except (LoadError, _Failed) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    pictures = sorted(p.name for p in output.glob("*.png"))
    print(
        f"demo: all as it should be, after {time.monotonic() - begin:.0f} s. In {args.output}: "
        f"{', '.join(pictures)}, conversation.jsonl, audit.jsonl, nodes.log"
    )
    return 0


class _Log:
    """All lines of the nodes go to a file; the conversation and the errors to the terminal too."""

    def __init__(self, path: Path, policy: str) -> None:
        self._file = path.open("w", encoding="utf-8")
        self._policy = policy
        self._lock = threading.Lock()

    def __call__(self, name: str, line: str) -> None:
        with self._lock:
            self._file.write(f"{name}: {line}\n")
            self._file.flush()
            if name == self._policy:
                print(line, flush=True)
            elif "[ERROR]" in line or "[FATAL]" in line:
                print(f"{name}: {line}", flush=True)

    def close(self) -> None:
        self._file.close()


def _run(nodes: list[NodeSpec], script: Path, checks: Sequence[Check], output: Path) -> None:
    from visualization_msgs.msg import MarkerArray

    from lerobot_tool_bridge.cli.stack import Processes, Signals, Stack

    policy = NodeSpec(
        "scripted_policy",
        "scripted_policy",
        parameters={
            "script": str(script),
            "conversation": str(output / "conversation.jsonl"),
        },
    )
    log = _Log(output / "nodes.log", policy.name)
    processes = Processes(log)
    poses: dict[str, Position] = {}

    def on_objects(message: MarkerArray) -> None:
        for marker in message.markers:
            p = marker.pose.position
            poses[marker.ns] = (p.x, p.y, p.z)

    with own_domain() as domain, Signals() as signals:
        stack = Stack(nodes, processes, domain)
        stack.node.create_subscription(MarkerArray, "virtual_robot/objects", on_objects, 10)
        limit = time.monotonic() + _LIMIT

        def watch() -> None:
            if signals.stop.is_set():
                raise _Failed("ended by a signal")
            for name, end in processes.newly_dead():
                if name != policy.name:
                    raise _Failed(f"{name} ended by itself ({end}); its lines are in nodes.log")
            if time.monotonic() > limit:
                missing = ", ".join(stack.waiting_for()) or "the conversation"
                raise _Failed(f"gave up after {_LIMIT:.0f} s, waiting for {missing}")

        try:
            print("demo: starting the virtual robot, its drivers and the bridge ...", flush=True)
            stack.start(watch)
            stack.wait_active(nodes, watch)
            plain = {"RCUTILS_CONSOLE_OUTPUT_FORMAT": "{message}", "ROS_DOMAIN_ID": str(domain)}
            process = processes.start(policy.name, policy.command(), plain)
            while process.poll() is None:
                watch()
                stack.spin(0.1)
            if process.returncode:
                raise _Failed("the conversation did not go as the script says")
            end = time.monotonic() + _SETTLE
            while (wrong := misplaced(checks, poses)) and time.monotonic() < end:
                watch()
                stack.spin(0.1)
            if wrong:
                raise _Failed(wrong)
            for check in checks:
                off = 1000 * math.dist(check.position, poses[check.object])
                print(f"demo: {check.object} is {off:.1f} mm from where it should be", flush=True)
        finally:
            stack.close()
            processes.end(signals.hurry)
            log.close()


def misplaced(checks: Sequence[Check], poses: dict[str, tuple[float, float, float]]) -> str:
    """A sentence on what is not where it should be; empty when all is well."""
    for check in checks:
        if check.object not in poses:
            return f"the virtual robot says nothing of {check.object}"
        off = math.dist(check.position, poses[check.object])
        if off > check.within:
            there = ", ".join(f"{v:.3f}" for v in poses[check.object])
            wanted = ", ".join(f"{v:.3f}" for v in check.position)
            return (
                f"{check.object} is at ({there}) and should be at ({wanted}): "
                f"{1000 * off:.0f} mm away, at most {1000 * check.within:.0f} mm are allowed"
            )
    return ""


def make_room(output: Path) -> None:
    """Moves what an earlier run left to ``earlier/<number>``, so that nothing is lost.

    Raises:
        LoadError: The folder holds things that no demo left there, or can't be written.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
        left = [p for p in output.iterdir() if p.name != "earlier"]
        if not left:
            return
        if not (output / "nodes.log").is_file():
            raise LoadError(
                "bad_option", f"{output} is in use for something else; name another --output."
            )
        number = 1
        while (folder := output / "earlier" / str(number)).exists():
            number += 1
        folder.mkdir(parents=True)
        for path in left:
            shutil.move(path, folder / path.name)
    except OSError as error:
        raise LoadError("bad_option", f"{output} can't be used: {error.strerror}.") from None
