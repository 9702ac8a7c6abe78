"""What the virtual camera sees."""

import math
import time
from collections.abc import Iterator

import cv2
import numpy as np
import pytest

from lerobot_tool_bridge.robot import Robot
from lerobot_tool_bridge.sim.camera import VirtualCamera
from lerobot_tool_bridge.sim.physics import Physics
from lerobot_tool_bridge.sim.scene import Scene

HUES = {"red_cube": 0, "yellow_cube": 25, "green_cube": 62, "blue_cube": 114}
"""In OpenCV's half degrees."""

ROBOT = Robot.load("so101")
assert ROBOT.gimbal is not None
PAN, TILT = ROBOT.gimbal.joints


@pytest.fixture(scope="module")
def physics() -> Physics:
    physics = Physics(ROBOT, Scene.load("cubes"))
    for servo in physics.servos.values():
        servo.set_goal(servo.position)
        servo.set_torque(True)
    return physics


@pytest.fixture
def camera(physics: Physics) -> Iterator[VirtualCamera]:
    camera = VirtualCamera(physics, 640, 480)
    yield camera
    camera.close()


def _look(physics: Physics, pan: float, tilt: float) -> None:
    physics.servos[PAN].set_goal(math.radians(pan))
    physics.servos[TILT].set_goal(math.radians(tilt))
    physics.step(2.0)


def _blobs(image: np.ndarray) -> dict[str, tuple[float, float]]:
    """Middle of each cube's colour in the picture, where there is enough of it."""
    hsv = cv2.cvtColor(image, cv2.COLOR_RGB2HSV).astype(int)
    found = {}
    for name, hue in HUES.items():
        near = np.abs((hsv[..., 0] - hue + 90) % 180 - 90) < 8
        rows, columns = np.nonzero(near & (hsv[..., 1] > 150) & (hsv[..., 2] > 60))
        if len(rows) > 100:
            found[name] = (float(columns.mean()), float(rows.mean()))
    return found


def test_every_cube_is_seen_where_it_is(physics: Physics, camera: VirtualCamera) -> None:
    _look(physics, *ROBOT.gimbal.look_deg["table"])
    blobs = _blobs(camera.image())
    assert set(blobs) == set(HUES)
    positions = {name: physics.objects[name].position for name in HUES}
    by_column = sorted(HUES, key=lambda n: blobs[n][0])
    assert blobs["green_cube"][0] > blobs["red_cube"][0] > blobs["blue_cube"][0]
    assert by_column[-1] == min(HUES, key=lambda n: positions[n][1])  # right is -y
    assert max(HUES, key=lambda n: blobs[n][1]) == min(HUES, key=lambda n: positions[n][0])


def test_ahead_and_level_shows_no_cube(physics: Physics, camera: VirtualCamera) -> None:
    _look(physics, *ROBOT.gimbal.ahead_deg)
    assert _blobs(camera.image()) == {}


def test_more_pan_turns_left_and_more_tilt_up(physics: Physics, camera: VirtualCamera) -> None:
    pan, tilt = ROBOT.gimbal.look_deg["table"]
    _look(physics, pan, tilt)
    before = _blobs(camera.image())["red_cube"]
    _look(physics, pan + 10, tilt)
    assert _blobs(camera.image())["red_cube"][0] > before[0] + 20
    _look(physics, pan, tilt + 10)
    assert _blobs(camera.image())["red_cube"][1] > before[1] + 20


def test_a_picture_comes_as_jpeg_in_time(physics: Physics, camera: VirtualCamera) -> None:
    camera.jpeg()
    start = time.monotonic()
    data = [camera.jpeg() for _ in range(5)]
    assert (time.monotonic() - start) / 5 < 1.0  # 0.02 to 0.04 s on two idle cores
    image = cv2.imdecode(np.frombuffer(data[-1], np.uint8), cv2.IMREAD_COLOR)
    assert image.shape == (480, 640, 3)
