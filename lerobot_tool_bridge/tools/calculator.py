"""``calculator`` and ``advanced_calculator``: a grammar of our own, never ``eval``.

::

    sum    = term (("+" | "-") term)*
    term   = sign (("*" | "/" | "%") sign)*
    sign   = ("+" | "-") sign | power
    power  = atom ("**" sign)?
    atom   = number | "pi" | "e" | function "(" sum ("," sum)* ")" | "(" sum ")"

Numbers are written in ASCII. Every step is bounded before it is computed: an expression has at
most 200 characters, is nested at most 32 levels deep, and whole numbers have at most 1,000 digits.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lerobot_tool_bridge.core import show
from lerobot_tool_bridge.core.errors import Rejection
from lerobot_tool_bridge.core.tool import CallContext, Tool

Number = int | float

MAX_CHARACTERS = 200
_MAX_LEVELS = 32
_MAX_BITS = 3322  # 1,000 digits
_MAX_ROUND = 15
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>\*\*|[-+*/%(),]))"
)
_CONSTANTS: Mapping[str, Number] = {"pi": math.pi, "e": math.e}


class Calculator(Tool):
    """Evaluates one arithmetic expression."""

    name = "calculator"
    timeout = 5.0
    pure = True

    @property
    def description(self) -> str:
        return (
            "Evaluate an arithmetic expression and answer with its value. Operators + - * / ** % "
            "and parentheses, the constants pi and e, the functions abs, round, min, max, sum and "
            "pow. No variables, no units, no other functions. Example: (123 + 456) * 2"
        )

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {
                "expression": {
                    "type": "string",
                    "description": "The expression, at most 200 characters.",
                    "minLength": 1,
                    "maxLength": MAX_CHARACTERS,
                }
            },
            "required": ["expression"],
            "additionalProperties": False,
        }

    def check(self, arguments: Mapping[str, Any]) -> None:
        evaluate(arguments["expression"])

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        return _written(evaluate(arguments["expression"]))


class AdvancedCalculator(Tool):
    """Applies one mathematical function to one number."""

    name = "advanced_calculator"
    timeout = 5.0
    pure = True

    @property
    def description(self) -> str:
        return (
            "Apply one mathematical function to one number: sin, cos, tan (unit says whether the "
            "value is in degree or radian), asin, acos, atan (unit says in which the answer is), "
            "log (natural), log10, log2, exp, sqrt, cbrt, abs, ceil, floor. "
            "Example: operation sin, value 30, unit degree gives 0.5."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {
                "operation": {
                    "type": "string",
                    "description": "The function.",
                    "enum": [*_ADVANCED],
                },
                "value": {"type": "number", "description": "Its argument."},
                "unit": {
                    "type": "string",
                    "description": "Unit of angles; only for sin, cos, tan, asin, acos, atan.",
                    "enum": ["radian", "degree"],
                    "default": "radian",
                },
            },
            "required": ["operation", "value"],
            "additionalProperties": False,
        }

    def check(self, arguments: Mapping[str, Any]) -> None:
        apply(arguments["operation"], arguments["value"], arguments.get("unit", "radian"))

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        return _written(
            apply(arguments["operation"], arguments["value"], arguments.get("unit", "radian"))
        )


def evaluate(expression: str) -> Number:
    """Computes the value of an expression.

    Raises:
        Rejection: ``bad_expression``; says what is wrong and where.
    """
    if len(expression) > MAX_CHARACTERS:
        raise _bad(f"the expression is longer than {MAX_CHARACTERS} characters")
    parser = _Parser(_tokens(expression))
    value = parser.sum(0)
    parser.end()
    return value


def apply(operation: str, value: Number, unit: str = "radian") -> Number:
    """Computes one function of ``advanced_calculator``.

    Args:
        operation: Its name.
        value: Its argument.
        unit: ``radian`` or ``degree``: of the argument of sin, cos, tan; of the value of asin,
            acos, atan.

    Raises:
        Rejection: ``bad_expression``: outside of the function's domain, or too large.
    """
    function, domain = _ADVANCED[operation]
    try:
        given = float(value)
        if unit == "degree" and operation in ("sin", "cos", "tan"):
            return _finite(_of_degrees(operation, given))
        result = function(given)
        if unit == "degree" and operation in ("asin", "acos", "atan"):
            result = math.degrees(result)
        return _finite(result)
    except (ValueError, OverflowError):
        what = domain or "a smaller value"
        raise _bad(
            f"{operation} of {show.value(value)} has no value here; it needs {what}"
        ) from None


def _of_degrees(operation: str, degrees: float) -> float:
    """sin, cos or tan of degrees, exact where it is a round number."""
    turned = math.fmod(degrees, 360.0)
    if operation == "tan" and turned % 180.0 == 90.0:
        raise ValueError
    value = _TURNED[operation](math.radians(turned))
    return next((v for v in (0.0, 0.5, -0.5, 1.0, -1.0) if abs(value - v) < 1e-15), value)


_TURNED = {"sin": math.sin, "cos": math.cos, "tan": math.tan}


def _cbrt(value: float) -> float:
    root = math.copysign(abs(value) ** (1.0 / 3.0), value)
    if value:
        root -= (root - value / root / root) / 3.0
    return root


_ADVANCED: Mapping[str, tuple[Callable[[float], Number], str]] = {
    "sin": (math.sin, ""),
    "cos": (math.cos, ""),
    "tan": (math.tan, "an angle other than 90° and its odd multiples"),
    "asin": (math.asin, "a value from -1 to 1"),
    "acos": (math.acos, "a value from -1 to 1"),
    "atan": (math.atan, ""),
    "log": (math.log, "a value above 0"),
    "log10": (math.log10, "a value above 0"),
    "log2": (math.log2, "a value above 0"),
    "exp": (math.exp, "a value below 709"),
    "sqrt": (math.sqrt, "a value of at least 0"),
    "cbrt": (_cbrt, ""),
    "abs": (abs, ""),
    "ceil": (math.ceil, ""),
    "floor": (math.floor, ""),
}


_ADDING: Mapping[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub}


class _Parser:
    """Recursive descent over the tokens; computes while it reads."""

    def __init__(self, tokens: Sequence[tuple[str, str, int]]) -> None:
        self._tokens = tokens
        self._next = 0

    def sum(self, level: int) -> Number:
        value = self._term(level)
        while (sign := self._take("+", "-")) is not None:
            other = self._term(level)
            value = _finite(_floats(value, other, _ADDING[sign]))
        return value

    def end(self) -> None:
        kind, text, position = self._tokens[self._next]
        if kind != "end":
            raise _bad(f"{show.text(text)} at character {position} does not belong there")

    def _term(self, level: int) -> Number:
        value = self._sign(level)
        while (sign := self._take("*", "/", "%")) is not None:
            value = _binary(sign, value, self._sign(level))
        return value

    def _sign(self, level: int) -> Number:
        if level > _MAX_LEVELS:
            raise _bad(f"it is nested more than {_MAX_LEVELS} levels deep")
        sign = self._take("+", "-")
        if sign is None:
            return self._power(level)
        value = self._sign(level + 1)
        return -value if sign == "-" else value

    def _power(self, level: int) -> Number:
        base = self._atom(level)
        if self._take("**") is None:
            return base
        return _power(base, self._sign(level + 1))

    def _atom(self, level: int) -> Number:
        kind, text, position = self._tokens[self._next]
        self._next += 1
        if kind == "number":
            whole = text.isdecimal()
            return _finite(int(text) if whole else float(text))
        if kind == "name" and text in _FUNCTIONS:
            self._expect("(", f"after {text}")
            values = [self.sum(level + 1)]
            while self._take(",") is not None:
                values.append(self.sum(level + 1))
            self._expect(")", f"after what {text} is applied to")
            return _call(text, values)
        if kind == "name" and text in _CONSTANTS:
            return _CONSTANTS[text]
        if text == "(" and kind == "sign":
            value = self.sum(level + 1)
            self._expect(")", f"for the one at character {position}")
            return value
        if kind == "name":
            known = show.listed([*_CONSTANTS, *_FUNCTIONS])
            raise _bad(
                f"{show.text(text)} at character {position} is not known; known are {known}"
            )
        what = "the expression ends too early" if kind == "end" else f"{show.text(text)}"
        where = "" if kind == "end" else f" at character {position} does not belong there"
        raise _bad(f"{what}{where}; a number, a name or ( is expected")

    def _take(self, *signs: str) -> str | None:
        kind, text, _ = self._tokens[self._next]
        if kind == "sign" and text in signs:
            self._next += 1
            return text
        return None

    def _expect(self, sign: str, why: str) -> None:
        if self._take(sign) is None:
            raise _bad(f"{sign} is missing {why}")


def _tokens(expression: str) -> list[tuple[str, str, int]]:
    """Kind, text and position (from 1) of each token; ends with ``end``."""
    tokens = []
    position = 0
    rest = len(expression.rstrip())
    while position < rest:
        match = _TOKEN.match(expression, position)
        if match is None:
            at = position + len(expression[position:]) - len(expression[position:].lstrip())
            raise _bad(
                f"{show.text(expression[at])} at character {at + 1} is not part of arithmetic"
            )
        kind = str(match.lastgroup)
        tokens.append((kind, match[kind], match.start(kind) + 1))
        position = match.end()
    tokens.append(("end", "", len(expression) + 1))
    return tokens


def _binary(sign: str, left: Number, right: Number) -> Number:
    if sign == "*":
        _bounded(_bits(left) + _bits(right), left, right)
        return _finite(_floats(left, right, lambda a, b: a * b))
    if right == 0:
        raise _bad("it divides by zero")
    if sign == "%":
        return _finite(_floats(left, right, lambda a, b: a % b))
    if isinstance(left, int) and isinstance(right, int) and left % right == 0:
        return left // right
    return _finite(_floats(left, right, lambda a, b: a / b))


def _floats(left: Number, right: Number, operation: Callable[[Any, Any], Any]) -> Number:
    try:
        value: Number = operation(left, right)
        return value
    except OverflowError:
        raise _too_large() from None


def _power(base: Number, exponent: Number) -> Number:
    if base == 0 and exponent < 0:
        raise _bad("it divides by zero (0 to a negative power)")
    if isinstance(base, int) and isinstance(exponent, int):
        if exponent >= 0:
            if abs(base) > 1:
                _bounded((_bits(base) - 1) * exponent, base)
            return _finite(base**exponent)
        base = _float(base)
    try:
        value = base**exponent
    except OverflowError:
        raise _too_large() from None
    if isinstance(value, complex):
        raise _bad("a negative number has no fractional power")
    return _finite(value)


def _float(value: Number) -> float:
    try:
        return float(value)
    except OverflowError:
        raise _too_large() from None


def _call(name: str, values: list[Number]) -> Number:
    function, least, most = _FUNCTIONS[name]
    if not least <= len(values) <= most:
        wanted = f"{least}" if least == most else f"{least} to {most}"
        if most >= MAX_CHARACTERS:
            wanted = f"at least {least}"
        raise _bad(f"{len(values)} values are given to {name}, it takes {wanted}")
    try:
        return _finite(function(*values))
    except OverflowError:
        raise _too_large() from None


def _round(value: Number, digits: Number = 0) -> Number:
    if digits != int(digits) or abs(digits) > _MAX_ROUND:
        raise _bad(f"round takes a whole number of digits, at most {_MAX_ROUND}")
    return round(value, int(digits)) if digits else round(value)


def _sum(*values: Number) -> Number:
    return sum(values)


_FUNCTIONS: Mapping[str, tuple[Callable[..., Number], int, int]] = {
    "abs": (abs, 1, 1),
    "round": (_round, 1, 2),
    "min": (lambda *v: min(v), 1, MAX_CHARACTERS),
    "max": (lambda *v: max(v), 1, MAX_CHARACTERS),
    "sum": (_sum, 1, MAX_CHARACTERS),
    "pow": (_power, 2, 2),
}


def _bits(value: Number) -> int:
    return value.bit_length() if isinstance(value, int) else 0


def _bounded(bits: int, *operands: Number) -> None:
    """Refuses a whole number that would be too long, before it is computed."""
    if bits > _MAX_BITS and all(isinstance(v, int) for v in operands):
        raise _too_large()


def _finite(value: Number) -> Number:
    if isinstance(value, int):
        _bounded(value.bit_length(), value)
    elif not math.isfinite(value):
        raise _too_large()
    return value


def _written(value: Number) -> str:
    """Whole values without a point; fifteen digits, so that 0.1 + 0.2 is 0.3."""
    if isinstance(value, int):
        return str(value)
    text = f"{value:.15g}"
    return "0" if text == "-0" else text


def _too_large() -> Rejection:
    return _bad("a value in it is too large")


def _bad(what: str) -> Rejection:
    return Rejection("bad_expression", f"This can't be computed: {what}.")
