"""``granite``, ``phi4``, ``cohere`` and ``xlam``: arrays of JSON calls behind a marker."""

from __future__ import annotations

import re
from typing import Any

from lerobot_tool_bridge.core import strict_json
from lerobot_tool_bridge.formats.base import THINK, Scan, Tagged, add_json_calls

_ARRAY = re.compile(r'\[\s*\{\s*"(?:name|arguments|id|type)"')
_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n")


class Granite(Tagged):
    """No closing marker; a closing tag is accepted."""

    name = "granite"
    models = "Granite 3.0 to 3.3, Granite 20B FC"
    example = '<|tool_call|>[{"name": "say", "arguments": {"text": "Hello"}}]'
    openers = ("<|tool_call|>", "<tool_call>", "<function_call>")

    def read_calls(self, scan: Scan, opener: str, start: int) -> None:
        value = scan.json()
        end = scan.pos
        scan.space()
        if not scan.take("</tool_call>", "</function_call>"):
            scan.pos = end
        add_json_calls(scan, value, start)


class Phi4(Tagged):
    """With the model card's markers, or ``functools`` as vLLM's template has it."""

    name = "phi4"
    models = "Phi-4-mini"
    example = 'functools[{"name": "say", "arguments": {"text": "Hello"}}]'
    signs = ("functools[",)
    openers = ("<|tool_call|>", "functools[")
    drop = ("<|end|>",)

    def read_calls(self, scan: Scan, opener: str, start: int) -> None:
        if opener == "functools[":
            scan.pos -= 1
        value = scan.json()
        end = scan.pos
        scan.space()
        if opener == "functools[" or not scan.take("<|/tool_call|>", "</|tool_call|>"):
            scan.pos = end
        items = value if isinstance(value, list) else [value]
        add_json_calls(scan, [_unwrapped(i) for i in items], start)


class Cohere(Tagged):
    """``<|START_ACTION|>`` (R7B, A) or ``Action:`` with a fence of its own (R+)."""

    name = "cohere"
    models = "Command R7B, A, A+, Command R+ (08-2024)"
    example = (
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "say", '
        '"parameters": {"text": "Hello"}}]<|END_ACTION|>'
    )
    signs = ("<|START_ACTION|>",)
    openers = ("<|START_ACTION|>", "Action:")
    reasoning = (("<|START_THINKING|>", "<|END_THINKING|>"),)
    drop = (
        "<|START_RESPONSE|>",
        "<|END_RESPONSE|>",
        "<|START_TEXT|>",
        "<|END_TEXT|>",
        "<|END_OF_TURN_TOKEN|>",
    )

    def begins(self, scan: Scan, start: int, opener: str) -> bool:
        if opener == "Action:":
            return _FENCED.match(scan.text, start + len(opener)) is not None and (
                start == 0 or scan.text[start - 1] == "\n"
            )
        return super().begins(scan, start, opener)

    def read_calls(self, scan: Scan, opener: str, start: int) -> None:
        if opener == "Action:":
            scan.match(_FENCED)
        value = scan.json()
        if opener == "Action:":
            scan.expect("```")
        elif not scan.take("<|END_ACTION|>"):
            scan.space()
            if not scan.ended:
                scan.expect("<|END_ACTION|>")
        items = value if isinstance(value, list) else [value]
        calls = [i for i in items if not _answers(i)]
        add_json_calls(
            scan,
            calls,
            start,
            ("tool_name",),
            ("parameters",),
            ("tool_call_id",),
            ("tool_call_id",),
        )


class Xlam(Tagged):
    """An array that is the whole answer, or between markers. Never from a code block."""

    name = "xlam"
    models = "xLAM 1 and 2"
    example = '[{"name": "say", "arguments": {"text": "Hello"}}]'
    openers = ("<tool_call>", "[TOOL_CALLS]")
    reasoning = THINK

    def read_bare(self, scan: Scan) -> bool:
        if _ARRAY.match(scan.text, scan.pos) is None:
            return False
        start = scan.pos
        value = scan.json()
        if not any(isinstance(i, dict) and "name" in i for i in value):
            scan.pos = start
            return False
        scan.space()
        if not scan.ended:
            raise scan.unfit("the end of the answer expected after the array of calls")
        add_json_calls(scan, value, start)
        return True

    def read_calls(self, scan: Scan, opener: str, start: int) -> None:
        value = scan.json()
        if opener == "<tool_call>":
            scan.expect("</tool_call>")
        add_json_calls(scan, value, start)


def _unwrapped(item: Any) -> Any:
    """The inside of ``{"type": "function", "function": {...}}``."""
    if (
        isinstance(item, dict)
        and not isinstance(item, strict_json.Repeated)
        and isinstance(item.get("function"), dict)
        and set(item) <= {"type", "function", "id"}
    ):
        return item["function"]
    return item


def _answers(item: Any) -> bool:
    name = item.get("tool_name") if isinstance(item, dict) else None
    return name in ("directly-answer", "directly_answer")
