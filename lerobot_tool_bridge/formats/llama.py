"""``llama_json``: the answer is a JSON call and nothing else."""

from __future__ import annotations

import re

from lerobot_tool_bridge.formats.base import Scan, Tagged, Unfit, add_json_calls
from lerobot_tool_bridge.formats.pythonic import python_call

_OBJECT = re.compile(r'\s*\{\s*"(?:name|type|parameters|arguments|function)"')
_NAMED = re.compile(r'\s*\{[^{}]{0,200}"name"\s*:')
_BUILT_IN = re.compile(r"\s*[A-Za-z_]\w{0,200}\.call\s*\(")
_NAMES, _ARGUMENTS = ("name",), ("parameters", "arguments")


class LlamaJson(Tagged):
    """Several calls are joined with ``;``. With ``<|python_tag|>``, text may stand before it."""

    name = "llama_json"
    models = "Llama 3.1, 3.2, 3.3, Gemma 3 (prompted)"
    example = '{"name": "say", "parameters": {"text": "Hello"}}'
    signs = ("<|python_tag|>",)
    verbatim = True
    openers = ("<|python_tag|>",)
    drop = ("<|eom_id|>", "<|eot_id|>")

    def read_bare(self, scan: Scan) -> bool:
        if _OBJECT.match(scan.text, scan.pos) is None:
            return False
        start = scan.pos
        try:
            self._calls(scan)
        except Unfit:
            if scan.calls or _NAMED.match(scan.text, start) is not None:
                raise
            scan.pos = start
            return False
        return True

    def read_calls(self, scan: Scan, opener: str, start: int) -> None:
        if _BUILT_IN.match(scan.text, scan.pos) is None:
            self._calls(scan)
            return
        scan.space()
        python_call(scan, start)
        call = scan.calls.pop()
        scan.call(call.name[: -len(".call")], call.arguments, start)

    def _calls(self, scan: Scan) -> None:
        while True:
            scan.space()
            position = scan.pos
            value = scan.json()
            if not isinstance(value, dict):
                raise Unfit(position, "a JSON object expected")
            scan.space()
            scan.take(*self.drop)
            end = scan.pos
            more = scan.take(";")
            scan.space()
            if not scan.ended and not more and not scan.text.startswith("{", scan.pos):
                raise Unfit(end, "the end of the answer expected after the call")
            add_json_calls(scan, value, position, _NAMES, _ARGUMENTS)
            if scan.ended:
                return
