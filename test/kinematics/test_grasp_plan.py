"""Approaches, ways through the air, and refusals that say how far the arm reaches."""

from __future__ import annotations

import dataclasses
import math
import random

import numpy as np
import pytest

from lerobot_tool_bridge.kinematics import path as paths
from lerobot_tool_bridge.kinematics.grasp import Planner, Unreachable
from lerobot_tool_bridge.robot import Robot

WIDTH = {"so101": 0.025, "six_axis": 0.04}


@pytest.fixture(scope="module", params=["so101", "six_axis"])
def planner(request: pytest.FixtureRequest) -> Planner:
    return Planner(Robot.load(request.param))


@pytest.fixture(scope="module")
def so101() -> Planner:
    return Planner(Robot.load("so101"))


def places(planner: Planner, count: int, share: float = 0.7) -> list[tuple[float, float, float]]:
    """On the table, in the nearer part of the workspace."""
    rng = random.Random(4)
    low, high = planner.workspace.radius
    found = []
    for _ in range(count):
        radius = rng.uniform(low + 0.01, low + share * (high - low))
        azimuth = math.radians(rng.uniform(-60, 60))
        found.append((radius * math.cos(azimuth), radius * math.sin(azimuth), 0.02))
    return found


def test_plans_come_down_straight_and_end_around_the_thing(planner: Planner) -> None:
    chain, grasp = planner.chain, planner.grasp
    rng = random.Random(1)
    for center in places(planner, 20, 0.5):
        yaw = rng.uniform(-math.pi, math.pi)
        plan = planner.plan(center, 0.025, grasp.clearance, yaw)
        pose = chain.fk(plan.way)
        assert planner.center(plan.end, 0.025 + 2 * grasp.clearance) == pytest.approx(
            np.array(center), abs=0.001
        )
        assert abs(pose.rotation[-1, :2, 1] @ [math.cos(yaw), math.sin(yaw)]) > 0.999
        line = pose.position[0] - pose.position[-1]
        assert np.linalg.norm(line) == pytest.approx(grasp.hover, abs=0.002)
        aside = np.cross(pose.position - pose.position[-1], line / np.linalg.norm(line))
        assert np.abs(aside).max() < 0.001


def test_fingers_stay_above_the_floor(planner: Planner) -> None:
    x, y, _ = places(planner, 1)[0]
    plan = planner.plan((x, y, 0.0), 0.02)
    assert planner.chain.fk(plan.way).position[:, 2].min() > planner.grasp.floor - 0.0015


def test_every_place_of_the_workspace_can_be_reached(planner: Planner) -> None:
    """Without a given yaw."""
    for center in places(planner, 30, 1.0):
        planner.plan(center, 0.025, planner.grasp.clearance)


def test_ways_through_the_air_keep_off_the_table_and_within_the_speeds(planner: Planner) -> None:
    hovers = [planner.plan(p, 0.025).hover for p in places(planner, 12)]
    home = planner._home
    for a, b in (
        [(home, h) for h in hovers]
        + [(h, home) for h in hovers]
        + [(hovers[i], hovers[i - 1]) for i in range(len(hovers))]
    ):
        way = planner.route(a, b)
        assert way[0] == pytest.approx(a)
        assert way[-1] == pytest.approx(b)
        assert planner.chain.fk(way).position[:, 2].min() > 0.03
        tool, joint = paths.speeds(planner.chain, a, planner.timed(way))
        assert tool <= 0.25
        assert joint <= planner.arm.max_joint_speed


def test_from_a_low_place_it_goes_up_first(planner: Planner) -> None:
    first, second = places(planner, 2)
    low, goal = planner.plan(first, 0.025).end, planner.plan(second, 0.025).hover
    points = planner.chain.fk(planner.route(low, goal)).position
    near_table = points[points[:, 2] < planner.grasp.hover - 0.016]
    assert np.abs(near_table[:, :2] - points[0, :2]).max() < 0.003


def test_start_outside_the_limits_is_no_obstacle(so101: Planner) -> None:
    """Servos read a little beyond their limits now and then."""
    start = so101._home.copy()
    start[1] = so101.chain.lower[1] - 0.03
    way = so101.route(start, so101.plan((0.2, 0.0, 0.0125), 0.025).hover)
    path = so101.timed(way)
    assert (np.array(path[-1].positions) >= so101.chain.lower).all()


def test_roll_joint_makes_no_full_turn() -> None:
    """A continuous joint that reads 3.1409 and -3.1404 in turn."""
    planner = Planner(Robot.load("six_axis"))
    ways = []
    for reading in (3.1409, -3.1404):
        start = planner._home.copy()
        start[5] = reading
        plan = planner.plan((0.35, 0.1, 0.03), 0.04, 0.01, 0.7, now=start)
        way = planner.route(start, plan.hover)
        ways.append(np.abs(np.diff(way[:, 5])).sum())
        assert way[0, 5] == reading
    assert max(ways) < math.pi


def test_held_thing_is_not_tilted(so101: Planner) -> None:
    far = so101.plan((0.34, 0.05, 0.0125), 0.025)
    assert far.pitch < math.radians(85)
    kept = so101.plan((0.2, -0.1, 0.0125), 0.025, now=far.hover, keep=True)
    assert kept.pitch == pytest.approx(far.pitch, abs=math.radians(6))


@pytest.mark.parametrize(
    ("center", "says"),
    [
        ((0.9, 0.0, 0.02), r"it is 0\.90 m from the z axis.* reaches from 0\.\d\d to 0\.3[78] m"),
        ((0.9, 0.0, 0.02), r"nearest point in reach is x=0\.3[78]\d y=0\.000"),
        ((0.03, 0.0, 0.02), r"reaches from 0\.\d\d to 0\.\d\d m"),
        ((0.2, 0.0, -0.3), r"z should be 0\.00 to 0\.25 m"),
        ((0.2, 0.0, 0.5), r"z should be 0\.00 to 0\.25 m"),
        ((-0.2, 0.0, 0.02), r"it lies at 180°.* from -90° to 90°"),
    ],
)
def test_refusals_say_how_far_the_arm_reaches(
    so101: Planner, center: tuple[float, float, float], says: str
) -> None:
    with pytest.raises(Unreachable, match=says) as error:
        so101.plan(center, 0.025)
    assert error.value.code == "unreachable"


def test_nearest_point_that_is_named_can_be_reached(so101: Planner) -> None:
    for azimuth in np.radians([-80, 0, 45]):
        for height in (0.0125, 0.1):
            reach = so101.reach(azimuth, height)
            assert reach is not None
            for radius in reach:
                so101.plan((radius * math.cos(azimuth), radius * math.sin(azimuth), height), 0.025)


def test_yaw_that_is_out_of_reach_is_said_so(so101: Planner) -> None:
    with pytest.raises(Unreachable, match=r"fingers closing along 45°\. Leave yaw_deg out"):
        so101.plan((0.372, 0.0, 0.0125), 0.025, 0.012, math.radians(45))


def test_narrower_workspace(so101: Planner) -> None:
    robot = Robot.load("so101")
    narrow = Planner(
        robot,
        dataclasses.replace(robot.arm.workspace, radius=(0.15, 0.2)),  # type: ignore[union-attr]
    )
    so101.check((0.25, 0.0, 0.02))
    with pytest.raises(Unreachable, match=r"from 0\.15 to 0\.20 m"):
        narrow.check((0.25, 0.0, 0.02))
