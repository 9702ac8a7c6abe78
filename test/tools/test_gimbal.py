"""``gimbal_control`` and ``gimbal_move_relative``: limits, units, and honest answers."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest

from lerobot_tool_bridge.core.errors import LoadError, Rejection, ToolFailure
from lerobot_tool_bridge.core.schema import Schema
from lerobot_tool_bridge.core.tool import CallContext
from lerobot_tool_bridge.ports import Ports
from lerobot_tool_bridge.robot import Gimbal, Robot
from lerobot_tool_bridge.tools.gimbal_control import GimbalControl
from lerobot_tool_bridge.tools.gimbal_move_relative import GimbalMoveRelative

HEAD = Gimbal(joints=("gimbal_pan", "gimbal_tilt"), look_deg={"table": (135.0, 95.0)})


class FakeHead:
    """Stands at ``deg``; ends every move ``short`` degrees before its target in pan."""

    def __init__(self, measures: bool = True, short: float = 0.0) -> None:
        self.measures = measures
        self.short = short
        self.deg = (135.0, 135.0)
        self.durations: list[float] = []

    async def positions(self) -> tuple[float, float]:
        return math.radians(self.deg[0]), math.radians(self.deg[1])

    async def move(self, pan: float, tilt: float, duration: float) -> tuple[float, float]:
        self.deg = (math.degrees(pan) - self.short, math.degrees(tilt))
        self.durations.append(duration)
        return await self.positions()


def make(head: FakeHead | None, gimbal: Gimbal = HEAD, **settings: Any) -> GimbalControl:
    robot = Robot(name="r", description="", urdf=Path("r.urdf"), gimbal=gimbal)
    return GimbalControl(Ports(robot=robot, gimbal=head), settings)


def call(tool: GimbalControl, pan: float, tilt: float) -> str:
    arguments = {"pan": pan, "tilt": tilt}
    Schema(tool.parameters).validate(arguments)
    return asyncio.run(tool.run(arguments, CallContext("a")))


def test_answers_with_what_was_measured() -> None:
    head = FakeHead(short=0.4)
    assert call(make(head), 90, 60) == "pan 89.6°, tilt 60.0° (measured)"


def test_head_without_feedback_says_so() -> None:
    answer = call(make(FakeHead(measures=False)), 90, 60)
    assert answer == "commanded pan 90.0°, tilt 60.0°; this head does not measure where it is"


def test_blocked_head_is_a_failure_with_both_angles() -> None:
    with pytest.raises(ToolFailure, match=r"pan 70\.0°.*instead of pan 90\.0°") as error:
        call(make(FakeHead(short=20)), 90, 60)
    assert error.value.code == "tool_error"


def test_tolerance_is_a_setting() -> None:
    assert "pan 70.0°" in call(make(FakeHead(short=20), tolerance_deg=25.0), 90, 60)


@pytest.mark.parametrize("wrong", [-0.1, 270.1, 300, "90", None, True])
def test_schema_refuses_what_is_out_of_range(wrong: Any) -> None:
    head = FakeHead()
    with pytest.raises(Rejection):
        call(make(head), wrong, 90)
    assert head.durations == []


def test_refusal_has_the_range_in_the_unit_asked() -> None:
    with pytest.raises(Rejection) as error:
        call(make(FakeHead()), 300, 90)
    assert error.value.message == "pan: 300 given, 0 to 270 degrees allowed."


def test_limits_are_the_robots() -> None:
    tool = make(FakeHead(), dataclasses.replace(HEAD, pan_deg=(45.0, 225.0)))
    pan = tool.parameters["properties"]["pan"]
    assert (pan["minimum"], pan["maximum"]) == (45.0, 225.0)
    assert "degrees, 45 to 225" in pan["description"]


def test_time_follows_the_way_and_the_speed() -> None:
    head = FakeHead()
    tool = make(head, dataclasses.replace(HEAD, max_speed=1.0))
    call(tool, 45, 135)
    call(tool, 45, 135)
    far, near = head.durations
    assert far >= math.radians(90) / 1.0
    assert 0 < near < 0.5


@pytest.mark.parametrize("measures", [True, False])
def test_head_whose_place_is_unknown(measures: bool) -> None:
    """One that measures should tell; a hobby servo can't before its first command."""

    class Silent(FakeHead):
        async def positions(self) -> tuple[float, float]:
            if self.durations:
                return await super().positions()
            raise ToolFailure("unavailable", "The head reports no position.")

    head = Silent(measures)
    if measures:
        with pytest.raises(ToolFailure, match="reports no position"):
            call(make(head), 90, 90)
        assert head.durations == []
    else:
        assert call(make(head), 90, 90).startswith("commanded pan 90.0°")
        assert head.durations[0] >= math.radians(270) / HEAD.max_speed


