"""What the arm's joints do from one period to the next; knows neither ROS nor servos.

Times are those of a steady clock, positions radians (or metres) in the order of the joints.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, IntEnum

import numpy as np

from lerobot_tool_bridge.core.errors import BridgeError

POSITION_SLACK = 0.01
"""How far outside its limits a joint may be asked to go: what rounding to degrees makes."""
SPEED_SLACK = 1.02
"""How much over its speed limit a joint may be asked to go; what it does stays at the limit."""
SETTLED_SPEED = 0.15
"""A joint that is slower than this has arrived, rad/s: two steps of what the servo measures."""

REST_TIME = 0.1
"""Seconds without moving after which a gripper has arrived, and what it measures holds."""


class Code(IntEnum):
    """Error codes of control_msgs/action/FollowJointTrajectory."""

    SUCCESSFUL = 0
    INVALID_GOAL = -1
    INVALID_JOINTS = -2
    OLD_HEADER_TIMESTAMP = -3
    PATH_TOLERANCE_VIOLATED = -4
    GOAL_TOLERANCE_VIOLATED = -5


class GoalError(BridgeError):
    """A goal that can't be run: a code and a sentence."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


class Status(Enum):
    """How a goal ended."""

    SUCCEEDED = "succeeded"
    ABORTED = "aborted"
    CANCELED = "canceled"


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a goal: how, the code, and a sentence."""

    status: Status
    code: Code
    text: str


@dataclass(frozen=True, slots=True)
class Joint:
    """One joint and its limits.

    Attributes:
        name: As in the URDF.
        low, high: Position limits.
        speed: Speed limit.
    """

    name: str
    low: float
    high: float
    speed: float


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a trajectory; empty velocities or accelerations were not given."""

    time: float
    positions: Sequence[float]
    velocities: Sequence[float] = ()
    accelerations: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Tolerances:
    """How far off the joints may be; None for any distance.

    Attributes:
        path: On the way.
        goal: At the end.
        goal_time: Seconds that the joints may take to arrive, after the trajectory's end.
    """

    path: tuple[float | None, ...]
    goal: tuple[float | None, ...]
    goal_time: float | None


Coefficients = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Segment:
    """Polynomials of time since ``begin``, lowest power first, a joint each."""

    begin: float
    end: float
    polynomials: tuple[Coefficients, ...]


class Trajectory:
    """A checked way from where the joints are to the last point.

    Between two points it is linear, cubic or quintic by what both carry: positions, velocities
    as well, or accelerations too (as ros2_control's joint_trajectory_controller does it).

    Args:
        joints: The joints.
        commanded: Where they were told to be, with the speed of that.
        measured: Where they are.
        points: Where to go, in the joints' order.
        start_tolerance: A first point at time 0 is where the joints stand, if it is as near as
            that; the way then starts where they were told to be.

    Raises:
        GoalError: ``INVALID_GOAL``: a number is missing, not finite or out of the limits, times
            do not grow, or a joint would be faster than its limit (with the shortest time).
    """

    def __init__(
        self,
        joints: Sequence[Joint],
        commanded: Point,
        measured: Sequence[float],
        points: Sequence[Point],
        start_tolerance: float,
    ) -> None:
        self._joints = joints
        _check_numbers(joints, points)
        _check_limits(joints, points)
        points = list(points)
        here = all(
            abs(p - m) <= start_tolerance
            for p, m in zip(points[0].positions, measured, strict=True)
        )
        if points[0].time == 0.0 and here:
            if len(points) == 1:
                needed = max(
                    abs(p - c) / j.speed
                    for p, c, j in zip(
                        points[0].positions, commanded.positions, joints, strict=True
                    )
                )
                points = [Point(needed, points[0].positions)]
            else:
                del points[0]
        self.end = tuple(points[-1].positions)
        self.duration = points[-1].time
        self._segments: list[_Segment] = []
        self._at = 0
        before = commanded
        for index, point in enumerate(points):
            segment = _segment(before, point)
            ways = [segment]
            if index == 0:  # whoever planned it may have counted from where the joints are
                ways.append(_segment(replace(before, positions=tuple(measured)), point))
            _check_speed(joints, ways, point, index)
            self._check_way(segment, point)
            self._segments.append(segment)
            before = point

    def sample(self, time: float) -> tuple[list[float], list[float]]:
        """Positions and velocities at a time; ask for times that grow."""
        if time >= self.duration:
            return list(self.end), [0.0] * len(self.end)
        while self._segments[self._at].end <= time:
            self._at += 1
        segment = self._segments[self._at]
        t = max(0.0, time - segment.begin)
        positions, velocities = [], []
        for polynomial in segment.polynomials:
            position = velocity = 0.0
            for coefficient in reversed(polynomial):
                velocity = velocity * t + position
                position = position * t + coefficient
            positions.append(position)
            velocities.append(velocity)
        return positions, velocities

    def _check_way(self, segment: _Segment, point: Point) -> None:
        """Curves may swing farther than their ends."""
        for joint, polynomial in zip(self._joints, segment.polynomials, strict=True):
            if len(polynomial) <= 2:
                continue
            values = _extremes(polynomial, segment.end - segment.begin)[1:-1]
            for value in values:
                if not joint.low - POSITION_SLACK <= value <= joint.high + POSITION_SLACK:
                    raise GoalError(
                        Code.INVALID_GOAL,
                        f"{joint.name} would swing to {_deg(value)} on its way to the point at "
                        f"{point.time:g} s; it may go from {_deg(joint.low)} to "
                        f"{_deg(joint.high)}.",
                    )


