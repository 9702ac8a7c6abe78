"""The bridge and its drivers as processes that come, die and go."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bridge_client import HERE, BridgeProcess
from fake_robot import ROBOT, FakeRobot
from harness import Process, Ros, Spawner, wait_for
from lifecycle_msgs.msg import Transition
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from lerobot_tool_bridge.robot import Robot

HOME = [0.0] * 6


@pytest.fixture
def robot(ros: Ros, request: pytest.FixtureRequest) -> Iterator[FakeRobot]:
    """A robot in the test's own node; ``robot.yaml`` unless the test names another."""
    robot = FakeRobot(ros.node, Robot.load(getattr(request, "param", str(ROBOT))))
    ros.executor.wake()
    yield robot
    robot.close()


def start_robot(spawn: Spawner, **parameters: Any) -> Process:
    """A robot as a process, which can be killed."""
    command = [sys.executable, str(HERE / "fake_robot.py"), "--ros-args"]
    for name, value in parameters.items():
        command += ["-p", f"{name}:={json.dumps(value)}"]
    process = spawn(*command)
    process.wait_output("ready")
    return process


def test_the_end_of_the_bridge_answers_every_call(
    ros: Ros, spawn: Spawner, robot: FakeRobot
) -> None:
    bridge = BridgeProcess(ros, spawn)
    robot.arm.behaviour = "hang"
    moving = bridge.send("move_joints", degrees=HOME, seconds=0.2)
    queued = bridge.send("move_joints", degrees=HOME, seconds=0.2)
    waiting = bridge.send("wait", seconds=60)
    bridge.wait_event(waiting, "started")
    wait_for(lambda: robot.arm.running)
    bridge.process.signal(signal.SIGTERM)
    for call in (moving, queued, waiting):
        assert bridge.answer(call).startswith("Error: inactive")
        assert len(bridge.answers(call)) == 1
        assert bridge.code(call) == "cancelled inactive"
    assert bridge.process.wait() == 0
    assert not robot.arm.running
    assert "Traceback" not in bridge.process.output


def test_a_driver_that_is_missing_killed_and_started_again(ros: Ros, spawn: Spawner) -> None:
    bridge = BridgeProcess(ros, spawn, server_timeout=0.5)
    missing = bridge.send("gimbal_control", pan=10, tilt=10)
    bridge.answer(missing)
    assert bridge.code(missing) == "failed unavailable"

    driver = start_robot(spawn, behaviour="hang")
    call = bridge.send("move_joints", degrees=HOME, seconds=0.2)
    while not _executing(driver):
        wait_for(lambda: bridge.finished(call) or _executing(driver))  # noqa: B023
        if bridge.finished(call):  # before the driver was discovered
            call = bridge.send("move_joints", degrees=HOME, seconds=0.2)
    driver.signal(signal.SIGKILL)
    assert "is not known" in bridge.answer(call)
    assert bridge.code(call) == "failed unavailable"

    start_robot(spawn)
    wait_for(lambda: bridge.call("move_joints", degrees=HOME, seconds=0.1).startswith("0.0"))
    bridge.check_alive()


def _executing(driver: Process) -> bool:
    return "executing" in driver.output


def test_a_driver_that_is_replaced_in_the_middle(ros: Ros, spawn: Spawner) -> None:
    """Its joint states go on, and the new one knows nothing of the goal."""
    robot = Robot.load(str(ROBOT))
    assert robot.arm is not None
    assert robot.gripper is not None
    states = ros.node.create_publisher(JointState, "joint_states", 10)
    message = JointState(name=[*robot.arm.joints, robot.gripper.joint], position=[0.0] * 7)
    ros.node.create_timer(0.05, lambda: states.publish(message))
    ros.executor.wake()
    driver = start_robot(spawn, behaviour="hang", measured=False)
    bridge = BridgeProcess(ros, spawn)
    call = bridge.send("grip", position=0.0)
    wait_for(lambda: _executing(driver))
    driver.signal(signal.SIGKILL)
    start_robot(spawn, measured=False)
    assert "was started again" in bridge.answer(call)
    assert bridge.code(call) == "failed unavailable"
    assert bridge.call("grip", position=0.0).startswith("0.000")


def test_simulated_time_that_stands_still(ros: Ros, spawn: Spawner, robot: FakeRobot) -> None:
    """Deadlines, cancels and stops count on the steady clock."""
    bridge = BridgeProcess(ros, spawn, use_sim_time=True)
    assert bridge.call("move_joints", degrees=HOME, seconds=0.1).startswith("0.0")
    robot.arm.behaviour = "hang"
    late = bridge.send("move_joints", degrees=HOME, seconds=0.1)
    bridge.answer(late)
    assert bridge.code(late) == "timeout timeout"
    moving = bridge.send("move_joints", degrees=HOME, seconds=0.1)
    wait_for(lambda: robot.arm.running)
    assert ros.call(Trigger, "tool_bridge/stop").success
    bridge.answer(moving)
    assert bridge.code(moving) == "cancelled preempted"


