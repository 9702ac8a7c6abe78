"""``say``: speaks to the people around the robot (LeRobot's ``SAY_TOOL_SCHEMA``)."""

from __future__ import annotations

import contextlib
from typing import Any

from lerobot_tool_bridge.core.tool import CallContext, Tool
from lerobot_tool_bridge.speech.log import LogSpeaker


class Say(Tool):
    """Speaks a short text and tells whether anything was heard; music is lower meanwhile.

    It runs on a resource of its own, so speech goes on while the robot moves; cancelling the call
    ends it.
    """

    name = "say"
    resources = frozenset({"speaker"})
    timeout = 60.0  # 500 characters take up to 40 s

    @property
    def description(self) -> str:
        return (
            "Speak a short utterance to the user via the TTS executor. At most 500 characters of "
            "plain text. Answers when it has been spoken; the robot can move meanwhile."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {
                "text": {
                    "type": "string",
                    "description": "The verbatim text to speak.",
                    "minLength": 1,
                    "maxLength": 500,
                }
            },
            "required": ["text"],
            "additionalProperties": False,
        }

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        speaker = self.ports.speaker or LogSpeaker()
        music = self.ports.music
        with music.lowered() if music is not None else contextlib.nullcontext():
            return await speaker.say(arguments["text"])
