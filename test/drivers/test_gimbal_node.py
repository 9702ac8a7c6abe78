"""The gimbal driver as a process, in front of emulated heads."""

from __future__ import annotations

import itertools
import math
import os
import signal
import time

import pytest
from action_msgs.msg import GoalStatus
from action_msgs.srv import CancelGoal
from builtin_interfaces.msg import Duration
from control_msgs.action import FollowJointTrajectory
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from harness import wait_for
from rclpy.action import ActionClient
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectoryPoint

from lerobot_tool_bridge.sim.devices.feetech import FeetechBus, SimpleServo
from lerobot_tool_bridge.sim.devices.zl_ascii import ZlAsciiHead

NODE = "lerobot_tool_bridge.drivers.gimbal.node"
ACTION = "gimbal_controller/follow_joint_trajectory"
SUCCEEDED, CANCELED, ABORTED = (
    GoalStatus.STATUS_SUCCEEDED,
    GoalStatus.STATUS_CANCELED,
    GoalStatus.STATUS_ABORTED,
)


class Recorder:
    """A PWM servo that writes down where it was sent, and when."""

    def __init__(self):
        self.targets = []

    def set_target(self, pulse_us, time_ms):
        self.targets.append((time.monotonic(), pulse_us, time_ms))

    @property
    def pulse(self):
        return self.targets[-1][1] if self.targets else None


class Plug:
    """A ZL head behind a symlink that stays when it is plugged in again."""

    def __init__(self, link):
        self.link = link
        self.servos = {0: Recorder(), 1: Recorder()}
        self.plug()

    def plug(self):
        self.head = ZlAsciiHead(self.servos)
        self.link.unlink(missing_ok=True)
        self.link.symlink_to(self.head.path)

    def unplug(self):
        self.head.close()

    @property
    def pulses(self):
        return [s.pulse for s in self.servos.values()]


@pytest.fixture
def plug(tmp_path):
    plug = Plug(tmp_path / "gimbal")
    yield plug
    plug.unplug()


def goal(*points, joints=("gimbal_pan", "gimbal_tilt")):
    """A goal of points (seconds, pan, tilt in degrees)."""
    goal = FollowJointTrajectory.Goal()
    goal.trajectory.joint_names = list(joints)
    for seconds, *degrees in points:
        whole = int(seconds)
        goal.trajectory.points.append(
            JointTrajectoryPoint(
                positions=[math.radians(d) for d in degrees],
                time_from_start=Duration(sec=whole, nanosec=int((seconds - whole) * 1e9)),
            )
        )
    return goal


class Client:
    def __init__(self, ros):
        self.ros = ros
        self.client = ros.make(lambda: ActionClient(ros.node, FollowJointTrajectory, ACTION))
        assert self.client.wait_for_server(30)

    def send(self, *points, **more):
        handle = self.ros.result(self.client.send_goal_async(goal(*points, **more)))
        assert handle.accepted
        handle.answer = handle.get_result_async()  # asked for while the driver lives
        return handle

    def end(self, handle):
        answer = self.ros.result(handle.answer)
        return answer.status, answer.result.error_code, answer.result.error_string

    def run(self, *points, **more):
        return self.end(self.send(*points, **more))


FAST = {"max_speed": 6.0}
"""So that the first move, over the whole range, takes 0.8 s."""


