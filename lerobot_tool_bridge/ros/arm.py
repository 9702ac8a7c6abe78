"""The arm and its gripper, by the interfaces of ros2_control."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from control_msgs.action import GripperCommand, ParallelGripperCommand
from sensor_msgs.msg import JointState

from lerobot_tool_bridge.core.errors import ToolFailure
from lerobot_tool_bridge.kinematics.chain import Chain
from lerobot_tool_bridge.ports import GripperState, Waypoint
from lerobot_tool_bridge.robot import Gripper, Robot
from lerobot_tool_bridge.ros.action import Action
from lerobot_tool_bridge.ros.joints import JointStates
from lerobot_tool_bridge.ros.link import Link
from lerobot_tool_bridge.ros.trajectory import Trajectory


class RosArm:
    """``ArmPort`` over FollowJointTrajectory, a gripper action and joint states.

    Args:
        link: Node and loop.
        robot: Has an arm.
        states: Where its joints are measured.

    Raises:
        LoadError: The URDF does not have the arm.
    """

    def __init__(self, link: Link, robot: Robot, states: JointStates) -> None:
        assert robot.arm is not None
        self._arm = robot.arm
        self._gripper = robot.gripper
        self._chain = Chain.of(robot)
        self._states = states
        # joints that have more than one position for the same angle
        self._turns = bool((self._chain.upper - self._chain.lower >= math.tau).any())
        slides = [j.name for j in self._chain.joints if j.kind == "prismatic"]
        self._trajectory = Trajectory(
            link, robot.arm.action, robot.arm.joints, states, "the arm", slides
        )
        self._hand = _hand(link, robot.gripper) if robot.gripper is not None else None

    @property
    def actions(self) -> list[Action]:
        """What a stop has to reach."""
        return [self._trajectory.action, *([self._hand] if self._hand is not None else [])]

    async def positions(self) -> tuple[float, ...]:
        """See ``ArmPort``."""
        return tuple(j.position for j in await self._states.read(self._arm.joints))

    async def move(self, path: Sequence[Waypoint]) -> tuple[float, ...]:
        """See ``ArmPort``."""
        if not path:
            return await self.positions()
        start = await self.positions()
        await self._trajectory.run(self._from(start, path))
        ended = await self._states.read(self._arm.joints, since=time.monotonic())
        return tuple(j.position for j in ended)

    def _from(self, start: tuple[float, ...], path: Sequence[Waypoint]) -> list[Waypoint]:
        """The path from where the arm is when it is sent.

        Joints that turn without end go the short way. Where the arm is further from the path's
        first point than the planner knew (somebody moved it), the way there gets the time that it
        takes.
        """
        way, before = [Waypoint(start, 0.0)], start
        for waypoint in path:
            before = self._nearest(waypoint.positions, before)
            way.append(Waypoint(before, waypoint.time))
        distance = max(abs(a - b) for a, b in zip(way[1].positions, start, strict=True))
        delay = max(0.0, distance / self._arm.max_joint_speed - way[1].time)
        return [way[0], *(Waypoint(w.positions, w.time + delay) for w in way[1:])]

    def _nearest(self, goal: tuple[float, ...], to: tuple[float, ...]) -> tuple[float, ...]:
        if not self._turns:
            return tuple(goal)
        return tuple(float(v) for v in self._chain.nearest(goal, to))

    async def gripper_state(self) -> GripperState:
        """See ``ArmPort``."""
        gripper, _ = self._has_gripper()
        (joint,) = await self._states.read([gripper.joint])
        return GripperState(joint.position, joint.effort, stalled=False, reached_goal=False)

    async def gripper(self, position: float, max_effort: float) -> GripperState:
        """See ``ArmPort``."""
        gripper, hand = self._has_gripper()
        command = hand.run(_gripper_goal(gripper, position, max_effort))
        ended = await self._states.guard([gripper.joint], command, hand.what)
        state = _gripper_state(gripper, ended.result)
        if ended.cancelled:
            raise ToolFailure(
                "preempted", "The gripper was stopped by another program or a newer goal."
            )
        # closing on a thing is a stall, and some controllers call that aborted
        if not ended.succeeded and not state.stalled:
            raise ToolFailure(
                "tool_error",
                "The gripper's driver gave up: it is at "
                f"{_say(gripper, await self._measured(gripper, state))} instead of "
                f"{_say(gripper, position)}.",
            )
        return state

    async def _measured(self, gripper: Gripper, state: GripperState) -> float:
        try:
            (joint,) = await self._states.read([gripper.joint], since=time.monotonic())
        except ToolFailure:
            return state.position
        return joint.position

    def _has_gripper(self) -> tuple[Gripper, Action]:
        if self._gripper is None or self._hand is None:
            raise ToolFailure("unavailable", "This robot has no gripper.")
        return self._gripper, self._hand


def _hand(link: Link, gripper: Gripper) -> Action:
    kind = ParallelGripperCommand if _parallel(gripper) else GripperCommand
    return Action(link, kind, gripper.action, "the gripper")


def _parallel(gripper: Gripper) -> bool:
    return gripper.type == "parallel_gripper_command"


def _gripper_goal(gripper: Gripper, position: float, max_effort: float) -> Any:
    if _parallel(gripper):
        command = JointState(name=[gripper.joint], position=[float(position)])
        if max_effort > 0:
            command.effort = [float(max_effort)]
        return ParallelGripperCommand.Goal(command=command)
    goal = GripperCommand.Goal()
    goal.command.position, goal.command.max_effort = float(position), float(max_effort)
    return goal


def _gripper_state(gripper: Gripper, result: Any) -> GripperState:
    if not _parallel(gripper):
        return GripperState(result.position, result.effort, result.stalled, result.reached_goal)
    state = result.state
    at = list(state.name).index(gripper.joint) if gripper.joint in state.name else 0
    return GripperState(
        state.position[at] if at < len(state.position) else math.nan,
        state.effort[at] if at < len(state.effort) else 0.0,
        result.stalled,
        result.reached_goal,
    )


def _say(gripper: Gripper, position: float) -> str:
    return f"{position * 1000:.1f} mm" if gripper.unit == "m" else f"{math.degrees(position):.1f}°"
