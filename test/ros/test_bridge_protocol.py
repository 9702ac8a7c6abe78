"""Every topic and service of the wire protocol, and what must not bring the node down."""

from __future__ import annotations

import json
import struct
import time
from typing import Any

import pytest
from bridge_client import BridgeProcess, World
from control_msgs.action import FollowJointTrajectory
from diagnostic_msgs.msg import DiagnosticArray
from fake_robot import FakeRobot
from harness import Ros, wait_for
from lifecycle_msgs.msg import Transition
from rclpy.qos import DurabilityPolicy
from std_msgs.msg import String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from visualization_msgs.msg import Marker, MarkerArray

from lerobot_tool_bridge.ros.cdr import decode_string, encode_string
from lerobot_tool_bridge.ros.qos import LATCHED

HOME = [0.0] * 6


def trigger(ros: Ros, name: str) -> Trigger.Response:
    return ros.call(Trigger, f"tool_bridge/{name}")


def test_a_result_is_a_chat_message(bridge: BridgeProcess) -> None:
    call = bridge.send("echo", text="grüße 你好 \u0000 \"'")
    bridge.answer(call)
    assert bridge.answers(call) == [
        {"role": "tool", "tool_call_id": call, "name": "echo", "content": "grüße 你好 \u0000 \"'"}
    ]


def test_the_events_of_a_call(bridge: BridgeProcess) -> None:
    call = bridge.send("wait", seconds=0.01)
    bridge.answer(call)
    mine = [e for e in bridge.events if e["tool_call_id"] == call]
    assert [e["event"] for e in mine] == ["received", "started", "feedback", "finished"]
    assert mine[2]["detail"] == "waiting"
    assert abs(mine[0]["stamp"] - time.time()) < 60.0
    assert mine[3]["status"] == "succeeded"


def test_the_catalogue_is_latched(world: World, bridge: BridgeProcess) -> None:
    late = world.ros.collect(String, "tool_bridge/tools", LATCHED)
    wait_for(lambda: late)
    names = [tool["function"]["name"] for tool in json.loads(late[0].data)]
    assert {"say", "stop", "arm_grab_object", "gimbal_control", "echo"} <= set(names)
    (info,) = world.ros.node.get_publishers_info_by_topic("/tool_bridge/tools")
    assert info.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL


def test_calls_are_not_latched(world: World, bridge: BridgeProcess) -> None:
    """A latched call would move the robot again after each restart."""
    (info,) = world.ros.node.get_subscriptions_info_by_topic("/tool_bridge/tool_calls")
    assert info.qos_profile.durability == DurabilityPolicy.VOLATILE


@pytest.mark.parametrize(
    "text",
    [b"\xff\xfe\x00not UTF-8", b"", b"not JSON", b"\x00", b"null", b'"text"'],
    ids=["utf8", "empty", "json", "nul", "null", "text"],
)
def test_a_message_that_cannot_be_read(world: World, bridge: BridgeProcess, text: bytes) -> None:
    events, results = len(bridge.events), len(bridge.results)
    bridge.calls.publish(encode_string(text))
    wait_for(lambda: len(bridge.events) > events)
    assert bridge.events[events]["code"] == "bad_message"
    bridge.check_alive()
    assert len(bridge.results) == results + 1


def test_damaged_strings_on_the_wire() -> None:
    assert decode_string(encode_string(b"\xffabc")) == b"\xffabc"
    assert decode_string(b"\x00\x00\x00\x00" + struct.pack(">I", 4) + b"abc\x00") == b"abc"
    for damaged in (b"", b"\x00\x01", encode_string(b"abcdef")[:10], b"\x00\x01\x00\x00\xff" * 3):
        decode_string(damaged)


