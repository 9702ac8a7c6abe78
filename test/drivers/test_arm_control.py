"""The arm's control and the mapping of its joints, without ROS and without a bus."""

from __future__ import annotations

import math
import random

import pytest

from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.drivers.arm.control import (
    ArmControl,
    Code,
    GoalError,
    GripperControl,
    Joint,
    Point,
    Status,
    Tolerances,
    Trajectory,
    order_joints,
)
from lerobot_tool_bridge.drivers.arm.servos import TICK, ServoJoint, urdf_limits
from lerobot_tool_bridge.drivers.feetech.calibration import JointCalibration

PERIOD = 0.02
JOINTS = (Joint("a", -1.0, 1.0, 1.5), Joint("b", -2.0, 2.0, 1.0))
HERE = Point(0.0, (0.0, 0.0), (0.0, 0.0))
TOLERANCES = Tolerances((0.5, 0.5), (0.05, 0.05), 0.5)


def trajectory(*points: Point, start: Point = HERE, measured=(0.0, 0.0)) -> Trajectory:
    return Trajectory(JOINTS, start, measured, points, start_tolerance=0.1)


def slope(way: Trajectory, time: float, joint: int = 0) -> float:
    before, after = way.sample(time - 1e-6)[0][joint], way.sample(time + 1e-6)[0][joint]
    return (after - before) / 2e-6


def test_positions_alone_are_joined_by_lines():
    way = trajectory(Point(1.0, (0.5, 0.5)), Point(2.0, (0.5, -0.5)))
    assert way.sample(0.5) == ([0.25, 0.25], [0.5, 0.5])
    assert way.sample(1.5)[0] == pytest.approx([0.5, 0.0])
    assert way.sample(9.0) == ([0.5, -0.5], [0.0, 0.0])


@pytest.mark.parametrize("accelerations", [(), (0.4, -0.2)])
def test_velocities_and_accelerations_are_met(accelerations):
    way = trajectory(
        Point(1.0, (0.3, -0.2), (0.5, -0.4), accelerations),
        Point(2.0, (0.6, -0.4), (0.0, 0.0), accelerations and (0.0, 0.0)),
    )
    positions, velocities = way.sample(0.999999)
    assert positions == pytest.approx([0.3, -0.2], abs=1e-4)
    assert velocities == pytest.approx([0.5, -0.4], abs=1e-4)
    for time in (0.2, 0.6, 0.9, 1.3, 1.8):
        again = trajectory(
            Point(1.0, (0.3, -0.2), (0.5, -0.4), accelerations),
            Point(2.0, (0.6, -0.4), (0.0, 0.0), accelerations and (0.0, 0.0)),
        )
        assert slope(again, time) == pytest.approx(again.sample(time)[1][0], abs=1e-4)
    if accelerations:
        way = trajectory(Point(1.0, (0.3, -0.2), (0.5, -0.4), accelerations), Point(2.0, (0, 0)))
        before, after = way.sample(0.99)[1][0], way.sample(0.9999)[1][0]
        assert (after - before) / 0.0099 == pytest.approx(0.4, abs=0.05)


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ([], "no points"),
        ([Point(1.0, (0.0,))], "Point 0 has 1 positions, it should have 2"),
        ([Point(1.0, (0.0, 0.0), (0.0,))], "1 velocities"),
        ([Point(1.0, (0.0, math.nan))], "of b, is nan"),
        ([Point(1.0, (0.0, math.inf))], "of b, is inf"),
        ([Point(-1.0, (0.0, 0.0))], "due at -1 s"),
        ([Point(1.0, (0, 0)), Point(1.0, (0, 0))], "the one before is 1 s"),
        ([Point(1.0, (1.2, 0.0))], "a 68.8° (it may go from -57.3° to 57.3°)"),
        ([Point(1.0, (0.2, 0.0), (0.5, 0.0))], "last point has a velocity"),
        ([Point(1.0, (0.2, 0.0), (), (0.0, 0.0))], "accelerations but no velocities"),
        ([Point(0.0, (0.9, 0.0))], "51.6° in 0 s, faster than its limit of 86°/s. Give it at lea"),
        ([Point(0.5, (0.0, 1.0))], "b would have to turn 57.3° in 0.5 s (115°/s), faster"),
        ([Point(0.5, (0.0, 1.0))], "at least 1.00 s"),
        ([Point(1.0, (0.8, 0), (1.4, 0)), Point(3.0, (0.8, 0), (0, 0))], "a would swing to"),
        ([Point(0.8, (0.9, 0.0), (0, 0))], "faster than its limit"),
    ],
)
def test_goals_that_can_not_be_are_refused_in_words(points, words):
    with pytest.raises(GoalError) as caught:
        trajectory(*points)
    assert caught.value.code is Code.INVALID_GOAL
    assert words in str(caught.value)