def order_joints(joints: Sequence[Joint], names: Sequence[str]) -> list[int]:
    """Where each joint stands in a goal's list of names.

    Raises:
        GoalError: ``INVALID_JOINTS``; the text names the joints that are missing, unknown or
            there twice.
    """
    known = [j.name for j in joints]
    faults = [
        f"{kind} {', '.join(found)}"
        for kind, found in (
            ("missing", [n for n in known if n not in names]),
            ("unknown", sorted({n for n in names if n not in known})),
            ("repeated", sorted({n for n in names if names.count(n) > 1})),
        )
        if found
    ]
    if faults:
        raise GoalError(
            Code.INVALID_JOINTS,
            f"The goal's joints do not fit: {'; '.join(faults)}. "
            f"Each of {', '.join(known)} has to be there once.",
        )
    return [list(names).index(n) for n in known]


class ArmControl:
    """Follows one trajectory at a time, and holds the arm otherwise.

    Args:
        joints: The joints.
        period: Seconds between two steps. A step that comes late moves the arm by two periods'
            worth at most, and the trajectory's clock waits for it.
        name: What it is, for messages.

    Attributes:
        command: Where the joints should be now.
        desired: Where the trajectory is now (positions, velocities); for feedback.
    """

    def __init__(self, joints: Sequence[Joint], period: float, name: str = "arm") -> None:
        self.joints = tuple(joints)
        self._name = name
        self.command = [0.0] * len(joints)
        self.desired: tuple[list[float], list[float]] = ([], [])
        self._period = period
        self._trajectory: Trajectory | None = None
        self._tolerances = Tolerances((), (), None)
        self._time = 0.0
        self._velocity = [0.0] * len(joints)

    @property
    def busy(self) -> bool:
        """Whether a trajectory runs."""
        return self._trajectory is not None

    def hold(self, positions: Sequence[float]) -> None:
        """Drops the trajectory and stays at a position (the measured one)."""
        self._trajectory = None
        self.command = list(positions)
        self._velocity = [0.0] * len(self.joints)

    def commanded(self) -> Point:
        """Where a new trajectory starts."""
        return Point(0.0, tuple(self.command), tuple(self._velocity))

    def start(self, trajectory: Trajectory, tolerances: Tolerances, delay: float = 0.0) -> None:
        """Follows a trajectory from now on, or from ``delay`` seconds on."""
        self._trajectory = trajectory
        self._tolerances = tolerances
        self._time = -delay

    def step(
        self, elapsed: float, positions: Sequence[float], velocities: Sequence[float]
    ) -> Ending | None:
        """Goes on by the time since the last step.

        Args:
            elapsed: Seconds since the last step.
            positions, velocities: What is measured.

        Returns:
            How the trajectory ended, if it ended now. The arm then holds: its goal where it
            arrived, else where it is.
        """
        trajectory = self._trajectory
        if trajectory is None:
            return None
        step = min(elapsed, 2.0 * self._period)
        self._time += step
        if self._time < 0.0:
            return None
        wanted, speeds = self.desired = trajectory.sample(self._time)
        before = self.command
        self.command = [
            c + max(-j.speed * step, min(j.speed * step, w - c))
            for c, w, j in zip(before, wanted, self.joints, strict=True)
        ]
        self._velocity = speeds
        late = self._time - trajectory.duration
        if late < 0.0:
            return self._check_path(positions)
        return self._check_goal(trajectory.end, positions, velocities, late)

    def _check_path(self, positions: Sequence[float]) -> Ending | None:
        limits = self._tolerances.path
        off = [
            f"{j.name} is at {_deg(p)} instead of {_deg(c)}"
            for j, p, c, limit in zip(self.joints, positions, self.command, limits, strict=True)
            if limit is not None and abs(p - c) > limit
        ]
        if not off:
            return None
        self.hold(positions)
        return Ending(
            Status.ABORTED,
            Code.PATH_TOLERANCE_VIOLATED,
            f"The {self._name} does not follow: {', '.join(off)}. It holds there; is something in "
            "its way?",
        )

    def _check_goal(
        self,
        end: Sequence[float],
        positions: Sequence[float],
        velocities: Sequence[float],
        late: float,
    ) -> Ending | None:
        off = [
            f"{j.name} stopped at {_deg(p)} instead of {_deg(e)}"
            for j, p, e, limit in zip(
                self.joints, positions, end, self._tolerances.goal, strict=True
            )
            if limit is not None and abs(p - e) > limit
        ]
        limit = self._tolerances.goal_time
        over = limit is not None and late > limit
        still = all(abs(v) <= SETTLED_SPEED for v in velocities)
        there = all(abs(c - e) < 1e-6 for c, e in zip(self.command, end, strict=True))
        if not off and there and (still or over):
            self._trajectory = None
            self._velocity = [0.0] * len(self.joints)
            return Ending(Status.SUCCEEDED, Code.SUCCESSFUL, f"The {self._name} arrived.")
        if not off or not over:
            return None
        self.hold(positions)
        return Ending(
            Status.ABORTED,
            Code.GOAL_TOLERANCE_VIOLATED,
            f"The {self._name} did not arrive: {', '.join(off)}. It holds there.",
        )


