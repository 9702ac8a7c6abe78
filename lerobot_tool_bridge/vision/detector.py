"""The offline detector: coloured things, ArUco markers and QR codes. Needs no model.

White, grey and black things are not found: their colour does not stand out from tables and robots.
OpenCV is imported when the first picture is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lerobot_tool_bridge.core.errors import LoadError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Pixels = NDArray[Any]

_SATURATION = 90  # of 255, from which on something counts as coloured
_STAND_OUT = 45  # by which it has to exceed that of a picture that has little
_VALUE = 36  # below, a colour is noise
_MIN_SHARE = 1.2e-4  # of the picture's pixels; a 25 mm cube at 1 m has 4e-4 of 640x480 and 75°
_BACKGROUND_SHARE = 0.25  # of the picture in one colour is the table or a wall, not a thing
_MAX_THINGS = 40
_FRAYED = 0.4  # share of its convex outline that a thing fills at least
_SAME_HUE = 10  # of 180
_GAP = 3  # pixels within which things count as touching

_HUES = (
    (8, "red"),
    (20, "orange"),
    (34, "yellow"),
    (84, "green"),
    (98, "turquoise"),
    (129, "blue"),
    (150, "purple"),
    (171, "pink"),
    (180, "red"),
)
"""Names by OpenCV's hue (half degrees), each up to its limit."""

DICTIONARIES = (
    *(f"DICT_{n}X{n}_{k}" for n in (4, 5, 6, 7) for k in (50, 100, 250, 1000)),
    "DICT_ARUCO_ORIGINAL",
    "DICT_APRILTAG_36h11",
)
"""The ArUco dictionaries that can be asked for."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One thing in a picture.

    Attributes:
        kind: ``object``, ``aruco`` or ``qr``.
        name: ``red object``, ``ArUco marker 7``, ``QR code``.
        outline: Convex outline ``(n, 2)``, pixels; the middle of the first pixel is (0, 0). A
            marker's are its four corners.
        text: What a QR code says: content of the picture, whoever wrote it.
        cut: It reaches the picture's edge.
        touched: Something else is right beside it in the picture, and may hide a part of it.
        ragged: It is far from convex: something before it, or several things.
    """

    kind: str
    name: str
    outline: Pixels
    text: str = ""
    cut: bool = False
    touched: bool = False
    ragged: bool = False

    @property
    def center(self) -> tuple[float, float]:
        """Middle of the outline's box, pixels."""
        low, high = self.outline.min(axis=0), self.outline.max(axis=0)
        x, y = (low + high) / 2
        return float(x), float(y)


@dataclass(frozen=True, slots=True)
class Scan:
    """What the detector found.

    Attributes:
        things: The largest first, markers and codes last.
        background: Name of the colour that covers so much of the picture that things of that
            colour can't be told from it; empty where there is none.
    """

    things: tuple[Seen, ...]
    background: str = ""


def scan(bgr: Pixels, dictionary: str = "DICT_4X4_50") -> Scan:
    """Looks at one picture.

    Args:
        bgr: ``(height, width, 3)``, 8 bits.
        dictionary: Of the ArUco markers, one of ``DICTIONARIES``.
    """
    blobs, background = _blobs(bgr)
    return Scan((*blobs, *_aruco(bgr, dictionary), *_codes(bgr)), background)


def check_dictionary(name: Any) -> str:
    """Refuses what is no dictionary of ArUco markers.

    Raises:
        LoadError: ``bad_file``; lists the names.
    """
    if name not in DICTIONARIES:
        raise LoadError(
            "bad_file", f"aruco_dictionary should be one of {', '.join(DICTIONARIES)}, not {name}."
        )
    return str(name)


def color_name(hue: float, saturation: float, value: float) -> str:
    """An English name for a colour, each in OpenCV's scale (180, 255, 255)."""
    name = next((n for limit, n in _HUES if hue < limit), "red")
    if name in ("red", "orange") and hue < 90 and value < 130 and hue >= 4:
        return "brown"
    if name == "red" and saturation < 140 and value > 150:
        return "pink"
    return name


# --- coloured things --------------------------------------------------------------------------


@dataclass(slots=True)
class _Blob:
    mask: Pixels  # of the box only
    left: int
    top: int
    area: int
    hue: float


