"""``qwen_xml``: tags for the function and each parameter, values as plain text."""

from __future__ import annotations

import re
from typing import Any

from lerobot_tool_bridge.formats.base import Scan, Tagged
from lerobot_tool_bridge.formats.values import add_argument, raw_value, typed, without_frame

_FUNCTION = re.compile(r"\s*<function=([^<>\n]{1,256})>")
_PARAMETER = re.compile(r"\s*<parameter=([^<>\n]{1,256})>")
_CLOSE = re.compile(r"</parameter>")
_FOLLOWS = re.compile(r"(?:<parameter=|</function>)")
_NESTED_LINE = re.compile(r"\n(?:<parameter=|<function=|<tool_call>|</function>|</tool_call>)")
_NESTED = re.compile(r"<parameter=|<function=")


class QwenXml(Tagged):
    """A ``<function=...>`` at the beginning of a line needs no ``<tool_call>`` before it.

    Qwen3-Coder leaves it out now and then; its block is complete all the same.
    """

    name = "qwen_xml"
    models = "Qwen3-Coder, Qwen 3.5 and later, Nemotron 3, Step 3.5"
    example = (
        "<tool_call>\n<function=say>\n<parameter=text>\nHello\n</parameter>\n</function>\n"
        "</tool_call>"
    )
    signs = ("<function=", "<parameter=")
    openers = ("<tool_call>", "<function=")

    def begins(self, scan: Scan, start: int, opener: str) -> bool:
        before = scan.text[max(0, start - 80) : start].rpartition("\n")[2]
        if opener == "<function=" and before.strip():
            return False
        return super().begins(scan, start, opener)

    def read_calls(self, scan: Scan, opener: str, start: int) -> None:
        if opener == "<function=":
            scan.pos = start
        match = scan.match(_FUNCTION)
        if match is None:
            scan.space()
            raise scan.unfit("<function=NAME> expected", "<function=")
        tool = match.group(1).strip()
        arguments: dict[str, Any] = {}
        while match := scan.match(_PARAMETER):
            name, position = match.group(1).strip(), match.start()
            framed = scan.text.startswith("\n", scan.pos)
            text = raw_value(scan, _CLOSE, _FOLLOWS, _NESTED_LINE if framed else _NESTED)
            value = typed(without_frame(text), scan.tools, tool, name)
            add_argument(arguments, name, value, position)
        scan.expect("</function>")
        end = scan.pos
        scan.space()
        if not scan.take("</tool_call>"):
            if opener == "<tool_call>":
                raise scan.unfit("</tool_call> expected", "</tool_call>")
            scan.pos = end
        scan.call(tool, arguments, start)
