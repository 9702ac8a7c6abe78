"""What all ways to speak share."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from abc import ABC, abstractmethod

_log = logging.getLogger(__name__)


class Speaker(ABC):
    """A ``SpeakerPort``: logs every text, and speaks it in a way of its own."""

    async def say(self, text: str) -> str:
        """Speaks; ends at once when it is cancelled.

        Returns:
            The sentence that tells what was heard.

        Raises:
            ToolFailure: The text can't be spoken, or the speech program broke.
        """
        _log.info("say: %r", text)  # quoted, so that a text can't forge lines of the log
        return await self._speak(text)

    @abstractmethod
    async def _speak(self, text: str) -> str: ...

    async def close(self) -> None:  # noqa: B027 - most have nothing to end
        """Ends what still speaks. The speaker can be used again."""


def nothing_heard(why: str) -> str:
    """The answer where the text stayed silent."""
    return f"Nothing was heard: {why}. The text is in the log."


async def kill(process: asyncio.subprocess.Process) -> None:
    """Ends a child (started with ``start_new_session``) and all that it started."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
