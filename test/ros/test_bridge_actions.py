"""Goals that are refused, aborted, cancelled, lost; every one is answered once and truly."""

from __future__ import annotations

import math
import time

import pytest
from action_msgs.srv import CancelGoal
from bridge_client import BridgeProcess, World
from control_msgs.action import FollowJointTrajectory
from fake_robot import FakeRobot
from harness import wait_for

HOME = [0.0] * 6
JOINTS = [f"joint_{i}" for i in range(1, 7)]


def degrees(first: float) -> list[float]:
    return [first, 0.0, 0.0, 0.0, 0.0, 0.0]


def test_a_motion_reports_what_was_measured(bridge: BridgeProcess, robot: FakeRobot) -> None:
    assert bridge.call("move_joints", degrees=degrees(10), seconds=0.2).startswith("10.0 0.0")
    assert bridge.call("gimbal_control", pan=20, tilt=30) == "pan 20.0°, tilt 30.0° (measured)"


def test_a_refused_goal(bridge: BridgeProcess, robot: FakeRobot) -> None:
    robot.arm.behaviour = "reject"
    call = bridge.send("move_joints", degrees=HOME, seconds=0.2)
    assert "refused the goal" in bridge.answer(call)
    assert bridge.code(call) == "failed goal_rejected"


def test_an_aborted_goal_is_told_in_degrees(bridge: BridgeProcess, robot: FakeRobot) -> None:
    """The controller says only -5; the bridge knows where the joints are."""
    robot.positions.update(dict.fromkeys(JOINTS, 0.0))
    robot.positions["joint_3"] = math.radians(22.0)
    robot.arm.behaviour = "abort"
    robot.arm.result = {
        "error_code": FollowJointTrajectory.Result.GOAL_TOLERANCE_VIOLATED,
        "error_string": "",
    }
    call = bridge.send("move_joints", degrees=[0, 0, 40, 0, 0, 0], seconds=0.3)
    content = bridge.answer(call)
    assert bridge.code(call) == "failed tool_error"
    assert "joint_3 stopped at 31.0° instead of 40.0°" in content
    assert "-5" not in content
    assert "joint_1" not in content


def test_the_drivers_own_words_go_along(bridge: BridgeProcess, robot: FakeRobot) -> None:
    robot.arm.behaviour = "abort"
    robot.arm.result = {"error_code": -4, "error_string": "servo 3: overload"}
    content = bridge.call("move_joints", degrees=degrees(30), seconds=0.2)
    assert "servo 3: overload" in content


def test_succeeded_with_an_error_code_is_no_success(
    bridge: BridgeProcess, robot: FakeRobot
) -> None:
    robot.arm.result = {"error_code": -1, "error_string": "nonsense"}
    call = bridge.send("move_joints", degrees=HOME, seconds=0.2)
    assert bridge.answer(call).startswith("Error: tool_error")


def test_a_goal_that_hangs_ends_at_the_deadline(bridge: BridgeProcess, robot: FakeRobot) -> None:
    robot.arm.behaviour = "hang"
    before = len(robot.arm.cancels)
    call = bridge.send("move_joints", degrees=HOME, seconds=0.2)
    bridge.answer(call)
    assert bridge.code(call) == "timeout timeout"
    assert len(robot.arm.cancels) > before
    assert not robot.arm.running


def test_cancelled_after_it_was_accepted(bridge: BridgeProcess, robot: FakeRobot) -> None:
    robot.arm.behaviour = "hang"
    call = bridge.send("move_joints", degrees=HOME, seconds=0.2)
    wait_for(lambda: robot.arm.running)
    bridge.cancel(call)
    bridge.answer(call)
    assert bridge.code(call) == "cancelled cancelled"
    assert not robot.arm.running


def test_cancelled_before_it_was_accepted(bridge: BridgeProcess, robot: FakeRobot) -> None:
    """The cancel is not lost: the goal is cancelled when it is accepted after all."""
    robot.arm.behaviour, robot.arm.asked = "silent", False
    call = bridge.send("move_joints", degrees=HOME, seconds=3.0)
    wait_for(lambda: robot.arm.asked)
    bridge.cancel(call)
    bridge.answer(call)
    assert bridge.code(call) == "cancelled cancel_unconfirmed"
    goals = len(robot.arm.goals)
    robot.arm.behaviour = "hang"
    wait_for(lambda: len(robot.arm.goals) > goals, name="the late acceptance")
    wait_for(lambda: not robot.arm.running, name="its cancel")


def test_cancelled_at_once(bridge: BridgeProcess, robot: FakeRobot) -> None:
    """Whatever the cancel overtakes, the arm stands still afterwards."""
    robot.arm.behaviour = "hang"
    for _ in range(5):
        call = bridge.send("move_joints", degrees=HOME, seconds=3.0)
        bridge.cancel(call)
        bridge.answer(call)
        assert bridge.code(call) == "cancelled cancelled"
        assert not robot.arm.running


