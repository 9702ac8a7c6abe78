"""hibari-tts: a natural English voice whose weights come in its wheel.

It needs onnxruntime and 190 MB while it is loaded, so it lives in a process of its own
(``hibari_worker``) that starts with the first text: the bridge stays small, its loop never waits,
and cancelling is killing that process.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import shutil
import sys
import unicodedata
from typing import Any

from lerobot_tool_bridge.core.errors import LoadError, ToolFailure
from lerobot_tool_bridge.speech.base import Speaker, kill, nothing_heard


class HibariSpeaker(Speaker):
    """Speaks English through a worker process.

    Args:
        voice: ``heart`` (in the wheel), or one that ``hibari --voice NAME`` fetched before.

    Raises:
        LoadError: hibari-tts is not installed.
    """

    def __init__(self, voice: str = "") -> None:
        if not importlib.util.find_spec("hibari"):
            raise LoadError(
                "speech", "hibari-tts is not installed. Install it with: pip install hibari-tts"
            )
        self._voice = voice or "heart"
        self._worker: asyncio.subprocess.Process | None = None

    @staticmethod
    def installed() -> bool:
        """Whether there is the voice and something to play it with."""
        player = importlib.util.find_spec("miniaudio") or shutil.which("aplay")
        return bool(importlib.util.find_spec("hibari") and player)

    async def _speak(self, text: str) -> str:
        if not _english(text):
            raise ToolFailure(
                "unsupported_text",
                "Nothing was heard: this robot's voice reads English only. Say it in English.",
            )
        worker = await self._running()
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            worker.stdin.write(json.dumps({"text": text}).encode() + b"\n")
            await worker.stdin.drain()
            line = await worker.stdout.readline()
        except ConnectionError:  # it died before it had read the text
            line = b""
        except asyncio.CancelledError:
            await self.close()
            raise
        if not line:
            await self.close()
            raise ToolFailure(
                "tool_error",
                "Nothing was heard: the speech program ended unexpectedly. Try again.",
            )
        return _sentence(json.loads(line))

    async def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            await kill(worker)

    async def _running(self) -> asyncio.subprocess.Process:
        if self._worker is not None and self._worker.returncode is not None:
            await self.close()
        if self._worker is None:
            self._worker = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "lerobot_tool_bridge.speech.hibari_worker", self._voice),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,  # sound libraries chatter there
                start_new_session=True,
            )
        return self._worker


def _english(text: str) -> bool:
    """Whether most letters are Latin; others it would spell out as nonsense."""
    letters = [c for c in text if c.isalpha()]
    latin = sum(unicodedata.name(c, "").startswith("LATIN") for c in letters)
    return 2 * latin >= len(letters)


def _sentence(answer: dict[str, Any]) -> str:
    if "error" in answer:
        raise ToolFailure("tool_error", f"Nothing was heard: {answer['error']}")
    if answer["seconds"] == 0:
        raise ToolFailure(
            "unsupported_text", "Nothing was heard: the text has no words. Say it in words."
        )
    if answer["silent"]:
        return nothing_heard(answer["silent"])
    return f"Spoken ({answer['seconds']:.1f} s)."