def test_the_shortest_time_that_is_given_will_do():
    with pytest.raises(GoalError, match=r"at least 0\.60 s"):
        trajectory(Point(0.0, (0.9, 0.0)))
    assert trajectory(Point(0.6, (0.9, 0.0))).duration == 0.6
    with pytest.raises(GoalError) as caught:
        trajectory(Point(0.8, (0.9, 0.0), (0.0, 0.0)))
    time = float(str(caught.value).split("at least ")[1].split(" s")[0])
    trajectory(Point(time, (0.9, 0.0), (0.0, 0.0)))


def test_a_plan_from_where_the_joints_hang_is_no_faster_than_one_from_where_they_should_be():
    start = Point(0.0, (0.05, 0.0), (0.0, 0.0))
    way = trajectory(Point(0.2, (-0.28, 0.0)), start=start, measured=(0.0, 0.0))
    arm = ArmControl(JOINTS, PERIOD)
    arm.hold(start.positions)
    arm.start(way, TOLERANCES)
    before = arm.command[0]
    for _ in range(20):
        arm.step(PERIOD, arm.command, [0.0, 0.0])
        assert abs(arm.command[0] - before) <= 1.5 * PERIOD + 1e-9
        before = arm.command[0]
    assert before == pytest.approx(-0.28)


def test_a_first_point_at_time_zero_where_the_arm_stands():
    way = trajectory(
        Point(0.0, (0.05, 0.0)), Point(1.0, (0.5, 0.0)), start=HERE, measured=(0.05, 0.0)
    )
    assert way.sample(0.0)[0] == [0.0, 0.0]
    assert trajectory(Point(0.0, (0.0, 0.0))).duration == 0.0
    with pytest.raises(GoalError):
        trajectory(Point(0.0, (0.3, 0.0)), Point(1.0, (0.5, 0.0)))


def test_joints_may_come_in_any_order_but_all_of_them():
    assert order_joints(JOINTS, ["b", "a"]) == [1, 0]
    with pytest.raises(GoalError, match="missing b; unknown c; repeated a") as caught:
        order_joints(JOINTS, ["a", "c", "a"])
    assert caught.value.code is Code.INVALID_JOINTS


def follow(arm: ArmControl, lag=0.0, elapsed=lambda: PERIOD, steps=400):
    """Steps until the goal ends; the joints follow with a lag of so many radians."""
    measured = list(arm.command)
    for _ in range(steps):
        before = list(arm.command)
        step = elapsed()
        ending = arm.step(step, measured, [0.0, 0.0])
        for joint, old, new in zip(JOINTS, before, arm.command, strict=True):
            if ending is None:
                assert abs(new - old) <= joint.speed * min(step, 2 * PERIOD) + 1e-9
        if ending is not None:
            return ending
        measured = [c - lag for c in arm.command]
    raise AssertionError("it never ended")


def test_steps_stay_below_the_speed_limit_when_periods_come_late():
    random.seed(1)
    arm = ArmControl(JOINTS, PERIOD)
    arm.start(trajectory(Point(1.0, (0.9, -0.9)), Point(2.0, (-0.5, 0.0))), TOLERANCES)
    ending = follow(arm, elapsed=lambda: random.choice([0.0, PERIOD, 0.05, 0.5]))
    assert ending.status is Status.SUCCEEDED
    assert arm.command == pytest.approx([-0.5, 0.0])


