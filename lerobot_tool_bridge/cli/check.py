"""``check``: what the bridge would do with recorded messages; runs nothing and needs no ROS.

Reads one JSON message a line and prints one JSON line for each: ``{"outcome": "execute", "calls":
[{"id", "name", "arguments", "code", "detail"}]}``. The exit status is 0 when every call would be
executed, 1 when one would not, 2 when the tools or the messages can't be read.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

from lerobot_tool_bridge.core.catalog import Catalogue
from lerobot_tool_bridge.core.check import check_message
from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.core.registry import Registry
from lerobot_tool_bridge.core.toolsfile import load_tools_file
from lerobot_tool_bridge.ports import Ports
from lerobot_tool_bridge.robot import Robot


def parser() -> argparse.ArgumentParser:
    """The command line."""
    result = argparse.ArgumentParser(
        prog="python -m lerobot_tool_bridge check",
        description="Says what the bridge would do with recorded messages, one JSON line for each "
        "input line. Every message is judged for itself.",
    )
    result.add_argument("messages", help="JSON lines of assistant messages; - for standard input")
    result.add_argument(
        "--tools",
        help="the catalogue: a JSON list of function schemas, an info.json, or a data set's "
        "folder; tools that are only declared there count as implemented (default: the built-in "
        "tools)",
    )
    result.add_argument("--tools-file", help="the site's tools file (YAML), with its limits")
    result.add_argument("--robot", help="a robot's name or file, for its limits")
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``check``; returns its exit status."""
    args = parser().parse_args(argv)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    try:
        registry = Registry.load(
            Ports(robot=Robot.load(args.robot) if args.robot else None),
            load_tools_file(args.tools_file) if args.tools_file else None,
            Catalogue.load(args.tools) if args.tools else None,
            offline=True,
        )
        good = True
        for line in _lines(args.messages):
            result = {"outcome": "ignore", "calls": []}
            if line.strip():
                result = check_message(line, registry)
            good = good and result["outcome"] not in ("reject", "partial")
            print(json.dumps(result, ensure_ascii=False), flush=args.messages == "-")
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except LoadError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {args.messages} can't be read: {error.strerror}", file=sys.stderr)
        return 2
    if registry.problems:
        return 2
    return 0 if good else 1


def _lines(path: str) -> Iterator[bytes]:
    with nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb") as stream:
        yield from stream


if __name__ == "__main__":
    sys.exit(main())
