"""The calculators: values, words for what can't be computed, and bounded work."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time

import pytest

from lerobot_tool_bridge.core.errors import Rejection
from lerobot_tool_bridge.core.tool import CallContext
from lerobot_tool_bridge.ports import Ports
from lerobot_tool_bridge.tools.calculator import AdvancedCalculator, Calculator, evaluate


def calculate(expression: str) -> str:
    return asyncio.run(Calculator(Ports()).run({"expression": expression}, CallContext("c")))


def advanced(operation: str, value: float, unit: str | None = None) -> str:
    arguments = {"operation": operation, "value": value} | ({"unit": unit} if unit else {})
    tool = AdvancedCalculator(Ports())
    tool.check(arguments)
    return asyncio.run(tool.run(arguments, CallContext("c")))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("(123 + 456) * 2", "1158"),
        ("28*3/4", "21"),
        ("17 * 23", "391"),
        ("0.1 + 0.2", "0.3"),
        ("1/3", "0.333333333333333"),
        ("-2 ** 2", "-4"),
        ("2 ** -1", "0.5"),
        ("2 ** 3 ** 2", "512"),
        ("-7 % 3", "2"),
        ("--1", "1"),
        ("2*e", "5.43656365691809"),
        ("pi", "3.14159265358979"),
        ("1e3 + .5", "1000.5"),
        ("round(2.567, 2)", "2.57"),
        ("max(1, min(5, 3)) + abs(-2)", "5"),
        ("sum(1, 2, 3) + pow(2, 10)", "1030"),
        ("2 ** 64", "18446744073709551616"),
        ("10**400 / 10**399", "10"),
        ("(-8) ** 3", "-512"),
        ("1 ** 10 ** 300", "1"),
    ],
)
def test_values(expression: str, value: str):
    assert calculate(expression) == value


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("", "ends too early"),
        ("1 +", "ends too early"),
        ("2 3", '"3" at character 3 does not belong there'),
        ("(1", ") is missing for the one at character 1"),
        ("x + 1", '"x" at character 1 is not known; known are pi, e, abs'),
        ("2 ^ 3", '"^" at character 3 is not part of arithmetic'),
        ("٣ + 1", "is not part of arithmetic"),
        ("1_000", "does not belong there"),
        ("abs(1, 2)", "2 values are given to abs, it takes 1"),
        ("pow(2)", "1 values are given to pow, it takes 2"),
        ("1 / 0", "divides by zero"),
        ("1 % 0.0", "divides by zero"),
        ("0 ** -1", "divides by zero"),
        ("(-8) ** 0.5", "no fractional power"),
        ("9**9**9**9", "too large"),
        ("10**400 * 1.5", "too large"),
        ("10**400 - 0.5", "too large"),
        ("e ** 1000", "too large"),
        ("1e999", "too large"),
        ("round(1, 99)", "a whole number of digits"),
        ("(" * 60 + "1" + ")" * 60, "levels deep"),
        ("-" * 100 + "1", "levels deep"),
        ("1+" * 150 + "1", "longer than 200"),
        ("__import__('os')", "is not part of arithmetic"),
        ("().__class__", "is not part of arithmetic"),
    ],
)
def test_what_can_not_be_computed(expression: str, words: str):
    with pytest.raises(Rejection) as caught:
        evaluate(expression)
    assert caught.value.code == "bad_expression"
    assert words in caught.value.message
    assert len(caught.value.message) < 200


def test_work_is_bounded():
    start = time.monotonic()
    for bomb in (
        "9**" * 60 + "9",
        "(" * 16 + "99999**999" + ")**999" * 16,
        "*".join(["10**900"] * 20),
        "2**3320" + "*2**3320" * 15,
        "10**999%" * 20 + "7",
    ):
        with contextlib.suppress(Rejection):
            evaluate(bomb[:200])
    assert time.monotonic() - start < 1.0


@pytest.mark.parametrize(
    ("operation", "value", "unit", "answer"),
    [
        ("sin", 30, "degree", "0.5"),
        ("cos", 60, "degree", "0.5"),
        ("cos", 90, "degree", "0"),
        ("tan", 45, "degree", "1"),
        ("sin", math.pi / 2, None, "1"),
        ("asin", 0.5, "degree", "30"),
        ("acos", -1, "radian", "3.14159265358979"),
        ("atan", 1, "degree", "45"),
        ("log", math.e, None, "1"),
        ("log10", 1000, None, "3"),
        ("log2", 8, None, "3"),
        ("exp", 0, None, "1"),
        ("sqrt", 2, None, "1.4142135623731"),
        ("cbrt", -27, None, "-3"),
        ("abs", -3.5, None, "3.5"),
        ("ceil", 2.1, None, "3"),
        ("floor", -2.1, None, "-3"),
    ],
)
def test_advanced(operation: str, value: float, unit: str | None, answer: str):
    assert advanced(operation, value, unit) == answer


@pytest.mark.parametrize(
    ("operation", "value", "words"),
    [
        ("tan", 90, "an angle other than"),
        ("asin", 2, "from -1 to 1"),
        ("log", 0, "above 0"),
        ("sqrt", -1, "at least 0"),
        ("exp", 710, "below 709"),
        ("sin", 10**400, "a smaller value"),
    ],
)
def test_advanced_outside_of_the_domain(operation: str, value: float, words: str):
    with pytest.raises(Rejection, match=words) as caught:
        advanced(operation, value, "degree")
    assert caught.value.code == "bad_expression"
