"""Plays sound: with miniaudio, else with aplay."""

from __future__ import annotations

import importlib.util
import io
import shutil
import subprocess
import threading
import wave
from collections.abc import Generator, Sequence
from typing import Any

NO_OUTPUT = "this machine has no sound output that works"
_BUFFER_MS = 100
_PERIODS = 3


def play(pcm: bytes, rate: int) -> str:
    """Plays 16-bit mono samples and returns when they have been heard.

    Returns:
        Nothing, or the reason why nothing was heard.
    """
    if importlib.util.find_spec("miniaudio"):
        return _miniaudio(pcm, rate)
    if shutil.which("aplay"):
        return _aplay(pcm, rate)
    return "nothing that plays sound is installed (pip install miniaudio, or apt's alsa-utils)"


def outputs(backends: Sequence[Any] = ()) -> list[Any]:
    """miniaudio's ways to a sound output that can be heard; empty where there is none.

    Args:
        backends: Those to look at, in place of all of this machine's.
    """
    import miniaudio

    real = miniaudio.get_enabled_backends() - {miniaudio.Backend.NULL, miniaudio.Backend.CUSTOM}
    chosen = list(backends) or sorted(real, key=lambda b: b.value)
    try:
        names = [device["name"].lower() for device in miniaudio.Devices(chosen).get_playbacks()]
    except miniaudio.MiniaudioError:
        return []
    # where there is no card, sound servers offer a dummy and ALSA its null device
    if all("dummy" in name or name.startswith("discard all samples") for name in names):
        return []
    return chosen


def _miniaudio(pcm: bytes, rate: int, backends: Sequence[Any] = ()) -> str:
    import miniaudio

    chosen = outputs(backends)
    if not chosen:
        return NO_OUTPUT
    done = threading.Event()
    try:
        with miniaudio.PlaybackDevice(
            output_format=miniaudio.SampleFormat.SIGNED16,
            nchannels=1,
            sample_rate=rate,
            buffersize_msec=_BUFFER_MS,
            callback_periods=_PERIODS,
            backends=chosen,
        ) as device:
            samples = _samples(pcm, done)
            next(samples)
            device.start(samples)
            if not done.wait(len(pcm) / (2 * rate) + 5.0):
                return "the sound output hangs"
            threading.Event().wait(_BUFFER_MS * _PERIODS / 1000)  # what is still in the buffers
    except miniaudio.MiniaudioError:
        return NO_OUTPUT
    return ""


def _samples(pcm: bytes, done: threading.Event) -> Generator[bytes, int, None]:
    """What the device asks for, frame by frame; ``done`` when it has taken the last one."""
    frames = yield b""
    at = 0
    while at < len(pcm):
        end = at + 2 * frames
        frames = yield pcm[at:end]
        at = end
    done.set()


def _aplay(pcm: bytes, rate: int) -> str:
    wav = io.BytesIO()
    with wave.open(wav, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(pcm)
    ended = subprocess.run(["aplay", "-q", "-"], input=wav.getvalue(), capture_output=True)
    return NO_OUTPUT if ended.returncode else ""