def test_description_says_which_way_is_which() -> None:
    text = make(None).description
    for words in ("pan 135 looks straight ahead", "left", "tilt 135", "up", "table = pan 135"):
        assert words in text


def test_robot_without_head() -> None:
    with pytest.raises(ToolFailure, match="no pan/tilt head"):
        call(make(None), 90, 90)


def test_offline_checker_needs_no_robot() -> None:
    assert GimbalControl(Ports()).parameters["properties"]["tilt"]["maximum"] == 270.0


# --- gimbal_move_relative --------------------------------------------------------------------


def relative(head: FakeHead | None, **settings: Any) -> GimbalMoveRelative:
    robot = Robot(name="r", description="", urdf=Path("r.urdf"), gimbal=HEAD)
    return GimbalMoveRelative(Ports(robot=robot, gimbal=head), settings)


def by(tool: GimbalMoveRelative, pan: float, tilt: float) -> str:
    arguments = {"pan_delta": pan, "tilt_delta": tilt}
    Schema(tool.parameters).validate(arguments)
    return asyncio.run(tool.run(arguments, CallContext("a")))


def test_turns_on_from_where_it_is_and_says_how_far() -> None:
    head = FakeHead(short=0.4)
    answer = by(relative(head), 30, -20.5)
    assert answer == "moved pan by +29.6° to 164.6°, tilt by -20.5° to 114.5° (measured)"
    assert by(relative(head), 0, 0).startswith("moved pan by -0.4° to 164.2°, tilt by +0.0°")


def test_stops_at_its_limits_and_says_so() -> None:
    head = FakeHead()
    answer = by(relative(head), 200, -140)
    assert head.deg == pytest.approx((270.0, 0.0))
    assert answer == (
        "moved pan by +135.0° to 270.0°, tilt by -135.0° to 0.0° (measured); pan stops at its "
        "limit 270°, 65.0° short of what was asked; tilt stops at its limit 0°, 5.0° short of "
        "what was asked"
    )


def test_a_sites_limits_hold_for_relative_moves_too() -> None:
    head = FakeHead()
    tool = relative(head, pan={"minimum": 45, "maximum": 225})
    assert "pan stops at its limit 225°" in by(tool, 120, 0)
    assert "pan 45 to 225" in tool.description
    head.deg = (250.0, 135.0)  # turned there by hand: not further out, and back is allowed
    assert "pan by +0.0° to 250.0°" in by(tool, 10, 0)
    assert by(tool, -10, 0).startswith("moved pan by -10.0° to 240.0°")
    for wrong in ({"min": 3}, {"minimum": "3"}, [1, 2], {"minimum": 280}):
        with pytest.raises(LoadError):
            relative(head, pan=wrong)


def test_relative_needs_to_know_where_the_head_is() -> None:
    class Silent(FakeHead):
        async def positions(self) -> tuple[float, float]:
            raise ToolFailure("unavailable", "The head reports no position.")

    for measures, says in ((True, "reports no position"), (False, "Use gimbal_control first")):
        head = Silent(measures)
        with pytest.raises(ToolFailure, match=says):
            by(relative(head), 10, 0)
        assert head.durations == []
    assert by(relative(FakeHead(measures=False)), 10, 0) == (
        "commanded pan by +10.0° to 145.0°, tilt by +0.0° to 135.0°; this head does not measure "
        "where it is"
    )
    with pytest.raises(ToolFailure, match="no pan/tilt head"):
        by(relative(None), 1, 1)
