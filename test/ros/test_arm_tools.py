"""The arm's tools over a running bridge, against action servers that misbehave."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator

import pytest
from bridge_client import BridgeProcess, World
from fake_robot import FakeRobot
from harness import Domain, Ros, Spawner, wait_for

from lerobot_tool_bridge.robot import Robot

ARM = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll")


@pytest.fixture(scope="module")
def so101_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("so101")
    domain = Domain()
    ros, spawn = Ros(domain), Spawner(domain, folder)
    robot = FakeRobot(ros.node, Robot.load("so101"))
    ros.executor.wake()
    try:
        bridge = BridgeProcess(
            ros, spawn, robot="so101", server_timeout=1.0, cancel_limit=0.5, rate_limit=0.0
        )
        yield World(ros, spawn, bridge, robot)
    finally:
        spawn.close()
        robot.close()
        ros.close()
        domain.close()


@pytest.fixture
def so101(so101_world: World) -> Iterator[tuple[BridgeProcess, FakeRobot]]:
    bridge, robot = so101_world.bridge, so101_world.robot
    stand(robot, shoulder_lift=-45, elbow_flex=45, wrist_flex=75)
    yield bridge, robot
    robot.measured = True
    for server in robot.servers:
        server.behaviour = "succeed"
        server.result = {}
        server.release()
    bridge.check_alive()


def stand(robot: FakeRobot, **degrees: float) -> None:
    """Puts the arm somewhere, by hand."""
    positions = {n: math.radians(degrees.get(n, 0.0)) for n in ARM}
    robot.positions.update(positions)
    wait_for(lambda: all(robot.told.get(n) == v for n, v in positions.items()))


def steps(robot: FakeRobot, joint: int) -> list[float]:
    """What a joint does from point to point of the last goal."""
    points = [p.positions[joint] for p in robot.arm.goals[-1].trajectory.points]
    return [abs(b - a) for a, b in itertools.pairwise(points)]


def test_c05_an_abort_is_told_by_joint(so101: tuple[BridgeProcess, FakeRobot]) -> None:
    bridge, robot = so101
    stand(robot, elbow_flex=22.0)
    robot.arm.behaviour = "abort"
    robot.arm.result = {"error_code": -5, "error_string": ""}
    call = bridge.send("arm_set_joint_angles", angles=[0, 0, 40, 0, 0, 50])
    content = bridge.answer(call)
    assert bridge.code(call) == "failed tool_error"
    assert "elbow_flex stopped at 31.0° instead of 40.0°" in content
    assert "-5" not in content
    assert not robot.gripper.goals


def test_joints_and_gripper_over_their_actions(so101: tuple[BridgeProcess, FakeRobot]) -> None:
    bridge, robot = so101
    robot.gripper.result = {"position": math.radians(50.0), "reached_goal": True}
    content = bridge.call("arm_set_joint_angles", angles=[10, -50, 40, 70, -20, 50])
    assert content == (
        "shoulder_pan 10.0°, shoulder_lift -50.0°, elbow_flex 40.0°, wrist_flex 70.0°, "
        "wrist_roll -20.0°, gripper 50.0° (measured)."
    )
    assert robot.gripper.goals[-1].command.position == pytest.approx(math.radians(50.0))
    wait_for(lambda: robot.told == robot.positions)
    state = bridge.call("arm_get_state")
    assert "shoulder_pan 10.0°" in state
    assert "gripper 50.0°" in state


def test_c07_a_late_result_answers_nobody_else(so101: tuple[BridgeProcess, FakeRobot]) -> None:
    bridge, robot = so101
    robot.arm.behaviour = "deaf"
    first = bridge.send("arm_move_to_position", x=0.2, y=0.05, z=0.1)
    wait_for(lambda: robot.arm.running)
    bridge.cancel(first)
    robot.arm.behaviour = "succeed"
    second = bridge.send("arm_move_to_position", x=0.2, y=-0.1, z=0.1)
    content = bridge.answer(first)
    assert bridge.code(first) == "cancelled cancel_unconfirmed"
    assert "may still be moving" in content
    assert bridge.answer(second).startswith("The tool is at x=0.200 y=-0.100 z=0.100 m")
    robot.arm.release()
    wait_for(lambda: not robot.arm.running)
    bridge.check_alive()
    assert len(bridge.answers(first)) == len(bridge.answers(second)) == 1


def test_c11_the_way_starts_where_the_arm_was_left(
    so101: tuple[BridgeProcess, FakeRobot],
) -> None:
    bridge, robot = so101
    stand(robot, shoulder_lift=-60, elbow_flex=60, wrist_flex=math.degrees(0.9))
    assert "The tool is at" in bridge.call("arm_move_to_position", x=0.2, y=0.0, z=0.12)
    first = robot.arm.goals[-1].trajectory.points[0]
    assert first.positions[3] == pytest.approx(0.9)
    assert max(steps(robot, 3)) < 0.1


def test_c11_nothing_moves_on_a_stale_state(so101: tuple[BridgeProcess, FakeRobot]) -> None:
    bridge, robot = so101
    robot.measured = False
    goals = len(robot.arm.goals)
    time.sleep(0.6)  # the subject is an age
    for name, arguments in (
        ("arm_move_to_position", {"x": 0.2, "y": 0.0, "z": 0.12}),
        ("arm_set_joint_angles", {"angles": [0, -45, 45, 75, 0, 20]}),
        ("arm_get_state", {}),
    ):
        call = bridge.send(name, **arguments)
        assert "No fresh joint state" in bridge.answer(call)
        assert bridge.code(call) == "failed unavailable"
    assert len(robot.arm.goals) == goals


@pytest.mark.parametrize("reading", [3.1409, -3.1404])
def test_c11_no_full_turn_of_an_endless_joint(
    bridge: BridgeProcess, robot: FakeRobot, reading: float
) -> None:
    home = [math.radians(v) for v in (0, -40, 70, 0, 60)]
    robot.positions.update({f"joint_{i}": v for i, v in enumerate(home, 1)})
    robot.positions["joint_6"] = reading
    wait_for(lambda: robot.told.get("joint_6") == reading)
    content = bridge.call("arm_set_joint_angles", angles=[0, -40, 70, 0, 60, 178, 80])
    assert "joint_6" in content
    assert sum(steps(robot, 5)) < 0.1
    robot.positions["joint_6"] = reading
    wait_for(lambda: robot.told.get("joint_6") == reading)
    assert "The tool is at" in bridge.call("arm_move_to_position", x=0.4, y=0.0, z=0.15)
    assert sum(steps(robot, 5)) <= math.pi + 0.1
