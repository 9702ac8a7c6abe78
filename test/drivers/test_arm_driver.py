"""The arm driver as a process on real ROS, in front of an emulated servo bus."""

from __future__ import annotations

import math

import pytest
from action_msgs.msg import GoalStatus
from arm_rig import ALL, JOINTS, SPEED, TICK, Arm, seconds
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance
from harness import wait_for

from lerobot_tool_bridge.drivers.feetech import registers as reg

SUCCEEDED, ABORTED, CANCELED = (
    GoalStatus.STATUS_SUCCEEDED,
    GoalStatus.STATUS_ABORTED,
    GoalStatus.STATUS_CANCELED,
)
Result = FollowJointTrajectory.Result
ZERO = [0.0] * 5


@pytest.fixture
def arm(ros, spawn, tmp_path):
    arm = Arm(ros, spawn, tmp_path)
    yield arm
    arm.close()


def test_moves_measures_and_refuses(arm):
    """One driver for many small questions; each leaves the arm where the next expects it."""
    arm.start_active()

    state = arm.states[-1]
    assert list(state.name) == ALL
    assert list(state.position) == pytest.approx([0.0] * 6, abs=TICK)
    assert all(arm.servos[i].torque for i in arm.servos)

    # a way over two points ends where it should, and says what it measured
    status, result = arm.move([([0.2, 0, 0, 0, 0], 0.3), ([0.4, -0.2, 0, 0, 0.1], 0.6)])
    assert (status, result.error_code) == (SUCCEEDED, Result.SUCCESSFUL)
    assert arm.angle(1) == pytest.approx(0.4, abs=0.02)
    assert arm.angle(2) == pytest.approx(-0.2, abs=0.02)
    assert arm.max_step_speed() <= SPEED * 1.1

    # joints in another order
    status, _ = arm.move([([0.1, 0, 0, 0, 0.4], 0.5)], names=JOINTS[::-1])
    assert status == SUCCEEDED
    assert arm.angle(1) == pytest.approx(0.4, abs=0.02)
    assert arm.angle(5) == pytest.approx(0.1, abs=0.02)
    arm.move([(ZERO, 0.6)])

    # goals that can't be: nothing moves, and the reason travels
    before = len(arm.goals)
    for names, words in (
        (["wrist_roll"], "missing shoulder_pan, shoulder_lift, elbow_flex, wrist_flex"),
        ([*JOINTS[:4], "wrist_rol"], "missing wrist_roll; unknown wrist_rol"),
        ([*JOINTS, "wrist_roll"], "repeated wrist_roll"),
    ):
        status, result = arm.move([([0.0] * len(names), 1.0)], names)
        assert (status, result.error_code) == (ABORTED, Result.INVALID_JOINTS)
        assert words in result.error_string
        wait_for(lambda w=words: w in arm.output, name="the log to name the joints")
    for time in (0.0, 0.02):
        status, result = arm.move([([1.2, 0, 0, 0, 0], time)])
        assert (status, result.error_code) == (ABORTED, Result.INVALID_GOAL)
        assert "shoulder_pan would have to turn 68.8°" in result.error_string
        assert "at least 0.80 s" in result.error_string
    status, result = arm.move([([2.5, 0, 0, 0, 0], 5.0)])
    assert result.error_code == Result.INVALID_GOAL
    assert "shoulder_pan 143.2° (it may go from -110.0° to 110.0°)" in result.error_string
    status, result = arm.move([([math.nan, 0, 0, 0, 0], 5.0)])
    assert result.error_code == Result.INVALID_GOAL
    status, result = arm.move([])
    assert result.error_code == Result.INVALID_GOAL
    status, result = arm.move(
        [(ZERO, 1.0)], goal_tolerance=[JointTolerance(name="elbow", position=0.1)]
    )
    assert result.error_code == Result.INVALID_JOINTS
    assert len(arm.goals) == before

    # time 0 where the arm stands
    status, _ = arm.move([(ZERO, 0.0), ([0.3, 0, 0, 0, 0], 0.5)])
    assert status == SUCCEEDED
    status, _ = arm.move([([0.3, 0, 0, 0, 0], 0.0)])
    assert status == SUCCEEDED

    # cancel holds where the arm is
    handle = arm.send([([1.5, 0, 0, 0, 0], 2.0)])
    wait_for(lambda: arm.angle(1) > 0.5)
    arm.ros.result(handle.cancel_goal_async())
    assert arm.end(handle).status == CANCELED
    stopped = arm.angle(1)
    assert stopped < 1.0
    arm.states.clear()
    wait_for(lambda: len(arm.states) > 10)
    assert arm.angle(1) == pytest.approx(stopped, abs=0.1)
    assert arm.states[-1].velocity[0] == pytest.approx(0.0, abs=0.05)

    # a new goal replaces the old one, whose result comes at once
    old = arm.send([([-1.0, 0, 0, 0, 0], 3.0)])
    wait_for(lambda: arm.angle(1) < stopped - 0.1)
    new = arm.send([([0.5, 0, 0, 0, 0], 1.0)])
    answer = arm.end(old)
    assert answer.status == ABORTED
    assert "replaced" in answer.result.error_string
    assert new.status in (GoalStatus.STATUS_ACCEPTED, GoalStatus.STATUS_EXECUTING)
    assert arm.end(new).status == SUCCEEDED
    assert arm.max_step_speed() <= SPEED * 1.2

    # a blocked joint: named, in degrees
    arm.servos[3].high = reg.CENTER + 0.1 / TICK
    status, result = arm.move([([0.5, 0, 0.4, 0, 0], 0.5)], goal_time_tolerance=seconds(0.3))
    assert (status, result.error_code) == (ABORTED, Result.GOAL_TOLERANCE_VIOLATED)
    assert "elbow_flex stopped at 5.7° instead of 22.9°" in result.error_string
    status, result = arm.move(
        [([0.5, 0, 0.5, 0, 0], 0.6)],
        path_tolerance=[JointTolerance(name="elbow_flex", position=0.2)],
    )
    assert (status, result.error_code) == (ABORTED, Result.PATH_TOLERANCE_VIOLATED)
    assert "elbow_flex is at" in result.error_string
    arm.servos[3].high = math.inf

    # the gripper: arrives, stalls on a thing with what was measured, refuses
    status, result = arm.close_gripper(1.0)
    assert (status, result.reached_goal, result.stalled) == (SUCCEEDED, True, False)
    arm.servos[6].low = reg.CENTER + 0.4 / TICK
    status, result = arm.close_gripper(0.0, effort=1.0)
    assert (status, result.reached_goal, result.stalled) == (SUCCEEDED, False, True)
    assert result.position == pytest.approx(0.4, abs=0.01)
    assert result.effort == pytest.approx(-1.0, abs=0.02)
    assert arm.bus.peek(6, reg.TORQUE_LIMIT) == 340
    status, result = arm.close_gripper(9.0)
    assert status == ABORTED
    assert "gripper can't go to 9.000" in arm.output
    status, _ = arm.close_gripper(0.8)
    assert status == SUCCEEDED

    health = wait_for(lambda: arm.diagnostic("elbow_flex"))
    assert health.level == b"\0"
    assert {v.key for v in health.values} >= {"voltage", "temperature", "error bits"}
