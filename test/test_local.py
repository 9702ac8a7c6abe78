"""The bridge's core in one's own process."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.local import Local


def temperature(location: str, unit: str) -> float:
    """Get the current temperature at a location.

    Args:
        location: The location, in the format "City, Country"
        unit: The unit. (choices: ["celsius", "fahrenheit"])
    """
    return 22.0


async def wind(location: str | None = None) -> float:
    """Get the wind speed.

    Args:
        location: The location
    """
    await asyncio.sleep(0)
    return 6.0


def message(*calls: tuple[str, Any]) -> dict[str, Any]:
    body = [{"type": "function", "function": {"name": n, "arguments": a}} for n, a in calls]
    return {"role": "assistant", "tool_calls": body}


def test_a_turn_goes_back_into_a_chat_template_as_it_is():
    local = Local([temperature, wind])
    given = message(
        ("temperature", '{"location": "Paris, France", "unit": "celsius"}'),
        ("wind", {"location": None}),
        ("temperature", '{"location": '),
        ("rain", {}),
    )
    said, *answers = local.turn(given)
    assert said["role"] == "assistant"
    assert said["content"] == ""
    assert all(isinstance(c["function"]["arguments"], dict) for c in said["tool_calls"])
    assert said["tool_calls"][0]["function"]["arguments"]["unit"] == "celsius"
    # what could not be read is not passed off as no arguments
    assert "unreadable" in said["tool_calls"][2]["function"]["arguments"]
    for call, answer in zip(said["tool_calls"], answers, strict=True):
        assert set(answer) == {"role", "tool_call_id", "name", "content"}
        assert answer["role"] == "tool"
        assert answer["tool_call_id"] == call["id"]
        assert answer["name"] == call["function"]["name"]
        assert len(call["id"]) == 9
        assert isinstance(answer["content"], str)
    assert [a["content"][:8] for a in answers[:2]] == ["22.0", "6.0"]
    assert "bad_json" in answers[2]["content"]
    assert "unknown_tool" in answers[3]["content"]


def test_plain_text_and_what_can_not_be_read():
    local = Local([temperature])
    said = {"role": "assistant", "content": "It is warm."}
    assert local.turn(said) == [said]
    assert local.turn({"role": "assistant", "content": None})[0]["content"] == ""
    _, answer = local.turn("{")
    assert answer["content"].startswith("Error: bad_message")


def test_schemas_are_those_of_the_functions():
    (schema, _) = Local([temperature, wind]).schemas()
    assert schema["function"]["name"] == "temperature"
    unit = schema["function"]["parameters"]["properties"]["unit"]
    assert unit["enum"] == ["celsius", "fahrenheit"]


def test_from_async_code():
    local = Local([wind])

    async def scene() -> None:
        call = {"name": "wind", "arguments": {}}
        answers = await asyncio.gather(*(local.acall(call) for _ in range(5)))
        assert all(a.good for a in answers)
        turn = await local.aturn(message(("wind", {})))
        assert turn[1]["content"] == "6.0"

    asyncio.run(scene())
    assert local.statistics()["wind"]["succeeded"] == 6


def test_an_async_tool_that_would_block_its_own_loop_is_told():
    local = Local()

    async def outer() -> str:
        """Calls another tool."""
        return local.call({"name": "wind", "arguments": {}}).message["content"]

    local.add(outer)
    answer = local.call({"name": "outer", "arguments": {}})
    assert "await acall" in answer.detail


def test_names_settings_and_declared_tools():
    declared = {"type": "function", "function": {"name": "dance", "parameters": {}}}
    local = Local(
        {"warmth": temperature, "dance": declared},
        settings={"warmth": {"description": "Warmth."}, "unused": {"enabled": False}},
    )
    assert local.names == ["warmth", "dance"]
    assert local.schemas()[0]["function"]["description"] == "Warmth."
    assert local.call({"name": "dance"}).code == "not_implemented"
    assert Local({"off": wind}, settings={"off": {"enabled": False}}).names == []
    assert local.remove("warmth")
    assert not local.remove("warmth")
    with pytest.raises(LoadError):
        local.add(declared | {"function": {"name": "a b"}})


def test_methods_are_tools():
    class Lamp:
        def __init__(self) -> None:
            self.level = 0

        def dim(self, level: int) -> int:
            """Dims the lamp.

            Args:
                level: percent
            """
            self.level = level
            return level

    lamp = Lamp()
    local = Local([lamp.dim], settings={"dim": {"own": 1, "level": {"maximum": 100}}})
    assert local.call({"name": "dim", "arguments": {"level": 40}}).message["content"] == "40"
    assert lamp.level == 40
    assert not local.call({"name": "dim", "arguments": {"level": 140}}).good


def test_a_built_in_tool():
    local = Local(["lerobot_tool_bridge.tools.calculator:Calculator"])
    answer = local.call({"name": "calculator", "arguments": {"expression": "(123 + 456) * 2"}})
    assert answer.message["content"] == "1158"
    assert local.call("[]").code == "bad_call"
    assert local.call(None).code == "bad_call"
