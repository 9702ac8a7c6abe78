"""Places in pictures of the virtual camera, against where things really are."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Iterator, Mapping
from typing import Any

import cv2
import numpy as np
import pytest

from lerobot_tool_bridge.drivers.camera import calibration
from lerobot_tool_bridge.ports import Ports
from lerobot_tool_bridge.robot import Robot
from lerobot_tool_bridge.sim.camera import VirtualCamera
from lerobot_tool_bridge.sim.physics import Physics, Pose
from lerobot_tool_bridge.sim.scene import Scene
from lerobot_tool_bridge.sim.virtual_robot import _fovy
from lerobot_tool_bridge.vision.look import Found, Looker, Picture, Report

ROBOT = Robot.load("so101")
assert ROBOT.arm is not None
assert ROBOT.gripper is not None
assert ROBOT.gimbal is not None
PAN, TILT = ROBOT.gimbal.joints
COLORS = ("red", "green", "blue", "yellow")
HALF = 0.0125


class Bench:
    """The virtual robot's physics and camera, stepped by hand."""

    def __init__(self) -> None:
        self.physics = Physics(ROBOT, Scene.load("cubes"), _fovy(ROBOT, 4 / 3))
        self.camera = VirtualCamera(self.physics, 640, 480)
        self.looker = Looker(Ports(robot=ROBOT), {})
        self.facts: dict[str, Any] = {}
        for servo in self.physics.servos.values():
            servo.set_torque(True)
        self.stand(dict(zip(ROBOT.arm.joints, ROBOT.arm_pose("home"), strict=True)))
        self.turn(135, 78)

    def stand(self, joints: Mapping[str, float]) -> None:
        for joint, position in joints.items():
            self.physics.servos[joint].set_goal(position)
        self.physics.step(2.5)

    def turn(self, pan: float, tilt: float) -> None:
        self.stand({PAN: math.radians(pan), TILT: math.radians(tilt)})

    def put(self, color: str, x: float, y: float, yaw_deg: float = 0.0, z: float = HALF) -> None:
        half = math.radians(yaw_deg) / 2
        pose = Pose((x, y, z + 1e-4), (math.cos(half), 0.0, 0.0, math.sin(half)))
        self.physics.move_object(f"{color}_cube", pose)

    def look(self, looker: Looker | None = None, spoilt: bool = False, **facts: Any) -> Report:
        optics = calibration.from_view(640, 480, 75.0)
        self.facts = {
            "stamp": time.time(),
            "frame_id": "camera_optical_frame",
            "intrinsics": {
                "width": 640,
                "height": 480,
                "model": optics.model,
                "d": optics.d,
                "k": optics.k,
            },
            "joints": {j: s.position for j, s in self.physics.servos.items()},
            "gripper_effort": 0.0,
            "moving": [],
            **facts,
        }
        bgr = cv2.imdecode(np.frombuffer(self.camera.jpeg(), np.uint8), cv2.IMREAD_COLOR)
        if spoilt:  # a dark room with warm light, a noisy sensor, a soft lens
            noise = np.random.default_rng(2).normal(0, 9, bgr.shape)
            warm = bgr * 0.55 * np.array((0.85, 1.0, 1.15))
            bgr = cv2.GaussianBlur(np.clip(warm + noise, 0, 255).astype(np.uint8), (0, 0), 0.9)
        return (looker or self.looker).look(Picture("table.png", bgr, self.facts))

    def thing(self, report: Report, color: str) -> Found:
        (found,) = (f for f in report.things if f.seen.name == f"{color} object")
        return found


@pytest.fixture(scope="module")
def module_bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.camera.close()


@pytest.fixture
def bench(module_bench: Bench) -> Bench:
    for i, color in enumerate(COLORS):
        module_bench.put(color, 0.2, 0.05 + 0.08 * i)
    return module_bench


def test_cubes_are_placed_and_the_white_arm_is_no_thing(bench: Bench) -> None:
    chance = random.Random(7)
    errors, turns = [], []
    for _ in range(6):
        spots: list[tuple[float, float]] = []
        while len(spots) < len(COLORS):
            r, a = chance.uniform(0.15, 0.33), math.radians(chance.uniform(-35, 60))
            spot = (r * math.cos(a), r * math.sin(a))
            if all(math.dist(spot, s) > 0.06 for s in spots):
                spots.append(spot)
        yaws = [chance.uniform(-45, 45) for _ in COLORS]
        for color, spot, yaw in zip(COLORS, spots, yaws, strict=True):
            bench.put(color, *spot, yaw)
        report = bench.look()
        assert len(report.things) == len(COLORS)
        for color, spot, yaw in zip(COLORS, spots, yaws, strict=True):
            found = bench.thing(report, color)
            assert found.place is not None
            errors.append(1000 * math.dist(spot, (found.place.x, found.place.y)))
            assert found.place.width == pytest.approx(0.025, abs=0.003)
            if "yaw_deg" in found.line:
                turns.append(abs((math.degrees(found.place.yaw) - yaw + 45) % 90 - 45))
    assert statistics.median(errors) < 1.0
    assert max(errors) < 4.0
    assert len(turns) > 15
    assert statistics.median(turns) < 2.0


