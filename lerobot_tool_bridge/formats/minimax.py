"""``minimax_m2``: blocks of invokes with parameters, values as plain text."""

from __future__ import annotations

import re
from typing import Any

from lerobot_tool_bridge.formats.base import Scan, Tagged
from lerobot_tool_bridge.formats.values import add_argument, raw_value, typed, without_frame

_INVOKE = re.compile(r'\s*<invoke name="([^"\n]{1,256})">')
_PARAMETER = re.compile(r'\s*<parameter name="([^"\n]{1,256})">')
_CLOSE = re.compile(r"</parameter>")
_FOLLOWS = re.compile(r"(?:<parameter name=|</invoke>)")
_NESTED = re.compile(r"<parameter name=|<invoke name=")


class MinimaxM2(Tagged):
    """Several calls stand in one block."""

    name = "minimax_m2"
    models = "MiniMax M2"
    example = (
        '<minimax:tool_call>\n<invoke name="say">\n<parameter name="text">Hello</parameter>\n'
        "</invoke>\n</minimax:tool_call>"
    )
    signs = ("<minimax:tool_call>",)
    openers = ("<minimax:tool_call>",)

    def read_calls(self, scan: Scan, opener: str, start: int) -> None:
        while match := scan.match(_INVOKE):
            tool, position = match.group(1).strip(), match.start()
            arguments: dict[str, Any] = {}
            while match := scan.match(_PARAMETER):
                name = match.group(1).strip()
                text = without_frame(raw_value(scan, _CLOSE, _FOLLOWS, _NESTED))
                value = typed(text, scan.tools, tool, name)
                add_argument(arguments, name, value, match.start())
            scan.expect("</invoke>")
            scan.call(tool, arguments, position)
        scan.space()
        if not scan.take("</minimax:tool_call>"):
            raise scan.unfit(
                "<invoke> or </minimax:tool_call> expected",
                "</minimax:tool_call>",
                "<invoke name=",
            )
