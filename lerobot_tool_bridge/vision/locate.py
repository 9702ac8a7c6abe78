"""From pixels to places in the base frame: a camera's rays, and where they meet the table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.kinematics.chain import Chain
from lerobot_tool_bridge.ports import Intrinsics
from lerobot_tool_bridge.robot import Robot

Array = npt.NDArray[np.float64]

_LOWEST, _HIGHEST = 0.002, 0.15  # metres between which a thing's height is looked for
_LEAST_DROP = 0.08  # slope under which a ray meets the table too far away to tell where
_SHAPE = 0.02  # by how much a picture's shape may differ from its calibration's


@dataclass(frozen=True, slots=True)
class Place:
    """Where a thing stands.

    Attributes:
        x, y, z: Its centre in the base frame, metres.
        width: Its shorter side, metres.
        length: Its longer side.
        height: Taken as its shorter side where nobody knows it.
        yaw: Direction of the shorter side, radians within ±45° where it is square, else ±90°.
        box: How much of the rectangle around it it fills, 0..1: 0.79 is round.
    """

    x: float
    y: float
    z: float
    width: float
    length: float
    height: float
    yaw: float
    box: float


class View:
    """A camera at one moment.

    Args:
        intrinsics: Of the picture's size.
        position: Of the optical centre in the base frame.
        rotation: Its columns are the optical frame's axes (x right, y down, z forward).
    """

    def __init__(self, intrinsics: Intrinsics, position: Array, rotation: Array) -> None:
        self._camera = intrinsics
        self.position = position
        self._rotation = rotation

    @classmethod
    def of(
        cls, robot: Robot, frame: str, joints: Mapping[str, float], intrinsics: Intrinsics
    ) -> View:
        """The camera of a robot, by its URDF and where its joints were.

        Raises:
            LoadError: The URDF has no such frame, or a joint on the way to it is not known.
        """
        chain = Chain.from_urdf(robot.urdf, robot.base_frame, frame)
        missing = [j.name for j in chain.joints if j.name not in joints]
        if missing:
            raise LoadError("no_pose", f"where {', '.join(missing)} stood is not known")
        pose = chain.fk(np.array([joints[j.name] for j in chain.joints], dtype=float))
        return cls(intrinsics, pose.position, pose.rotation)

    def rays(self, pixels: npt.ArrayLike) -> Array:
        """Directions ``(n, 3)`` in the base frame, of length 1."""
        points = np.asarray(pixels, dtype=float).reshape(-1, 2)
        fx, fy, cx, cy = self._matrix()
        if any(self._camera.d):
            points = self._undistorted(points)
        else:
            points = (points - (cx, cy)) / (fx, fy)
        rays = np.column_stack([points, np.ones(len(points))]) @ self._rotation.T
        unit: Array = rays / np.linalg.norm(rays, axis=1, keepdims=True)
        return unit

    def on_plane(self, pixels: npt.ArrayLike, z: float = 0.0) -> Array | None:
        """Where pixels meet the plane at a height: ``(n, 2)``; None where one does not."""
        rays = self.rays(pixels)
        if self.position[2] <= z or (rays[:, 2] > -_LEAST_DROP).any():
            return None
        far = (z - self.position[2]) / rays[:, 2]
        meets: Array = self.position[:2] + far[:, None] * rays[:, :2]
        return meets

    def pixels(self, points: npt.ArrayLike) -> Array:
        """Where points ``(n, 3)`` of the base frame are in the picture, lens errors left out."""
        local = (np.asarray(points, dtype=float).reshape(-1, 3) - self.position) @ self._rotation
        fx, fy, cx, cy = self._matrix()
        seen: Array = local[:, :2] / local[:, 2:] * (fx, fy) + (cx, cy)
        return seen

    def passes(self, pixel: Sequence[float], point: npt.ArrayLike) -> float:
        """How far a pixel's ray passes from a point of the base frame, metres."""
        (ray,) = self.rays([pixel])
        way = np.asarray(point, dtype=float) - self.position
        return float(np.linalg.norm(way - max(0.0, float(way @ ray)) * ray))

    def _matrix(self) -> tuple[float, float, float, float]:
        k = self._camera.k
        return k[0], k[4], k[2], k[5]

    def _undistorted(self, points: Array) -> Array:
        import cv2

        matrix = np.array(self._camera.k).reshape(3, 3)
        lens = np.array(self._camera.d)
        undo: Any = cv2.undistortPoints
        if self._camera.model in ("equidistant", "fisheye"):
            undo, lens = cv2.fisheye.undistortPoints, lens[:4]
        out: Array = undo(points[:, None], matrix, lens)[:, 0].astype(float)
        return out


