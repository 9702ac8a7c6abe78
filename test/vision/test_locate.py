"""From pixels to the table: exact geometry, without a picture."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest

from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.ports import Intrinsics
from lerobot_tool_bridge.robot import Robot
from lerobot_tool_bridge.vision.locate import View, scaled, stands

ROBOT = Robot.load("so101")
CAMERA = Intrinsics(640, 480, "plumb_bob", (0.0,) * 5, (417.0, 0, 319.5, 0, 417.0, 239.5, 0, 0, 1))
TABLE = {"gimbal_pan": math.radians(135), "gimbal_tilt": math.radians(78)}


def view(camera: Intrinsics = CAMERA, **degrees: float) -> View:
    joints = TABLE | {f"gimbal_{k}": math.radians(v) for k, v in degrees.items()}
    return View.of(ROBOT, "camera_optical_frame", joints, camera)


def outline(eye: View, x: float, y: float, size: tuple[float, float, float], yaw: float):
    """The convex hull of a box's corners in the picture."""
    corners = np.array([(i, j) for i in (-0.5, 0.5) for j in (-0.5, 0.5)]) * size[:2]
    turn = np.array([[math.cos(yaw), -math.sin(yaw)], [math.sin(yaw), math.cos(yaw)]])
    foot = corners @ turn.T + (x, y)
    box = [(*p, z) for p in foot for z in (0.0, size[2])]
    return cv2.convexHull(eye.pixels(box).astype(np.float32))[:, 0]


@pytest.mark.parametrize("yaw_deg", [-44, -20, 0, 13, 45])
@pytest.mark.parametrize(("x", "y"), [(0.2, 0.0), (0.15, 0.2), (0.33, -0.15)])
def test_a_cube_of_any_size_is_placed_exactly(x: float, y: float, yaw_deg: float) -> None:
    eye = view()
    for size in (0.015, 0.025, 0.05):
        place = stands(eye, outline(eye, x, y, (size,) * 3, math.radians(yaw_deg)))
        assert place is not None
        assert (place.x, place.y, place.z) == pytest.approx((x, y, size / 2), abs=5e-4)
        assert (place.width, place.length) == pytest.approx((size, size), abs=5e-4)
        off = (math.degrees(place.yaw) - yaw_deg + 45) % 90 - 45
        assert abs(off) < 1.0
        assert place.box > 0.97


def test_a_known_height_gives_the_footprint_of_any_box() -> None:
    eye = view(pan=120)
    place = stands(eye, outline(eye, 0.22, -0.1, (0.06, 0.02, 0.09), 0.4), height=0.09)
    assert place is not None
    assert (place.x, place.y, place.z) == pytest.approx((0.22, -0.1, 0.045), abs=5e-4)
    assert (place.width, place.length) == pytest.approx((0.02, 0.06), abs=5e-4)
    across = 0.4 + math.pi / 2 - math.pi  # fingers close across the shorter side
    assert math.sin(place.yaw - across) == pytest.approx(0, abs=0.02)


def test_the_lens_is_undone() -> None:
    bent = Intrinsics(640, 480, "plumb_bob", (-0.2, 0.05, 0.001, -0.001, 0.0), CAMERA.k)
    eye = view()
    straight = eye.pixels([(0.3, 0.25, 0.0)])
    ray = np.append((straight - (319.5, 239.5)) / 417.0, [[1.0]], axis=1)
    pixel, _ = cv2.projectPoints(
        ray, np.zeros(3), np.zeros(3), np.array(bent.k).reshape(3, 3), np.array(bent.d)
    )
    assert np.abs(pixel[0] - straight).max() > 1.0
    met = view(bent).on_plane(pixel[0])
    assert met is not None
    assert met[0] == pytest.approx((0.3, 0.25), abs=2e-4)


def test_nothing_above_the_horizon_is_placed() -> None:
    assert view(tilt=135).on_plane([(320, 10)]) is None
    eye = view(tilt=135)
    assert stands(eye, np.array([(300, 200), (340, 200), (320, 230)], np.float32)) is None


def test_the_frame_follows_the_head() -> None:
    ahead, left = view().rays([(319.5, 239.5)])[0], view(pan=155).rays([(319.5, 239.5)])[0]
    assert ahead[1] == pytest.approx(0, abs=1e-6)
    assert math.degrees(math.atan2(left[1], left[0])) == pytest.approx(20, abs=0.1)


def test_a_joint_that_is_not_known_is_named() -> None:
    with pytest.raises(LoadError, match="gimbal_tilt"):
        View.of(ROBOT, "camera_optical_frame", {"gimbal_pan": 1.0}, CAMERA)


def test_optics_at_another_size() -> None:
    half = scaled(CAMERA, 320, 240)
    assert half is not None
    # the same ray at half the size: the middle of pixel (2i, 2i) and its neighbour
    assert (half.k[0], half.k[2], half.k[5]) == pytest.approx((208.5, 159.5, 119.5))
    assert scaled(CAMERA, 640, 360) is None
    assert scaled(Intrinsics(640, 480, "", (), (0.0,) * 9), 640, 480) is None
