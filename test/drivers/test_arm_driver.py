"""The arm driver as a process on real ROS, in front of an emulated servo bus."""

from __future__ import annotations

import math
import signal

import pytest
from action_msgs.msg import GoalStatus
from arm_rig import ALL, JOINTS, SPEED, TICK, Arm, load_calibration, seconds, write_calibration
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance
from harness import wait_for
from lifecycle_msgs.msg import Transition

from lerobot_tool_bridge.drivers.feetech import registers as reg

SUCCEEDED, ABORTED, CANCELED = (
    GoalStatus.STATUS_SUCCEEDED,
    GoalStatus.STATUS_ABORTED,
    GoalStatus.STATUS_CANCELED,
)
Result = FollowJointTrajectory.Result
ZERO = [0.0] * 5
MAX_STEP = SPEED * 2 / 50 + 2 * TICK
"""A period that comes late is made up for by two periods' worth at most."""


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
    assert arm.max_step() <= MAX_STEP

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
    assert arm.max_step() <= MAX_STEP

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


def test_hardware_is_judged_before_torque(arm, tmp_path):
    """Each fault refuses activation with its sentence; nothing is written; reading goes on."""
    load_calibration(arm.bus)
    arm.bus.poke(3, reg.HOMING_OFFSET, -35)
    arm.start(calibration_file=str(write_calibration(tmp_path / "a.json")))
    wait_for(lambda: "Can't activate" in arm.output, name="the first refusal")
    assert "elbow_flex: homing_offset: file -1411, servo -35" in arm.output
    assert "write_calibration" in arm.output
    assert "or calibrate again" in arm.output
    arm.bus.poke(3, reg.HOMING_OFFSET, -1411)

    def refused(*words: str) -> None:
        before = len(arm.output)
        assert not arm.change(Transition.TRANSITION_ACTIVATE)
        assert arm.state() == "inactive"
        for word in words:
            wait_for(lambda w=word: w in arm.output[before:], 5.0, f"{word!r} in {arm.output}")

    middle = arm.servos[5].position_ticks()
    for ticks in (-35, 4112):
        arm.servos[5].place(212 + ticks)
        refused(f"wrist_roll reads {ticks} of 0..4095", "unplug power and USB once")
    arm.servos[5].place(middle)
    arm.servos[1].place(-35 + 771 - 200)
    refused("shoulder_pan reads 571 of 771..3341")
    arm.servos[1].place(-35 + 2056)

    arm.bus.errors = dict.fromkeys(arm.servos, 1)
    for id in arm.servos:
        arm.bus.poke(id, reg.PRESENT_VOLTAGE, 121)
    arm.bus.poke(2, reg.PRESENT_TEMPERATURE, 75)
    refused(
        "input voltage 12.1 V, these servos allow up to 8.0 V: wrong supply?",
        "shoulder_lift: servo 2 has 75 °C",
    )
    arm.states.clear()
    wait_for(lambda: len(arm.states) > 3, name="joint states in spite of the error bits")
    health = wait_for(lambda: arm.diagnostic("gripper"))
    wait_for(lambda: "voltage" in arm.diagnostic("gripper").message)
    assert health.hardware_id == arm.bus.port
    status, result = arm.move([(ZERO, 1.0)])
    assert (status, result.error_code) == (ABORTED, Result.INVALID_GOAL)
    assert "is inactive" in result.error_string
    assert arm.writes == []

    arm.bus.errors = {}
    for id in arm.servos:
        arm.bus.poke(id, reg.PRESENT_VOLTAGE, 74)
    arm.bus.poke(2, reg.PRESENT_TEMPERATURE, 30)
    assert arm.change(Transition.TRANSITION_ACTIVATE)
    assert list(arm.states[-1].position[:5]) == pytest.approx(ZERO, abs=TICK)
    # the gripper's closed end is the lower limit of its joint
    gripper = math.radians(-10) + (3480 - 2010) / 2 * TICK
    assert arm.states[-1].position[5] == pytest.approx(gripper, abs=TICK)
    status, result = arm.move([([0.3, 0, 0, 0, 0], 0.5)])
    assert status == SUCCEEDED


