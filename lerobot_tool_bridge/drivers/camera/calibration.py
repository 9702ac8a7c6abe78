"""Camera intrinsics: a calibration file in ROS's usual form, or a field of view."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from lerobot_tool_bridge.drivers.camera.capture import CameraError

_SAME_SHAPE = 0.01


@dataclass(frozen=True, slots=True)
class Intrinsics:
    """What ``sensor_msgs/CameraInfo`` says of a camera, for one picture size.

    ``k``, ``r`` and ``p`` are rows one after the other; ``k`` is all zero where unknown.
    """

    width: int
    height: int
    model: str = "plumb_bob"
    d: tuple[float, ...] = ()
    k: tuple[float, ...] = (0.0,) * 9
    r: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    p: tuple[float, ...] = (0.0,) * 12

    def scaled(self, width: int, height: int) -> Intrinsics:
        """The same camera at another size of the same shape."""
        x, y = width / self.width, height / self.height
        k = tuple(v * s for v, s in zip(self.k, (x, x, x, y, y, y, 1, 1, 1), strict=True))
        rows = (x, x, x, x, y, y, y, y, 1, 1, 1, 1)
        p = tuple(v * s for v, s in zip(self.p, rows, strict=True))
        return replace(self, width=width, height=height, k=k, p=p)

    def fits(self, width: int, height: int) -> bool:
        """Whether a size has this one's shape."""
        return abs(width * self.height / (height * self.width) - 1.0) < _SAME_SHAPE


def from_view(width: int, height: int, fov_deg: float) -> Intrinsics:
    """An ideal camera with square pixels; unknown (all zero) where the angle is 0.

    Args:
        width: Pixels.
        height: Pixels.
        fov_deg: Horizontal field of view, degrees.
    """
    if not fov_deg:
        return Intrinsics(width, height)
    f = width / 2.0 / math.tan(math.radians(fov_deg) / 2.0)
    cx, cy = (width - 1) / 2.0, (height - 1) / 2.0
    return Intrinsics(
        width,
        height,
        d=(0.0,) * 5,
        k=(f, 0.0, cx, 0.0, f, cy, 0.0, 0.0, 1.0),
        p=(f, 0.0, cx, 0.0, 0.0, f, cy, 0.0, 0.0, 0.0, 1.0, 0.0),
    )


def load(name: str) -> Intrinsics:
    """Reads a file as ``camera_calibration`` writes it; a path or a ``file://`` URL.

    Raises:
        CameraError: It is missing or not such a file; says what is expected.
    """
    path = Path(name.removeprefix("file://")).expanduser()
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CameraError(f"The calibration {path} can't be read: {error.strerror}.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        why = " ".join(str(error).split())  # one line, with line and column
        raise CameraError(f"The calibration {path} is not a YAML file: {why}") from None
    try:
        return Intrinsics(
            width=int(data["image_width"]),
            height=int(data["image_height"]),
            model=str(data.get("distortion_model", "plumb_bob")),
            d=_matrix(data, "distortion_coefficients", None),
            k=_matrix(data, "camera_matrix", 9),
            r=_matrix(data, "rectification_matrix", 9),
            p=_matrix(data, "projection_matrix", 12),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CameraError(
            f"The calibration {path} is not of the form that camera_calibration writes "
            f"(image_width, image_height, camera_matrix: data, ...): {error}"
        ) from None


def _matrix(data: dict[str, Any], key: str, size: int | None) -> tuple[float, ...]:
    values = tuple(float(v) for v in data[key]["data"])
    if size is not None and len(values) != size:
        raise ValueError(f"{key} has {len(values)} values, not {size}")
    return values