def test_files_that_set_limits(ros: Ros, spawn: Spawner, tmp_path: Path) -> None:
    """A parameter file that does not reach the node, and limits that do."""
    wrong = tmp_path / "limits.yaml"
    wrong.write_text("bridge:\n  ros__parameters:\n    workspace: {z_min: 0.05}\n")
    typo = tmp_path / "typo.yaml"
    typo.write_text("tool_bridge:\n  ros__parameters:\n    z_mim: 0.05\n    rate_limit: 50.0\n")
    tools = tmp_path / "tools.yaml"
    tools.write_text(
        "function_calling: {tools: {say: {enabled: false}, gimbal_control: {pan: {maximum: 200}}}}"
    )
    files = ["--params-file", str(wrong), "--params-file", str(typo)]
    audit = tmp_path / "audit.jsonl"
    bridge = BridgeProcess(ros, spawn, *files, tools_file=str(tools), audit_file=str(audit))
    output = bridge.process.output
    assert output.count("has no entry for /tool_bridge (found: bridge)") == 1
    assert "z_mim" in output
    assert "workspace r 0.2 to 0.52 m, z 0 to 0.3 m" in output
    assert "pan 0 to 200" in output
    schemas = {t["function"]["name"]: t["function"]["parameters"] for t in bridge.catalogues[-1]}
    assert "say" not in schemas
    assert schemas["gimbal_control"]["properties"]["pan"]["maximum"] == 200
    call = bridge.send("gimbal_control", pan=201, tilt=0)
    bridge.answer(call)
    assert bridge.code(call) == "rejected invalid_arguments"
    wait_for(lambda: call in audit.read_text())


def test_a_data_sets_catalogue(ros: Ros, spawn: Spawner, tmp_path: Path) -> None:
    tools = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
        for name in ("echo", "fold_towel")
    ]
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "info.json").write_text(json.dumps({"tools": tools}))
    bridge = BridgeProcess(ros, spawn, robot="", catalogue=str(tmp_path))
    names = [tool["function"]["name"] for tool in bridge.catalogues[-1]]
    assert names == ["echo", "fold_towel"]
    call = bridge.send("fold_towel")
    bridge.answer(call)
    assert bridge.code(call) == "rejected not_implemented"


def test_a_robot_that_is_not_there_yet(ros: Ros, spawn: Spawner, tmp_path: Path) -> None:
    """One clear line, and the same process can be configured when the file is mended."""
    file = tmp_path / "mine.yaml"
    bridge = BridgeProcess(ros, spawn, robot=str(file), autostart=False)
    bridge.process.wait_output("")
    assert not bridge.change(Transition.TRANSITION_CONFIGURE)
    bridge.process.wait_output(f"There is no robot file {file}")
    assert "Traceback" not in bridge.process.output
    file.write_text(ROBOT.read_text().replace("../../", f"{HERE.parent.parent}/"))
    assert bridge.change(Transition.TRANSITION_CONFIGURE)
    assert bridge.change(Transition.TRANSITION_ACTIVATE)
    bridge.wait_matched()
    bridge.check_alive()


@pytest.mark.parametrize("robot", ["six_axis"], indirect=True)
def test_the_six_axis_robot(ros: Ros, spawn: Spawner, robot: FakeRobot) -> None:
    """Another robot is another file: the same tools through ros2_control's names."""
    assert robot.robot.arm is not None
    joints = list(robot.robot.arm.joints)
    robot.positions.update(zip(joints, robot.robot.arm_pose("home"), strict=True))
    robot.thing, robot.haste = 0.02, 20.0
    bridge = BridgeProcess(ros, spawn, robot="six_axis")
    content = bridge.call("arm_grab_object", x=0.35, y=0.1, z=0.03)
    assert not content.startswith("Error"), content
    assert robot.arm.goals[-1].trajectory.joint_names == joints


def test_a_gripper_of_another_type(ros: Ros, spawn: Spawner, robot: FakeRobot) -> None:
    """The robot's file names the wrong one of the two: the answer says what to change."""
    bridge = BridgeProcess(ros, spawn, robot="six_axis", server_timeout=2.0)
    wait_for(lambda: "is there as" in bridge.call("grip", position=0.0))
    content = bridge.call("grip", position=0.0)
    assert "control_msgs/action/GripperCommand" in content
    assert "control_msgs/action/ParallelGripperCommand" in content
