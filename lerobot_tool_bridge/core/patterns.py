"""Whether a regular expression can be matched in bounded time.

Schemas come from data sets, which are other people's data, and Python's ``re`` backtracks: a
pattern such as ``^(a+)+$`` takes seconds for 26 characters. Refused are repeats inside of repeats
(unless each round has to begin or end with something that nothing else in the round can match),
repeated alternatives that overlap, back references, and too many repeats in a row that can match
the same characters. This is on the safe side: some harmless patterns are refused too.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

try:
    from re import _constants as c  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import sre_constants as c  # type: ignore[no-redef]
        import sre_parse as parser  # type: ignore[no-redef]

MAX_LENGTH = 1000
"""Longer strings match no pattern: what is left to go wrong is at most cubic in this."""

_MAX_PATTERN = 500
_SAMPLE = [chr(i) for i in (*range(0x250), 0x3A9, 0x430, 0x5D0, 0x627, 0x4E2D, 0xAC00, 0x1F600)]
_EVERYTHING = frozenset(_SAMPLE)
_REPEATS = (c.MAX_REPEAT, c.MIN_REPEAT)
_SINGLE = (c.LITERAL, c.NOT_LITERAL, c.IN, c.ANY)
_UNSUPPORTED = tuple(
    getattr(c, name)
    for name in ("GROUPREF", "GROUPREF_EXISTS", "POSSESSIVE_REPEAT", "ATOMIC_GROUP")
    if hasattr(c, name)
)

_Items = list[tuple[Any, Any]]


def problem(pattern: str) -> str:
    """Why a pattern can't be used; empty where it can."""
    if len(pattern) > _MAX_PATTERN:
        return f"it is longer than {_MAX_PATTERN} characters"
    if re.search(r"\(\?[aLmsux]*i", pattern):
        return "the flag (?i) is not supported; write [Aa]"
    try:
        re.compile(pattern)
        tree = parser.parse(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"it is no regular expression of Python: {error}"
    try:
        return _sequence(list(tree))
    except RecursionError:
        return "it is nested too deeply"


def _sequence(items: _Items) -> str:
    """Looks at the items of one sequence, and at what is inside of them."""
    open_repeats: list[tuple[frozenset[str], bool]] = []  # characters; whether it is unlimited
    for operator, value in _flatten(items):
        if operator in _UNSUPPORTED:
            return "back references and possessive repeats are not supported"
        if operator in _REPEATS:
            low, high, body = value[0], value[1], list(value[2])
            if high > 1 and (what := _round(body)):
                return what
            if low != high:
                open_repeats.append((_all(body), high - low > 20))
                alike = [u for chars, u in open_repeats if chars & open_repeats[-1][0]]
                if sum(alike) > 2 or len(alike) > 8:
                    return "too many repeats in a row can match the same characters"
        elif operator in _SINGLE:  # a repeat does not reach beyond what it can't match
            chars = _chars(operator, value)
            open_repeats = [r for r in open_repeats if r[0] & chars]
        for inner in _inside(operator, value):
            if what := _sequence(inner):
                return what
    return ""


def _round(body: _Items) -> str:
    """Looks at the body of a repeat: may one round be read in two ways?"""
    flat = list(_flatten(body))
    varies = False
    for operator, value in _deep(flat):
        if operator in _REPEATS:
            varies |= value[0] != value[1]
        elif operator is c.BRANCH:
            branches = [list(b) for b in value[1]]
            firsts = [_first(b) for b in branches]
            empty = sum(1 for b in branches if not b)
            if empty > 1 or any(a & b for i, a in enumerate(firsts) for b in firsts[i + 1 :]):
                return "alternatives that can begin alike are repeated"
            varies |= empty > 0
    if not varies:
        return ""
    for edge, others in ((flat[0], flat[1:]), (flat[-1], flat[:-1])):
        if edge[0] in _SINGLE and not _chars(*edge) & _all(others):
            return ""
    return "a repeat stands inside of a repeat"


def _inside(operator: Any, value: Any) -> Iterator[_Items]:
    if operator in _REPEATS:
        yield list(value[2])
    elif operator is c.SUBPATTERN:
        yield list(value[-1])
    elif operator is c.BRANCH:
        for branch in value[1]:
            yield list(branch)
    elif operator in (c.ASSERT, c.ASSERT_NOT):
        yield list(value[1])


def _flatten(items: _Items) -> Iterator[tuple[Any, Any]]:
    """The items, with plain groups opened."""
    for operator, value in items:
        if operator is c.SUBPATTERN:
            yield from _flatten(list(value[-1]))
        else:
            yield operator, value


def _deep(items: _Items) -> Iterator[tuple[Any, Any]]:
    for operator, value in items:
        yield operator, value
        for inner in _inside(operator, value):
            yield from _deep(inner)


def _first(items: _Items) -> frozenset[str]:
    """Characters with which a sequence can begin."""
    found: frozenset[str] = frozenset()
    for operator, value in items:
        if operator in (c.AT, c.ASSERT, c.ASSERT_NOT):
            continue
        if operator is c.SUBPATTERN:
            found |= _first(list(value[-1]))
        elif operator is c.BRANCH:
            for branch in value[1]:
                found |= _first(list(branch))
        elif operator in _REPEATS:
            found |= _first(list(value[2]))
            if value[0] == 0:
                continue
        else:
            found |= _chars(operator, value)
        return found
    return found


def _all(items: _Items) -> frozenset[str]:
    """Characters that can stand anywhere in a sequence."""
    found: frozenset[str] = frozenset()
    for operator, value in _deep(items):
        if operator in _SINGLE:
            found |= _chars(operator, value)
    return found


def _chars(operator: Any, value: Any) -> frozenset[str]:
    """The characters of the sample that one single-character item matches."""
    if operator is c.LITERAL:
        return frozenset((chr(value),))
    if operator is c.NOT_LITERAL:
        return _EVERYTHING - {chr(value)}
    if operator is not c.IN:
        return _EVERYTHING
    found: set[str] = set()
    negated = False
    for kind, what in value:
        if kind is c.NEGATE:
            negated = True
        elif kind is c.LITERAL:
            found.add(chr(what))
        elif kind is c.RANGE:
            found.update(s for s in _SAMPLE if what[0] <= ord(s) <= what[1])
            found.add(chr(what[0]))
        elif kind is c.CATEGORY:
            known = _CATEGORIES.get(what)
            found.update(_EVERYTHING if known is None else (s for s in _SAMPLE if known(s)))
    return _EVERYTHING - found if negated else frozenset(found)


def _word(s: str) -> bool:
    return s.isalnum() or s == "_"


_CATEGORIES: dict[Any, Any] = {
    c.CATEGORY_DIGIT: str.isdigit,
    c.CATEGORY_NOT_DIGIT: lambda s: not s.isdigit(),
    c.CATEGORY_SPACE: str.isspace,
    c.CATEGORY_NOT_SPACE: lambda s: not s.isspace(),
    c.CATEGORY_WORD: _word,
    c.CATEGORY_NOT_WORD: lambda s: not _word(s),
}
