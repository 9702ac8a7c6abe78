"""JSON as it has to be: no NaN, no Infinity, no duplicate keys, nothing after it, never repaired.

A text is read in two steps, so that a whole message can be read although one call in it is bad,
and the bad call is answered under its id: ``read`` checks the grammar and marks what is wrong with
values, ``check`` refuses marked and unfit values. ``loads`` does both. ``check`` alone is for
values that never were a text (arguments given as a Python mapping).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from lerobot_tool_bridge.core import show
from lerobot_tool_bridge.core.errors import Rejection

MAX_DEPTH = 32
MAX_BYTES = 64 * 1024

READ_DEPTH = 256
"""Depth to which a message is read at all, far from the interpreter's recursion limit."""

# A string may lack its closing quote, so that this never backtracks.
_STRINGS_AND_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.S)

# What a value that was cut off may end with: half a number, a word, or an escape.
_BEGUN = re.compile(r"-|[tfn][a-z]{0,3}|\\?u?[0-9a-fA-F]{0,3}")

_SENTENCES = {
    "Expecting value": "expected a JSON value",
    "Expecting property name enclosed in double quotes": "expected a key in double quotes",
    "Expecting ':' delimiter": "expected ':'",
    "Expecting ',' delimiter": "expected ',' or the closing bracket",
    "Illegal trailing comma before end of object": "a comma stands before the closing bracket",
    "Illegal trailing comma before end of array": "a comma stands before the closing bracket",
    "Unterminated string starting at": "a string is not closed; it starts",
    "Invalid control character at": "a control character stands unescaped in a string,",
    "Invalid \\uXXXX escape": "\\u needs four hexadecimal digits,",
}


class Repeated(dict[str, Any]):
    """An object in which a key stood twice: readable, but not to be used."""

    key = ""


class Unreadable:
    """Stands for a number that is too long to be read."""


class NotJson(Exception):
    """What stands at a place of a text is no JSON value.

    Args:
        position: Where it goes wrong.
        what: What was expected there.
        cut: The text ended before the value did.
    """

    def __init__(self, position: int, what: str, cut: bool) -> None:
        super().__init__(what)
        self.position = position
        self.what = what
        self.cut = cut


def loads(text: str | bytes, max_bytes: int = MAX_BYTES) -> Any:
    """Reads one strict JSON text.

    Raises:
        Rejection: ``bad_json``, ``nonfinite_number``, ``duplicate_key``, ``too_deep`` or
            ``too_large``; the sentence says where.
    """
    value = read(text, max_bytes, MAX_DEPTH)
    check(value)
    return value