def _blobs(bgr: Pixels) -> tuple[list[Seen], str]:
    import cv2
    import numpy as np

    hsv = cv2.cvtColor(cv2.medianBlur(bgr, 3), cv2.COLOR_BGR2HSV)  # noise has colours of its own
    common = float(np.median(hsv[..., 1]))  # warm light gives white tables a colour
    least = max(_SATURATION, common + _STAND_OUT) if common < 1.2 * _SATURATION else _SATURATION
    colored = (hsv[..., 1] >= least) & (hsv[..., 2] >= _VALUE)
    background = _drop_background(hsv, colored)
    limits = np.array([limit for limit, _ in _HUES[:-1]])
    kind = np.searchsorted(limits, np.arange(180), side="right") % len(limits)  # both reds are one
    kinds = kind[hsv[..., 0]]
    smallest = max(12, int(_MIN_SHARE * colored.size))
    parts: list[_Blob] = []
    for index in range(len(limits)):
        count, labels, stats, _ = cv2.connectedComponentsWithStats(
            (colored & (kinds == index)).astype(np.uint8), connectivity=8
        )
        for i in range(1, count):
            x, y, w, h, area = (int(v) for v in stats[i])
            if area >= smallest // 3:
                mask = labels[y : y + h, x : x + w] == i
                hue = _mean_hue(hsv[y : y + h, x : x + w, 0][mask])
                parts.append(_Blob(mask, x, y, area, hue))
    parts.sort(key=lambda b: -b.area)
    blobs = [b for b in _merged(parts[: 4 * _MAX_THINGS]) if b.area >= smallest]
    blobs = [b for b in (_sharpened(b, hsv) for b in blobs[:_MAX_THINGS]) if b.area >= smallest]
    seen = [_seen(b, blobs, hsv) for b in blobs]
    return [s for s in seen if s is not None], background


def _drop_background(hsv: Pixels, colored: Pixels) -> str:
    """Takes a table or wall that is coloured itself out of the mask; returns its colour."""
    import numpy as np

    counts = np.bincount(hsv[..., 0][colored], minlength=180)[:180].astype(float)
    window = np.bartlett(2 * _SAME_HUE + 3)
    around = np.convolve(np.concatenate([counts, counts, counts]), window, "same")[180:360]
    peak = int(around.argmax())
    near = colored & (_hue_distance(hsv[..., 0].astype(int), peak) <= _SAME_HUE)
    if near.sum() < _BACKGROUND_SHARE * colored.size:
        return ""
    saturation, value = (float(np.median(hsv[..., i][near])) for i in (1, 2))
    same = near & (np.abs(hsv[..., 1] - saturation) < 70)
    colored &= ~same
    return color_name(peak, saturation, value)


def _hue_distance(a: Any, b: Any) -> Any:
    return abs((a - b + 90) % 180 - 90)


def _mean_hue(hues: Pixels) -> float:
    """On the circle; OpenCV's half degrees."""
    import numpy as np

    angle = hues.astype(float) * (np.pi / 90)
    mean = np.arctan2(np.sin(angle).mean(), np.cos(angle).mean()) * (90 / np.pi)
    return float(mean % 180)


def _merged(parts: list[_Blob]) -> list[_Blob]:
    """Parts of one hue that touch are one thing, though their names differ (red and orange)."""
    out: list[_Blob] = []
    for part in parts:
        for i, other in enumerate(out):
            if _hue_distance(part.hue, other.hue) <= _SAME_HUE and _touch(part, other, 1):
                out[i] = _joined(other, part)
                break
        else:
            out.append(part)
    return sorted(out, key=lambda b: -b.area)


def _joined(a: _Blob, b: _Blob) -> _Blob:
    left, top = min(a.left, b.left), min(a.top, b.top)
    mask = _placed(a, left, top, _right(a, b) - left, _bottom(a, b) - top)
    mask |= _placed(b, left, top, _right(a, b) - left, _bottom(a, b) - top)
    return _Blob(mask, left, top, int(mask.sum()), a.hue)


def _right(*blobs: _Blob) -> int:
    return max(b.left + int(b.mask.shape[1]) for b in blobs)


def _bottom(*blobs: _Blob) -> int:
    return max(b.top + int(b.mask.shape[0]) for b in blobs)


def _placed(blob: _Blob, left: int, top: int, width: int, height: int) -> Pixels:
    """The blob's mask in a larger box."""
    import numpy as np

    out = np.zeros((height, width), bool)
    y, x = blob.top - top, blob.left - left
    out[y : y + blob.mask.shape[0], x : x + blob.mask.shape[1]] = blob.mask
    return out


