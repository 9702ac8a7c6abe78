"""Plays music from a folder: one piece at a time, in the background.

Nothing is loaded before the first piece. The pieces are decoded while they play, in the sound
library's own thread, so memory stays small. Where no sound comes out of this machine, the null
device plays in silence, and ``silent`` says why.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import threading
import unicodedata
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lerobot_tool_bridge.core.errors import ToolFailure
from lerobot_tool_bridge.speech.player import NO_OUTPUT, outputs

SUFFIXES = (".flac", ".mp3", ".ogg", ".wav")
LOWERED = 0.2
"""Share of its volume that music keeps while somebody speaks."""

_CHANNELS = 2
_RATE = 44_100
_BUFFER_MS = 100
_FADE = 0.4  # seconds from silence to the full volume


def installed() -> bool:
    """Whether there is the library that plays."""
    return importlib.util.find_spec("miniaudio") is not None


def pieces(folder: Path) -> dict[str, Path]:
    """The music of a folder by name: without the suffix, where that is clear.

    Folders in it, and links to what lies elsewhere, do not count.

    Raises:
        ToolFailure: ``unavailable``: the folder can't be read.
    """
    try:
        root = folder.resolve(strict=True)
        found = sorted(
            (Path(entry.path) for entry in os.scandir(root) if _is_piece(entry, root)),
            key=lambda p: plain(p.name),
        )
    except OSError:
        raise ToolFailure(
            "unavailable", "The folder with the music can't be read. Tell the operator."
        ) from None
    stems = [plain(p.stem) for p in found]
    return {p.stem if stems.count(plain(p.stem)) == 1 else p.name: p for p in found}


def _is_piece(entry: os.DirEntry[str], root: Path) -> bool:
    if Path(entry.name).suffix.lower() not in SUFFIXES or entry.name.startswith("."):
        return False
    return entry.is_file() and Path(entry.path).resolve().is_relative_to(root)


def plain(name: str) -> str:
    """A name without what differs between ways to write it."""
    return unicodedata.normalize("NFKC", name).casefold().strip()


@dataclass(frozen=True, slots=True)
class Playing:
    """A piece that has begun.

    Attributes:
        name: Of the piece.
        seconds: How long it is.
        silent: Why nothing is heard; empty where it is.
    """

    name: str
    seconds: float
    silent: str


class MusicPlayer:
    """One player. Its methods may be called from any thread; ``play`` and ``stop`` take a moment.

    Args:
        backends: Of miniaudio, in place of those of this machine.
    """

    def __init__(self, backends: Sequence[Any] = ()) -> None:
        self._backends = list(backends)
        self._lock = threading.RLock()
        self._device: Any = None
        self._playing: Playing | None = None
        self._speakers = 0
        self._gain = 0.0
        self.volume = 50
        """Percent."""

    @property
    def playing(self) -> Playing | None:
        """What plays now."""
        return self._playing

    def play(self, name: str, path: Path) -> Playing:
        """Plays a piece in place of what plays now, and returns when it has begun.

        Raises:
            ToolFailure: It can't be read as music.
        """
        import miniaudio

        try:
            seconds = float(miniaudio.get_file_info(str(path)).duration)
            stream = miniaudio.stream_file(
                str(path), miniaudio.SampleFormat.SIGNED16, _CHANNELS, _RATE
            )
            next(stream)
        except (miniaudio.MiniaudioError, StopIteration):
            raise ToolFailure(
                "tool_error", "This piece can't be played: its file can't be read as music."
            ) from None
        with self._lock:
            self.stop()
            device, silent = self._open(miniaudio)
            playing = Playing(name, seconds, silent)
            self._device, self._playing, self._gain = device, playing, 0.0
            samples = self._samples(stream, device)
            next(samples)
            device.start(samples)
        return playing

    def stop(self) -> Playing | None:
        """Ends what plays, and returns it."""
        with self._lock:
            device, self._device = self._device, None
            playing, self._playing = self._playing, None
            if device is not None:
                device.close()
            return playing

    @contextlib.contextmanager
    def lowered(self) -> Iterator[None]:
        """Plays softly meanwhile, so that speech is understood."""
        self._speakers += 1
        try:
            yield
        finally:
            self._speakers -= 1

    def close(self) -> None:
        """Ends what plays."""
        self.stop()

    @property
    def _wanted_gain(self) -> float:
        # ears hear the logarithm: the square sounds about even
        loudness = (self.volume / 100.0) ** 2
        return loudness * (LOWERED if self._speakers else 1.0)

    def _open(self, miniaudio: Any) -> tuple[Any, str]:
        """A device, and why it is silent if it is."""

        def device(backends: list[Any]) -> Any:
            return miniaudio.PlaybackDevice(
                output_format=miniaudio.SampleFormat.SIGNED16,
                nchannels=_CHANNELS,
                sample_rate=_RATE,
                buffersize_msec=_BUFFER_MS,
                backends=backends,
            )

        backends = self._backends or outputs()
        if backends:
            with contextlib.suppress(miniaudio.MiniaudioError):
                opened = device(backends)
                return opened, NO_OUTPUT if opened.backend == "Null" else ""
        return device([miniaudio.Backend.NULL]), NO_OUTPUT

    def _samples(self, stream: Any, device: Any) -> Generator[Any, int, None]:
        """What the device asks for, at the volume of the moment; in the device's thread."""
        import numpy as np

        frames = yield b""
        while True:
            try:
                decoded = np.frombuffer(stream.send(frames), dtype=np.int16)
            except StopIteration:
                break
            count = len(decoded) // _CHANNELS
            step = count / (_FADE * _RATE)
            begin, wanted = self._gain, self._wanted_gain
            self._gain = begin + max(-step, min(step, wanted - begin))
            gains = np.linspace(begin, self._gain, count, dtype=np.float32)
            scaled = decoded.reshape(count, _CHANNELS) * gains[:, None]
            frames = yield scaled.astype(np.int16)
        # a device can't be closed in its own thread
        threading.Thread(target=self._ended, args=(device,), daemon=True).start()

    def _ended(self, device: Any) -> None:
        with self._lock:
            if self._device is device:
                self.stop()