def read(text: str | bytes, max_bytes: int, max_depth: int = READ_DEPTH) -> Any:
    """Reads a text whose grammar is right; faults of values are left for ``check``.

    Raises:
        Rejection: As ``loads``.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Rejection(
                "bad_json", f"The text is not UTF-8: byte {error.start + 1} fits nowhere."
            ) from None
    size = len(text)
    head = text if size <= max_bytes else text[:max_bytes]
    if head.count("{") + head.count("[") > max_depth and _depth(head) > max_depth:
        raise Rejection("too_deep", f"The JSON is nested more than {max_depth} levels deep.")
    if size > max_bytes or (
        not text.isascii() and len(text.encode("utf-8", "replace")) > max_bytes
    ):
        raise _too_large(max_bytes)
    if text.startswith("\ufeff"):
        raise Rejection("bad_json", "The text begins with a byte order mark; leave it out.")
    try:
        return _decoder.decode(text)
    except json.JSONDecodeError as error:
        raise Rejection("bad_json", _describe(error)) from None


def read_at(text: str, position: int) -> tuple[Any, int]:
    """Reads the JSON value that begins at a place of a longer text.

    Returns:
        The value, its faults left for ``check``, and where it ends.

    Raises:
        NotJson: There is no value, or not all of one.
    """
    try:
        return _decoder.raw_decode(text, position)
    except RecursionError:
        raise NotJson(position, "it is nested too deeply", False) from None
    except json.JSONDecodeError as error:
        rest = text[error.pos : error.pos + 12].rstrip()
        cut = (
            not rest
            or error.msg.startswith("Unterminated string")
            or (error.pos + 12 >= len(text) and _BEGUN.fullmatch(rest) is not None)
        )
        what = _SENTENCES.get(error.msg, error.msg)
        if error.msg.startswith("Unterminated string"):
            what = "a string is not closed"
        raise NotJson(error.pos, what.rstrip(","), cut) from None


def check(value: Any, max_bytes: int = MAX_BYTES) -> None:
    """Refuses what JSON can't say or what could not be handed on.

    Raises:
        Rejection: As ``loads``; the sentence names the place by its keys.
    """
    _Walk(max_bytes).visit(value, (), 0)


class _Walk:
    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._left = max_bytes

    def visit(self, value: Any, path: tuple[str | int, ...], depth: int) -> None:
        kind = type(value)
        if kind is str:
            self._text(value, path)
        elif kind is float:
            self._take(1)
            if not math.isfinite(value):
                raise _nonfinite(path)
        elif kind is int:
            self._take(1)
            if value.bit_length() > 1000:
                self._large(value, path)
        elif value is None or kind is bool:
            self._take(4)
        elif isinstance(value, Mapping):
            self._enter(depth)
            if isinstance(value, Repeated):
                raise Rejection(
                    "duplicate_key", f"The key {show.text(value.key)} stands twice{_at(path)}."
                )
            for key, item in value.items():
                if not isinstance(key, str):
                    raise Rejection("bad_json", f"A key is no string{_at(path)}.")
                self._text(key, path)
                self.visit(item, (*path, key), depth + 1)
        elif isinstance(value, list | tuple):
            self._enter(depth)
            for index, item in enumerate(value):
                self.visit(item, (*path, index), depth + 1)
        elif isinstance(value, Unreadable):
            raise Rejection("bad_json", f"A number has too many digits{_at(path)}.")
        else:
            raise Rejection("bad_json", f"A {kind.__name__} is no JSON value{_at(path)}.")

    def _enter(self, depth: int) -> None:
        self._take(2)
        if depth >= MAX_DEPTH:
            raise Rejection("too_deep", f"The JSON is nested more than {MAX_DEPTH} levels deep.")

    def _text(self, text: str, path: tuple[str | int, ...]) -> None:
        if text.isascii():
            self._take(len(text) + 2)
            return
        try:
            self._take(len(text.encode("utf-8")) + 2)
        except UnicodeEncodeError:
            raise Rejection(
                "bad_json", f"Half of a surrogate pair (\\ud800 to \\udfff) is no text{_at(path)}."
            ) from None

    def _large(self, value: int, path: tuple[str | int, ...]) -> None:
        self._take(value.bit_length() // 4)
        try:
            float(value)
        except OverflowError:
            raise _nonfinite(path) from None

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise _too_large(self._max)


def _too_large(max_bytes: int) -> Rejection:
    return Rejection("too_large", f"The JSON is too large: at most {max_bytes // 1024} kB.")


def _nonfinite(path: tuple[str | int, ...]) -> Rejection:
    return Rejection(
        "nonfinite_number", f"NaN, Infinity and what overflows are no numbers{_at(path)}."
    )


def _at(path: tuple[str | int, ...]) -> str:
    if not path:
        return ""
    keys = ".".join(k[:40] if isinstance(k, str) else str(k) for k in path[:5])
    return f", at {show.plain(keys, 100)}"


def _describe(error: json.JSONDecodeError) -> str:
    text, position = error.doc, error.pos
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    where = f"at character {column}" if "\n" not in text else f"at line {line}, column {column}"
    what = error.msg
    if what.startswith("Invalid \\escape"):
        what = f"invalid escape {show.plain(text[position : position + 2])}"
    elif what == "Extra data":
        first = "object" if text.lstrip()[:1] == "{" else "value"
        what = f"text follows the first {first}"
    elif position >= len(text.rstrip()):
        what = "the text ends before the JSON does"
    else:
        what = _SENTENCES.get(what, what)
    rest = text[position : position + 13].split("\n")[0]
    near = f", near {show.plain(rest[:12])}{'…' if len(rest) > 12 else ''}" if rest.strip() else ""
    return f"This is not JSON: {what} {where}{near}. Send it again as valid JSON."


def _depth(text: str) -> int:
    depth = deepest = 0
    for match in _STRINGS_AND_BRACKETS.finditer(text):
        token = text[match.start()]
        if token in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif token != '"':
            depth -= 1
    return deepest


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    marked = Repeated(value)
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            marked.key = key
            break
        seen.add(key)
    return marked


def _integer(digits: str) -> Any:
    return int(digits) if len(digits) <= 4300 else Unreadable()


_decoder = json.JSONDecoder(object_pairs_hook=_pairs, parse_int=_integer)
