"""No voice: the text goes to the log."""

from __future__ import annotations

from lerobot_tool_bridge.speech.base import Speaker, nothing_heard


class LogSpeaker(Speaker):
    """For machines where nothing that speaks is installed."""

    async def _speak(self, text: str) -> str:
        return nothing_heard("no speech program is installed on this robot")
