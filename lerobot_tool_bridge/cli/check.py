"""``check``: what the bridge would do with recorded messages; runs nothing and needs no ROS.

Reads one JSON message a line and prints one JSON line for each: ``{"outcome": "execute", "calls":
[{"id", "name", "arguments", "code", "detail"}]}``. The exit status is 0 when every call would be
executed, 1 when one would not, 2 when the tools or the messages can't be read.

With ``--format``, calls are read out of the content of messages that have no ``tool_calls``. A
line may also be ``{"text": "...", "format": "hermes", "finish_reason": "length", "prefix":
"<think>"}``: what a model wrote, as it came. The last three may be left out.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from lerobot_tool_bridge.core import strict_json
from lerobot_tool_bridge.core.catalog import Catalogue
from lerobot_tool_bridge.core.check import check_message, check_text
from lerobot_tool_bridge.core.decode import MAX_MESSAGE_BYTES
from lerobot_tool_bridge.core.errors import LoadError, Rejection
from lerobot_tool_bridge.core.registry import Registry
from lerobot_tool_bridge.core.toolsfile import load_tools_file
from lerobot_tool_bridge.formats import TextReader
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
    result.add_argument("--tools-dir", help="a folder of Python files whose tools count too")
    result.add_argument("--robot", help="a robot's name or file, for its limits")
    result.add_argument(
        "--format",
        default="",
        help="the format in which calls stand in the text of the messages; "
        "python -m lerobot_tool_bridge.formats lists them",
    )
    result.add_argument("--prefix", default="", help="what the template begins an answer with")
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
            folder=args.tools_dir,
            offline=True,
        )
        checker = _Checker(registry, args.format, args.prefix)
        good = True
        for line in _lines(args.messages):
            result = {"outcome": "ignore", "calls": []}
            if line.strip():
                result = checker.check(line)
            good = good and result["outcome"] not in ("reject", "partial")
            print(json.dumps(result, ensure_ascii=False), flush=args.messages == "-")
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except LoadError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 2
    except ValueError as error:  # a format that there is not
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {args.messages} can't be read: {error.strerror}", file=sys.stderr)
        return 2
    if registry.problems:
        return 2
    return 0 if good else 1


class _Checker:
    """Checks lines, each with the format that it names or the one of the command line."""

    def __init__(self, registry: Registry, name: str, prefix: str) -> None:
        self._registry = registry
        self._schemas = registry.schemas()
        self._default = (name, prefix)
        self._readers: dict[tuple[str, str], TextReader] = {}
        self._texts = self._reader(*self._default) if name else None

    def check(self, line: bytes) -> dict[str, Any]:
        try:
            given = strict_json.read(line, MAX_MESSAGE_BYTES)
        except Rejection:
            given = None
        if not isinstance(given, dict) or not isinstance(given.get("text"), str):
            return check_message(line, self._registry, texts=self._texts)
        name = str(given.get("format", self._default[0]))
        texts = self._reader(name, str(given.get("prefix", self._default[1])))
        reason = given.get("finish_reason")
        return check_text(given["text"], texts, self._registry, finish_reason=reason)

    def _reader(self, name: str, prefix: str) -> TextReader:
        key = (name, prefix)
        if key not in self._readers:
            self._readers[key] = TextReader(name, self._schemas, prefix)
        return self._readers[key]


def _lines(path: str) -> Iterator[bytes]:
    with nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb") as stream:
        yield from stream


if __name__ == "__main__":
    sys.exit(main())
