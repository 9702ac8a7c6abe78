"""Where a robot's joints are when a picture is taken: what a place in it is found with later."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from lerobot_tool_bridge.core.errors import ToolFailure
from lerobot_tool_bridge.core.within import within
from lerobot_tool_bridge.ports import Ports

_LIMIT = 0.1  # seconds: a picture does not wait for a part whose driver is not there
_STILL = math.radians(0.5)


class Stand(NamedTuple):
    """How a robot stands.

    Attributes:
        positions: By joint, of the parts that answered; radians, the gripper's in its own unit. A
            head that measures nothing counts where it was commanded to.
        effort: Of the gripper; None where it did not answer.
    """

    positions: dict[str, float]
    effort: float | None = None


async def stand(ports: Ports) -> Stand:
    """How the robot stands now."""
    robot = ports.robot
    if robot is None:
        return Stand({})
    positions: dict[str, float] = {}
    effort: float | None = None
    head, arm, hand = await asyncio.gather(
        _read(ports.gimbal and ports.gimbal.positions()),
        _read(ports.arm and ports.arm.positions()),
        _read(ports.arm and robot.gripper and ports.arm.gripper_state()),
    )
    if robot.gimbal is not None and head is not None:
        positions.update(zip(robot.gimbal.joints, head, strict=True))
    if robot.arm is not None and arm is not None:
        positions.update(zip(robot.arm.joints, arm, strict=True))
    if robot.gripper is not None and hand is not None and math.isfinite(hand.position):
        positions[robot.gripper.joint] = hand.position
        effort = hand.effort
    return Stand(positions, effort)


def moving(before: Mapping[str, float], after: Mapping[str, float]) -> list[str]:
    """The joints that were in motion between two looks at them."""
    return sorted(n for n in after if n in before and abs(after[n] - before[n]) > _STILL)


async def _read(answer: Any) -> Any:
    if answer is None:
        return None
    try:
        return await within(_LIMIT, answer)
    except (ToolFailure, TimeoutError):
        return None
