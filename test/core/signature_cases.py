"""Functions in every form of hints and docstrings, with or without a schema."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import Annotated, Any, Literal, Optional, Union


class Speed(enum.Enum):
    SLOW = "slow"
    FAST = "fast"


class Mixed(enum.Enum):
    ONE = 1
    HALF = 0.5
    NONE = None


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Empty(enum.Enum):
    pass


class Pairs(enum.Enum):
    A = (1, 2)


class Custom:
    pass


def temperature(location: str, unit: str):
    """
    Get the current temperature at a location.

    Args:
        location: The location to get the temperature for, in the format "City, Country"
        unit: The unit to return the temperature in. (choices: ["celsius", "fahrenheit"])
    """
    return 22.0


def multiply(a: float, b: float):
    """
    A function that multiplies two numbers

    Args:
        a: The first number to multiply
        b: The second number to multiply
    """
    return a * b


def every_basic(i: int, f: float, s: str, b: bool, n: None, x: Any, li: list, t: tuple, d: dict):
    """Basic types.

    Args:
        i: int
        f: float
        s: str
        b: bool
        n: null
        x: anything
        li: a list
        t: a tuple
        d: a dict
    """


def optionals(
    a: Optional[int],  # noqa: UP045
    b: str | None = None,
    c: Union[None, list[float]] = None,  # noqa: RUF036, UP007
    d: Optional[Any] = None,  # noqa: UP045
    e: int = 3,
):
    """Optionals.

    Args:
        a: required, may be null
        b: a text
        c: numbers
        d: anything
        e: no null
    """


def unions(
    a: int | str,
    b: Union[float, int, None],  # noqa: UP007
    c: list[int] | str,
    d: list | tuple,
    e: Speed | int | None,
    f: dict[str, int] | list[str] | None,
):
    """Unions.

    Args:
        a: plain
        b: sorted, with null
        c: one of them has items
        d: the same in JSON
        e: an enum and a number
        f: two that have parts
    """


def literals(
    a: Literal["left", "right"],
    b: Literal[1, 2, 3],
    c: Literal["auto", 1, None],
    d: Literal["x"] | None = None,
    e: Literal[True] = True,
):
    """Literals.

    Args:
        a: texts
        b: numbers
        c: mixed
        d: may be null
        e: a constant
    """


def enums(a: Speed, b: Mixed, c: Level, d: list[Speed], e: Optional[Speed] = None):  # noqa: UP045
    """Enums.

    Args:
        a: texts
        b: mixed
        c: whole numbers
        d: a list of them
        e: may be null
    """


def containers(
    a: list[int],
    b: list[list[str]],
    c: dict[str, float],
    d: dict[str, list[int] | None],
    e: tuple[int, str, float],
    f: tuple[list[int], dict[str, bool]],
    g: dict[int, str],
    h: list[Any],
):
    """Containers.

    Args:
        a: whole numbers
        b: lists of lists
        c: numbers by name
        d: lists by name
        e: three things
        f: two containers
        g: the keys are texts in JSON
        h: anything
    """


def docstring_forms(
    first: int, second: str, third: float, fourth: str = "a", fifth: int | None = None
) -> dict[str, float]:
    """Does a thing. It has more
    than one line.

    And a paragraph, in 日本語.

    Args:
        first (int): has a type in parentheses
        second (str, optional): goes on
            in a second line

            and after an empty one: with a colon
        third: units: metres
        fourth: a choice (choices: ["a", " b ", "c"])
        fifth: a number (CHOICES: [1, 2, null])

    Returns:
        The distances
        by name.

    Raises:
        ValueError: never
    """
    return {}


def returns_none(x: int) -> None:
    """Returns nothing.

    Args:
        x: a number
    """


def returns_custom(x: int) -> Custom:
    """What it returns has no schema.

    Args:
        x: a number

    Returns:
        Something.
    """
    return Custom()


def no_arguments() -> str:
    """Get the current local time as a string."""
    return ""


def annotated(x: Annotated[int, "metres"], y: "int | None" = None):  # noqa: UP037
    """Annotations and texts as hints.

    Args:
        x: a number
        y: another
    """


def described_by_the_next(x: int, y: int):
    """An entry without a word takes the next line.

    Args:
        x:
            in a line of its own
        y: short
    """


@functools.lru_cache(maxsize=8)
def cached(x: int) -> int:
    """Cached.

    Args:
        x: a number
    """
    return x


async def later(x: int) -> int:
    """Asynchronous.

    Args:
        x: a number
    """
    return x


class Robot:
    def move(self, x: float, speed: float = 50.0):
        """Moves.

        Args:
            x: where to, in metres
            speed: percent
        """

    @classmethod
    def make(cls, name: str):
        """Makes one.

        Args:
            name: what it is called
        """

    @staticmethod
    def park(slow: bool):
        """Parks.

        Args:
            slow: whether slowly
        """


GOOD: list[Callable[..., Any]] = [
    *(temperature, multiply, every_basic, optionals, unions, literals, enums, containers),
    *(docstring_forms, returns_none, returns_custom, no_arguments, annotated),
    *(described_by_the_next, cached, later, Robot.move, Robot().move, Robot.make, Robot.park),
]


# --- refused ------------------------------------------------------------------------------------


def no_docstring(x: int):
    pass


def no_hint(x):
    """X.

    Args:
        x: a number
    """


def no_description(x: int, y: int):
    """X.

    Args:
        x: a number
    """


def custom_class(x: Custom):
    """X.

    Args:
        x: a thing
    """


def custom_inside(x: list[Custom] | None):
    """X.

    Args:
        x: things
    """


def one_tuple(x: tuple[int]):
    """X.

    Args:
        x: a tuple
    """


def open_tuple(x: tuple[int, ...]):
    """X.

    Args:
        x: a tuple
    """


def a_set(x: set[int]):
    """X.

    Args:
        x: a set
    """


def a_function(x: Callable[[int], int]):
    """X.

    Args:
        x: a function
    """


def empty_enum(x: Empty):
    """X.

    Args:
        x: nothing
    """


def pair_enum(x: Pairs):
    """X.

    Args:
        x: pairs
    """


def byte_literal(x: Literal[b"a"]):
    """X.

    Args:
        x: bytes
    """


def enum_literal(x: Literal[Speed.SLOW]):
    """X.

    Args:
        x: a member
    """


def bad_choices(x: str):
    """X.

    Args:
        x: a choice (choices: ['a', 'b'])
    """


def numpy_style(x: int):
    """X.

    Parameters
    ----------
    x : int
        a number
    """


def unknown_hint(x: "Nowhere"):  # noqa: F821, UP037
    """X.

    Args:
        x: a number
    """


REFUSED: dict[Callable[..., Any], str] = {
    no_docstring: "has no docstring",
    no_hint: "no type hint. Write one, such as x: float",
    no_description: "does not describe its argument y",
    custom_class: "Custom has no JSON schema. Use int, float, str",
    custom_inside: "The argument x of custom_inside: Custom has no JSON schema",
    one_tuple: "write list[...]",
    open_tuple: "write list[...]",
    a_set: "set[int] has no JSON schema",
    a_function: "has no JSON schema",
    empty_enum: "Empty has no members",
    pair_enum: "the value (1, 2), which JSON can't say",
    byte_literal: "the value b'a'",
    enum_literal: "which JSON can't say",
    bad_choices: 'with double quotes: (choices: ["a", "b"])',
    numpy_style: "does not describe its argument x. Add a line under 'Args:'",
    unknown_hint: "'Nowhere' is not defined. Import it",
}
