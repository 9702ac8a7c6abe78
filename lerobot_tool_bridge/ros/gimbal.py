"""The pan/tilt head, as two joints under a trajectory controller."""

from __future__ import annotations

import math
import time

from lerobot_tool_bridge.core.errors import ToolFailure
from lerobot_tool_bridge.ports import Waypoint
from lerobot_tool_bridge.robot import Gimbal
from lerobot_tool_bridge.ros.action import Action
from lerobot_tool_bridge.ros.joints import FRESH, JointStates
from lerobot_tool_bridge.ros.link import Link
from lerobot_tool_bridge.ros.trajectory import Trajectory

_NEAR = math.radians(1.0)


class RosGimbal:
    """``GimbalPort`` over FollowJointTrajectory and joint states.

    Args:
        link: Node and loop.
        gimbal: Its joints, and whether they are measured.
        states: Where its joints are measured, or told as commanded.
    """

    def __init__(self, link: Link, gimbal: Gimbal, states: JointStates) -> None:
        self._gimbal = gimbal
        self._states = states
        self._commanded: tuple[float, float] | None = None
        self._trajectory = Trajectory(link, gimbal.action, gimbal.joints, states, "the head")

    @property
    def actions(self) -> list[Action]:
        """What a stop has to reach."""
        return [self._trajectory.action]

    @property
    def measures(self) -> bool:
        """See ``GimbalPort``."""
        return self._gimbal.measures

    async def positions(self) -> tuple[float, float]:
        """See ``GimbalPort``."""
        if not self.measures and self._states.age(self._gimbal.joints) > FRESH:
            if self._commanded is not None:
                return self._commanded
            # waiting would not help: such a driver tells nothing before its first move
            raise ToolFailure(
                "unavailable", "Where the head looks is known only after its first move."
            )
        pan, tilt = await self._states.read(self._gimbal.joints)
        return pan.position, tilt.position

    async def move(self, pan: float, tilt: float, duration: float) -> tuple[float, float]:
        """See ``GimbalPort``."""
        target = (pan, tilt)
        await self._trajectory.run([Waypoint(target, duration)])
        self._commanded = target
        if not self.measures:
            return target
        measured = await self._states.read(self._gimbal.joints)
        if any(abs(j.position - t) > _NEAR for j, t in zip(measured, target, strict=True)):
            # from before the end, maybe
            measured = await self._states.read(self._gimbal.joints, since=time.monotonic())
        return measured[0].position, measured[1].position
