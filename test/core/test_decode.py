"""The wire forms of a tool call."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from lerobot_tool_bridge.core.decode import decode
from lerobot_tool_bridge.core.errors import UnreadableMessage

ARGUMENTS = {"joint": "elbow", "angle": 0.5}
TEXT = json.dumps(ARGUMENTS)
FUNCTION = {"name": "move_joint", "arguments": ARGUMENTS}

FORMS: dict[str, tuple[Any, str]] = {
    "openai": (
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_a1",
                    "type": "function",
                    "function": {"name": "move_joint", "arguments": TEXT},
                }
            ],
        },
        "call_a1",
    ),
    "openai, object": (
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "call_a1", "type": "function", "function": FUNCTION}],
        },
        "call_a1",
    ),
    "no role": ({"tool_calls": [{"id": "x", "type": "function", "function": FUNCTION}]}, "x"),
    "lerobot row": (
        {
            "role": "assistant",
            "content": None,
            "style": None,
            "timestamp": 12.4,
            "camera": None,
            "tool_calls": [{"type": "function", "function": FUNCTION}],
        },
        "",
    ),
    "lerobot, JSON text": (
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [json.dumps({"type": "function", "function": FUNCTION})],
        },
        "",
    ),
    "flat": (FUNCTION, ""),
    "flat with id": ({"id": "f1", **FUNCTION}, "f1"),
    "flat with type": ({"type": "function", **FUNCTION}, ""),
    "flat with text": ({"name": "move_joint", "arguments": TEXT}, ""),
    "one call": ({"id": "c1", "type": "function", "function": FUNCTION}, "c1"),
    "bare list": ([{"id": "c1", "type": "function", "function": FUNCTION}], "c1"),
    "bare list, flat": ([FUNCTION], ""),
    "responses item": (
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_a1",
            "name": "move_joint",
            "arguments": TEXT,
            "status": "completed",
        },
        "call_a1",
    ),
    "responses output": (
        {
            "object": "response",
            "output": [
                {"type": "reasoning", "summary": []},
                {"type": "message", "role": "assistant", "content": []},
                {
                    "type": "function_call",
                    "call_id": "call_a1",
                    "name": "move_joint",
                    "arguments": TEXT,
                },
            ],
        },
        "call_a1",
    ),
    "anthropic message": (
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "..."},
                {"type": "text", "text": "I move it."},
                {"type": "tool_use", "id": "toolu_1", "name": "move_joint", "input": ARGUMENTS},
            ],
        },
        "toolu_1",
    ),
    "anthropic block": (
        {"type": "tool_use", "id": "toolu_1", "name": "move_joint", "input": ARGUMENTS},
        "toolu_1",
    ),
    "gemini part": ({"functionCall": {"name": "move_joint", "args": ARGUMENTS}}, ""),
    "gemini content": (
        {
            "role": "model",
            "parts": [
                {"text": "I move it."},
                {"functionCall": {"id": "g1", "name": "move_joint", "args": ARGUMENTS}},
            ],
        },
        "g1",
    ),
    "gemini candidate": (
        {
            "content": {
                "role": "model",
                "parts": [{"functionCall": {"name": "move_joint", "args": ARGUMENTS}}],
            }
        },
        "",
    ),
    "ollama answer": (
        {
            "model": "qwen3",
            "message": {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"function": FUNCTION}],
            },
            "done": True,
        },
        "",
    ),
    "ollama message": (
        {"role": "assistant", "content": "", "tool_calls": [{"function": FUNCTION}]},
        "",
    ),
}


@pytest.mark.parametrize("wire", ["object", "str", "bytes"])
@pytest.mark.parametrize("name", FORMS)
def test_form(name: str, wire: str):
    payload, call_id = FORMS[name]
    if wire != "object":
        payload = json.dumps(payload)
    if wire == "bytes":
        payload = payload.encode()
    (call,) = decode(payload).calls
    assert call.fault is None
    assert (call.name, call.arguments) == ("move_joint", ARGUMENTS)
    if call_id:
        assert call.id == call_id
    else:
        assert re.fullmatch(r"[A-Za-z0-9]{9}", call.id)
    assert call.padded == (name == "lerobot row")


@pytest.mark.parametrize("arguments", [None, "", "absent"])
def test_arguments_left_out(arguments: object):
    function = {"name": "stop", "arguments": arguments}
    if arguments == "absent":
        del function["arguments"]
    (call,) = decode({"tool_calls": [{"type": "function", "function": function}]}).calls
    assert call.arguments is None
    assert call.fault is None


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (" ", "bad_json"),
        ("{", "bad_json"),
        ("[1]", "arguments_not_object"),
        ("12", "arguments_not_object"),
        ("null", "arguments_not_object"),
        ('"{}"', "arguments_not_object"),
        ([], "arguments_not_object"),
        (True, "arguments_not_object"),
        (0, "arguments_not_object"),
        ('{"a": 1, "a": 2}', "duplicate_key"),
    ],
)
def test_unreadable_arguments_are_never_replaced(arguments: object, code: str):
    (call,) = decode(
        {"tool_calls": [{"id": "a", "function": {"name": "x", "arguments": arguments}}]}
    ).calls
    assert (call.id, call.name, call.arguments) == ("a", "x", None)
    assert call.fault is not None
    assert call.fault.code == code


@pytest.mark.parametrize(
    "item",
    [
        None,
        5,
        [],
        "x",
        '"{}"',
        {},
        {"type": "function"},
        {"type": "custom", "custom": {"name": "x"}},
        {"type": "function", "function": {"arguments": {}}},
        {"type": "function", "function": {"name": 5, "arguments": {}}},
        {"type": "function", "function": {"name": "", "arguments": {}}},
        {"type": "function", "function": {"name": "\ud800", "arguments": {}}},
        {"id": 7, "type": "function", "function": {"name": "x", "arguments": {}}},
        {"id": "x" * 300, "type": "function", "function": {"name": "x", "arguments": {}}},
        {"id": "\ud800", "type": "function", "function": {"name": "x", "arguments": {}}},
    ],
)
def test_a_call_that_is_none_is_still_answered(item: object):
    (call,) = decode({"tool_calls": [item]}).calls
    assert call.fault is not None
    assert call.fault.code in ("bad_call", "bad_json")
    assert call.id


def test_faults_of_one_call_spare_the_others():
    text = (
        '{"tool_calls": ['
        '{"id": "a", "function": {"name": "x", "arguments": {"v": NaN}}},'
        '{"id": "b", "function": {"name": "x", "arguments": {"v": 1, "v": 2}}},'
        '{"id": "c", "function": {"name": "x", "arguments": {"v": "\\ud800"}}},'
        '{"id": "d", "id": "e", "function": {"name": "x", "arguments": {}}},'
        '{"id": "f", "function": {"name": "x", "arguments": {"v": ' + "[" * 40 + "]" * 40 + "}}},"
        '{"id": "g", "function": {"name": "x", "arguments": {"v": 1}}}]}'
    )
    calls = decode(text).calls
    assert [c.fault and c.fault.code for c in calls] == [
        "nonfinite_number",
        "duplicate_key",
        "bad_json",
        "duplicate_key",
        "too_deep",
        None,
    ]


@pytest.mark.parametrize(
    "payload",
    [
        b"\xff\xfe",
        "",
        "no JSON",
        "5",
        "null",
        '"text"',
        '{"tool_calls": {"a": 1}}',
        '{"tool_calls": "x"}',
        '{"tool_calls": [], "tool_calls": [1]}',
        '{"a": ' + "[" * 1000 + "]" * 1000 + "}",
        '{"content": "' + "x" * (3 << 20) + '"}',
    ],
    ids=range(11),
)
def test_unreadable(payload: str | bytes):
    with pytest.raises(UnreadableMessage):
        decode(payload)


@pytest.mark.parametrize(
    "role", ["user", "tool", "system", "developer", "Assistant", "", 5, "model"]
)
def test_only_an_assistant_can_call(role: object):
    message = decode({"role": role, "tool_calls": [{"function": FUNCTION}]})
    assert message.ignored
    assert message.calls == ()


@pytest.mark.parametrize(
    "payload",
    [
        {"role": "assistant", "content": "<tool_call>{}</tool_call>"},
        {"role": "assistant", "content": "hi", "tool_calls": None},
        {"role": "assistant", "content": "hi", "tool_calls": []},
        {"role": "assistant", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": "hi", "name": "bob"},
        {},
        [],
    ],
)
def test_plain_content(payload: object):
    message = decode(payload)  # type: ignore[arg-type]
    assert message.calls == ()
    assert not message.ignored