def _touch(a: _Blob, b: _Blob, gap: int) -> bool:
    """Whether two blobs are within ``gap`` pixels of each other."""
    import cv2
    import numpy as np

    if (
        a.left - gap > _right(b)
        or b.left - gap > _right(a)
        or a.top - gap > _bottom(b)
        or b.top - gap > _bottom(a)
    ):
        return False
    left, top = min(a.left, b.left) - gap, min(a.top, b.top) - gap
    size = (_right(a, b) + gap - left, _bottom(a, b) + gap - top)
    mine, theirs = (_placed(x, left, top, *size) for x in (a, b))
    kernel = np.ones((2 * gap + 1, 2 * gap + 1), np.uint8)
    wide = cv2.dilate(mine.astype(np.uint8), kernel).astype(bool)
    return bool((wide & theirs).any())


def _sharpened(blob: _Blob, hsv: Pixels) -> _Blob:
    """Cuts the fringe where the colour has faded to less than half: JPEG and optics blur it."""
    import cv2
    import numpy as np

    height, width = blob.mask.shape
    saturation = hsv[blob.top : blob.top + height, blob.left : blob.left + width, 1]
    full = float(np.percentile(saturation[blob.mask], 70))
    mask = blob.mask & (saturation >= 0.5 * full)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8))
    if count < 2:
        return _Blob(mask, blob.left, blob.top, 0, blob.hue)
    largest = 1 + int(stats[1:, cv2.CC_STAT_AREA].argmax())
    x, y, w, h, area = (int(v) for v in stats[largest])
    mask = labels[y : y + h, x : x + w] == largest
    return _Blob(mask, blob.left + x, blob.top + y, area, blob.hue)


def _seen(blob: _Blob, blobs: list[_Blob], hsv: Pixels) -> Seen | None:
    """None for what is too frayed to be a thing: noise in the dark."""
    import numpy as np

    height, width = blob.mask.shape
    outline, fill = _outline(blob)
    if fill < _FRAYED:
        return None
    inside = hsv[blob.top : blob.top + height, blob.left : blob.left + width][blob.mask]
    bright = inside[inside[:, 2] >= np.percentile(inside[:, 2], 60)]  # lit faces tell the colour
    name = color_name(
        _mean_hue(bright[:, 0]), float(np.median(bright[:, 1])), float(np.median(bright[:, 2]))
    )
    return Seen(
        "object",
        f"{name} object",
        outline,
        cut=blob.left == 0
        or blob.top == 0
        or blob.left + width == hsv.shape[1]
        or blob.top + height == hsv.shape[0],
        touched=any(b is not blob and _touch(blob, b, _GAP) for b in blobs),
        ragged=fill < 0.8,
    )


def _outline(blob: _Blob) -> tuple[Pixels, float]:
    """The convex outline, and how much of it the thing fills.

    Of pixels' corners, drawn in until its area is the number of pixels: else a thing of 20 pixels
    would come out 3 % too large.
    """
    import cv2
    import numpy as np

    contours, _ = cv2.findContours(
        blob.mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE
    )
    points = np.concatenate(contours)[:, 0].astype(np.float32)
    half = np.array([[-0.5, -0.5], [-0.5, 0.5], [0.5, -0.5], [0.5, 0.5]], np.float32)
    corners = (points[:, None] + half).reshape(-1, 2)
    hull = cv2.convexHull(corners)[:, 0]
    fill = blob.area / float(cv2.contourArea(hull))
    if fill > 0.8:
        middle = hull.mean(axis=0)
        hull = middle + (hull - middle) * min(1.0, fill**0.5)
    return hull + np.array((blob.left, blob.top), np.float32), fill


# --- markers and codes ------------------------------------------------------------------------


def _aruco(bgr: Pixels, dictionary: str) -> list[Seen]:
    import cv2

    aruco = cv2.aruco
    finder = aruco.ArucoDetector(aruco.getPredefinedDictionary(getattr(aruco, dictionary)))
    corners, ids, _ = finder.detectMarkers(bgr)
    if ids is None:
        return []
    found = zip(ids.ravel(), corners, strict=True)
    return [Seen("aruco", f"ArUco marker {int(i)}", c.reshape(-1, 2)) for i, c in found]


def _codes(bgr: Pixels) -> list[Seen]:
    import cv2

    try:
        found, texts, corners, _ = cv2.QRCodeDetectorAruco().detectAndDecodeMulti(bgr)
    except cv2.error:  # some damaged codes upset the decoder
        return []
    if not found:
        return []
    return [Seen("qr", "QR code", c, t) for t, c in zip(texts, corners, strict=True)]
