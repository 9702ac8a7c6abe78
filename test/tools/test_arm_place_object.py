"""``arm_place_object`` on a fake arm."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import numpy as np
import pytest
from fake_arm import FakeArm, metres, stopped_by_something

from lerobot_tool_bridge.core.errors import CallError, Rejection, ToolFailure
from lerobot_tool_bridge.core.schema import Schema
from lerobot_tool_bridge.core.tool import CallContext
from lerobot_tool_bridge.ports import GripperState, Ports
from lerobot_tool_bridge.robot import Robot
from lerobot_tool_bridge.tools.arm_place_object import ArmPlaceObject

PLACE = {"so101": {"x": 0.18, "y": -0.1, "z": 0.02}, "six_axis": {"x": 0.3, "y": -0.2, "z": 0.03}}


@pytest.fixture(params=["so101", "six_axis"])
def arm(request: pytest.FixtureRequest) -> FakeArm:
    arm = FakeArm(Robot.load(request.param))
    arm.state = arm.holding(0.024)
    return arm


@pytest.fixture
def so101() -> FakeArm:
    arm = FakeArm(Robot.load("so101"))
    arm.state = arm.holding(0.024)
    return arm


def call(arm: FakeArm, feedback: list[str] | None = None, **arguments: Any) -> str:
    tool = ArmPlaceObject(Ports(robot=arm.robot, arm=arm))
    given = Schema(tool.parameters).validate({**PLACE[arm.robot.name], **arguments})
    tool.check(given)
    said: list[str] = [] if feedback is None else feedback
    result = asyncio.run(tool.run(given, CallContext("a", said.append)))
    assert isinstance(result, str)
    return result


def fail(arm: FakeArm, **arguments: Any) -> CallError:
    with pytest.raises(CallError) as error:
        call(arm, **arguments)
    return error.value


def test_sets_down_and_goes_home(arm: FakeArm) -> None:
    feedback: list[str] = []
    result = call(arm, feedback)
    assert arm.log == ["move", "move", "open", "move", "move"]
    assert arm.is_home
    arm.check_moves()
    assert result.startswith("Let go of the object at x=")
    for name in "xyz":
        assert metres(result, name) == pytest.approx(PLACE[arm.robot.name][name], abs=0.001)
    assert len(feedback) == 4


def test_place_is_measured_when_the_fingers_open(so101: FakeArm) -> None:
    so101.off = np.array([0.02, 0, 0, 0, 0])
    assert abs(metres(call(so101), "y") + 0.1) > 0.002


def test_refuses_when_nothing_is_held(arm: FakeArm) -> None:
    for position in (arm.gripper_of.open, arm.gripper_of.closed):
        arm.state = GripperState(position, 0.0, False, True)
        failure = fail(arm)
        assert isinstance(failure, Rejection)
        assert failure.code == "not_holding"
        assert "arm_grab_object" in failure.message
    assert arm.log == []


def test_gripper_without_effort_is_judged_by_its_opening() -> None:
    robot = Robot.load("six_axis")
    assert robot.gripper is not None
    robot = dataclasses.replace(robot, gripper=dataclasses.replace(robot.gripper, held_effort=0.0))
    arm = FakeArm(robot)
    assert fail(arm).code == "not_holding"  # it is open
    arm.state = GripperState(0.012, 0.0, False, True)
    assert call(arm).startswith("Let go")


@pytest.mark.parametrize("arguments", [{"x": 0.9}, {"z": 0.9}, {"x": -0.3}])
def test_out_of_reach_keeps_the_thing(so101: FakeArm, arguments: dict[str, float]) -> None:
    failure = fail(so101, **arguments)
    assert (failure.code, so101.log) == ("unreachable", [])


def test_thing_that_is_lost_on_the_way(so101: FakeArm) -> None:
    def lose(what: str) -> None:
        so101.state = GripperState(so101.gripper_of.closed, 0.0, False, True)

    so101.before = lose
    failure = fail(so101)
    assert failure.code == "not_holding"
    assert "lost on the way" in failure.message
    assert so101.log == ["move"]


def test_gripper_that_does_not_open(so101: FakeArm) -> None:
    async def gripper(position: float, max_effort: float) -> GripperState:
        return so101.state

    so101.gripper = gripper  # type: ignore[method-assign]
    failure = fail(so101)
    assert failure.code == "tool_error"
    assert "still held" in failure.message


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
def test_failed_move_says_where_the_arm_is(so101: FakeArm, nth: int) -> None:
    def trouble(what: str) -> None:
        if what == "move" and so101.log.count("move") == nth:
            raise stopped_by_something()

    so101.before = trouble
    failure = fail(so101)
    assert failure.code == "tool_error"
    assert "The arm holds still with its fingers at x=" in failure.message
    assert so101.log.count("move") == nth


def test_cancel_does_not_let_go(so101: FakeArm) -> None:
    tool = ArmPlaceObject(Ports(robot=so101.robot, arm=so101))

    async def main() -> None:
        task = asyncio.ensure_future(tool.run(dict(PLACE["so101"]), CallContext("a")))
        so101.before = lambda what: task.cancel() and None
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert so101.log == ["move"]


def test_thing_is_not_tilted(so101: FakeArm) -> None:
    """It was grasped leaning, far out; it is set down leaning as much."""
    lean = so101.chain.clip(np.radians([0, 20, 20, 25, 0]))
    so101.q = lean
    held = so101.chain.fk(lean).rotation[2, 2]
    call(so101)
    start, _ = so101.moves[2]
    assert so101.chain.fk(start).rotation[2, 2] == pytest.approx(held, abs=0.08)


def test_without_arm(so101: FakeArm) -> None:
    tool = ArmPlaceObject(Ports(robot=so101.robot))
    with pytest.raises(ToolFailure) as error:
        asyncio.run(tool.run(dict(PLACE["so101"]), CallContext("a")))
    assert error.value.code == "unavailable"
