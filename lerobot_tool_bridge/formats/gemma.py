"""``gemma4`` and ``functiongemma``: ``call:NAME{key:value}`` with bare keys."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from lerobot_tool_bridge.core import strict_json
from lerobot_tool_bridge.formats.base import Scan, Tagged, Unfit
from lerobot_tool_bridge.formats.values import add_argument

_NAME = re.compile(r"\s*call:([^\s{}<>|]{1,256})\{")
_NAME_BEGUN = re.compile(r"\s*(?:c|ca|cal|call|call:[^\s{}<>|]{0,256})?$")
_KEY = re.compile(r"\s*([^\s{}\[\]:,<|][^{}\[\]:,<|\n]{0,255})\s*:")
_SCALAR = re.compile(r"\s*(-?(?:0|[1-9]\d{0,400})(?:\.\d+)?(?:[eE][+-]?\d{1,5})?|true|false|null)")
_MAX_VALUES = 3000
_WORDS = {"true": True, "false": False, "null": None}


class _Gemma(Tagged):
    quote: ClassVar[str]
    closer: ClassVar[str]

    def read_calls(self, scan: Scan, opener: str, start: int) -> None:
        match = scan.match(_NAME)
        if match is None:
            error = scan.unfit("call:NAME{ expected")
            error.cut = error.cut or _NAME_BEGUN.match(scan.text, scan.pos) is not None
            raise error
        arguments = self._object(scan, 1)
        scan.expect(self.closer)
        scan.call(match.group(1), arguments, start)

    def _object(self, scan: Scan, depth: int) -> dict[str, Any]:
        value: dict[str, Any] = {}
        scan.space()
        if scan.take("}"):
            return value
        while True:
            match = scan.match(_KEY)
            if match is None:
                raise self._unfit(scan, "a key expected")
            key = match.group(1).rstrip()
            add_argument(value, key, self._value(scan, depth), match.start())
            scan.space()
            if scan.take("}"):
                return value
            if not scan.take(","):
                raise self._unfit(scan, "',' or '}' expected")

    def _value(self, scan: Scan, depth: int) -> Any:
        if depth > strict_json.MAX_DEPTH:
            raise Unfit(scan.pos, "it is nested too deeply")
        scan.count += 1
        if scan.count > _MAX_VALUES:
            raise Unfit(scan.pos, f"a text has at most {_MAX_VALUES} values")
        match = scan.match(_SCALAR)
        if match is not None:
            word = match.group(1)
            if word in _WORDS:
                return _WORDS[word]
            return float(word) if any(c in word for c in ".eE") else int(word)
        scan.space()
        if scan.take(self.quote):
            return scan.until(self.quote)
        if scan.take("{"):
            return self._object(scan, depth + 1)
        if not scan.take("["):
            raise self._unfit(scan, "a value expected")
        items: list[Any] = []
        scan.space()
        if scan.take("]"):
            return items
        while True:
            items.append(self._value(scan, depth + 1))
            scan.space()
            if scan.take("]"):
                return items
            if not scan.take(","):
                raise self._unfit(scan, "',' or ']' expected")

    def _unfit(self, scan: Scan, why: str) -> Unfit:
        error = scan.unfit(why, self.quote)
        rest = scan.text[scan.pos : scan.pos + 260]
        error.cut = error.cut or (
            scan.pos + len(rest) == len(scan.text) and not any(c in rest for c in "{}[]<|")
        )
        return error


class Gemma4(_Gemma):
    """Strings stand between ``<|"|>``."""

    name = "gemma4"
    models = "Gemma 4"
    example = '<|tool_call>call:say{text:<|"|>Hello<|"|>}<tool_call|>'
    signs = ("<|tool_call>call:",)
    verbatim = True
    openers = ("<|tool_call>",)
    reasoning = (("<|channel>thought\n", "<channel|>"), ("<|channel>", "<channel|>"))
    drop = ("<|tool_response>", "<turn|>")
    quote = '<|"|>'
    closer = "<tool_call|>"


class FunctionGemma(_Gemma):
    """Strings stand between ``<escape>``."""

    name = "functiongemma"
    models = "FunctionGemma 270M"
    example = "<start_function_call>call:say{text:<escape>Hello<escape>}<end_function_call>"
    signs = ("<start_function_call>",)
    openers = ("<start_function_call>",)
    drop = ("<start_function_response>", "<end_of_turn>")
    quote = "<escape>"
    closer = "<end_function_call>"
