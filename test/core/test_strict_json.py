"""Strict JSON: a small table of our own."""

from __future__ import annotations

import time

import pytest

from lerobot_tool_bridge.core import strict_json
from lerobot_tool_bridge.core.errors import Rejection

GOOD = [
    ("{}", {}),
    (
        ' {"a": [1, -2.5e-3, true, false, null, "x"]}\n',
        {"a": [1, -0.0025, True, False, None, "x"]},
    ),
    ('{"a": "\\u00e9 \\ud83d\\ude00 \\/ \\n"}', {"a": "é \U0001f600 / \n"}),
    ('{"a": 1e-400}', {"a": 0.0}),
    ('{"a": 100000000000000000000}', {"a": 10**20}),
    ('"text"', "text"),
    ("[[" * 16 + "]]" * 16, None),
    (b'{"k\xc3\xa4se": 1}', {"käse": 1}),
    ('{"a": {"x": 1}, "b": {"x": 2}}', {"a": {"x": 1}, "b": {"x": 2}}),
    ('{"a": "{[{[{["}', {"a": "{[{[{["}),
]

BAD = [
    ("", "bad_json", "the text ends before the JSON does at character 1"),
    ("{'a': 1}", "bad_json", "expected a key in double quotes at character 2, near 'a': 1}"),
    ('{"a": 1,}', "bad_json", "character"),
    ('{"a": 1} x', "bad_json", "text follows the first object at character 10, near x"),
    ('{"a": 1}{"b": 2}', "bad_json", "text follows the first object at character 9"),
    ('{"a": "tray\\d1"}', "bad_json", "invalid escape \\d at character 12"),
    ('{"a": "\\u12"}', "bad_json", "\\u needs four hexadecimal digits"),
    ('{"a": "x', "bad_json", "a string is not closed"),
    ('{"a": 1.', "bad_json", "at character"),
    ('{\n "a": tru\n}', "bad_json", "at line 2, column 7"),
    ('{"a": "x\ny"}', "bad_json", "a control character stands unescaped"),
    ('{"a": 01}', "bad_json", "expected ',' or the closing bracket"),
    ('{"a": +1}', "bad_json", "expected a JSON value"),
    ('{"a": 0x1F}', "bad_json", "expected ','"),
    ("\ufeff{}", "bad_json", "byte order mark"),
    ('{"a": 1} // note', "bad_json", "text follows the first object"),
    ('{"a": True}', "bad_json", "expected a JSON value"),
    (b'{"a": "\xff"}', "bad_json", "not UTF-8: byte 8"),
    ('{"a": "\\ud800"}', "bad_json", "at a."),
    ('{"a": ' + "9" * 5000 + "}", "bad_json", "too many digits, at a."),
    ('{"a": NaN}', "nonfinite_number", "at a."),
    ('{"a": {"b": [1, -Infinity]}}', "nonfinite_number", "at a.b.1."),
    ('{"a": 1e999}', "nonfinite_number", "at a."),
    ('{"a": ' + "9" * 400 + "}", "nonfinite_number", "at a."),
    ('{"a": 1, "b": 2, "a": 1}', "duplicate_key", '"a" stands twice'),
    ('{"o": {"a": 1, "\\u0061": 2}}', "duplicate_key", "at o."),
    ("[" * 33 + "]" * 33, "too_deep", "32"),
    ("[" * 100_000, "too_deep", "32"),
    ('"' + "x" * 70_000 + '"', "too_large", "64 kB"),
    ('"' + "é" * 33_000 + '"', "too_large", "64 kB"),
]


@pytest.mark.parametrize(("text", "value"), GOOD, ids=range(len(GOOD)))
def test_good(text: str | bytes, value: object):
    read = strict_json.loads(text)
    if value is not None:
        assert read == value


@pytest.mark.parametrize(("text", "code", "words"), BAD, ids=range(len(BAD)))
def test_bad(text: str | bytes, code: str, words: str):
    with pytest.raises(Rejection) as caught:
        strict_json.loads(text)
    assert caught.value.code == code
    assert words in caught.value.message
    assert len(caught.value.message) < 250


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ({"a": float("inf")}, "nonfinite_number"),
        ({"a": "\udfff"}, "bad_json"),
        ({"\ud800": 1}, "bad_json"),
        ({1: 2}, "bad_json"),
        ({"a": {1, 2}}, "bad_json"),
        ({"a": b"x"}, "bad_json"),
        ({"a": ["x" * 1000] * 70}, "too_large"),
    ],
    ids=range(7),
)
def test_values_that_were_no_text(value: object, code: str):
    with pytest.raises(Rejection) as caught:
        strict_json.check(value)
    assert caught.value.code == code


def test_a_loop_of_values_ends():
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(Rejection) as caught:
        strict_json.check(loop)
    assert caught.value.code == "too_deep"


@pytest.mark.parametrize("text", ['"' + '\\"' * 32_000, "[" * 40 + '"' * 65_000, "{" * 60_000])
def test_time_is_linear(text: str):
    start = time.monotonic()
    with pytest.raises(Rejection):
        strict_json.loads(text)
    assert time.monotonic() - start < 1.0