@pytest.mark.parametrize("behaviour", ["deaf", "refuse"])
def test_a_cancel_that_nobody_confirms(
    bridge: BridgeProcess, robot: FakeRobot, behaviour: str
) -> None:
    robot.arm.behaviour = behaviour
    call = bridge.send("move_joints", degrees=HOME, seconds=0.2)
    wait_for(lambda: robot.arm.running)
    bridge.cancel(call)
    assert "may still be moving" in bridge.answer(call)
    assert bridge.code(call) == "cancelled cancel_unconfirmed"
    robot.arm.release()
    wait_for(lambda: not robot.arm.running)


def test_a_late_result_binds_to_its_own_goal(bridge: BridgeProcess, robot: FakeRobot) -> None:
    """The old goal ends only after the one that replaced it."""
    robot.arm.behaviour = "deaf"
    first = bridge.send("move_joints", degrees=degrees(5), seconds=0.2)
    wait_for(lambda: robot.arm.running)
    bridge.cancel(first)
    robot.arm.behaviour = "succeed"
    begin = time.monotonic()
    second = bridge.send("move_joints", degrees=degrees(15), seconds=0.3)
    assert bridge.answer(second).startswith("15.0")
    assert time.monotonic() - begin < 3.0
    assert bridge.code(first) == "cancelled cancel_unconfirmed"
    robot.arm.release()
    wait_for(lambda: not robot.arm.running)
    assert len(bridge.answers(first)) == len(bridge.answers(second)) == 1


def test_preempted_by_somebody_else(world: World, bridge: BridgeProcess, robot: FakeRobot) -> None:
    robot.arm.behaviour = "hang"
    call = bridge.send("move_joints", degrees=HOME, seconds=0.2)
    wait_for(lambda: robot.arm.running)
    world.ros.call(CancelGoal, f"{robot.robot.arm.action}/_action/cancel_goal")
    bridge.answer(call)
    assert bridge.code(call) == "failed preempted"


def test_the_path_starts_where_the_arm_is(bridge: BridgeProcess, robot: FakeRobot) -> None:
    """Somebody moved the arm by hand: the first point is the measured one, and it is no jump."""
    robot.positions.update(dict.fromkeys(JOINTS, 0.0))
    robot.positions["joint_4"] = 0.9
    wait_for(lambda: robot.told.get("joint_4") == 0.9)
    call = bridge.send("move_joints", degrees=HOME, seconds=0.1)
    bridge.answer(call)
    points = robot.arm.goals[-1].trajectory.points
    assert points[0].positions[3] == pytest.approx(0.9)
    seconds = points[1].time_from_start.sec + points[1].time_from_start.nanosec * 1e-9
    assert seconds >= 0.9  # 0.9 rad at max_joint_speed 1.0


def test_a_stale_state_moves_nothing(bridge: BridgeProcess, robot: FakeRobot) -> None:
    robot.measured = False
    goals = len(robot.arm.goals)
    time.sleep(0.6)  # the subject is an age
    call = bridge.send("move_joints", degrees=HOME, seconds=0.2)
    assert "No fresh joint state" in bridge.answer(call)
    assert bridge.code(call) == "failed unavailable"
    assert len(robot.arm.goals) == goals


@pytest.mark.parametrize("reading", [3.1409, -3.1404])
def test_an_endless_joint_takes_the_short_way(
    bridge: BridgeProcess, robot: FakeRobot, reading: float
) -> None:
    robot.positions.update(dict.fromkeys(JOINTS, 0.0))
    robot.positions["joint_6"] = reading
    wait_for(lambda: robot.told.get("joint_6") == reading)
    bridge.call("move_joints", degrees=[0, 0, 0, 0, 0, 178], seconds=0.2)
    points = robot.arm.goals[-1].trajectory.points
    assert abs(points[1].positions[5] - points[0].positions[5]) < 0.1


@pytest.mark.parametrize("behaviour", ["abort", "succeed"])
def test_a_stalled_gripper_is_an_end(
    bridge: BridgeProcess, robot: FakeRobot, behaviour: str
) -> None:
    """Closing on a thing is a stall, which controllers call aborted or succeeded."""
    robot.gripper.behaviour = behaviour
    robot.gripper.result = {
        "position": 0.012,
        "effort": 0.8,
        "stalled": True,
        "reached_goal": False,
    }
    assert bridge.call("grip", position=0.0) == "0.012 0.80 True False"


def test_a_gripper_that_gave_up_without_a_stall(bridge: BridgeProcess, robot: FakeRobot) -> None:
    robot.positions[robot.finger] = 0.04
    robot.gripper.behaviour = "abort"
    call = bridge.send("grip", position=0.0)
    assert "it is at 20.0 mm instead of 0.0 mm" in bridge.answer(call)
    assert bridge.code(call) == "failed tool_error"


def test_joint_states_that_end_during_a_motion(bridge: BridgeProcess, robot: FakeRobot) -> None:
    robot.arm.behaviour = "hang"
    call = bridge.send("move_joints", degrees=HOME, seconds=3.0)
    wait_for(lambda: robot.arm.running)
    robot.measured = False
    assert "No joint state came" in bridge.answer(call)
    assert bridge.code(call) == "failed unavailable"
    assert not robot.arm.running
