"""Values that are written as plain text: the tool's schema decides what they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lerobot_tool_bridge.core import strict_json
from lerobot_tool_bridge.formats.base import Scan, Unfit, after_space

_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,400})(?:\.\d{1,400})?(?:[eE][+-]?\d{1,5})?")
_WORDS = {"true": True, "True": True, "false": False, "False": False}
_NULLS = ("null", "None")
_KINDS: dict[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}


def typed(text: str, tools: Mapping[str, Mapping[str, Any]], tool: str, name: str) -> Any:
    """A value as the schema wants it; what does not fit stays text, for the validator to refuse.

    A text that may be a string and something else is something else where it reads as that.
    """
    properties = tools.get(tool, {}).get("properties")
    schema = properties.get(name) if isinstance(properties, Mapping) else None
    kinds = _kinds(schema, 0)
    word = text.strip()
    if "null" in kinds and word in _NULLS:
        return None
    if "boolean" in kinds and word in _WORDS:
        return _WORDS[word]
    if kinds & {"integer", "number"} and _NUMBER.fullmatch(word):
        return float(word) if any(c in word for c in ".eE") else int(word)
    first = word[:1]
    if ("object" in kinds and first == "{") or ("array" in kinds and first == "["):
        try:
            value, end = strict_json.read_at(word, 0)
        except strict_json.NotJson:
            return text
        return value if end == len(word) else text
    return text


def _kinds(schema: Any, level: int) -> set[str]:
    """The types that a schema allows, as far as it says."""
    if not isinstance(schema, Mapping) or level > 8:
        return set()
    kind = schema.get("type")
    if isinstance(kind, str):
        return {kind}
    if isinstance(kind, list):
        return {k for k in kind if isinstance(k, str)}
    if isinstance(schema.get("enum"), list):
        return {_KINDS.get(type(v), "") for v in schema["enum"]}
    if "const" in schema:
        return {_KINDS.get(type(schema["const"]), "")}
    kinds: set[str] = set()
    for key in ("anyOf", "oneOf", "allOf"):
        parts = schema.get(key)
        for part in parts if isinstance(parts, list) else ():
            kinds |= _kinds(part, level + 1)
    return kinds


def raw_value(
    scan: Scan, close: re.Pattern[str], follows: re.Pattern[str], nested: re.Pattern[str]
) -> str:
    """The text of a value that nothing escapes, and steps over its end marker.

    An end marker counts where what has to come next comes next; any other is part of the value.

    Args:
        scan: At the value's first character.
        close: The end marker.
        follows: What comes after it and white space.
        nested: What can't stand in a value, unless an end marker was left out before it.

    Raises:
        Unfit: It does not end, or an end marker was left out.
    """
    start = pos = scan.pos
    while match := close.search(scan.text, pos):
        pos = match.end()
        if follows.match(scan.text, after_space(scan.text, pos)) is not None:
            inner = nested.search(scan.text, start, match.start())
            if inner is not None:
                raise Unfit(inner.start(), "the value before this has no end marker")
            scan.pos = pos
            return scan.text[start : match.start()]
    cut = follows.search(scan.text, start) is None
    raise Unfit(start, "the value has no end marker", cut)


def without_frame(text: str) -> str:
    """A value without the line break that the template puts before and after it."""
    if text.startswith("\n"):
        text = text[1:]
    return text[:-1] if text.endswith("\n") else text


def add_argument(arguments: dict[str, Any], name: str, value: Any, position: int) -> None:
    """Adds an argument.

    Raises:
        Unfit: It is there already.
    """
    if name in arguments:
        raise Unfit(position, f"the argument {name[:64]!r} stands twice")
    arguments[name] = value
