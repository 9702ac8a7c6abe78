"""``arm_move_to_position``, ``arm_set_joint_angles`` and ``arm_get_state`` on the physics."""

from __future__ import annotations

import asyncio
import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mujoco_arm import MujocoArm, one_cube, put

from lerobot_tool_bridge.core.check import check_message
from lerobot_tool_bridge.core.errors import CallError, LoadError, Rejection, ToolFailure
from lerobot_tool_bridge.core.registry import Registry
from lerobot_tool_bridge.core.schema import Schema
from lerobot_tool_bridge.core.tool import CallContext, Tool
from lerobot_tool_bridge.ports import GripperState, Ports, Waypoint
from lerobot_tool_bridge.robot import Robot
from lerobot_tool_bridge.sim.physics import Physics
from lerobot_tool_bridge.tools.arm_get_state import ArmGetState
from lerobot_tool_bridge.tools.arm_grab_object import ArmGrabObject
from lerobot_tool_bridge.tools.arm_move_to_position import ArmMoveToPosition
from lerobot_tool_bridge.tools.arm_set_joint_angles import ArmSetJointAngles

ROBOT = Robot.load("so101")
METRES = Robot.load(str(Path(__file__).parent.parent / "ros" / "robot.yaml"))
READY = [0, -45, 45, 75, 0]


class FakeArm:
    """Goes at once where it is sent, ``short`` degrees off in its third joint."""

    def __init__(self, q: Sequence[float], finger: float, effort: float = 0.0) -> None:
        self.q = tuple(map(float, q))
        self.finger = finger
        self.effort = effort
        self.short = 0.0
        self.paths: list[Sequence[Waypoint]] = []
        self.gripper_goals: list[float] = []

    async def positions(self) -> tuple[float, ...]:
        return self.q

    async def move(self, path: Sequence[Waypoint]) -> tuple[float, ...]:
        self.paths.append(path)
        end = list(path[-1].positions)
        end[2] -= math.radians(self.short)
        self.q = tuple(end)
        return self.q

    async def gripper_state(self) -> GripperState:
        return GripperState(self.finger, self.effort, False, False)

    async def gripper(self, position: float, max_effort: float) -> GripperState:
        self.gripper_goals.append(position)
        self.finger = position
        return await self.gripper_state()


def call(tool: Tool, **arguments: Any) -> str:
    checked = Schema(tool.parameters).validate(arguments)
    tool.check(checked)
    answer = asyncio.run(tool.run(checked, CallContext("a")))
    assert isinstance(answer, str)
    return answer


def fake(degrees: Sequence[float] = READY, **more: Any) -> FakeArm:
    return FakeArm([math.radians(v) for v in degrees], more.pop("finger", 0.8), **more)


def numbers(answer: str) -> list[float]:
    return [float(v) for v in re.findall(r"[xyz]=(-?[\d.]+)", answer)]


@pytest.fixture
def arm() -> Iterator[MujocoArm]:
    assert ROBOT.arm is not None
    physics = Physics(ROBOT, one_cube(), 60.0)
    arm = MujocoArm(ROBOT, physics)
    yield arm
    physics.stop()


# --- arm_move_to_position --------------------------------------------------------------------


def test_goes_to_points_all_over_the_workspace(arm: MujocoArm) -> None:
    """Also where nothing could be grasped from above."""
    tool = ArmMoveToPosition(Ports(robot=ROBOT, arm=arm))
    rng = random.Random(3)
    for _ in range(8):
        radius, azimuth = rng.uniform(0.15, 0.37), math.radians(rng.uniform(-80, 80))
        point = [radius * math.cos(azimuth), radius * math.sin(azimuth), rng.uniform(0.05, 0.24)]
        answer = call(tool, x=point[0], y=point[1], z=point[2], speed=100)
        assert np.linalg.norm(np.array(numbers(answer)) - point) < 0.006, answer
        assert "(measured)" in answer
    assert arm.tool_speed <= 0.25
    assert arm.joint_speed <= 1.6


def test_points_down_where_it_can(arm: MujocoArm) -> None:
    tool = ArmMoveToPosition(Ports(robot=ROBOT, arm=arm))
    assert call(tool, x=0.2, y=0.05, z=0.05).endswith("pointing straight down.")


def test_speed_is_a_share_of_what_the_site_allows() -> None:
    for settings, speed, limit in (
        ({}, 100, 0.25),
        ({}, 50, 0.125),
        ({"max_tool_speed": 0.1}, 50, 0.05),
    ):
        port = fake()
        tool = ArmMoveToPosition(Ports(robot=ROBOT, arm=port), settings)
        start = port.q
        call(tool, x=0.2, y=0.2, z=0.1, **({} if speed == 50 else {"speed": speed}))
        assert tool._arm is not None
        chain = tool._arm.planner.chain
        (path,) = port.paths
        points = [start, *(w.positions for w in path)]
        way = np.linalg.norm(np.diff(chain.fk(points).position, axis=0), axis=-1)
        fastest = (way / np.diff([0.0, *(w.time for w in path)])).max()
        assert 0.5 * limit < fastest <= limit