@dataclass(frozen=True, slots=True)
class GripperEnding:
    """How a gripper command ended; neither flag: it took too long."""

    reached: bool
    stalled: bool


class GripperControl:
    """Moves the gripper at its speed limit until it is there, or does not get farther.

    Args:
        joint: Its joint.
        period: As for ``ArmControl``.
        tolerance: It has arrived when it is as near as that.
        stall_time: It has stalled when it did not move for so many seconds ...
        stall_distance: ... by more than this.
        timeout: Seconds after which a command ends whatever happens.

    Attributes:
        command: Where it should be now. It keeps pressing after a stall.
    """

    def __init__(
        self,
        joint: Joint,
        period: float,
        tolerance: float,
        stall_time: float,
        stall_distance: float,
        timeout: float,
    ) -> None:
        self.joint = joint
        self.command = 0.0
        self._period = period
        self._tolerance = tolerance
        self._stall_time = stall_time
        self._stall_distance = stall_distance
        self._timeout = timeout
        self._target = 0.0
        self._busy = False
        self._spent = 0.0
        self._still = 0.0
        self._last = 0.0

    @property
    def busy(self) -> bool:
        """Whether a command runs."""
        return self._busy

    def hold(self, position: float) -> None:
        """Drops the command and stays at a position."""
        self._busy = False
        self.command = self._target = position

    def start(self, target: float, measured: float) -> None:
        """Moves to a position.

        Raises:
            GoalError: The position is not finite or out of the limits.
        """
        joint = self.joint
        if not joint.low - POSITION_SLACK <= target <= joint.high + POSITION_SLACK:  # nan too
            raise GoalError(
                Code.INVALID_GOAL,
                f"{joint.name} can't go to {target:.3f} ({_deg(target)}); it may go from "
                f"{joint.low:.3f} to {joint.high:.3f}.",
            )
        self._target = target
        self._busy = True
        self._spent = self._still = 0.0
        self._last = measured

    def step(self, elapsed: float, position: float) -> GripperEnding | None:
        """Goes on by the time since the last step; says how the command ended, if it did now."""
        step = min(elapsed, 2.0 * self._period)
        way = self.joint.speed * step
        self.command += max(-way, min(way, self._target - self.command))
        if not self._busy:
            return None
        self._spent += step
        if abs(position - self._last) > self._stall_distance:
            self._last = position
            self._still = 0.0
        else:
            self._still += step
        near = abs(position - self._target) <= self._tolerance
        reached = near and self._still >= min(REST_TIME, self._stall_time)
        stalled = not near and self._still >= self._stall_time
        if not (reached or stalled or self._spent >= self._timeout):
            return None
        self._busy = False
        return GripperEnding(reached, stalled)


def _check_numbers(joints: Sequence[Joint], points: Sequence[Point]) -> None:
    """Refuses what no trajectory can be made of."""
    if not points:
        raise GoalError(Code.INVALID_GOAL, "The trajectory has no points.")
    before = -1.0
    for index, point in enumerate(points):
        for what in ("positions", "velocities", "accelerations"):
            values = getattr(point, what)
            if len(values) != len(joints) and (values or what == "positions"):
                raise GoalError(
                    Code.INVALID_GOAL,
                    f"Point {index} has {len(values)} {what}, it should have {len(joints)}.",
                )
            for joint, value in zip(joints, values, strict=False):
                if not math.isfinite(value):
                    raise GoalError(
                        Code.INVALID_GOAL,
                        f"Point {index}: one of the {what}, of {joint.name}, is {value}.",
                    )
        if point.accelerations and not point.velocities:
            raise GoalError(
                Code.INVALID_GOAL, f"Point {index} has accelerations but no velocities."
            )
        if point.time < 0.0 or point.time <= before:
            raise GoalError(
                Code.INVALID_GOAL,
                f"Point {index} is due at {point.time:g} s; times have to grow from point to "
                f"point{f', the one before is {before:g} s' if index else ''}.",
            )
        before = point.time
    if any(abs(v) > 1e-3 for v in points[-1].velocities):
        raise GoalError(
            Code.INVALID_GOAL, "The last point has a velocity; the joints have to stand there."
        )


