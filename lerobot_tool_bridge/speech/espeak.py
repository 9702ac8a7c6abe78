"""espeak-ng: small, many languages, from the distribution's package of that name."""

from __future__ import annotations

import asyncio
import shutil
import time

from lerobot_tool_bridge.core.errors import LoadError, ToolFailure
from lerobot_tool_bridge.speech.base import Speaker, kill, nothing_heard


class EspeakSpeaker(Speaker):
    """Runs ``espeak-ng`` once for each text.

    Args:
        voice: One of ``espeak-ng --voices``; empty for its default (English).

    Raises:
        LoadError: It is not installed.
    """

    def __init__(self, voice: str = "") -> None:
        program = shutil.which("espeak-ng")
        if program is None:
            raise LoadError(
                "speech", "espeak-ng is not installed. Install it with: sudo apt install espeak-ng"
            )
        # the text comes on standard input: as an argument it could be taken for an option
        self._command = [program, "--stdin", *([f"-v{voice}"] if voice else [])]

    @staticmethod
    def installed() -> bool:
        return shutil.which("espeak-ng") is not None

    async def _speak(self, text: str) -> str:
        start = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            _, errors = await process.communicate(text.encode())
        finally:
            await kill(process)
        # without a sound card it complains in a line of its own, and still ends with status 0
        complaints = [
            line.partition(":")[2].strip()
            for line in errors.decode(errors="replace").splitlines()
            if line.lower().startswith("error:")
        ]
        if process.returncode != 0:
            raise ToolFailure(
                "tool_error",
                f"Nothing was heard: espeak-ng ended with status {process.returncode}. "
                "Tell the operator.",
            )
        if complaints:
            return nothing_heard("this machine has no sound output that works")
        return f"Spoken ({time.monotonic() - start:.1f} s)."
