"""Schemas: what they refuse, in which words, and what can't be loaded."""

from __future__ import annotations

import time
from typing import Any

import pytest

from lerobot_tool_bridge.core.errors import LoadError, Rejection
from lerobot_tool_bridge.core.schema import Schema, narrow

DEGREES = {"type": "number", "minimum": 0, "maximum": 270, "description": "Angle in degrees."}
PAN_TILT = {
    "type": "object",
    "properties": {"pan": DEGREES, "tilt": {**DEGREES, "description": "", "x-unit": "degrees"}},
    "required": ["pan", "tilt"],
}
MIXED = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "minimum": 1},
        "text": {"type": "string", "minLength": 2, "maxLength": 5},
        "label": {"type": "string", "pattern": "^[a-z]+$", "description": "Small letters."},
        "mode": {"enum": ["fast", "slow", 3]},
        "on": {"type": "boolean"},
        "list": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
        "maybe": {"type": ["number", "null"]},
        "step": {"type": "number", "multipleOf": 0.5},
        "box": {
            "type": "object",
            "properties": {"w": {"type": "number", "exclusiveMinimum": 0, "maximum": 1}},
            "required": ["w"],
        },
        "joints": {
            "type": "array",
            "prefixItems": [
                {"type": "number"},
                {"type": "number"},
                {
                    "title": "elbow_flex",
                    "type": "number",
                    "minimum": -96.8,
                    "maximum": 96.8,
                    "x-unit": "degrees",
                },
            ],
        },
    },
}


def refusal(schema: Any, arguments: dict[str, Any] | None) -> str:
    with pytest.raises(Rejection) as caught:
        Schema(schema).validate(arguments)
    assert caught.value.code == "invalid_arguments"
    assert len(caught.value.message) < 1200
    return caught.value.message


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"pan": 300, "tilt": 90}, "pan: 300 given, 0 to 270 degrees allowed."),
        ({"pan": 90, "tilt": -0.5}, "tilt: -0.5 given, 0 to 270 degrees allowed."),
        (
            {"pan": "90", "tilt": "60"},
            'pan must be a number, got the string "90". '
            'tilt must be a number, got the string "60".',
        ),
        ({"pan": 90}, "tilt is missing."),
        ({}, "pan and tilt are missing."),
        (None, "pan and tilt are missing."),
        (
            {"pan": True, "tilt": None},
            "pan must be a number, got true. tilt must be a number, got "
            "null; leave it out instead.",
        ),
        (
            {"pan": 1, "tilt": 2, "roll": 3},
            "roll: this tool has no such argument, it takes pan and tilt.",
        ),
        (
            {"properties": {"pan": 1, "tilt": 2}},
            "pan and tilt are missing. properties: this tool has no such argument, it takes pan "
            "and tilt. Put the arguments at the top level.",
        ),
        (
            {"pan": 10**300, "tilt": [1, 2]},
            "pan: a very large number given, 0 to 270 degrees allowed. tilt must be a number, got "
            "a list of 2.",
        ),
    ],
    ids=range(10),
)
def test_sentences(arguments: dict[str, Any] | None, sentence: str):
    assert refusal(PAN_TILT, arguments) == sentence


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"count": 2.7}, "count must be a whole number, got 2.7."),
        ({"count": 0}, "count: 0 given, at least 1 allowed."),
        ({"text": "toolong"}, "text: 7 characters given, 2 to 5 allowed."),
        ({"text": ""}, "text must not be empty."),
        ({"label": "ab\n"}, 'label: "ab\\n" given, which does not fit: Small letters.'),
        ({"label": "x" * 2000}, None),
        ({"mode": "Fast"}, 'mode: "Fast" given, "fast", "slow" or 3 expected.'),
        ({"mode": True}, 'mode: true given, "fast", "slow" or 3 expected.'),
        ({"on": 1}, "on must be true or false, got 1."),
        ({"list": [1]}, "list: 1 values given, 2 expected."),
        ({"list": [1, "x"]}, 'list[1] must be a number, got the string "x".'),
        ({"maybe": "x"}, 'maybe must be a number or null, got the string "x".'),
        ({"step": 0.3}, "step: 0.3 given, a multiple of 0.5 expected."),
        ({"step": 10**307}, ""),
        ({"box": {"w": 0}}, "box.w: 0 given, more than 0 and at most 1 allowed."),
        ({"box": {}}, "box.w is missing."),
        ({"box": {"w": 1, "h": 1}}, "h: box has no such argument, it takes w."),
        ({"box": 5}, "box must be an object, got 5."),
        (
            {"joints": [0, 0, 140]},
            "elbow_flex (third of joints): 140 given, -96.8 to 96.8 degrees allowed.",
        ),
    ],
    ids=range(19),
)
def test_more_sentences(arguments: dict[str, Any], sentence: str | None):
    if sentence == "":
        assert Schema(MIXED).validate(arguments) == arguments
    elif sentence is None:
        refusal(MIXED, arguments)
    else:
        assert refusal(MIXED, arguments) == sentence


