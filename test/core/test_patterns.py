"""Patterns that can be matched in bounded time, and those that can't."""

from __future__ import annotations

import re
import time

import pytest

from lerobot_tool_bridge.core import patterns
from lerobot_tool_bridge.observations import LABEL_PATTERN

GOOD = [
    "^[a-z]+$",
    r"^[A-Za-z0-9]+(?:[ _-][A-Za-z0-9]+)*$",
    r"^(?:\d{1,3}\.){3}\d{1,3}$",
    r"^\d+\.\d+\.\d+$",
    r"^\d{4}-\d{2}-\d{2}$",
    r"^#[0-9a-fA-F]{6}$",
    r"^([a-z][a-z0-9]*,)*$",
    r"^(red|green|blue)$",
    r"^(?!.*\.\.)[\w .-]+$",
    "^.*foo.*$",
    "(?:a|b|c)*",
    "",
    LABEL_PATTERN,
]
BAD = [
    "^(a+)+$",
    "^(a*)*$",
    "^(a|a)*b$",
    "^(a|ab|b)*c$",
    r"^(\w+\s?)*$",
    "^(x+x+)+y$",
    "^((ab)*c*)*$",
    "^(a?){30}a{30}$",
    "^" + "a?" * 30 + "a" * 30 + "$",
    ".*a.*a.*a.*b",
    r"(.)\1",
    "(?i)(a|A)*b",
    "[",
    r"\p{L}+",
    "a" * 600,
    "(" * 90 + "a" + ")*" * 90,
]


@pytest.mark.parametrize("pattern", GOOD, ids=range(len(GOOD)))
def test_good(pattern: str):
    assert patterns.problem(pattern) == ""


@pytest.mark.parametrize("pattern", BAD, ids=range(len(BAD)))
def test_bad(pattern: str):
    assert patterns.problem(pattern)


@pytest.mark.parametrize("pattern", GOOD, ids=range(len(GOOD)))
def test_good_ones_are_fast_at_their_worst(pattern: str):
    start = time.monotonic()
    for unit in ("a", "a ", "1", "1.", "foo", "A-", "a,", " "):
        text = (unit * patterns.MAX_LENGTH)[: patterns.MAX_LENGTH - 1]
        for tail in ("", "!", "\n"):
            re.fullmatch(pattern, text + tail)
    assert time.monotonic() - start < 2.0