def test_cancels_that_mean_nothing(world: World, bridge: BridgeProcess) -> None:
    bridge.cancels.publish(encode_string(b"\xff\xff"))
    bridge.cancel("no such call")
    bridge.cancel("")
    bridge.check_alive()


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("no_such_tool", {}, "unknown_tool"),
        ("echo", {"text": 5}, "invalid_arguments"),
        ("gimbal_control", {"pan": "90", "tilt": 0}, "invalid_arguments"),
        ("gimbal_control", {"pan": 271, "tilt": 0}, "invalid_arguments"),
        ("arm_grab_object", {"x": 5.0, "y": 0.0, "z": 0.02}, "unreachable"),
    ],
)
def test_calls_that_are_refused(
    bridge: BridgeProcess, robot: FakeRobot, name: str, arguments: dict[str, Any], code: str
) -> None:
    goals = len(robot.arm.goals) + len(robot.head.goals)
    call = bridge.send(name, **arguments)
    assert bridge.answer(call).startswith(f"Error: {code}: ")
    assert bridge.code(call) == f"rejected {code}"
    assert len(robot.arm.goals) + len(robot.head.goals) == goals


def test_half_a_character_in_an_id(bridge: BridgeProcess) -> None:
    """A lone surrogate is legal JSON and no Unicode: the answer still comes."""
    count = len(bridge.results)
    bridge.publish('{"role":"assistant","tool_calls":[{"id":"\\ud800","name":"echo"}]}')
    wait_for(lambda: len(bridge.results) > count)


def test_cancel_all(bridge: BridgeProcess) -> None:
    calls = [bridge.send("wait", seconds=60) for _ in range(3)]
    bridge.wait_event(calls[0], "started")
    bridge.wait_event(calls[2], "received")
    bridge.cancel("*")
    for call in calls:
        bridge.answer(call)
        assert bridge.code(call) == "cancelled cancelled"


def test_stop_latches_until_reset(world: World, bridge: BridgeProcess, robot: FakeRobot) -> None:
    robot.arm.behaviour = "hang"
    moving = bridge.send("move_joints", degrees=HOME, seconds=0.2)
    waiting = bridge.send("move_joints", degrees=HOME, seconds=0.2)
    other = bridge.send("wait", seconds=0.5)
    wait_for(lambda: robot.arm.running)
    answer = trigger(world.ros, "stop")
    assert answer.success, answer.message
    assert answer.message.startswith("stopped")
    assert not robot.arm.running
    for call in (moving, waiting):
        bridge.answer(call)
        assert bridge.code(call) == "cancelled preempted"
    assert bridge.answer(other) == "waited"  # moves nothing
    robot.arm.behaviour = "succeed"
    refused = bridge.send("move_joints", degrees=HOME, seconds=0.1)
    bridge.answer(refused)
    assert bridge.code(refused) == "rejected stopped"
    assert trigger(world.ros, "reset").success
    assert bridge.call("move_joints", degrees=HOME, seconds=0.1).startswith("0.0")


def test_stop_ends_what_others_started(
    world: World, bridge: BridgeProcess, robot: FakeRobot
) -> None:
    """A person may have sent a goal from another program; stop means stop."""
    service = FollowJointTrajectory.Impl.SendGoalService
    robot.arm.behaviour = "hang"
    request = service.Request()
    request.goal_id.uuid[0] = 7
    point = JointTrajectoryPoint(positions=HOME)
    names = list(robot.robot.arm.joints)
    request.goal.trajectory = JointTrajectory(joint_names=names, points=[point])
    assert world.ros.call(service, f"{robot.robot.arm.action}/_action/send_goal", request).accepted
    wait_for(lambda: robot.arm.running)
    answer = trigger(world.ros, "stop")
    assert answer.success, answer.message
    assert not robot.arm.running
    trigger(world.ros, "reset")


@pytest.mark.parametrize("behaviour", ["deaf", "refuse"])
def test_stop_says_what_did_not_confirm(
    world: World, bridge: BridgeProcess, robot: FakeRobot, behaviour: str
) -> None:
    robot.head.behaviour = behaviour
    call = bridge.send("gimbal_control", pan=5, tilt=5)
    wait_for(lambda: robot.head.running)
    answer = trigger(world.ros, "stop")
    assert not answer.success
    assert "head" in answer.message
    bridge.answer(call)
    assert bridge.code(call) == "cancelled cancel_unconfirmed"
    robot.head.release()
    wait_for(lambda: not robot.head.running)
    assert trigger(world.ros, "stop").success
    trigger(world.ros, "reset")