def scaled(intrinsics: Intrinsics, width: int, height: int) -> Intrinsics | None:
    """The same camera at a picture's size; None where that has another shape, or nothing is known.

    A stream may be smaller than the stills that its calibration is for.
    """
    if intrinsics.k[0] <= 0 or intrinsics.k[4] <= 0 or not (intrinsics.width and width):
        return None
    x, y = width / intrinsics.width, height / intrinsics.height
    if abs(x / y - 1.0) > _SHAPE:
        return None
    k = intrinsics.k
    # whole pixels are scaled, and the first one's middle is 0
    return Intrinsics(
        width,
        height,
        intrinsics.model,
        intrinsics.d,
        (k[0] * x, k[1] * x, (k[2] + 0.5) * x - 0.5, 0, k[4] * y, (k[5] + 0.5) * y - 0.5, 0, 0, 1),
    )


def stands(view: View, outline: npt.ArrayLike, height: float = 0.0) -> Place | None:
    """Where a thing stands that is seen by its outline: an upright prism on the table.

    Its outline, followed to the table, is its footprint and what it hides behind it; followed to
    the height of its top, it is the footprint and what lies before it. Both have exactly the
    footprint in common, where that is convex.

    Args:
        view: The camera.
        outline: Convex, pixels.
        height: Of the thing, metres; 0 to look for one as high as its shorter side (a cube, a
            ball, a thing that lies).

    Returns:
        None where a part of it is above the horizon.
    """
    ground = view.on_plane(outline)
    if ground is None:
        return None
    foot = view.position[:2]
    known = height > 0
    if not known:
        low, high = _LOWEST, min(_HIGHEST, 0.5 * float(view.position[2]))
        for _ in range(14):
            height = (low + high) / 2
            rectangle, _ = _footprint(ground, foot, height, float(view.position[2]))
            if rectangle is None or min(rectangle[1]) < height:
                high = height
            else:
                low = height
    rectangle, area = _footprint(ground, foot, height, float(view.position[2]))
    if rectangle is None:
        return None
    (x, y), (a, b), angle = rectangle
    width, length = min(a, b), max(a, b)
    yaw = math.radians(angle if a <= b else angle + 90.0)
    turn = math.pi / 2 if length < 1.25 * width else math.pi
    yaw = (yaw + turn / 2) % turn - turn / 2
    return Place(
        x, y, height / 2, width, length, height, yaw, area / (a * b) if a * b > 0 else 0.0
    )


def _footprint(ground: Array, foot: Array, height: float, camera: float) -> tuple[Any, float]:
    """The rectangle around the footprint (middle, sides in metres, degrees), and its area."""
    import cv2

    far = foot + (ground - foot) * ((camera - height) / camera)
    common = _common(ground - foot, far - foot)
    if len(common) < 3:
        return None, 0.0
    outline = (common * 1000).astype(np.float32)  # float32 is enough for millimetres
    (x, y), (a, b), angle = cv2.minAreaRect(outline)
    middle = (float(foot[0]) + x / 1000, float(foot[1]) + y / 1000)
    return (middle, (a / 1000, b / 1000), float(angle)), float(cv2.contourArea(outline)) / 1e6


def _common(polygon: Array, other: Array) -> Array:
    """What two convex polygons have in common.

    OpenCV's own finds nothing where corners of one lie on sides of the other, as they do here.
    """
    if _area(other) < 0:
        other = other[::-1]
    for a, b in zip(other, np.roll(other, -1, axis=0), strict=True):
        if len(polygon) < 3:
            break
        side = b - a
        # left of the side is inside
        inside = side[0] * (polygon[:, 1] - a[1]) - side[1] * (polygon[:, 0] - a[0])
        kept = []
        for i, p in enumerate(polygon):
            j = (i + 1) % len(polygon)
            if inside[i] >= 0:
                kept.append(p)
            if inside[i] * inside[j] < 0:
                kept.append(p + (polygon[j] - p) * (inside[i] / (inside[i] - inside[j])))
        polygon = np.array(kept).reshape(-1, 2)
    return polygon


def _area(polygon: Array) -> float:
    """Positive where it runs to the left."""
    x, y = polygon[:, 0], polygon[:, 1]
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2