@pytest.mark.parametrize("speed", [0, 4.9, 101, -50, "50", True])
def test_speeds_that_are_refused(speed: Any) -> None:
    with pytest.raises(Rejection):
        call(ArmMoveToPosition(Ports(robot=ROBOT, arm=fake())), x=0.2, y=0, z=0.1, speed=speed)


@pytest.mark.parametrize(
    ("point", "says"),
    [
        (
            (0.9, 0, 0.05),
            "In that direction and at that height the arm reaches from 0.14 to 0.38 m",
        ),
        ((0.2, 0, -0.3), "z should be 0.00 to 0.25 m above the table"),
        ((-0.2, 0, 0.1), "the arm works from -90° to 90°"),
        ((0.2, 0, 0.005), "z should be at least 0.011 m"),
        ((200, 0, 100), "x, y and z are metres"),
    ],
)
def test_out_of_reach_says_how_far(point: Sequence[float], says: str) -> None:
    port = fake()
    with pytest.raises(Rejection) as error:
        call(ArmMoveToPosition(Ports(robot=ROBOT, arm=port)), x=point[0], y=point[1], z=point[2])
    assert error.value.code == "unreachable"
    assert says in error.value.message
    assert not port.paths


def test_a_site_can_narrow_the_workspace() -> None:
    tool = ArmMoveToPosition(Ports(robot=ROBOT, arm=fake()), {"workspace": {"height": [0.1, 0.2]}})
    with pytest.raises(Rejection, match=r"0\.10 to 0\.20"):
        call(tool, x=0.2, y=0, z=0.05)
    with pytest.raises(LoadError):
        ArmMoveToPosition(Ports(robot=ROBOT), {"max_tool_speed": "fast"})


def test_an_arm_that_stops_short_is_no_success() -> None:
    port = fake()
    port.short = 15.0
    with pytest.raises(ToolFailure, match=r"stopped at x=.*mm from where") as error:
        call(ArmMoveToPosition(Ports(robot=ROBOT, arm=port)), x=0.2, y=0, z=0.1)
    assert error.value.code == "tool_error"


def test_what_is_held_goes_there(arm: MujocoArm) -> None:
    put(arm.physics, "cube", 0.2, 0.05, 0.3)
    ports = Ports(robot=ROBOT, arm=arm)
    call(ArmGrabObject(ports), x=0.2, y=0.05, z=0.0125, yaw_deg=math.degrees(0.3))
    answer = call(ArmMoveToPosition(ports), x=0.22, y=-0.1, z=0.1)
    assert answer.startswith("The held object is at x=0.2")
    cube = arm.physics.pose("cube").position
    assert np.linalg.norm(np.array(cube) - [0.22, -0.1, 0.1]) < 0.01
    state = call(ArmGetState(ports))
    assert "The gripper holds something 2" in state
    assert numbers(state) == pytest.approx(list(cube), abs=0.01)
    # the gripper's own angle leaves it as it is: what is held stays held
    angle = float(re.findall(r"gripper (-?[\d.]+)°", state)[0])
    answer = call(ArmSetJointAngles(ports), angles=[0, -60, 60, 60, 0, angle])
    assert "holding something 2" in answer
    assert arm.physics.pose("cube").position[2] > 0.05


# --- arm_set_joint_angles --------------------------------------------------------------------


def test_joints_and_gripper_go_where_they_are_sent(arm: MujocoArm) -> None:
    ports = Ports(robot=ROBOT, arm=arm)
    answer = call(ArmSetJointAngles(ports), angles=[10, -60, 50, 60, -20, 30])
    assert ROBOT.arm is not None
    names = (*ROBOT.arm.joints, "gripper")
    for name, value in zip(names, (10, -60, 50, 60, -20, 30), strict=True):
        (measured,) = re.findall(rf"{name} (-?[\d.]+)°", answer)
        assert float(measured) == pytest.approx(value, abs=1.5)
    assert answer.endswith("(measured).")
    state = call(ArmGetState(ports))
    assert re.search(r"gripper (29|30|31)\.\d°", state)
    assert "mm open and holds nothing" in state
    assert "pointing 50° below level" in state
    assert arm.tool_speed <= 0.25


