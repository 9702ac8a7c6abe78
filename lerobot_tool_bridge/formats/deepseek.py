"""``deepseek``: JSON between special tokens (V3, R1, V3.1), and DSML (V3.2 and later)."""

from __future__ import annotations

import re
from typing import Any

from lerobot_tool_bridge.formats.base import MAX_NAME, Scan, Tagged, Unfit
from lerobot_tool_bridge.formats.values import add_argument, raw_value, typed

_BEGIN, _END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
_CALL, _CALL_END, _SEPARATOR = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"
_BLOCKS = (
    "<｜DSML｜function_calls>",
    "<｜DSML｜tool_calls>",
    "<｜DSML｜ calls>",
)
_NO_NAME = frozenset(" \t\n{}<>[]\"'`")
_V3 = re.compile(r"([^\s`{}<>]{1,256})[ \t]*\n```(?:json)?[ \t]*\n")
_FENCE = re.compile(r"\s*```")
_INVOKE = re.compile(r'\s*<｜DSML｜ ?invoke name="([^"\n]{1,256})"\s{0,8}(/?)>')
_PARAMETER = re.compile(
    r'\s*<｜DSML｜ ?parameter name="([^"\n]{1,256})"(?: string="(true|false)")?\s{0,8}>'
)
_CLOSE = re.compile(r"</｜DSML｜ ?parameter>")
_FOLLOWS = re.compile(r"(?:<｜DSML｜ ?parameter |</｜DSML｜ ?invoke>)")
_NESTED = re.compile(r"<｜DSML｜ ?parameter ")
_INVOKE_END = re.compile(r"\s*</｜DSML｜ ?invoke>")


class DeepSeek(Tagged):
    """All of DeepSeek's forms; their markers differ, so none is taken for another."""

    name = "deepseek"
    models = "DeepSeek V3, R1, V3.1, V3.2, V4, V4.1"
    example = (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>say<｜tool▁sep｜>{"text": "Hello"}'
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    )
    signs = ("<｜tool▁call", "｜DSML｜")
    openers = (_BEGIN, *_BLOCKS)
    drop = ("<｜end▁of▁sentence｜>",)

    def read_calls(self, scan: Scan, opener: str, start: int) -> None:
        if opener == _BEGIN:
            _tokens(scan)
        else:
            _dsml(scan, opener)


def _tokens(scan: Scan) -> None:
    while True:
        scan.space()
        position = scan.pos
        if scan.take(_END):
            return
        if not scan.take(_CALL):
            if scan.ended and scan.calls:
                return  # the token that ends the block may have been the stop token
            raise scan.unfit(f"{_CALL} expected", _CALL, _END)
        separator = scan.text.find(_SEPARATOR, scan.pos, scan.pos + MAX_NAME + 16)
        if separator < 0:
            raise Unfit(scan.pos, f"{_SEPARATOR} expected", len(scan.text) - scan.pos <= MAX_NAME)
        name = scan.text[scan.pos : separator].strip()
        if not name or any(c in _NO_NAME for c in name):
            raise Unfit(scan.pos, "the name of a tool expected")
        scan.pos = separator + len(_SEPARATOR)
        fenced = scan.match(_V3) if name == "function" else None
        if fenced is not None:
            name = fenced.group(1)
        arguments = scan.json()
        if fenced is not None and scan.match(_FENCE) is None:
            scan.space()
            raise scan.unfit("``` expected", "```")
        scan.expect(_CALL_END)
        scan.call(name, arguments, position)


def _dsml(scan: Scan, opener: str) -> None:
    close = opener.replace("<", "</", 1)
    while match := scan.match(_INVOKE):
        tool, position = match.group(1).strip(), match.start()
        arguments: dict[str, Any] = {}
        if not match.group(2):
            while match := scan.match(_PARAMETER):
                name, start = match.group(1), match.start()
                value: Any = raw_value(scan, _CLOSE, _FOLLOWS, _NESTED)
                if match.group(2) != "true":
                    value = _json_or_typed(value, scan, tool, name)
                add_argument(arguments, name, value, start)
            if scan.match(_INVOKE_END) is None:
                scan.space()
                error = scan.unfit("a parameter or the end of the invoke expected")
                error.cut = error.cut or ">" not in scan.text[scan.pos :]
                raise error
        scan.call(tool, arguments, position)
    scan.space()
    if not scan.take(close) and not (scan.ended and scan.calls):
        rest = scan.text[scan.pos :]
        error = scan.unfit("an invoke or the end of the block expected", close)
        error.cut = error.cut or ">" not in rest
        raise error


def _json_or_typed(text: str, scan: Scan, tool: str, name: str) -> Any:
    inner = Scan(text, {})
    try:
        value = inner.json()
    except Unfit:
        return typed(text, scan.tools, tool, name)
    inner.space()
    return value if inner.ended else typed(text, scan.tools, tool, name)