def test_configuring_fails_with_a_reason_and_can_be_tried_again(arm, tmp_path):
    load_calibration(arm.bus)
    file = tmp_path / "a.json"
    file.write_text('{\n  "shoulder_pan": {,}\n}')
    arm.bus.unplug()
    arm.start(calibration_file=str(file), autostart=False)

    def refused(words: str) -> None:
        assert not arm.change(Transition.TRANSITION_CONFIGURE)
        assert arm.state() == "unconfigured"
        wait_for(lambda: words in arm.output, 5.0, f"{words!r} in {arm.output}")

    refused(f"{file}, line 2, column 20: not JSON")
    write_calibration(file)
    refused(f"there is no port {arm.bus.port}.")
    arm.bus.plug()
    arm.bus.missing = {3, 6}
    refused("no answer from servos 3, 6 (1, 2, 4, 5 did); 3 is elbow_flex, 6 is gripper")
    assert arm.process is not None
    assert "Traceback" not in arm.output
    arm.bus.missing = set()
    for _ in range(2):
        assert arm.change(Transition.TRANSITION_CONFIGURE)
        assert arm.change(Transition.TRANSITION_ACTIVATE)
        assert arm.servos[1].torque
        assert arm.ros.node.count_publishers("joint_states") == 1
        status, _ = arm.move([([0.2, 0, 0, 0, 0], 0.3)])
        assert status == SUCCEEDED
        assert arm.change(Transition.TRANSITION_DEACTIVATE)
        assert not arm.servos[1].torque
        assert arm.change(Transition.TRANSITION_CLEANUP)
    services = dict(arm.ros.node.get_service_names_and_types())
    assert sum("follow_joint_trajectory/_action/send_goal" in name for name in services) == 1


def test_unplugged_and_plugged_in_again(arm):
    arm.start_active()
    handle = arm.send([([1.2, 0, 0, 0, 0], 2.0)])
    wait_for(lambda: arm.angle(1) > 0.3)
    arm.bus.unplug()
    answer = arm.end(handle, 5.0)
    assert answer.status == ABORTED
    assert "lost the arm" in answer.result.error_string
    assert arm.bus.port in answer.result.error_string
    wait_for(lambda: arm.diagnostic("bus").level == b"\2", name="an error on /diagnostics")
    count = len(arm.states)
    status, result = arm.move([(ZERO, 1.0)])
    assert (status, result.error_code) == (ABORTED, Result.INVALID_GOAL)
    assert len(arm.states) == count
    stood = arm.angle(1)

    arm.goals.clear()
    arm.bus.plug()
    wait_for(lambda: "holds again" in arm.output, name=arm.output)
    wait_for(lambda: len(arm.states) > count + 5, name="joint states")
    assert {abs(g - (reg.CENTER + stood / TICK)) < 30 for i, g in arm.goals if i == 1} == {True}
    assert arm.move([([0.2, 0, 0, 0, 0], 1.0)])[0] == SUCCEEDED
    wait_for(lambda: arm.diagnostic("bus").level == b"\0", name="health again")

    # one servo's cable comes off; it has moved by hand when it is back
    arm.bus.missing = {4}
    wait_for(lambda: "no answer from servo 4 (1, 2, 3, 5, 6 did)" in arm.output, name="the loss")
    arm.servos[4].set_torque(False)
    arm.bus.poke(4, reg.TORQUE_ENABLE, 0)
    arm.servos[4].place(reg.CENTER + 300)
    arm.goals.clear()
    arm.bus.missing = set()
    wait_for(lambda: arm.output.count("holds again") == 2, name=arm.output)
    assert next(g for i, g in arm.goals if i == 4) == reg.CENTER + 300

    # the servos lose their power for a moment, and the arm falls
    handle = arm.send([([0.2, -0.5, 0, 0.46, 0], 2.0)])
    wait_for(lambda: arm.angle(2) < -0.1)
    lost = []
    arm.bus.mangle = lambda id, packet: lost.append(id) or b""
    wait_for(lambda: len(lost) > 40)
    arm.bus.power_cycle()
    arm.servos[2].place(reg.CENTER + 100)
    arm.goals.clear()
    arm.bus.mangle = None
    answer = arm.end(handle)
    assert answer.status == ABORTED
    assert "lost the" in answer.result.error_string
    wait_for(lambda: arm.output.count("holds again") == 3, name=arm.output)
    assert {abs(g - reg.CENTER - 100) < 3 for i, g in arm.goals if i == 2} == {True}
    assert "Traceback" not in arm.output