@pytest.mark.parametrize(
    ("angles", "says"),
    [
        (
            [0, 0, 140, 0, 0, 50],
            "elbow_flex (third angle): 140 given, -96.8 to 96.8 degrees allowed.",
        ),
        (
            [111, 0, 0, 0, 0, 101],
            "shoulder_pan (first angle): 111 given, -110 to 110 degrees allowed and gripper "
            "(sixth angle): 101 given, -10 to 100 degrees allowed.",
        ),
        ([0, 0, 0, 0, 0], "6"),
        ([0, 0, 0, 0, 0, 0, 0], "6"),
        ([0, 0, "40", 0, 0, 0], "number"),
    ],
)
def test_what_is_out_of_range_is_named(angles: list[Any], says: str) -> None:
    port = fake()
    with pytest.raises(Rejection) as error:
        call(ArmSetJointAngles(Ports(robot=ROBOT, arm=port)), angles=angles)
    assert error.value.code == "invalid_arguments"
    assert says in error.value.message
    assert not port.paths


@pytest.mark.parametrize(
    "angles", [[110, -100, 96.8, 50, 157.2, 100], [-110, -100, 60, -95, -157.2, -10]]
)
def test_the_limits_themselves_are_allowed(angles: list[float]) -> None:
    port = fake([0, -90, 90, 50, 0])
    call(ArmSetJointAngles(Ports(robot=ROBOT, arm=port)), angles=angles)
    assert port.q[0] == pytest.approx(math.radians(angles[0]))


def test_nothing_is_pushed_into_the_table() -> None:
    port = fake()
    tool = ArmSetJointAngles(Ports(robot=ROBOT, arm=port))
    with pytest.raises(Rejection, match="would be in the table: z=-0") as error:
        call(tool, angles=[0, 40, 20, 60, 0, 0])
    assert error.value.code == "unreachable"
    port.q = tuple(math.radians(v) for v in (0, 0, 60, -90, 0))
    with pytest.raises(Rejection, match="On the straight way there"):
        call(tool, angles=[0, 0, 90, 90, 0, 0])
    assert not port.paths


def test_a_joint_that_stops_short_is_named() -> None:
    port = fake()
    port.short = 9.0
    with pytest.raises(ToolFailure) as error:
        call(ArmSetJointAngles(Ports(robot=ROBOT, arm=port)), angles=[0, -40, 40, 60, 0, 20])
    assert "elbow_flex stopped at 31.0° instead of 40.0°" in error.value.message
    assert not port.gripper_goals


def test_a_gripper_in_metres_is_told_by_its_opening() -> None:
    port = fake([0, -40, 70, 0, 60, 0], finger=0.04)
    tool = ArmSetJointAngles(Ports(robot=METRES, arm=port))
    description = tool.parameters["properties"]["angles"]["description"]
    assert (
        "left_finger_joint 0 to 80 mm between the fingers (0 is closed, 80 is open)" in description
    )
    answer = call(tool, angles=[10, -40, 70, 0, 60, 170, 30])
    assert port.gripper_goals == [pytest.approx(0.015)]
    assert "left_finger_joint 30.0 mm" in answer
    with pytest.raises(Rejection, match=r"seventh angle\): 90 given, 0 to 80 mm allowed"):
        call(tool, angles=[10, -40, 70, 0, 60, 170, 90])


def test_an_arm_without_a_gripper() -> None:
    robot = replace(ROBOT, gripper=None)
    port = fake()
    ports = Ports(robot=robot, arm=port)
    answer = call(ArmSetJointAngles(ports), angles=[0, -50, 50, 60, 10])
    assert "gripper" not in answer
    assert "pointing" in call(ArmMoveToPosition(ports), x=0.2, y=0, z=0.1)
    assert "gripper" not in call(ArmGetState(ports)) + ArmGetState(ports).description


# --- all -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ArmMoveToPosition, ArmSetJointAngles, ArmGetState])
def test_without_a_robot_there_is_a_schema(kind: type[Tool]) -> None:
    tool = kind(Ports())
    Schema(tool.parameters)
    with pytest.raises(CallError):
        asyncio.run(tool.run({"x": 0.2, "y": 0, "z": 0.1, "angles": [0]}, CallContext("a")))


def test_injected_and_wrapped_calls() -> None:
    """What a picture told the model to do ends at the workspace; wrapped arguments are a fault."""
    registry = Registry.load(Ports(robot=ROBOT))
    for arguments, code, says in (
        ({"x": 0.2, "y": 0.0, "z": -0.3, "speed": 100}, "unreachable", "z should be"),
        ({"properties": {"x": 0.2, "y": 0.0, "z": 0.1}}, "invalid_arguments", "at the top level"),
    ):
        function = {"name": "arm_move_to_position", "arguments": arguments}
        calls = [{"id": "call00001", "type": "function", "function": function}]
        verdict = check_message(
            {"role": "assistant", "content": "", "tool_calls": calls}, registry
        )
        (line,) = verdict["calls"]
        assert line["code"] == code
        assert says in line["detail"]
