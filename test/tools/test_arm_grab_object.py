"""``arm_grab_object`` on a fake arm: what it does, and what it says about it."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import numpy as np
import pytest
from fake_arm import FakeArm, metres, stopped_by_something

from lerobot_tool_bridge.core.errors import CallError, LoadError, Rejection, ToolFailure
from lerobot_tool_bridge.core.schema import Schema
from lerobot_tool_bridge.core.tool import CallContext
from lerobot_tool_bridge.kinematics import path as paths
from lerobot_tool_bridge.ports import GripperState, Ports
from lerobot_tool_bridge.robot import Robot
from lerobot_tool_bridge.tools.arm_grab_object import ArmGrabObject

PLACE = {"so101": {"x": 0.2, "y": 0.0, "z": 0.02}, "six_axis": {"x": 0.35, "y": 0.1, "z": 0.03}}


@pytest.fixture(params=["so101", "six_axis"])
def arm(request: pytest.FixtureRequest) -> FakeArm:
    return FakeArm(Robot.load(request.param))


@pytest.fixture
def so101() -> FakeArm:
    return FakeArm(Robot.load("so101"))


def make(arm: FakeArm, **settings: Any) -> ArmGrabObject:
    return ArmGrabObject(Ports(robot=arm.robot, arm=arm), settings)


def call(arm: FakeArm, feedback: list[str] | None = None, **arguments: Any) -> str:
    tool = make(arm)
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


def test_grasps_and_lifts(arm: FakeArm) -> None:
    arm.closed = arm.holding(0.024)
    feedback: list[str] = []
    result = call(arm, feedback)
    assert arm.log == ["open", "move", "move", "close", "move"]
    arm.check_moves()
    assert arm.tool[2] > PLACE[arm.robot.name]["z"] + 0.9 * arm.robot.grasp.hover
    assert result.startswith("Grasped at x=")
    assert "the fingers are 24 mm apart" in result
    for name in "xyz":
        assert metres(result, name) == pytest.approx(PLACE[arm.robot.name][name], abs=0.02)
    assert [f.split()[0] for f in feedback] == [
        "Opening",
        "Moving",
        "Approaching",
        "Closing",
        "Holding",
    ]


def test_result_is_what_was_measured_not_what_was_asked(so101: FakeArm) -> None:
    so101.closed = so101.holding(0.024)
    so101.off = np.array([math.radians(1.0), 0, 0, 0, 0])
    assert abs(metres(call(so101), "y")) > 0.0015


@pytest.mark.parametrize(
    ("state", "held"),
    [
        (GripperState(0.35, 0.8, stalled=True, reached_goal=False), True),
        (GripperState(0.35, 0.8, stalled=False, reached_goal=True), True),
        (GripperState(0.0, 0.1, stalled=False, reached_goal=True), False),
        (GripperState(0.35, 0.0, stalled=False, reached_goal=True), False),
        (GripperState(-0.15, 2.9, stalled=True, reached_goal=False), False),
    ],
)
def test_opening_and_effort_decide_not_the_flags(
    so101: FakeArm, state: GripperState, held: bool
) -> None:
    so101.closed = state
    if held:
        assert "38 mm apart" in call(so101)
        assert so101.log[-1] == "move"
        return
    failure = fail(so101)
    assert failure.code == "nothing_grasped"
    assert isinstance(failure, ToolFailure)
    assert "mm with an effort of" in failure.message


def test_nothing_grasped_ends_open_and_at_home(arm: FakeArm) -> None:
    failure = fail(arm)
    assert failure.code == "nothing_grasped"
    assert arm.log == ["open", "move", "move", "close", "open", "move", "move"]
    assert arm.is_home
    arm.check_moves()
    assert arm.state.position == arm.gripper_of.open
    assert "back at its home pose" in failure.message
    for name in "xyz":  # where the object should have been, not one finger
        at = metres(failure.message, name)
        assert at == pytest.approx(PLACE[arm.robot.name][name], abs=0.001)


def test_thing_that_slips_out_while_it_is_lifted(arm: FakeArm) -> None:
    arm.closed = arm.holding(0.024)

    def slip(what: str) -> None:
        if what == "move" and arm.log[-2:] == ["close", "move"]:
            arm.state = GripperState(arm.gripper_of.closed, 0.0, False, True)

    arm.before = slip
    failure = fail(arm)
    assert failure.code == "nothing_grasped"
    assert "slipped out" in failure.message
    assert arm.is_home


def test_refuses_while_something_is_held(arm: FakeArm) -> None:
    """Opening would drop it."""
    arm.state = arm.holding(0.03)
    failure = fail(arm)
    assert (failure.code, arm.log) == ("already_holding", [])
    assert "30 mm" in failure.message
    assert "arm_place_object" in failure.message


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"x": 0.9}, "reaches from 0.14 to 0.38 m"),
        ({"x": 0.01, "y": 0.02}, "reaches from"),
        ({"z": -0.3}, "z should be 0.00 to 0.25 m"),
        ({"x": -0.2}, "from -90° to 90°"),
        ({"x": 200, "y": 0, "z": 20}, "x, y and z are metres"),
    ],
)
def test_out_of_reach_is_refused_before_anything_moves(
    so101: FakeArm, arguments: dict[str, float], says: str
) -> None:
    failure = fail(so101, **arguments)
    assert isinstance(failure, Rejection)
    assert failure.code == "unreachable"
    assert says in failure.message
    assert so101.log == []


@pytest.mark.parametrize(
    "wrong",
    [{"x": "0.2"}, {"z": None}, {"width": 0}, {"width": 0.2}, {"yaw": 3}, {"yaw_deg": 999}],
)
def test_schema_refuses(so101: FakeArm, wrong: dict[str, Any]) -> None:
    failure = fail(so101, **wrong)
    assert failure.code == "invalid_arguments"
    assert so101.log == []


def test_yaw_turns_the_fingers(so101: FakeArm) -> None:
    so101.closed = so101.holding(0.024)
    for yaw in (0.0, 30.0, -60.0):
        so101.state = GripperState(so101.gripper_of.open, 0.0, False, True)
        call(so101, yaw_deg=yaw, width=0.03)
        closing = so101.chain.fk(so101.q).rotation[:2, 1]
        line = [math.cos(math.radians(yaw)), math.sin(math.radians(yaw))]
        assert abs(closing @ line) > 0.999


def test_fixed_finger_stays_clear_of_the_thing(so101: FakeArm) -> None:
    so101.closed = so101.holding(0.024)
    call(so101, yaw_deg=90.0, z=0.0125)
    start, path = so101.moves[1]
    end = so101.chain.fk(path[-1].positions)
    aside = float((np.array([0.2, 0.0, 0.0125]) - end.position) @ end.rotation[:, 1])
    assert aside == pytest.approx(0.0125 + so101.robot.grasp.clearance, abs=0.001)
    assert start.shape == (5,)


def test_gripper_that_does_not_open(so101: FakeArm) -> None:
    async def gripper(position: float, max_effort: float) -> GripperState:
        so101.log.append("open")
        return GripperState(0.0, 0.5, True, False)

    so101.gripper = gripper  # type: ignore[method-assign]
    failure = fail(so101)
    assert failure.code == "tool_error"
    assert "opened to 15 mm only" in failure.message
    assert "The arm holds still" in failure.message
    assert so101.log == ["open"]


@pytest.mark.parametrize(
    ("nth", "doing"), [(1, "moving over the object"), (3, "lifting the object")]
)
def test_failed_move_says_where_the_arm_is(so101: FakeArm, nth: int, doing: str) -> None:
    so101.closed = so101.holding(0.024)

    def trouble(what: str) -> None:
        if so101.log.count("move") == nth and what == "move":
            raise stopped_by_something()

    so101.before = trouble
    failure = fail(so101)
    assert failure.code == "tool_error"
    assert f"Failed while {doing}" in failure.message
    assert "joint stopped at 1.0° instead of 2.0°" in failure.message
    assert "The arm holds still with its fingers at x=" in failure.message
    assert so101.log.count("move") == nth


def test_goes_back_up_when_stopped_on_the_way_down(so101: FakeArm) -> None:
    def trouble(what: str) -> None:
        if so101.log.count("move") == 2 and what == "move":
            raise stopped_by_something()

    so101.before = trouble
    failure = fail(so101)
    assert failure.code == "tool_error"
    assert "The arm went back up" in failure.message
    assert so101.log == ["open", "move", "move", "move"]


def test_fingers_that_land_on_the_thing(so101: FakeArm) -> None:
    """A driver with wide tolerances may call that a success."""

    def block(what: str) -> None:
        so101.off = np.array([0, -0.1, 0, 0, 0]) if so101.log.count("move") == 2 else np.zeros(5)

    so101.before = block
    failure = fail(so101)
    assert failure.code == "tool_error"
    assert "The fingers stopped around" in failure.message
    assert "mm from where they should" in failure.message
    assert "close" not in so101.log


@pytest.mark.parametrize("code", ["unavailable", "goal_rejected", "cancel_unconfirmed"])
def test_other_failures_keep_their_code(so101: FakeArm, code: str) -> None:
    def trouble(what: str) -> None:
        if what == "close":
            raise ToolFailure(code, "No driver.")

    so101.before = trouble
    failure = fail(so101)
    assert failure.code == code
    assert so101.log[-1] == "close"


@pytest.mark.parametrize("at", range(1, 6))
def test_cancel_ends_it_without_another_command(so101: FakeArm, at: int) -> None:
    so101.closed = so101.holding(0.024)

    def cancel(what: str) -> None:
        if len(so101.log) == at:
            task.cancel()

    so101.before = cancel
    tool = make(so101)

    async def main() -> None:
        nonlocal task
        task = asyncio.ensure_future(tool.run({"x": 0.2, "y": 0.0, "z": 0.02}, CallContext("a")))
        with pytest.raises(asyncio.CancelledError):
            await task

    task: Any = None
    asyncio.run(main())
    assert len(so101.log) == at


def test_starts_from_where_the_arm_is_when_it_moves(so101: FakeArm) -> None:
    """Moved by hand while the gripper opened: no jump."""
    so101.closed = so101.holding(0.024)

    def by_hand(what: str) -> None:
        if what == "open":
            so101.q = so101.q + np.array([0, 0, 0, -0.9, 0])

    so101.before = by_hand
    call(so101)
    so101.check_moves()


def test_description_has_limits_and_units(arm: FakeArm) -> None:
    tool = make(arm)
    radius, height = arm.robot.arm.workspace.radius, arm.robot.arm.workspace.height  # type: ignore[union-attr]
    assert f"{radius[0]:g} to {radius[1]:g} m from the z axis" in tool.description
    assert f"z {height[0]:g} to {height[1]:g} m" in tool.description
    assert "centre" in tool.description
    for name in "xyz":
        assert "etres" in tool.parameters["properties"][name]["description"]
    assert tool.parameters["required"] == ["x", "y", "z"]


def test_without_a_robot_it_still_has_a_schema() -> None:
    """As the offline checker uses it."""
    tool = ArmGrabObject(Ports())
    Schema(tool.parameters).validate({"x": 0.2, "y": 0, "z": 0.02})
    tool.check({"x": 0.2, "y": 0, "z": 0.02})
    with pytest.raises(ToolFailure, match="no arm"):
        asyncio.run(tool.run({"x": 0.2, "y": 0, "z": 0.02}, CallContext("a")))


def test_site_may_narrow_workspace_and_speed(so101: FakeArm) -> None:
    so101.closed = so101.holding(0.024)
    tool = make(so101, workspace={"radius": [0.15, 0.25]}, max_tool_speed=0.1)
    with pytest.raises(Rejection, match=r"0\.15 to 0\.25 m"):
        tool.check({"x": 0.3, "y": 0.0, "z": 0.02})
    asyncio.run(tool.run({"x": 0.2, "y": 0.0, "z": 0.02}, CallContext("a")))
    assert max(paths.speeds(so101.chain, s, p)[0] for s, p in so101.moves) <= 0.1


@pytest.mark.parametrize(
    "settings",
    [
        {"max_tool_speed": "fast"},
        {"max_tool_speed": -1},
        {"workspace": 3},
        {"workspace": {"radius": [0.1]}},
        {"workspace": {"radius": [0.5, 0.6]}},
        {"workspace": {"colour": [0, 1]}},
    ],
)
def test_wrong_settings_are_load_errors(so101: FakeArm, settings: dict[str, Any]) -> None:
    with pytest.raises(LoadError):
        make(so101, **settings)
