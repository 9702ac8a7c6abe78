"""``glm``: a name, then keys and values between tags, values as plain text."""

from __future__ import annotations

import re
from typing import Any

from lerobot_tool_bridge.formats.base import Scan, Tagged
from lerobot_tool_bridge.formats.values import add_argument, raw_value, typed

_NAME = re.compile(r"\s*([^<>\s{}\[\]\"']{1,256})\s*(?=<)")
_KEY = re.compile(r"\s*<arg_key>([^<>\n]{1,256})</arg_key>\s*<arg_value>")
_CLOSE = re.compile(r"</arg_value>")
_FOLLOWS = re.compile(r"(?:<arg_key>|</tool_call>)")
_NESTED = re.compile(r"<arg_value>")


class Glm(Tagged):
    """With line breaks between the tags (4.5, 4.6) or without (4.7, 5)."""

    name = "glm"
    models = "GLM 4.5 to 5, Laguna-S, Spark 2.5"
    example = "<tool_call>say\n<arg_key>text</arg_key>\n<arg_value>Hello</arg_value>\n</tool_call>"
    signs = ("<arg_key>", "<arg_value>")
    openers = ("<tool_call>",)

    def read_calls(self, scan: Scan, opener: str, start: int) -> None:
        match = scan.match(_NAME)
        if match is None:
            cut = scan.text.find("<", scan.pos) < 0
            error = scan.unfit("the name of a tool expected")
            error.cut = error.cut or cut
            raise error
        tool = match.group(1)
        arguments: dict[str, Any] = {}
        while match := scan.match(_KEY):
            name = match.group(1).strip()
            text = raw_value(scan, _CLOSE, _FOLLOWS, _NESTED)
            add_argument(arguments, name, typed(text, scan.tools, tool, name), match.start())
        scan.space()
        if not scan.take("</tool_call>"):
            error = scan.unfit("<arg_key> or </tool_call> expected", "</tool_call>", "<arg_key>")
            error.cut = error.cut or "</tool_call>" not in scan.text[scan.pos :]
            raise error
        scan.call(tool, arguments, start)
