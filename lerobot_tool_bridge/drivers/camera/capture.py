"""OpenCV captures that are opened in the right order, kept drained, and opened again when lost.

Knows nothing of ROS. OpenCV is imported when the first camera is opened.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lerobot_tool_bridge.core.errors import BridgeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Pixels = NDArray[Any]

OPEN_TIMEOUT = 3.0
"""Seconds in which a network camera has to answer."""
READ_TIMEOUT = 1.5
"""Seconds without a frame after which a network camera counts as lost."""

_RETRY = 0.5
_USUAL_FPS = 30.0
_LONG_WAIT = 0.5
_UNPACED_AFTER = 2.0
_CODEC = re.compile(r"[\x20-\x7e]{4}")


class CameraError(BridgeError):
    """A camera can't be used; one sentence: what, and the cure."""


class Capture(Protocol):
    """What is used of ``cv2.VideoCapture``."""

    def isOpened(self) -> bool: ...
    def get(self, prop: int) -> float: ...
    def set(self, prop: int, value: float) -> bool: ...
    def grab(self) -> bool: ...
    def retrieve(self) -> tuple[bool, Any]: ...
    def release(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Mode:
    """Size, rate and codec; 0 and empty stand for the camera's own choice."""

    width: int = 0
    height: int = 0
    fps: float = 0.0
    codec: str = ""

    def __str__(self) -> str:
        size = f"{self.width}×{self.height}" if self.width and self.height else "any size"
        rate = f" at {self.fps:g} frames/s" if self.fps else ""
        return f"{size}{rate}{f' ({self.codec})' if self.codec else ''}"


@dataclass(frozen=True, slots=True)
class Source:
    """Where pictures come from.

    Attributes:
        text: As it was given.
        kind: ``device``, ``stream`` or ``file``.
    """

    text: str
    kind: str

    @classmethod
    def parse(cls, text: str) -> Source:
        """Tells a device (``0``, ``/dev/video2``) from a URL and from a file.

        Raises:
            CameraError: It is empty.
        """
        text = text.strip()
        if not text:
            raise CameraError(
                "No camera is named. Set source to a device index (0), a path (/dev/video0), "
                "a file, or a URL."
            )
        if text.isdecimal() or text.startswith("/dev/"):
            return cls(text, "device")
        return cls(text, "stream" if re.match(r"[a-z][a-z0-9+.-]+://", text) else "file")

    @property
    def path(self) -> Path | None:
        """The file or device; None for a stream."""
        if self.kind == "stream":
            return None
        return Path(f"/dev/video{self.text}" if self.text.isdecimal() else self.text)


def open_capture(source: Source, wanted: Mode) -> Capture:
    """Opens a source and sets a device to the wanted mode, or the nearest one it has.

    Raises:
        CameraError: It can't be opened; says why and what to do.
    """
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")  # what goes wrong is said once, by us
    os.environ.setdefault("OPENCV_VIDEOIO_V4L2_SELECT_TIMEOUT", "2")  # seconds; it waits ten
    os.environ.setdefault("OPENCV_LOG_LEVEL", "ERROR")
    import cv2

    _check(source)
    capture: Capture
    if source.kind == "device":
        name: int | str = int(source.text) if source.text.isdecimal() else source.text
        capture = cv2.VideoCapture(name, cv2.CAP_V4L2)
        if capture.isOpened():
            negotiate(capture, wanted)
    elif source.kind == "stream":
        capture = cv2.VideoCapture(
            source.text,
            cv2.CAP_FFMPEG,
            [
                *(cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, int(OPEN_TIMEOUT * 1000)),
                *(cv2.CAP_PROP_READ_TIMEOUT_MSEC, int(READ_TIMEOUT * 1000)),
                *(cv2.CAP_PROP_N_THREADS, 1),  # more would hold back a frame each
            ],
        )
    else:
        capture = cv2.VideoCapture(source.text)
    if not capture.isOpened():
        capture.release()
        raise CameraError(_why_not(source))
    return capture


def negotiate(capture: Capture, wanted: Mode) -> Mode:
    """Sets a device to a mode: codec first, then size, then rate, as the rate depends on both.

    Where no codec is asked for, the camera's own is kept if it does what is wanted (it is mostly
    uncompressed), else MJPG is tried, with which USB cameras do large sizes at full rate.

    Returns:
        What the camera says it does then.
    """
    if not (wanted.width and wanted.height) and not wanted.fps and not wanted.codec:
        return _mode(capture)
    codecs = [wanted.codec] if wanted.codec else [_mode(capture).codec, "MJPG"]
    tried: list[tuple[tuple[float, float], Mode, str]] = []
    for codec in codecs:
        real = _apply(capture, codec, wanted)
        tried.append((_distance(real, wanted), real, codec))
        if tried[-1][0] == (0.0, 0.0):
            return real
    _, best, codec = min(tried, key=lambda t: t[0])
    return best if codec == codecs[-1] else _apply(capture, codec, wanted)


def _apply(capture: Capture, codec: str, wanted: Mode) -> Mode:
    import cv2

    if codec:
        capture.set(cv2.CAP_PROP_FOURCC, cv2.VideoWriter.fourcc(*codec))
    if wanted.width and wanted.height:
        capture.set(cv2.CAP_PROP_FRAME_WIDTH, wanted.width)
        capture.set(cv2.CAP_PROP_FRAME_HEIGHT, wanted.height)
    if wanted.fps:
        capture.set(cv2.CAP_PROP_FPS, wanted.fps)
    return _mode(capture)


def _mode(capture: Capture) -> Mode:
    import cv2

    number = int(capture.get(cv2.CAP_PROP_FOURCC))
    codec = "".join(chr(number >> shift & 0xFF) for shift in (0, 8, 16, 24)) if number > 0 else ""
    return Mode(
        int(capture.get(cv2.CAP_PROP_FRAME_WIDTH)),
        int(capture.get(cv2.CAP_PROP_FRAME_HEIGHT)),
        max(capture.get(cv2.CAP_PROP_FPS), 0.0),
        codec if _CODEC.fullmatch(codec) else "",
    )


def _distance(real: Mode, wanted: Mode) -> tuple[float, float]:
    size = 0.0
    if wanted.width and wanted.height:
        same = (real.width, real.height) == (wanted.width, wanted.height)
        size = 0.0 if same else 1.0 + abs(real.width * real.height - wanted.width * wanted.height)
    return size, max(0.0, wanted.fps - real.fps - 0.5) if wanted.fps else 0.0


def differs(real: Mode, wanted: Mode) -> bool:
    """Whether a camera does not do what was asked."""
    codec = bool(wanted.codec and real.codec and real.codec != wanted.codec)
    return codec or _distance(real, wanted) != (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Shot:
    """One frame.

    Attributes:
        pixels: Blue, green, red; or grey.
        taken: When it was taken, by the steady clock: when it arrived, less the latency.
        age: Seconds since ``taken`` at the moment that it was handed on.
    """

    pixels: Pixels
    taken: float
    age: float


class Camera:
    """A camera in a thread of its own, read all the time so that no buffer grows old.

    Every frame is taken off the camera; it is only decoded to pixels where somebody wants it.
    Frames that had waited in a buffer (their ``grab`` did not block, or it followed a long
    silence) are passed over: after a hold-up the next frame handed on is a live one.

    Args:
        open_: Opens the capture; raises ``CameraError``.
        source: What is opened.
        wanted: The mode that was asked for.
        latency: Seconds from the exposure to the frame's arrival.
        want: Asked for each live frame, with the time it was taken: is it needed?
        take: Gets the frames that are needed. Both are called in the camera's thread.
        say: Gets a sentence when the camera is lost (with True) and when it is back.
    """

    def __init__(
        self,
        open_: Callable[[], Capture],
        source: Source,
        wanted: Mode,
        latency: float,
        want: Callable[[float], bool],
        take: Callable[[Shot], None],
        say: Callable[[str, bool], None],
    ) -> None:
        self._open = open_
        self._source = source
        self._wanted = wanted
        self._latency = latency
        self._want = want
        self._take = take
        self._say = say
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        self._nominal = wanted.fps or _USUAL_FPS
        self._reported: Mode | None = None
        self._arrivals: list[float] = []
        self.mode = Mode()
        self.lost = ""  # why there are no frames; empty while there are
        self.frames = 0
        self.last = time.monotonic()

    def start(self) -> None:
        """Opens the camera, reads its first frame and starts the thread.

        Raises:
            CameraError: It can't be opened or gives no frame.
        """
        capture = self._connect()
        self._thread = threading.Thread(target=self._run, args=(capture,), name="camera")
        self._thread.daemon = True  # a driver stuck in the kernel must not hold up the exit
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread and closes the camera."""
        self._end.set()
        if self._thread is not None:
            self._thread.join(OPEN_TIMEOUT + 0.5)

    @property
    def silence(self) -> float:
        """Seconds since the last frame."""
        return time.monotonic() - self.last

    @property
    def silence_limit(self) -> float:
        """Seconds of silence that are not normal."""
        return max(1.0, 5.0 / self._nominal)

    @property
    def rate(self) -> float:
        """Frames a second, over the last ones."""
        arrivals = self._arrivals[-30:]
        span = arrivals[-1] - arrivals[0] if len(arrivals) > 1 else 0.0
        return (len(arrivals) - 1) / span if span else 0.0

    # --- in the thread ------------------------------------------------------------------------

    def _connect(self) -> Capture:
        """Opens the camera and learns its real size from its first frame."""
        capture = self._open()
        ok, pixels = (False, None)
        if capture.grab():
            ok, pixels = capture.retrieve()
        if not ok or pixels is None:
            capture.release()
            raise CameraError(
                f"The camera {self._source.text} opens but gives no picture. "
                "Is it in use by another process, or is its cable or hub too slow for the mode?"
            )
        says = _mode(capture)
        self.mode = Mode(pixels.shape[1], pixels.shape[0], says.fps, says.codec)
        if self._source.kind == "stream":  # what FFmpeg says of a stream's rate is a guess
            self.mode = Mode(self.mode.width, self.mode.height, 0.0, says.codec)
        rate_known = self.mode.fps or self._wanted.fps
        if self.mode != self._reported:
            real = Mode(self.mode.width, self.mode.height, rate_known, self.mode.codec)
            if differs(real, self._wanted):
                self._say(
                    f"The camera {self._source.text} does {self.mode} in place of "
                    f"{self._wanted}; pictures and camera_info have the real size.",
                    False,
                )
            self._reported = self.mode
        self._nominal = self._wanted.fps or self.mode.fps or _USUAL_FPS
        self._arrived()
        return capture

    def _arrived(self) -> None:
        self.last = time.monotonic()
        self.frames += 1
        self._arrivals = [*self._arrivals[-29:], self.last]

    def _run(self, capture: Capture | None) -> None:
        while not self._end.is_set():
            if capture is None:
                try:
                    capture = self._connect()
                except Exception as error:  # OpenCV's own, too
                    self.lost = str(error)
                    self._end.wait(_RETRY)
                    continue
                if self.lost:
                    self._say(f"The camera {self._source.text} is back.", False)
                self.lost = ""
            why = "it gives no more frames"
            try:
                self._read(capture)
            except Exception as error:
                why = str(error)
            capture.release()
            capture = None
            self._arrivals = []
            ended = self._source.kind == "file"  # and begins again
            if not ended and not self._end.is_set():
                self.lost = f"The camera {self._source.text} is lost: {why}."
                self._say(f"{self.lost} It is opened again as soon as it is back.", True)

    def _read(self, capture: Capture) -> None:
        """Reads until the camera ends."""
        quick = 0.25 / self._nominal
        paced = self._source.kind == "file"
        waited_long = False
        quick_since = due = time.monotonic()
        while not self._end.is_set():
            if paced:
                due = max(due + 1.0 / self._nominal, time.monotonic())
                if self._end.wait(due - time.monotonic()):
                    return
            start = time.monotonic()
            if not capture.grab():
                return
            arrival = time.monotonic()
            waited = arrival - start
            self._arrived()
            live = waited >= quick and (waited < _LONG_WAIT or waited_long)
            waited_long = waited >= _LONG_WAIT
            if waited >= quick:
                quick_since = arrival
            elif arrival - quick_since > _UNPACED_AFTER:
                paced = True  # a file behind a URL: it would be read at full speed
            taken = arrival - self._latency
            if (live or paced) and self._want(taken):
                ok, pixels = capture.retrieve()
                if ok:
                    self._take(Shot(pixels, taken, time.monotonic() - taken))


# --- why not -----------------------------------------------------------------------------------


def _check(source: Source) -> None:
    """Finds out what OpenCV would not tell.

    Raises:
        CameraError: A device or file is missing or can't be read.
    """
    path = source.path
    if path is None or "%" in source.text:  # a numbered series of pictures
        return
    if not path.exists():
        raise CameraError(f"There is no camera or file {path}. {_others()}")
    if not os.access(path, os.R_OK | (os.W_OK if source.kind == "device" else 0)):
        cure = (
            "sudo usermod -aG video $USER, then log in again"
            if source.kind == "device"
            else "its owner can allow it with chmod"
        )
        raise CameraError(f"No permission to open {path}: {cure}.")


def _others() -> str:
    found = sorted(str(p) for p in Path("/dev").glob("video*"))
    return f"Cameras here: {', '.join(found)}." if found else "No camera is plugged in here."


def _why_not(source: Source) -> str:
    if source.kind == "stream":
        return (
            f"No video comes from {source.text}. Is the address right and the camera switched on?"
        )
    if source.kind == "file":
        return f"{source.text} is no video or picture that OpenCV can read."
    return (
        f"{source.path} can't be opened as a camera: another process may use it "
        f"(fuser {source.path} shows which), or it is not a capture device. {_others()}"
    )