def test_moves_at_its_pace_and_tells_what_it_commanded(ros, spawn, plug):
    node = spawn.node(NODE, port=str(plug.link), **FAST)
    states = ros.collect(JointState, "joint_states")
    health = ros.collect(DiagnosticArray, "/diagnostics")
    client = Client(ros)
    wait_for(lambda: health)
    assert plug.pulses == [None, None]  # it does not move by itself
    assert not states  # nobody knows where the head is
    status, code, text = client.run((0.1, 135, 135))
    assert (status, code) == (SUCCEEDED, 0), text
    assert plug.pulses == [1500, 1500]
    (_, _, first), *_ = plug.servos[0].targets
    assert first == pytest.approx(270 / math.degrees(6.0) * 1000, abs=1)  # not in 0.1 s
    wait_for(lambda: states)
    assert states[-1].name == ["gimbal_pan", "gimbal_tilt"]
    assert list(states[-1].position) == pytest.approx([math.radians(135)] * 2)
    for servo in plug.servos.values():
        servo.targets.clear()
    status, _, text = client.run((0.25, 180, 120), (0.5, 225, 90))
    assert status == SUCCEEDED, text
    assert plug.pulses == [2167, 1167]
    pulses = [p for _, p, _ in plug.servos[0].targets]
    assert pulses == sorted(pulses)
    steps = [b - a for a, b in itertools.pairwise(pulses)]
    assert max(steps) <= 2 * math.degrees(6.0) / 50 * 2000 / 270 + 1  # never above the limit
    assert node.output.count("joint_states are what was commanded") == 1
    values = {v.key: v.value for v in health[-1].status[0].values}
    assert values["positions"] == "commanded, not measured"


def test_goals_that_cannot_be_are_refused_with_a_sentence(ros, spawn, plug):
    spawn.node(NODE, port=str(plug.link), **FAST)
    client = Client(ros)
    assert client.run((0.1, 90, 90))[0] == SUCCEEDED
    before = plug.pulses
    for points, more, sentence in (
        ([(1.0, 300, 90)], {}, "gimbal_pan"),
        ([(0.05, 200, 90)], {}, "gimbal_pan"),
        ([(1.0, 90)], {"joints": ["gimbal_pan"]}, "missing gimbal_tilt"),
        ([(1.0, 90, 90)], {"joints": ["gimbal_pan", "gimbal_tild"]}, "unknown gimbal_tild"),
        ([(1.0, math.nan, 90)], {}, "nan"),
        ([], {}, "no points"),
    ):
        status, code, text = client.run(*points, **more)
        assert status == ABORTED
        assert code < 0
        assert sentence in text
    assert plug.pulses == before


def test_cancel_holds_and_a_new_goal_replaces_the_old(ros, spawn, plug):
    spawn.node(NODE, port=str(plug.link), **FAST)
    client = Client(ros)
    assert client.run((0.1, 0, 0))[0] == SUCCEEDED
    handle = client.send((3.0, 270, 270))
    wait_for(lambda: plug.pulses[0] > 700)
    answer = ros.result(handle.cancel_goal_async())
    assert answer.return_code == CancelGoal.Response.ERROR_NONE
    status, _, text = client.end(handle)
    assert (status, text) == (CANCELED, "Canceled; the head holds.")
    held = plug.pulses
    assert held[0] < 2400
    first = client.send((3.0, 270, 270))
    wait_for(lambda: plug.pulses[0] > held[0] + 50)
    second = client.send((0.5, 90, 90))
    status, _, text = client.end(first)
    assert (status, text) == (ABORTED, "A new goal replaced this one.")
    assert client.end(second)[0] == SUCCEEDED
    assert plug.pulses == [1167, 1167]


def test_the_first_move_can_be_stopped_too(ros, spawn, plug):
    spawn.node(NODE, port=str(plug.link))
    client = Client(ros)
    handle = client.send((1.0, 270, 0))
    wait_for(lambda: plug.pulses[0])
    ros.result(handle.cancel_goal_async())
    assert client.end(handle)[0] == CANCELED
    wait_for(lambda: len(plug.servos[0].targets) == 2)
    assert plug.pulses[0] < 2000
    assert plug.servos[0].targets[-1][2] == 0


def test_unplugged_it_ends_its_goal_and_comes_back(ros, spawn, plug):
    node = spawn.node(NODE, port=str(plug.link), **FAST)
    health = ros.collect(DiagnosticArray, "/diagnostics")
    client = Client(ros)
    assert client.run((0.1, 90, 90))[0] == SUCCEEDED
    handle = client.send((20.0, 180, 90))
    plug.unplug()
    status, _, text = client.end(handle)
    assert status == ABORTED
    assert "lost the head" in text
    assert "Plug the head's USB cable in again" in text
    wait_for(lambda: health[-1].status[0].level == DiagnosticStatus.ERROR)
    status, _, text = client.run((0.5, 180, 90))
    assert status == ABORTED
    assert str(plug.link) in text
    plug.plug()
    wait_for(lambda: health[-1].status[0].level == DiagnosticStatus.OK)
    assert client.run((0.5, 180, 90))[0] == SUCCEEDED
    assert plug.pulses == [1833, 1167]
    assert node.output.count("Lost the head") == 1


