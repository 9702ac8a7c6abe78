"""Schemas from functions, as Transformers makes them; and what validation makes of those."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from signature_cases import GOOD, REFUSED, Level, Mixed, Speed, optionals, unions
from signature_expected import EXPECTED

from lerobot_tool_bridge.core.errors import LoadError, Rejection
from lerobot_tool_bridge.core.schema import Schema, narrow
from lerobot_tool_bridge.core.signature import (
    DocstringParsingException,
    TypeHintParsingException,
    Values,
    function_parameters,
    get_json_schema,
    inner_function,
)


def test_schemas_are_those_of_transformers():
    for function, expected in zip(GOOD, EXPECTED, strict=True):
        schema = get_json_schema(function)
        assert schema == {"type": "function", "function": expected}, function.__name__
        # 1 and True are equal, and the order is what a model reads
        assert json.dumps(schema["function"]) == json.dumps(expected)


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_what_is_refused_says_what_to_write(function: Callable[..., Any]) -> None:
    with pytest.raises(LoadError) as caught:
        get_json_schema(function)
    assert isinstance(caught.value, TypeHintParsingException | DocstringParsingException)
    assert function.__name__ in caught.value.message
    assert REFUSED[function] in caught.value.message


def test_the_real_library_agrees():
    transformers = pytest.importorskip("transformers")
    if not transformers.__version__.startswith("5."):
        pytest.skip("another version")
    theirs = transformers.utils.get_json_schema
    for function in GOOD:
        assert json.dumps(theirs(function)) == json.dumps(get_json_schema(function))
    for function in REFUSED:
        with pytest.raises(Exception):  # noqa: B017, PT011
            theirs(function)


def test_a_callable_object_is_refused():
    with pytest.raises(TypeHintParsingException, match="Wrap it into a function"):
        get_json_schema(functools.partial(optionals, 1))


# --- validation -------------------------------------------------------------------------------


def accepts(schema: Schema, **arguments: Any) -> bool:
    try:
        schema.validate(arguments)
    except Rejection:
        return False
    return True


def test_a_union_with_null_accepts_null():
    schema = Schema(get_json_schema(optionals)["function"]["parameters"])
    assert accepts(schema, a=None, b=None, c=None, d=None)
    assert accepts(schema, a=1, b="x", c=[1.5], d={"any": 1})
    for wrong in ({"a": "1"}, {"a": 1, "b": 2}, {"a": 1, "c": ["x"]}, {"a": 1, "e": None}, {}):
        assert not accepts(schema, **wrong)
    with pytest.raises(Rejection, match="a must be a whole number or null, got the string"):
        schema.validate({"a": "x"})
    # what is published is what the function's own schema says
    assert schema.parameters["properties"]["a"]["type"] == "integer"
    assert schema.parameters["properties"]["a"]["nullable"] is True
    assert schema.validate({"a": 2.0})["a"] == 2
    assert type(schema.validate({"a": 2.0})["a"]) is int


def test_unions_with_parts_and_null():
    schema = Schema(get_json_schema(unions)["function"]["parameters"])
    good = {"a": "x", "b": 1, "c": [1], "d": [], "e": "slow", "f": {"a": 1}}
    assert accepts(schema, **good)
    assert accepts(schema, **{**good, "b": None, "e": None, "f": None})
    for name, wrong in (("a", None), ("c", ["x"]), ("e", "medium"), ("f", {"a": "x"})):
        assert not accepts(schema, **{**good, name: wrong})


@pytest.mark.parametrize(
    ("part", "good", "bad"),
    [
        ({"type": "string", "enum": ["a", "b"]}, "a", "c"),
        ({"type": ["integer", "string"]}, 1, 1.5),
        ({"oneOf": [{"type": "number"}, {"type": "boolean"}]}, True, "x"),
        ({"type": "number", "minimum": 0}, 1, -1),
        ({"const": "a"}, "a", "b"),
        ({"allOf": [{"type": "string"}]}, "a", 1),
        ({"type": "array", "items": {"type": "integer", "nullable": True}}, [1, None], ["a"]),
    ],
)
def test_nullable_in_every_place(part, good, bad):
    schema = Schema({"type": "object", "properties": {"enum": {**part, "nullable": True}}})
    assert accepts(schema, enum=good)
    assert accepts(schema, enum=None)
    assert not accepts(schema, enum=bad)
    strict = Schema({"type": "object", "properties": {"enum": part}})
    assert not accepts(strict, enum=None)


def test_null_is_allowed_only_where_both_schemas_allow_it():
    loose = {"type": "number", "nullable": True}
    tight = {"type": "number", "minimum": 0}
    for declared, own, null in (
        (loose, tight, False),
        (tight, loose, True),  # the types are those of the tool
        (loose, {"minimum": 0}, True),
        (tight, {"nullable": True}, False),
    ):
        made = narrow({"properties": {"x": declared}}, {"properties": {"x": own}})
        schema = Schema(made)
        assert accepts(schema, x=None) is null
        assert not accepts(schema, x=-1)


def test_eight_limited_properties_are_fast():
    numbers = {
        f"joint_{i}": {"type": "number", "minimum": -90, "maximum": 90, "description": "degrees"}
        for i in range(5)
    }
    schema = Schema(
        {
            "type": "object",
            "properties": {
                **numbers,
                "speed": {"type": "integer", "minimum": 1, "maximum": 100},
                "mode": {"type": "string", "enum": ["fast", "slow"]},
                "label": {"type": "string", "maxLength": 30, "pattern": "[a-z]+"},
            },
            "required": [*numbers, "speed", "mode", "label"],
            "additionalProperties": False,
        }
    )
    given = {**dict.fromkeys(numbers, 12.5), "speed": 50, "mode": "fast", "label": "home"}
    best = 1.0
    for _ in range(20):  # the best of 20, so that a busy machine does not count
        start = time.perf_counter()
        for _ in range(20):
            schema.validate(given)
        best = min(best, (time.perf_counter() - start) / 20)
    assert best <= 0.5e-3


# --- functions that were not written for it -----------------------------------------------------


def test_missing_words_are_allowed_for_registered_functions():
    def tool(text, count: int = 10, mode: Literal["a", "b"] = "a"):
        """工具说明

        Args:
            count: 整数参数，可选，默认值为10
        """

    assert function_parameters(tool) == {
        "type": "object",
        "properties": {
            "text": {},
            "count": {"type": "integer", "description": "整数参数，可选，默认值为10"},
            "mode": {"type": "string", "enum": ["a", "b"]},
        },
        "required": ["text"],
    }


def test_what_can_not_be_called_by_name_is_refused():
    def many(*numbers: float) -> float: ...
    def others(**words: str) -> str: ...
    def places(x: int, /) -> int: ...

    for function in (many, others, places):
        with pytest.raises(TypeHintParsingException, match="can't be given by name"):
            function_parameters(function)


def test_a_decorator_without_wraps_is_looked_through():
    def checked(function):
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)

        return wrapper

    @checked
    @functools.lru_cache
    @checked
    def tool(text: str) -> str:
        """Text."""
        return text

    assert list(function_parameters(tool)["properties"]) == ["text"]
    assert inner_function(checked(optionals)) is optionals
    parameters = function_parameters(checked(checked(unions)))
    assert list(parameters["properties"]) == ["a", "b", "c", "d", "e", "f"]


def test_values_are_what_the_hints_promise():
    def tool(
        a: Speed,
        b: tuple[int, Speed],
        c: list[tuple[int, int]] | None,
        d: Mixed | str,
        e: Path | None,
        f: dict[str, Speed],
        g: int,
    ) -> None: ...

    values = Values(tool)
    given = {
        "a": "slow",
        "b": [1, "fast"],
        "c": [[1, 2]],
        "d": 0.5,
        "e": "x",
        "f": {"x": "slow"},
        "g": 1,
    }
    assert values(given) == {
        "a": Speed.SLOW,
        "b": (1, Speed.FAST),
        "c": [(1, 2)],
        "d": Mixed.HALF,
        "e": "x",
        "f": {"x": Speed.SLOW},
        "g": 1,
    }
    assert values({"c": None, "d": "word"}) == {"c": None, "d": "word"}


def test_flags_that_are_numbers():
    def tool(level: Level) -> None: ...

    assert Values(tool)({"level": 2})["level"] is Level.HIGH
