"""FollowJointTrajectory as arm and head need it: joints in, what was measured out."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from builtin_interfaces.msg import Duration
from control_msgs.action import FollowJointTrajectory
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from lerobot_tool_bridge.core.errors import ToolFailure
from lerobot_tool_bridge.ports import Waypoint
from lerobot_tool_bridge.ros.action import Action, Ended
from lerobot_tool_bridge.ros.joints import JointStates
from lerobot_tool_bridge.ros.link import Link

_CODES = {
    FollowJointTrajectory.Result.INVALID_GOAL: "the motion is not valid for it",
    FollowJointTrajectory.Result.INVALID_JOINTS: "the joints' names are not those it drives",
    FollowJointTrajectory.Result.OLD_HEADER_TIMESTAMP: "the motion came too late",
    FollowJointTrajectory.Result.PATH_TOLERANCE_VIOLATED: "a joint strayed from its path",
    FollowJointTrajectory.Result.GOAL_TOLERANCE_VIOLATED: "a joint did not get to its target",
}


class Trajectory:
    """One trajectory controller.

    Args:
        link: Node and loop.
        action: Name of its action.
        joints: In the order of every waypoint.
        states: Where the joints are measured.
        what: ``the arm``, for sentences.
        slides: The joints that are prismatic, told in millimetres.
    """

    def __init__(
        self,
        link: Link,
        action: str,
        joints: Sequence[str],
        states: JointStates,
        what: str,
        slides: Sequence[str] = (),
    ) -> None:
        self._joints = list(joints)
        self._states = states
        self._slides = set(slides)
        self.action = Action(link, FollowJointTrajectory, action, what)

    async def run(self, path: Sequence[Waypoint]) -> None:
        """Runs a trajectory to its end.

        Args:
            path: All of it, the start included where the driver needs one.

        Raises:
            ToolFailure: It did not get there; says where each joint is instead.
        """
        goal = FollowJointTrajectory.Goal(
            trajectory=JointTrajectory(
                joint_names=self._joints,
                points=[
                    JointTrajectoryPoint(
                        positions=list(map(float, w.positions)), time_from_start=_duration(w.time)
                    )
                    for w in path
                ],
            )
        )
        what = self.action.what
        ended = await self._states.guard(self._joints, self.action.run(goal), what)
        if ended.cancelled:
            raise ToolFailure(
                "preempted",
                f"{what.capitalize()} was stopped by another program or a newer goal.",
            )
        if not ended.succeeded or ended.result.error_code != ended.result.SUCCESSFUL:
            raise ToolFailure("tool_error", await self._explain(ended, path[-1].positions))

    async def _explain(self, ended: Ended, wanted: Sequence[float]) -> str:
        reason = _CODES.get(ended.result.error_code, "")
        text = f"The driver of {self.action.what} gave up" + (f": {reason}." if reason else ".")
        if ended.result.error_string:
            text += f" It says: {ended.result.error_string[:200].rstrip('.')}."
        try:
            measured = await self._states.read(self._joints, since=time.monotonic())
        except ToolFailure:
            return f"{text} Where the joints are is not known: no fresh joint state."
        off = [
            f"{name} stopped at {self._say(name, joint.position)} instead of "
            f"{self._say(name, goal)}"
            for name, joint, goal in zip(self._joints, measured, wanted, strict=True)
            if self._differs(name, joint.position, goal)
        ]
        if not off:
            return f"{text} Every joint is within 1° of its target."
        return f"{text} {'; '.join(off)}. Something may be in the way."

    def _differs(self, name: str, a: float, b: float) -> bool:
        if name in self._slides:
            return abs(a - b) > 0.001
        return abs(math.remainder(a - b, math.tau)) > math.radians(1.0)

    def _say(self, name: str, position: float) -> str:
        if name in self._slides:
            return f"{position * 1000:.1f} mm"
        return f"{math.degrees(position):.1f}°"


def _duration(seconds: float) -> Duration:
    whole = math.floor(seconds)
    nanoseconds = round((seconds - whole) * 1e9)
    if nanoseconds == 1_000_000_000:
        whole, nanoseconds = whole + 1, 0
    return Duration(sec=whole, nanosec=nanoseconds)
