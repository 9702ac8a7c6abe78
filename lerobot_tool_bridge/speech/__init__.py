"""Ways to speak, one a file. None of them loads anything before the first text."""

from __future__ import annotations

import importlib
import re
from typing import cast

from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.ports import SpeakerPort
from lerobot_tool_bridge.speech.espeak import EspeakSpeaker
from lerobot_tool_bridge.speech.hibari import HibariSpeaker
from lerobot_tool_bridge.speech.log import LogSpeaker

BACKENDS = ("auto", "hibari", "espeak", "log")


def make_speaker(backend: str = "auto", voice: str = "") -> SpeakerPort:
    """Makes what ``say`` speaks with.

    Args:
        backend: ``auto`` (the first that is installed of hibari and espeak-ng, else the log),
            one of ``BACKENDS``, or ``module:function`` of another package, called with the voice.
        voice: The backend's name of a voice; empty for its default.

    Raises:
        LoadError: ``speech``; the backend is unknown or not installed, with the cure.
    """
    if not re.fullmatch(r"([A-Za-z0-9][\w.+-]*)?", voice):
        raise LoadError("speech", f"The voice {voice!r} should be a name: letters, digits, -_+.")
    if backend == "auto":
        backend = (
            "hibari"
            if HibariSpeaker.installed()
            else "espeak"
            if EspeakSpeaker.installed()
            else "log"
        )
    if backend == "hibari":
        return HibariSpeaker(voice)
    if backend == "espeak":
        return EspeakSpeaker(voice)
    if backend == "log":
        return LogSpeaker()
    module, colon, function = backend.partition(":")
    if not colon:
        raise LoadError(
            "speech",
            f"There is no speech backend {backend!r}. Known: {', '.join(BACKENDS)}, or "
            "module:function of another package.",
        )
    try:
        return cast(SpeakerPort, getattr(importlib.import_module(module), function)(voice))
    except (ImportError, AttributeError) as error:
        raise LoadError(
            "speech", f"The speech backend {backend!r} can't be loaded: {error}"
        ) from (None)