def test_at_most_eight_and_never_the_whole_value():
    schema = {"type": "object", "properties": {f"a{i}": {"type": "number"} for i in range(12)}}
    text = refusal(schema, {f"a{i}": "y" * 5000 for i in range(12)})
    assert text.count("must be a number") == 8
    assert text.endswith("And 4 more.")


def test_good_arguments_come_back():
    schema = Schema(MIXED)
    arguments = {"count": 3, "text": "abc", "mode": 3, "maybe": None, "list": [1, 2.5]}
    assert schema.validate(arguments) == arguments
    assert type(schema.validate({"count": 2.0})["count"]) is int
    assert schema.validate(None) == {}


def test_nulls_that_fill_a_column_count_as_left_out():
    schema = Schema(PAN_TILT)
    padded = {"pan": 1, "tilt": 2, "label": None}
    assert schema.validate(padded, padded=True) == {"pan": 1, "tilt": 2}
    with pytest.raises(Rejection):
        schema.validate({"pan": 1, "tilt": None}, padded=True)


def test_own_keywords_are_not_published():
    assert "x-unit" not in str(Schema(PAN_TILT).parameters)
    assert Schema(PAN_TILT).parameters["additionalProperties"] is False
    open_one = {"type": "object", "additionalProperties": True}
    assert Schema(open_one).validate({"x": 1}) == {"x": 1}


def test_local_references_are_followed():
    schema = Schema(
        {
            "$defs": {"angle": {"type": "number", "maximum": 3}},
            "properties": {"a": {"$ref": "#/$defs/angle", "description": "An angle."}},
        }
    )
    assert schema.parameters["properties"]["a"] == {
        "type": "number",
        "maximum": 3,
        "description": "An angle.",
    }
    with pytest.raises(Rejection, match="4 given"):
        schema.validate({"a": 4})


@pytest.mark.parametrize(
    ("schema", "code"),
    [
        ({"properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}}, "schema_ref"),
        ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "schema_ref"),
        ({"properties": {"a": {"items": {"anyOf": [{"$ref": "x.json"}]}}}}, "schema_ref"),
        ({"properties": {"a": {"$dynamicRef": "http://x/y"}}}, "schema_ref"),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "schema_ref"),
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, "schema_ref"),
        (
            {
                "$defs": {"n": {"properties": {"c": {"$ref": "#/$defs/n"}}}},
                "properties": {"a": {"$ref": "#/$defs/n"}},
            },
            "schema_ref",
        ),
        ({"properties": {"a": {"pattern": "^(a+)+$"}}}, "schema_pattern"),
        ({"patternProperties": {"^(a+)+$": {}}}, "schema_pattern"),
        ({"properties": {"a": {"type": "float"}}}, "bad_schema"),
        ({"type": "array"}, "bad_schema"),
        ({"properties": {"a": 5}}, "bad_schema"),
        ([], "bad_schema"),
    ],
    ids=range(13),
)
def test_what_can_not_be_loaded(schema: Any, code: str):
    with pytest.raises(LoadError) as caught:
        Schema(schema)
    assert caught.value.code == code


def test_a_bomb_of_references_is_refused():
    defs = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(20)}
    defs["d20"] = {"type": "number"}
    start = time.monotonic()
    with pytest.raises(LoadError):
        Schema({"$defs": defs, "properties": {"a": {"$ref": "#/$defs/d0"}}})
    assert time.monotonic() - start < 5.0


def test_narrow_keeps_both():
    theirs = {
        "type": "object",
        "properties": {
            "x": {"type": "number", "minimum": 0, "description": "From the data set."},
            "voice": {"type": "string"},
        },
        "required": ["x", "voice"],
    }
    ours = {
        "type": "object",
        "properties": {
            "x": {"type": "number", "minimum": 0.1, "maximum": 0.3, "description": "Ours."},
            "z": {"type": "number"},
        },
        "required": ["x", "z"],
        "additionalProperties": False,
    }
    assert narrow(theirs, ours) == {
        "type": "object",
        "properties": {
            "x": {
                "type": "number",
                "minimum": 0.1,
                "maximum": 0.3,
                "description": "From the data set.",
            },
            "z": {"type": "number"},
        },
        "required": ["x", "z"],
        "additionalProperties": False,
    }


def test_eight_limited_properties_validate_fast():
    schema = Schema({"properties": {f"p{i}": DEGREES for i in range(8)}})
    arguments = {f"p{i}": 10.0 * i for i in range(8)}
    start = time.perf_counter()
    for _ in range(200):
        schema.validate(arguments)
    assert (time.perf_counter() - start) / 200 < 0.005  # 0.1 ms on a quiet machine