def test_joints_that_stay_behind():
    arm = ArmControl(JOINTS, PERIOD)
    arm.start(trajectory(Point(1.0, (0.9, 0.0))), TOLERANCES)
    ending = follow(arm, lag=0.2)
    assert ending.code is Code.GOAL_TOLERANCE_VIOLATED
    assert "a stopped at 40.1° instead of 51.6°" in ending.text
    assert arm.command == pytest.approx([0.7, -0.2])
    arm.hold([0.0, 0.0])
    arm.start(trajectory(Point(1.0, (0.9, 0.0))), Tolerances((0.1, None), (None, None), None))
    ending = follow(arm, lag=0.2)
    assert ending.code is Code.PATH_TOLERANCE_VIOLATED
    arm.hold([0.0, 0.0])
    arm.start(trajectory(Point(1.0, (0.9, 0.0))), Tolerances((None, None), (None, None), 0.5))
    assert follow(arm, lag=0.2).status is Status.SUCCEEDED


def test_a_start_in_the_future_waits():
    arm = ArmControl(JOINTS, PERIOD)
    arm.start(trajectory(Point(0.1, (0.1, 0.0))), TOLERANCES, delay=0.1)
    for _ in range(4):
        assert arm.step(PERIOD, [0.0, 0.0], [0.0, 0.0]) is None
    assert arm.command == [0.0, 0.0]
    assert follow(arm).status is Status.SUCCEEDED


def grip(measure, target=0.5):
    gripper = GripperControl(Joint("g", -0.2, 1.7, 3.0), PERIOD, 0.03, 0.4, 0.01, 3.0)
    gripper.hold(0.0)
    gripper.start(target, 0.0)
    for step in range(500):
        ending = gripper.step(PERIOD, measure(gripper, step))
        if ending is not None:
            return gripper, ending, step * PERIOD
    raise AssertionError("it never ended")


def test_gripper_arrives_stalls_or_takes_too_long():
    gripper, ending, took = grip(lambda g, _: g.command)
    assert (ending.reached, ending.stalled) == (True, False)
    assert took < 0.4
    gripper, ending, took = grip(lambda g, _: min(g.command, 0.3))
    assert (ending.reached, ending.stalled) == (False, True)
    assert gripper.command == 0.5  # it keeps pressing
    gripper, ending, took = grip(lambda g, n: 0.02 * n)
    assert took <= 3.0
    with pytest.raises(GoalError, match="g can't go to nan"):
        gripper.start(math.nan, 0.0)
    with pytest.raises(GoalError, match=r"from -0\.200 to 1\.700"):
        gripper.start(2.0, 0.0)


def test_joints_of_a_calibration():
    """Zero is the middle of an arm joint's range; the gripper's closed end is its lower limit."""
    pan = ServoJoint("pan", 1, -1.9, 1.9)
    assert pan.ticks(0.0) == 2048
    assert pan.radians(2048 + 1024) == pytest.approx(math.pi / 2)
    pan = pan.calibrated(JointCalibration(1, 0, -35, 771, 3341), gripper=False)
    assert pan.radians(2056) == 0.0
    assert (pan.low, pan.high) == (pytest.approx(-1.9), pytest.approx(1.9))
    assert pan.ticks(9.0) == 3341
    narrow = pan.calibrated(JointCalibration(1, 0, 0, 1648, 2448), gripper=False)
    assert narrow.high == pytest.approx(400 * TICK)
    jaw = ServoJoint("jaw", 6, -0.17, 1.75)
    for mode, closed in ((0, 2010), (1, 3480)):
        calibrated = jaw.calibrated(JointCalibration(6, mode, 0, 2010, 3480), gripper=True)
        assert calibrated.radians(closed) == pytest.approx(-0.17)
        assert calibrated.ticks(-0.17) == closed
        assert calibrated.low == pytest.approx(-0.17)


def test_limits_of_a_urdf(tmp_path):
    path = tmp_path / "a.urdf"
    path.write_text(
        '<robot name="a"><joint name="x" type="revolute"><limit lower="-1" upper="2"/></joint>'
        '<joint name="y" type="continuous"/><joint name="z" type="revolute"/></robot>'
    )
    assert urdf_limits(path, ["x", "y"]) == {"x": (-1.0, 2.0), "y": (-math.pi, math.pi)}
    for name, words in (("q", "has no joint q"), ("z", "joint z needs a limit")):
        with pytest.raises(LoadError, match=words):
            urdf_limits(path, [name])
    path.write_text("<robot")
    with pytest.raises(LoadError, match="Can't read the URDF"):
        urdf_limits(path, ["x"])
