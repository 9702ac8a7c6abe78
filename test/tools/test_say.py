"""``say``: LeRobot's schema, any speaker, and an end when it is cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lerobot_tool_bridge.core.errors import Rejection
from lerobot_tool_bridge.core.schema import Schema
from lerobot_tool_bridge.core.tool import CallContext
from lerobot_tool_bridge.ports import Ports
from lerobot_tool_bridge.tools.say import Say


class FakeSpeaker:
    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.texts: list[str] = []
        self.ended = 0

    async def say(self, text: str) -> str:
        self.texts.append(text)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.ended += 1
        return "Spoken."


def call(speaker: Any, text: Any) -> str:
    tool = Say(Ports(speaker=speaker))
    Schema(tool.parameters).validate({"text": text})
    return asyncio.run(tool.run({"text": text}, CallContext("a")))


def test_text_reaches_the_speaker_verbatim() -> None:
    speaker = FakeSpeaker()
    text = '--version; $(reboot) <say>\nchoose {left, right or [stop "now" 杯子'
    assert call(speaker, text) == "Spoken."
    assert speaker.texts == [text]


@pytest.mark.parametrize("text", ["", "x" * 501, 5, None, ["hi"]])
def test_schema_refuses(text: Any) -> None:
    speaker = FakeSpeaker()
    with pytest.raises(Rejection):
        call(speaker, text)
    assert speaker.texts == []


def test_schema_is_lerobots_with_limits() -> None:
    tool = Say(Ports())
    assert tool.name == "say"
    assert tool.description.startswith("Speak a short utterance to the user via the TTS executor.")
    assert tool.parameters["properties"]["text"]["description"] == "The verbatim text to speak."
    assert tool.parameters["required"] == ["text"]


def test_it_shares_nothing_with_motion() -> None:
    tool = Say(Ports())
    assert tool.resources == {"speaker"}
    assert not tool.motion


def test_cancelling_ends_the_speech() -> None:
    speaker = FakeSpeaker(60.0)

    async def run() -> None:
        task = asyncio.create_task(
            Say(Ports(speaker=speaker)).run({"text": "x"}, CallContext("a"))
        )
        while not speaker.texts:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert speaker.ended == 1


def test_without_a_speaker_nothing_is_heard() -> None:
    assert call(None, "hello").startswith("Nothing was heard")
