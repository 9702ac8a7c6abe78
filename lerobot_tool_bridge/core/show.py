"""How values stand in sentences for the model: short, nothing invisible, nothing huge."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

MAX_TEXT = 40


def text(value: str, limit: int = MAX_TEXT) -> str:
    """A text in double quotes, cut, with everything invisible escaped."""
    return f'"{plain(value, limit)}"'


def plain(value: str, limit: int = MAX_TEXT) -> str:
    """The same without quotes."""
    more = len(value) > limit
    shown = "".join(c if c.isprintable() else _escape(c) for c in value[:limit])
    return f"{shown}…" if more else shown


def value(value: Any) -> str:
    """Any JSON value in a few words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return text(value)
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, Mapping):
        return "an object" if value else "an empty object"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}" if value else "an empty list"
    return f"a {type(value).__name__}"


def number(value: float) -> str:
    """A number as people write it: 0.5, 300, 1e-07."""
    if isinstance(value, int):
        return str(value) if value.bit_length() < 64 else "a very large number"
    if math.isfinite(value) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.6g}"


def listed(words: Iterable[str], last: str = "and", limit: int = 20) -> str:
    """``a, b and c``; what exceeds the limit is counted."""
    words = list(words)
    if len(words) > limit:
        return f"{', '.join(words[:limit])} and {len(words) - limit} more"
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def _escape(character: str) -> str:
    return json.dumps(character)[1:-1] if not character.isprintable() else character
