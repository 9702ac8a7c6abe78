"""``kimi_k2`` and ``kimi_k3``: sections of special tokens."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from lerobot_tool_bridge.formats.base import (
    REASONING,
    Format,
    Scan,
    Tagged,
    Unfit,
)
from lerobot_tool_bridge.formats.values import add_argument, raw_value

_SECTION, _SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
_CALL, _CALL_END = "<|tool_call_begin|>", "<|tool_call_end|>"
_ARGUMENTS = "<|tool_call_argument_begin|>"
_ID = re.compile(r"\s*((?:functions\.)?([^\s:<>|]{1,256}):(\d{1,9}))\s*")


class KimiK2(Tagged):
    """The model's id holds the name: ``functions.NAME:INDEX``."""

    name = "kimi_k2"
    models = "Kimi K2, K2 Thinking, K2.6"
    example = (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.say:0"
        '<|tool_call_argument_begin|>{"text": "Hello"}<|tool_call_end|>'
        "<|tool_calls_section_end|>"
    )
    signs = ("<|tool_calls_section_begin|>", "<|tool_call_begin|>")
    verbatim = True
    openers = (_SECTION,)
    drop = ("<|im_end|>",)

    def read_calls(self, scan: Scan, opener: str, start: int) -> None:
        while True:
            scan.space()
            position = scan.pos
            if scan.take(_SECTION_END):
                return
            if not scan.take(_CALL):
                if scan.ended and scan.calls:
                    return
                raise scan.unfit(f"{_CALL} expected", _CALL, _SECTION_END)
            match = scan.match(_ID)
            if match is None or not scan.take(_ARGUMENTS):
                error = scan.unfit(f"functions.NAME:INDEX and {_ARGUMENTS} expected", _ARGUMENTS)
                error.cut = error.cut or "<" not in scan.text[scan.pos :]
                raise error
            arguments = scan.json()
            scan.expect(_CALL_END)
            scan.call(match.group(2), arguments, position, match.group(1))


_OPEN = re.compile(r"<\|open\|>([^<|]{1,600})<\|sep\|>")
_TOOL_CALL = re.compile(r'\s*<\|open\|>call((?: [a-z_]{1,32}="[^"<>\n]{0,256}")*)<\|sep\|>')
_ARGUMENT = re.compile(r'\s*<\|open\|>argument((?: [a-z_]{1,32}="[^"<>\n]{0,256}")*)<\|sep\|>')
_ATTRIBUTE = re.compile(r' ([a-z_]{1,32})="([^"<>\n]{0,256})"')
_CLOSE = re.compile(r"<\|close\|>argument<\|sep\|>")
_FOLLOWS = re.compile(r"(?:<\|open\|>argument |<\|close\|>call<\|sep\|>)")
_NESTED = re.compile(r"<\|open\|>(?:argument|call) ")
_ANY = re.compile(r"<\|(?:open|close)\|>[a-z]{1,16}[^<]{0,300}<\|sep\|>|<\|end_of_msg\|>")
_FENCE = re.compile(r"`{3,}|~{3,}")
_CALL_DONE, _TOOLS_DONE = "<|close|>call<|sep|>", "<|close|>tools<|sep|>"


class KimiK3(Format):
    """Channels ``think``, ``response`` and ``tools``; each argument names its type."""

    name = "kimi_k3"
    models = "Kimi K3"
    example = (
        '<|open|>tools<|sep|><|open|>call tool="say" index="1"<|sep|>'
        '<|open|>argument key="text" type="string"<|sep|>Hello<|close|>argument<|sep|>'
        "<|close|>call<|sep|><|close|>tools<|sep|>"
    )
    signs = ("<|open|>tools<|sep|>", "<|open|>call ")
    verbatim = True

    def read(self, scan: Scan) -> None:
        text = scan.text
        channel = ""
        while match := _ANY.search(text, scan.pos):
            mark, start = match.group(), match.start()
            self._text(scan, channel, text[scan.pos : start])
            scan.pos = match.end()
            if mark == "<|open|>tools<|sep|>" and channel != "think" and scan.count % 2 == 0:
                try:
                    self._tools(scan)
                except Unfit as unfit:
                    self.fail(scan, start, unfit)
                    return
            elif mark.startswith("<|open|>call ") and channel == "think":
                scan.note(REASONING, start, "A call stands in reasoning, so it is not run.")
            elif mark in ("<|open|>think<|sep|>", "<|open|>response<|sep|>"):
                channel = mark[8:-7]
            elif mark == "<|close|>think<|sep|>":
                if channel != "think":  # the prompt had begun it
                    for call in scan.calls:
                        scan.note(REASONING, call.position, "A call stood in reasoning.")
                    scan.calls.clear()
                    scan.reasoning += scan.content
                    scan.content.clear()
                channel = ""
            elif mark == "<|close|>response<|sep|>":
                channel = ""
        rest = text[scan.pos :]
        cut = rest.rfind("<|open|>")
        if channel != "think" and cut >= 0 and "<|sep|>" not in rest[cut:]:
            self._text(scan, channel, rest[:cut])
            error = Unfit(scan.pos + cut, "the text ends in a marker", cut=True)
            self.fail(scan, scan.pos + cut, error)
            return
        self._text(scan, channel, rest)
        scan.pos = len(text)

    @staticmethod
    def _text(scan: Scan, channel: str, text: str) -> None:
        if channel == "think":
            scan.reasoning.append(text)
        else:
            scan.content.append(text)
            scan.count += len(_FENCE.findall(text))  # an odd number: a code block is open

    @staticmethod
    def _tools(scan: Scan) -> None:
        while match := scan.match(_TOOL_CALL):
            position = match.start()
            tool = _attributes(match.group(1)).get("tool", "")
            arguments: dict[str, Any] = {}
            while match := scan.match(_ARGUMENT):
                attributes = _attributes(match.group(1))
                text = raw_value(scan, _CLOSE, _FOLLOWS, _NESTED)
                value = _value(text, attributes.get("type", "string"), match.end())
                add_argument(arguments, attributes.get("key", ""), value, match.start())
            scan.space()
            if not scan.take(_CALL_DONE):
                error = scan.unfit(f"an argument or {_CALL_DONE} expected", _CALL_DONE)
                error.cut = error.cut or "<|sep|>" not in scan.text[scan.pos :]
                raise error
            scan.call(tool, arguments, position)
        scan.space()
        if not scan.take(_TOOLS_DONE) and not (scan.ended and scan.calls):
            error = scan.unfit(f"a call or {_TOOLS_DONE} expected", _TOOLS_DONE)
            error.cut = error.cut or "<|sep|>" not in scan.text[scan.pos :]
            raise error


def _attributes(text: str) -> dict[str, str]:
    return {name: unescape(value) for name, value in _ATTRIBUTE.findall(text)}


def _value(text: str, kind: str, position: int) -> Any:
    if kind == "string":
        return text
    inner = Scan(text, {})
    try:
        value = inner.json()
        inner.space()
    except Unfit as error:
        raise Unfit(position + error.position, error.why) from None
    if not inner.ended:
        raise Unfit(position + inner.pos, f"one JSON {kind} expected")
    return value
