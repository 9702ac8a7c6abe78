"""``up``: brings a robot up without ``ros2 launch``.

Starts the virtual robot (unless ``--no-sim``), the drivers and the bridge, says when everything
is ready, and ends everything on Ctrl-C or SIGTERM. A node that ends by itself is reported; the
others go on, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext

from lerobot_tool_bridge.bringup import Bringup, NodeSpec, free_port
from lerobot_tool_bridge.core.errors import LoadError

_REMIND = 15.0
"""Seconds after which what is not ready is named; again when that changes."""


class _Stopped(Exception):
    """The user wants the end before everything is ready."""


def parser() -> argparse.ArgumentParser:
    """The command line: one option for each of ``Bringup``'s."""
    result = argparse.ArgumentParser(
        prog="python -m lerobot_tool_bridge up",
        description="Starts the virtual robot (or a real one), its drivers and the bridge.",
    )
    result.add_argument(
        "--no-sim", action="store_true", help="a real robot: start no virtual robot"
    )
    for title, sim in (("options", None), ("virtual robot only", True), ("robot only", False)):
        group = result.add_argument_group(title)
        both = Bringup.options(True).keys() & Bringup.options(False).keys()
        for name, (default, text) in Bringup.options(sim).items():
            if (sim is None) != (name in both):
                continue
            option = f"--{name.replace('_', '-')}"
            if default == "false":
                group.add_argument(
                    option, action="store_const", const="true", default=default, help=text
                )
            else:
                group.add_argument(option, default=default, help=text.replace("%", "%%"))
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``up``; returns its exit status."""
    arguments = parser()
    args = arguments.parse_args(argv)
    sim = not args.no_sim
    given = {name: getattr(args, name) for name in Bringup.options()}
    for name in Bringup.options(not sim).keys() - Bringup.options(sim).keys():
        if given[name]:
            cure = "a real robot: add --no-sim" if sim else "the virtual robot: leave out --no-sim"
            arguments.error(f"--{name.replace('_', '-')} is for {cure}.")
    folder = tempfile.TemporaryDirectory(prefix="virtual_robot-") if sim else nullcontext("")
    with folder as device_dir:
        try:
            nodes = Bringup(
                **given, sim=sim, device_dir=device_dir, camera_port=free_port() if sim else 0
            ).nodes()
        except LoadError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        return _run(nodes, sim)


def _run(nodes: list[NodeSpec], sim: bool) -> int:
    from lerobot_tool_bridge.cli.stack import Processes, Signals, Stack, loopback_by_default

    if sim and loopback_by_default():
        _say(
            "The nodes are seen on this machine only; set ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET "
            "to see them from others."
        )
    width = max(len(spec.name) for spec in nodes)
    processes = Processes(lambda name, line: print(f"{name:>{width}} | {line}", flush=True))
    failed = False

    def report() -> None:
        nonlocal failed
        for name, end in processes.newly_dead():
            failed = True
            _say(f"{name} ended by itself ({end}); the others go on.")

    with Signals() as signals:
        begin = time.monotonic()
        said = ""
        stack = Stack(nodes, processes)

        def while_waiting() -> None:
            nonlocal said
            report()
            if signals.stop.is_set() or not processes.running:
                raise _Stopped
            missing = ", ".join(stack.waiting_for())
            if time.monotonic() - begin > _REMIND and missing != said:
                said = missing
                _say(f"Still waiting for {missing}. The lines above say why.")

        try:
            stack.start(while_waiting)
            stack.wait_active(nodes, while_waiting)
            bridge = next(spec for spec in nodes if spec.executable == "bridge")
            _say(
                f"Ready after {time.monotonic() - begin:.1f} s: {bridge.full_name} takes tool "
                f"calls on {bridge.full_name}/tool_calls. Ctrl-C ends everything."
            )
            stack.close()  # nothing to ask any more
            while not signals.stop.wait(0.2) and processes.running:
                report()
        except _Stopped:
            pass
        finally:
            report()
            if processes.running:
                _say("Ending everything (once more kills it) ...")
            for name in processes.end(signals.hurry):
                failed = True
                _say(f"{name} did not end in time and was killed.")
            stack.close()
    return 1 if failed else 0


def _say(text: str) -> None:
    print(text, flush=True)