def test_what_is_sure_in_a_bad_picture_is_right(bench: Bench) -> None:
    chance = random.Random(11)
    sure = 0
    for _ in range(6):
        spots = {}
        for i, color in enumerate(COLORS):
            r, a = chance.uniform(0.15, 0.3), math.radians(chance.uniform(-60, -35) + 30 * i)
            spots[color] = (r * math.cos(a), r * math.sin(a))
            bench.put(color, *spots[color], chance.uniform(-45, 45))
        for found in bench.look(spoilt=True).things:
            if found.place is not None and not found.doubts:
                sure += 1
                spot = spots[found.seen.name.split()[0]]
                assert math.dist(spot, (found.place.x, found.place.y)) < 0.005
    assert sure >= 14


def test_another_view_gives_the_same_places(bench: Bench) -> None:
    bench.put("red", 0.22, 0.1)
    bench.turn(150, 70)
    place = bench.thing(bench.look(), "red").place
    bench.turn(135, 78)
    assert place is not None
    assert (place.x, place.y) == pytest.approx((0.22, 0.1), abs=0.003)


def test_what_the_arm_hides_in_part_is_doubted(bench: Bench) -> None:
    for x, y in ((0.117, -0.101), (0.13, -0.174), (0.122, -0.148)):
        bench.put("blue", x, y, 20)
        found = bench.thing(bench.look(), "blue")
        assert found.place is not None
        wrong = math.dist((x, y), (found.place.x, found.place.y))
        assert wrong < 0.004 or "the arm may hide" in found.line
    bench.put("blue", 0.25, 0.0)
    assert bench.thing(bench.look(), "blue").line.endswith("sure")


def test_reach_width_and_table(bench: Bench) -> None:
    bench.put("green", 0.45, 0.05)
    report = bench.look()
    assert "out of the arm's reach" in bench.thing(report, "green").line
    narrow = Looker(Ports(robot=ROBOT), {"table": {"x": [-0.2, 0.4], "y": [-0.5, 0.5]}})
    found = bench.thing(bench.look(narrow), "green")
    assert found.place is None
    assert "not on the table" in found.line


def test_what_the_gripper_holds_has_no_place(bench: Bench) -> None:
    ready = dict(zip(ROBOT.arm.joints, ROBOT.arm_pose("ready"), strict=True))
    bench.stand({**ready, "gripper": 0.13})
    arm = bench.looker.arm
    assert arm is not None
    fingers = arm.planner.chain.points([bench.physics.servos[j].position for j in ready])[-1]
    bench.put("red", *fingers[:2], z=fingers[2])  # in the air, as if held
    effort = ROBOT.gripper.held_effort + 0.1
    held = bench.thing(bench.look(gripper_effort=effort), "red")
    bench.stand(dict(zip(ROBOT.arm.joints, ROBOT.arm_pose("home"), strict=True)))
    assert held.place is None
    assert "held by the gripper" in held.line


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"moving": [PAN]}, "the head was moving"),
        ({"intrinsics": None}, "optics are not known"),
        ({"intrinsics": {"width": 640}}, "optics are not known"),
        ({"joints": {}}, f"where {PAN}, {TILT} stood is not known"),
    ],
)
def test_without_the_facts_there_are_things_but_no_places(
    bench: Bench, facts: dict[str, Any], why: str
) -> None:
    report = bench.look(**facts)
    assert len(report.things) >= 3
    assert all(f.place is None for f in report.things)
    assert why in report.text("table.png")
    assert "x=" not in report.text("table.png")


def test_a_picture_from_elsewhere_has_no_places(bench: Bench) -> None:
    bench.look()
    bgr = cv2.cvtColor(bench.camera.image(), cv2.COLOR_RGB2BGR)
    report = bench.looker.look(Picture("old.png", bgr, {}))
    assert "no record of how the head stood" in report.text("old.png")


def test_a_stream_smaller_than_its_calibration(bench: Bench) -> None:
    bench.put("red", 0.22, 0.1)
    optics = calibration.from_view(1280, 960, 75.0)
    large = {"width": 1280, "height": 960, "model": "plumb_bob", "d": optics.d, "k": optics.k}
    place = bench.thing(bench.look(intrinsics=large), "red").place
    assert place is not None
    assert (place.x, place.y) == pytest.approx((0.22, 0.1), abs=0.003)