def test_the_stop_tool(world: World, bridge: BridgeProcess, robot: FakeRobot) -> None:
    robot.arm.behaviour = "hang"
    moving = bridge.send("move_joints", degrees=HOME, seconds=0.2)
    wait_for(lambda: robot.arm.running)
    assert bridge.call("stop").startswith("stopped")
    bridge.answer(moving)
    assert bridge.code(moving) == "cancelled preempted"
    trigger(world.ros, "reset")


def test_diagnostics(world: World, bridge: BridgeProcess) -> None:
    arrays = world.ros.collect(DiagnosticArray, "/diagnostics")
    bridge.call("echo", text="counted")

    def statuses() -> dict[str, Any]:
        return {s.name: s for a in arrays for s in a.status if s.name.startswith("tool_bridge")}

    wait_for(lambda: len(statuses()) >= 2)
    calls = statuses()["tool_bridge: calls"]
    assert calls.level == b"\x00"
    assert any(v.key == "echo" and "succeeded" in v.value for v in calls.values)
    drivers = statuses()["tool_bridge: drivers"]
    assert {v.key: v.value for v in drivers.values}["the arm"] == "there"


def test_markers(world: World, bridge: BridgeProcess, robot: FakeRobot) -> None:
    arrays = world.ros.collect(MarkerArray, "tool_bridge/markers", LATCHED)
    wait_for(lambda: arrays)
    assert [m.ns for m in arrays[-1].markers[:2]] == ["", "workspace"]
    assert arrays[-1].markers[0].action == Marker.DELETEALL
    assert arrays[-1].markers[1].header.frame_id == "base_link"
    robot.arm.behaviour = "hang"
    call = bridge.send("move_joints", degrees=HOME, seconds=5.0)
    wait_for(lambda: any("move_joints: running" in m.text for m in arrays[-1].markers))
    bridge.cancel(call)
    bridge.answer(call)
    wait_for(lambda: any("move_joints: Error: " in m.text for m in arrays[-1].markers))


def test_the_life_cycle(world: World, bridge: BridgeProcess, robot: FakeRobot) -> None:
    robot.arm.behaviour = "hang"
    moving = bridge.send("move_joints", degrees=HOME, seconds=0.2)
    waiting = bridge.send("wait", seconds=60)
    wait_for(lambda: robot.arm.running)
    bridge.wait_event(waiting, "started")
    assert bridge.change(Transition.TRANSITION_DEACTIVATE)
    assert not robot.arm.running
    for call in (moving, waiting):
        bridge.answer(call)
        assert bridge.code(call) == "cancelled inactive"
    refused = bridge.send("echo", text="anybody?")
    bridge.answer(refused)
    assert bridge.code(refused) == "rejected inactive"
    assert trigger(world.ros, "stop").success  # also while inactive
    trigger(world.ros, "reset")
    assert bridge.change(Transition.TRANSITION_CLEANUP)
    assert bridge.state() == "unconfigured"
    bridge.catalogues.clear()
    assert bridge.change(Transition.TRANSITION_CONFIGURE)
    assert bridge.change(Transition.TRANSITION_ACTIVATE)
    bridge.wait_matched()
    robot.arm.behaviour = "succeed"
    assert bridge.call("move_joints", degrees=HOME, seconds=0.1).startswith("0.0")
    wait_for(lambda: len(world.ros.node.get_publishers_info_by_topic("/tool_bridge/tools")) == 1)


def test_many_calls(bridge: BridgeProcess) -> None:
    """None is lost, and those on one resource keep their order."""
    before = len(bridge.results)
    sent = []
    for i in range(500):
        wait_for(lambda: len(sent) - (len(bridge.results) - before) < 50)
        sent.append(bridge.send("wait", seconds=0))
        assert i + 1 == len(sent)
    wait_for(lambda: len(bridge.results) - before == len(sent))
    assert [r["tool_call_id"] for r in bridge.results[before:]] == sent