def _check_limits(joints: Sequence[Joint], points: Sequence[Point]) -> None:
    for index, point in enumerate(points):
        off = [
            f"{j.name} {_deg(p)} (it may go from {_deg(j.low)} to {_deg(j.high)})"
            for j, p in zip(joints, point.positions, strict=True)
            if not j.low - POSITION_SLACK <= p <= j.high + POSITION_SLACK
        ]
        if off:
            raise GoalError(
                Code.INVALID_GOAL, f"Point {index} is out of the limits: {', '.join(off)}."
            )


def _check_speed(
    joints: Sequence[Joint], ways: Sequence[_Segment], point: Point, index: int
) -> None:
    """Refuses what is faster than a joint's limit, and gives the shortest time that would do.

    Args:
        joints: The joints.
        ways: The way to the point, from one or more starts; the slowest counts.
        point: Where it leads.
        index: The point's number.
    """
    time = ways[0].end - ways[0].begin
    for n, joint in enumerate(joints):
        speed = min(_peak_speed(w.polynomials[n], time, point.positions[n]) for w in ways)
        if speed <= joint.speed * SPEED_SLACK:
            continue
        way = abs(point.positions[n] - ways[0].polynomials[n][0])
        shortest = max(way, 0.0 if math.isinf(speed) else time * speed) / joint.speed
        at = f" ({math.degrees(speed):.0f}°/s)" if math.isfinite(speed) else ""
        raise GoalError(
            Code.INVALID_GOAL,
            f"Point {index}: {joint.name} would have to turn {math.degrees(way):.1f}° in "
            f"{time:g} s{at}, faster than its limit of {math.degrees(joint.speed):.0f}°/s. Give "
            f"it at least {math.ceil(shortest * 100) / 100:.2f} s.",
        )


def _peak_speed(polynomial: Coefficients, time: float, end: float) -> float:
    if time <= 0.0:
        return 0.0 if abs(end - polynomial[0]) < 1e-9 else math.inf
    if len(polynomial) == 2:
        return abs(polynomial[1])
    slope = tuple(n * c for n, c in enumerate(polynomial))[1:]
    return max(abs(v) for v in _extremes(slope, time))


def _segment(start: Point, end: Point) -> _Segment:
    time = end.time - start.time
    if time <= 0.0:
        return _Segment(start.time, end.time, tuple((p,) for p in start.positions))
    polynomials: list[Coefficients] = []
    for n, (p0, p1) in enumerate(zip(start.positions, end.positions, strict=True)):
        if not start.velocities or not end.velocities:
            polynomials.append((p0, (p1 - p0) / time))
            continue
        v0, v1 = start.velocities[n], end.velocities[n]
        way = p1 - p0
        if not end.accelerations:
            polynomials.append(
                (
                    p0,
                    v0,
                    (3 * way - (2 * v0 + v1) * time) / time**2,
                    (-2 * way + (v0 + v1) * time) / time**3,
                )
            )
            continue
        a0 = start.accelerations[n] if start.accelerations else 0.0
        a1 = end.accelerations[n]
        polynomials.append(
            (
                p0,
                v0,
                a0 / 2,
                (20 * way - (8 * v1 + 12 * v0) * time - (3 * a0 - a1) * time**2) / (2 * time**3),
                (-30 * way + (14 * v1 + 16 * v0) * time + (3 * a0 - 2 * a1) * time**2)
                / (2 * time**4),
                (12 * way - 6 * (v1 + v0) * time - (a0 - a1) * time**2) / (2 * time**5),
            )
        )
    return _Segment(start.time, end.time, tuple(polynomials))


def _extremes(polynomial: Coefficients, time: float) -> list[float]:
    """A polynomial's value at 0, where it turns, and at a time."""
    slope = [n * c for n, c in enumerate(polynomial)][1:]
    roots = np.roots(slope[::-1])
    times = [0.0, *sorted(float(r.real) for r in roots if abs(r.imag) < 1e-9), time]
    return [sum(c * t**n for n, c in enumerate(polynomial)) for t in times if 0.0 <= t <= time]


def _deg(value: float) -> str:
    return f"{math.degrees(value):.1f}°"
