"""``python -m lerobot_tool_bridge up|call|check|replay|record|chat|demo``."""

from __future__ import annotations

import importlib
import sys

VERBS = {
    "up": "start the robot (virtual unless --no-sim), its drivers and the bridge",
    "call": "call one tool and print its result",
    "check": "say what the bridge would do with recorded messages; needs no ROS",
    "replay": "play the tool calls of a LeRobot data set; --dry-run only checks them",
    "record": "keep what is called and answered as a LeRobot data set",
    "chat": "talk to the virtual robot, with a model or with the built-in rules",
    "demo": "play examples/pick_and_place.yaml on the virtual robot",
}


def main(argv: list[str] | None = None) -> int:
    """Hands the rest of the command line to one verb's module."""
    arguments = sys.argv[1:] if argv is None else argv
    verb = arguments[0] if arguments else ""
    if verb in VERBS:
        module = importlib.import_module(f"lerobot_tool_bridge.cli.{verb}")
        return int(module.main(arguments[1:]) or 0)
    wanted = verb in ("-h", "--help", "help")
    out = sys.stdout if wanted else sys.stderr
    print("usage: python -m lerobot_tool_bridge <verb> [--help] ...\n", file=out)
    for name, what in VERBS.items():
        print(f"  {name:6} {what}", file=out)
    return 0 if wanted else 2


if __name__ == "__main__":
    sys.exit(main())
