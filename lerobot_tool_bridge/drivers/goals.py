"""FollowJointTrajectory goals as the drivers' control takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rclpy.clock import Clock
from rclpy.duration import Duration
from rclpy.time import Time

from lerobot_tool_bridge.drivers.arm.control import (
    Code,
    GoalError,
    Joint,
    Point,
    Tolerances,
    order_joints,
)


def points(trajectory: Any, joints: Sequence[Joint]) -> list[Point]:
    """The points of a trajectory_msgs/JointTrajectory, in the order of the joints.

    Raises:
        GoalError: Its joints do not fit.
    """
    order = order_joints(joints, list(trajectory.joint_names))
    return [
        Point(
            Duration.from_msg(p.time_from_start).nanoseconds / 1e9,
            *(
                [values[i] for i in order] if len(values) == len(order) else values
                for values in (p.positions, p.velocities, p.accelerations)
            ),
        )
        for p in trajectory.points
    ]


def tolerances(
    request: Any, joints: Sequence[Joint], path: float, goal: float, goal_time: float
) -> Tolerances:
    """A goal's tolerances: its own, else the defaults; 0 as ``path`` is no limit.

    Raises:
        GoalError: One is for an unknown joint.
    """
    seconds = Duration.from_msg(request.goal_time_tolerance).nanoseconds / 1e9
    return Tolerances(
        _by_joint(request.path_tolerance, joints, path or None),
        _by_joint(request.goal_tolerance, joints, goal),
        None if seconds < 0.0 else seconds or goal_time,
    )


def delay(stamp: Any, clock: Clock, duration: float) -> float:
    """Seconds until a trajectory with a start time begins; it begins now if that is over.

    Raises:
        GoalError: All of it would be over.
    """
    if stamp.sec == 0 and stamp.nanosec == 0:
        return 0.0
    start = Time.from_msg(stamp, clock_type=clock.clock_type)
    seconds = float((start - clock.now()).nanoseconds) / 1e9
    if seconds < -max(duration, 1.0):
        raise GoalError(
            Code.OLD_HEADER_TIMESTAMP,
            f"The trajectory's stamp is {-seconds:.1f} s old, and all of it would be over. "
            "Leave the stamp 0 to start at once.",
        )
    return max(0.0, seconds)


def _by_joint(
    given: Sequence[Any], joints: Sequence[Joint], default: float | None
) -> tuple[float | None, ...]:
    names = [j.name for j in joints]
    for tolerance in given:
        if tolerance.name not in names:
            raise GoalError(
                Code.INVALID_JOINTS,
                f"A tolerance is for {tolerance.name!r}, which is no joint here "
                f"({', '.join(names)}).",
            )
    own = {t.name: None if t.position < 0 else t.position or default for t in given}
    return tuple(own.get(name, default) for name in names)
