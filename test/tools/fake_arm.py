"""An arm port without physics: it goes where it is told, and grips what a test puts there."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence

import numpy as np

from lerobot_tool_bridge.core.errors import ToolFailure
from lerobot_tool_bridge.kinematics import path as paths
from lerobot_tool_bridge.kinematics.chain import Chain
from lerobot_tool_bridge.ports import GripperState, Waypoint
from lerobot_tool_bridge.robot import Robot


class FakeArm:
    """Implements ``ArmPort``.

    Attributes:
        log: ``open``, ``close`` and ``move``, in their order.
        moves: For each move its start and its path.
        q: Where the arm is.
        closed: What closing the gripper measures; by default it shuts on nothing.
        before: Called before each command with its name; may raise, or change things.
        off: Added to where each move ends.
    """

    def __init__(self, robot: Robot) -> None:
        assert robot.arm is not None
        assert robot.gripper is not None
        self.robot = robot
        self.gripper_of = robot.gripper
        self.chain = Chain.of(robot)
        self.q = np.array(robot.arm_pose("home"))
        self.state = GripperState(robot.gripper.open, 0.0, False, True)
        self.closed = GripperState(robot.gripper.closed, 0.0, False, True)
        self.log: list[str] = []
        self.moves: list[tuple[np.ndarray, list[Waypoint]]] = []
        self.before: Callable[[str], None] = lambda what: None
        self.off = np.zeros(len(self.q))

    async def positions(self) -> tuple[float, ...]:
        return tuple(map(float, self.q))

    async def move(self, path: Sequence[Waypoint]) -> tuple[float, ...]:
        self._do("move")
        assert path, "the caller leaves empty moves out"
        self.moves.append((self.q.copy(), list(path)))
        await asyncio.sleep(0)
        self.q = np.array(path[-1].positions) + self.off
        return await self.positions()

    async def gripper_state(self) -> GripperState:
        return self.state

    async def gripper(self, position: float, max_effort: float) -> GripperState:
        opens = position == self.gripper_of.open
        self._do("open" if opens else "close")
        await asyncio.sleep(0)
        self.state = GripperState(position, 0.0, False, True) if opens else self.closed
        return self.state

    def _do(self, what: str) -> None:
        self.log.append(what)
        self.before(what)

    # --- for tests --------------------------------------------------------------------------

    def holding(self, width: float) -> GripperState:
        """What is measured with a thing of that width between the fingers."""
        positions, widths = zip(*self.gripper_of.widths, strict=True)
        effort = max(1.0, 2 * self.gripper_of.held_effort)
        return GripperState(float(np.interp(width, widths, positions)), effort, True, False)

    @property
    def tool(self) -> np.ndarray:
        """The tool point now."""
        return np.asarray(self.chain.fk(self.q).position)

    @property
    def is_home(self) -> bool:
        return bool(np.abs(self.q - self.robot.arm_pose("home")).max() < 1e-6)

    def check_moves(self) -> None:
        """Every move kept the speeds and the floor, and began where the arm was."""
        assert self.robot.arm is not None
        for start, path in self.moves:
            tool, joint = paths.speeds(self.chain, start, path)
            assert tool <= self.robot.arm.max_tool_speed
            assert joint <= self.robot.arm.max_joint_speed
            q = np.array([w.positions for w in path])
            assert self.chain.fk(q).position[:, 2].min() > self.robot.grasp.floor - 0.0015
            assert np.abs(q[0] - start).max() < 0.05


def stopped_by_something(where: str = "") -> ToolFailure:
    """What a port raises when its driver gave up."""
    return ToolFailure(
        "tool_error",
        f"The driver of the arm gave up{where}. joint stopped at 1.0° instead of 2.0°.",
    )


def metres(text: str, name: str) -> float:
    """A coordinate out of a result: ``x=0.201``."""
    start = text.index(f"{name}=") + len(name) + 1
    return float(text[start : text.index(" ", start)]) if text else math.nan