@pytest.mark.parametrize("torque_off", [True, False])
def test_ctrl_c_ends_goals_and_leaves_torque_as_told(arm, torque_off):
    process = arm.start_active(torque_off_on_deactivate=torque_off)
    handle = arm.send([([1.0, 0, 0, 0, 0], 2.0)])
    wait_for(lambda: arm.angle(1) > 0.2)
    process.signal(signal.SIGINT)
    answer = arm.end(handle, 5.0)
    assert answer.status == ABORTED
    assert "deactivated" in answer.result.error_string
    assert process.wait(10.0) == 0
    assert {s.torque for s in arm.servos.values()} == {not torque_off}
    stopped = arm.angle(1)
    assert stopped == pytest.approx(arm.angle(1), abs=0.01)
    assert stopped < 0.9


def test_a_killed_driver_is_followed_by_one_that_takes_over_without_a_jump(arm):
    process = arm.start_active()
    arm.send([([1.4, 0, 0, 0, 0], 3.0)])
    wait_for(lambda: arm.angle(1) > 0.2)
    process.signal(signal.SIGKILL)
    process.wait()
    assert arm.servos[1].torque
    before = {i: s.position_ticks() for i, s in arm.servos.items()}
    wait_for(lambda: not arm.servos[1].velocity_ticks())
    before[1] = arm.servos[1].position_ticks()
    arm.goals.clear()
    arm.states.clear()
    arm.start()
    arm.wait_state("active")
    wait_for(lambda: len(arm.states) > 10)
    assert all(abs(g - before[i]) < 30 for i, g in arm.goals)
    assert all(abs(s.position_ticks() - before[i]) < 30 for i, s in arm.servos.items())
    assert arm.move([(ZERO, 1.0)])[0] == SUCCEEDED


def test_simulated_time_that_stands_still_stops_nothing(arm):
    arm.start_active(use_sim_time=True)
    assert arm.move([([0.3, 0, 0, 0, 0], 0.4)])[0] == SUCCEEDED
    handle = arm.send([([-1.0, 0, 0, 0, 0], 3.0)])
    wait_for(lambda: arm.angle(1) < 0.2)
    arm.ros.result(handle.cancel_goal_async())
    assert arm.end(handle).status == CANCELED


def test_a_stale_goal_in_the_servo_does_not_swing_it_when_torque_goes_on(arm):
    arm.bus.poke(2, reg.GOAL_POSITION, 1000)
    arm.servos[2].place(reg.CENTER + 200)
    arm.start_active()
    assert arm.servos[2].torque
    assert arm.servos[2].position_ticks() == pytest.approx(reg.CENTER + 200, abs=1)
    assert next(g for i, g in arm.goals if i == 2) == reg.CENTER + 200


def test_a_wrong_robot_or_ids_is_refused_in_words(arm, tmp_path):
    arm.start(servo_ids=[1, 2, 3], autostart_timeout=0.0)
    wait_for(lambda: "Not configured" in arm.output, name="the refusal")
    assert "servo_ids is [1, 2, 3]; it should have a different id for each of" in arm.output
    assert "Traceback" not in arm.output