def test_why_a_port_does_not_open(spawn, plug, tmp_path):
    missing = spawn.node(NODE, port=str(tmp_path / "nothing"), autostart_timeout=0.0)
    missing.wait_output(f"Can't configure: there is no port {tmp_path / 'nothing'}")
    nobody = spawn.node(NODE, port="", autostart_timeout=0.0)
    nobody.wait_output("no port is given")
    first = spawn.node(NODE, port=str(plug.link))
    first.wait_output("Head on")
    second = spawn.node(NODE, "-r", "__node:=second", port=str(plug.link), autostart_timeout=0.0)
    second.wait_output("is held by")
    assert str(first.popen.pid) in second.output
    wrong = spawn.node(NODE, port=str(plug.link), protocol="morse")
    assert wrong.wait() == 1
    assert "zl_ascii, feetech" in wrong.output
    for node in (missing, nobody, second):
        assert "Traceback" not in node.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ended_in_the_middle_of_a_move_it_answers_and_stops_the_head(ros, spawn, plug, number):
    node = spawn.node(NODE, port=str(plug.link), **FAST)
    client = Client(ros)
    assert client.run((0.1, 90, 90))[0] == SUCCEEDED
    handle = client.send((20.0, 180, 90))
    wait_for(lambda: plug.pulses[0] > 1170)
    node.signal(number)
    status, _, text = client.end(handle)
    assert (status, text) == (ABORTED, "The driver was deactivated.")
    assert node.wait() == 0
    assert plug.pulses[0] < 1500


def test_a_killed_driver_leaves_the_port_free(spawn, plug):
    node = spawn.node(NODE, port=str(plug.link))
    node.wait_output("Head on")
    os.kill(node.popen.pid, signal.SIGKILL)
    node.wait()
    spawn.node(NODE, port=str(plug.link), autostart_timeout=0.0).wait_output("Head on")


def test_a_servo_mounted_the_other_way_round_and_one_of_180_degrees(spawn, ros, plug):
    arguments = ("-p", "pan_pulse_us:=[2500.0,500.0]", "-p", "tilt_pulse_deg:=[45.0,225.0]")
    spawn.node(NODE, *arguments, port=str(plug.link), **FAST)
    client = Client(ros)
    assert client.run((0.1, 27, 135))[0] == SUCCEEDED
    assert plug.pulses == [2300, 1500]
    status, _, text = client.run((5.0, 27, 240))
    assert status == ABORTED
    assert "gimbal_tilt" in text


def test_feetech_servos_are_measured(ros, spawn, tmp_path):
    servos = {1: SimpleServo(2048), 2: SimpleServo(1900)}
    with FeetechBus(servos, tmp_path / "head") as bus:
        states = ros.collect(JointState, "joint_states")
        node = spawn.node(
            NODE, "-p", "servo_ids:=[1,2]", protocol="feetech", port=bus.port, max_speed=3.0
        )
        client = Client(ros)
        wait_for(lambda: states)
        start = [math.degrees(p) for p in states[-1].position]
        assert start == pytest.approx([135, 135 - 148 * 360 / 4096], abs=0.2)
        wait_for(lambda: servos[1].torque and servos[2].torque)
        assert servos[2].position_ticks() == pytest.approx(1900, abs=2)  # no jump
        status, code, text = client.run((1.0, 180, 135))
        assert (status, code) == (SUCCEEDED, 0), text
        assert servos[1].position_ticks() == pytest.approx(2048 + 512, abs=40)
        servos[1].held = True
        status, code, text = client.run((0.5, 135, 135))
        assert (status, code) == (ABORTED, -5)
        assert "The head did not arrive: gimbal_pan stopped at 180" in text
        assert "commanded" not in node.output
