"""Where the tool has to go to grasp or to set down a thing, and how to get there."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lerobot_tool_bridge.core.errors import Rejection
from lerobot_tool_bridge.kinematics import path as paths
from lerobot_tool_bridge.kinematics.chain import Array, Chain
from lerobot_tool_bridge.kinematics.ik import Solver
from lerobot_tool_bridge.ports import Waypoint
from lerobot_tool_bridge.robot import Robot, Workspace

_PITCH_STEP = math.radians(5.0)
_LINE_STEP = 0.006  # metres between two poses of a straight way
_HOVERS = (1.0, 0.6, 0.35)  # shares of the hover distance, where there is no room for all of it
_REACH_STEP = 0.005  # metres
_REACHES = 64  # answers that are remembered
_TRIES = 10  # steps inwards from where the tool point reaches to where all of the grasp does
_NAMED = 0.15  # rad: nearer than that to a named pose counts as being there
_DIP = 0.015  # metres by which a way through the air may dip below the hover distance
_CLOSE = 0.005  # metres that are not worth going up
_LEVEL_FROM = 0.1  # metres over the table from which the tool may point level, not to grasp


class Unreachable(Rejection):
    """The arm can't get there; says how far it reaches in that direction, in metres."""

    def __init__(self, message: str) -> None:
        super().__init__("unreachable", message)


@dataclass(frozen=True, slots=True)
class Plan:
    """How to get at a thing.

    Attributes:
        way: Poses ``(m, n)`` from the hover to the place where the fingers close or open.
        target: Tool point there, metres.
        pitch: Radians below the horizon.
    """

    way: Array
    target: Array
    pitch: float

    @property
    def hover(self) -> Array:
        """Pose from which the approach starts."""
        pose: Array = self.way[0]
        return pose

    @property
    def end(self) -> Array:
        """Pose in which the fingers close or open."""
        pose: Array = self.way[-1]
        return pose


class _Candidates(NamedTuple):
    """Poses ``(m, n)``, and for each the tool point, its approach, pitch and yaw."""

    q: Array
    target: Array
    approach: Array
    pitch: Array
    yaw: Array


class Planner:
    """Plans for one robot.

    Args:
        robot: Has an arm.
        workspace: A narrower one than the robot's.

    Raises:
        LoadError: The URDF does not have the arm.
    """

    def __init__(self, robot: Robot, workspace: Workspace | None = None) -> None:
        assert robot.arm is not None
        self.arm = robot.arm
        self.grasp = robot.grasp
        self.workspace = workspace or robot.arm.workspace
        self.chain = Chain.of(robot)
        self._home = np.array(robot.arm_pose("home"))
        self._named = [np.array(robot.arm_pose(name)) for name in robot.arm.poses_deg]
        self._pitches = _scan([math.radians(p) for p in robot.grasp.pitch_deg])
        self._reaches: dict[tuple[float, float, bool], tuple[float, float] | None] = {}

    @functools.cached_property
    def solver(self) -> Solver:
        """Made with the first plan: it takes some time and memory."""
        return Solver(self.chain)

    def center(self, q: npt.ArrayLike, width: float) -> Array:
        """Where the centre of a thing is that the fingers hold, metres.

        Args:
            q: Pose of the arm.
            width: Between the fingers, metres.
        """
        pose = self.chain.fk(q)
        aside = width / 2 if self.grasp.fixed_finger else 0.0
        center: Array = pose.position + aside * pose.rotation[..., 1]
        return center

    def check(self, center: npt.ArrayLike, level: bool = False) -> None:
        """Refuses what is outside the workspace.

        Args:
            center: Of a thing, or the point between the fingers; metres.
            level: See ``reach``.

        Raises:
            Unreachable: Says which limit it breaks, and how far the arm reaches.
        """
        p = np.asarray(center, dtype=float)
        area = self.workspace
        radius, azimuth = math.hypot(p[0], p[1]), math.degrees(math.atan2(p[1], p[0]))
        if not area.height[0] - 1e-9 <= p[2] <= area.height[1] + 1e-9:
            raise Unreachable(
                f"{_point(p)} is out of reach: z should be {area.height[0]:.2f} to "
                f"{area.height[1]:.2f} m above the table. z is the height of the object's centre."
            )
        low, high = area.azimuth_deg
        if not low - 1e-6 <= azimuth <= high + 1e-6:
            raise Unreachable(
                f"{_point(p)} is out of reach: it lies at {azimuth:.0f}° (0° is ahead, along x; "
                f"90° is left, along y), and the arm works from {low:g}° to {high:g}°."
            )
        if not area.radius[0] - 1e-9 <= radius <= area.radius[1] + 1e-9:
            raise self._too_far(p, level)

    def pose(
        self,
        point: npt.ArrayLike,
        width: float = 0.0,
        now: Sequence[float] | None = None,
        keep: bool = False,
    ) -> Array:
        """Finds a pose with a point between the fingers, where nothing is to be grasped.

        The tool points down as it does for grasping; high over the table it may lean until it is
        level.

        Args:
            point: Of the tool, or the centre of what it holds; metres.
            width: Of what it holds, metres.
            now: Where the arm is; of equal poses the nearer one is taken.
            keep: See ``plan``.

        Raises:
            Unreachable: There is none.
        """
        self.check(point, level=True)
        p = np.asarray(point, dtype=float)
        if p[2] < self.grasp.floor - 1e-9:
            raise Unreachable(
                f"{_point(p)} is too low: the fingertips would touch the table. z should be at "
                f"least {self.grasp.floor:g} m."
            )
        start = self._home if now is None else np.asarray(now, dtype=float)
        pitches = self._leaning(float(p[2]), level=True)
        if keep:
            pitches = self._as_held(pitches, start)
        yaws = self._yaws(p, None, False)
        for group in (pitches[:1], pitches[1:]):
            found = self._candidates(p, width / 2, group, yaws, start)
            if len(found.q):
                best: Array = found.q[0]
                return best
        raise self._too_far(p, level=True)

    def plan(
        self,
        center: npt.ArrayLike,
        width: float,
        clearance: float = 0.0,
        yaw: float | None = None,
        square: bool = False,
        now: Sequence[float] | None = None,
        keep: bool = False,
    ) -> Plan:
        """Finds an approach to a thing.

        Args:
            center: Of the thing, metres.
            width: Of the thing where the fingers hold it, metres.
            clearance: Between the fixed finger and the thing, metres.
            yaw: Line on which the fingers close, radians about z from x; None to choose one.
            square: True where the fingers may as well close at right angles to ``yaw``.
            now: Where the arm is; of equal approaches the nearer one is taken.
            keep: True for a thing that is held: it should not be tilted, so the pitch that the
                tool has now comes first.

        Raises:
            Unreachable: There is none.
        """
        self.check(center)
        p = np.asarray(center, dtype=float).copy()
        p[2] = max(p[2], self.grasp.floor)
        start = self._home if now is None else np.asarray(now, dtype=float)
        pitches = self._pitches
        if keep:
            pitches = self._as_held(pitches, start)
        yaws = self._yaws(p, yaw, square)
        plan = self._plan(p, width / 2 + clearance, pitches, yaws, start)
        if plan is not None:
            return plan
        if yaw is not None:
            others = self._yaws(p, None, False)
            if self._plan(p, width / 2 + clearance, pitches, others, start) is not None:
                raise Unreachable(
                    f"{_point(p)} can't be reached with the fingers closing along "
                    f"{math.degrees(yaw):.0f}°. Leave yaw_deg out, or give another one."
                )
        raise self._too_far(p)

    def route(self, start: npt.ArrayLike, goal: npt.ArrayLike) -> Array:
        """A way through the air, high enough over what lies on the table.

        From a low place it goes straight up first. From and to a folded named pose that is low,
        the arm folds and unfolds there, and turns high; of the ways that do so, the fastest.

        Args:
            start: Where the arm is.
            goal: Where it shall go: a hover, or a named pose.

        Returns:
            Poses ``(m, n)``.
        """
        begin = np.asarray(start, dtype=float)
        end = self.chain.nearest(goal, begin)
        up, down = self._up(begin), self._up(end)[::-1]
        here, there = up[-1], down[0]
        if self._is_named(begin) and self._high(paths.straight(begin, end)):
            return paths.straight(begin, end)
        ways = [paths.join(up, paths.straight(here, there), down)]
        good = [self._high(ways[0][len(up) - 1 : len(ways[0]) - len(down) + 1])]
        if self.solver.turns:
            for a, b, folded in ((begin, there, begin), (here, end, end)):
                if not self._is_named(folded):
                    continue
                middle = np.concatenate([folded[:1], (b if folded is begin else a)[1:]])
                one, two = paths.straight(a, middle), paths.straight(middle, b)
                turn = two if folded is begin else one
                parts = (one, two, down) if folded is begin else (up, one, two)
                ways.append(paths.join(*parts))
                good.append(self._high(turn))
        fit = [way for way, high in zip(ways, good, strict=True) if high]
        return min(fit or ways, key=lambda way: self.timed(way)[-1].time if len(way) > 1 else 0.0)

    def timed(
        self, way: Array, tool_speed: float | None = None, share: float = 1.0
    ) -> list[Waypoint]:
        """A way with times, within the arm's speeds.

        Args:
            way: Poses ``(m, n)``, the first being where the arm is.
            tool_speed: A lower speed than the arm's, m/s.
            share: Of all speeds, at most 1.
        """
        fastest = self.arm.max_tool_speed
        speed = fastest if tool_speed is None else min(tool_speed, fastest)
        return paths.timed(self.chain, way, share * speed, share * self.arm.max_joint_speed)

    # --- inside -----------------------------------------------------------------------------

    def _plan(
        self, center: Array, aside: float, pitches: list[float], yaws: list[float], start: Array
    ) -> Plan | None:
        """The best approach: room for the whole hover first, then an earlier pitch."""
        groups: list[_Candidates] = []
        for share in _HOVERS:
            for i, group in enumerate((pitches[:1], pitches[1:])):
                if i == len(groups):
                    groups.append(self._candidates(center, aside, group, yaws, start))
                plan = self._approach(groups[i], share * self.grasp.hover)
                if plan is not None:
                    return plan
        return None

    def _candidates(
        self, center: Array, aside: float, pitches: list[float], yaws: list[float], start: Array
    ) -> _Candidates:
        """The poses in which the thing is between the fingers, the best ones first."""
        pairs = np.array([(pitch, yaw) for pitch in pitches for yaw in yaws]).reshape(-1, 2)
        pitch, yaw = pairs.T
        target = np.tile(center, (len(pairs), 1))
        approach, closing = self.solver.directions(target, pitch, yaw)
        if self.grasp.fixed_finger:
            target = target - aside * closing
        found = self.solver.solve(target, pitch, yaw, near=start)
        # neither finger below the floor
        lowest = target[:, 2] + np.minimum(0.0, 2 * aside * closing[:, 2])
        usable = found.solved & (lowest > self.grasp.floor - 0.001)
        rank = np.repeat(np.arange(len(pitches)), len(yaws))
        order = np.lexsort((self._cost(found.q, start, closing), rank))
        order = order[usable[order]]
        return _Candidates(
            found.q[order], target[order], approach[order], pitch[order], yaw[order]
        )

    def _approach(self, some: _Candidates, height: float) -> Plan | None:
        """The first of the candidates that can be approached straight from that far."""
        if not len(some.q):
            return None
        above = some.target - height * some.approach
        hover = self.solver.solve(above, some.pitch, some.yaw, near=some.q[0], starts=some.q)
        count = max(2, math.ceil(height / _LINE_STEP))
        for i in np.flatnonzero(hover.solved):
            ends = np.stack([above[i], some.target[i]])
            pitch, yaw = float(some.pitch[i]), float(some.yaw[i])
            way = self.solver.line(hover.q[i], some.q[i], ends, pitch, yaw, count)
            if way is not None:
                return Plan(way, some.target[i], pitch)
        return None

    def _cost(self, q: Array, start: Array, closing: Array) -> Array:
        """Lower is better: a short way, the wrist in the middle, fingers side by side."""
        span = min(float(self.chain.upper[-1] - self.chain.lower[-1]), math.tau)
        wrist = np.abs(q[:, -1] - self.solver.middle[-1]) / span
        way = np.abs(q - start).max(-1)
        cost: Array = wrist + 0.2 * way + 2.0 * np.abs(closing[:, 2])
        return cost

    def _as_held(self, pitches: list[float], start: Array) -> list[float]:
        """The pitches, from the one on that the tool has now."""
        steep = -float(self.chain.fk(start).rotation[2, 2])
        held = math.asin(max(-1.0, min(1.0, steep)))
        return sorted(pitches, key=lambda pitch: abs(min(pitch, math.pi - pitch) - held))

    def _leaning(self, height: float, level: bool) -> list[float]:
        """The pitches that may be used at a height."""
        if not level or height < _LEVEL_FROM:
            return self._pitches
        return list(dict.fromkeys([*self._pitches, *_scan([min(self._pitches), 0.0])]))

    def _yaws(self, center: Array, yaw: float | None, square: bool) -> list[float]:
        """Closing directions to try."""
        first = float(self.solver.azimuth(center)) + math.pi / 2 if yaw is None else yaw
        turns = (0, 2, 1, 3) if yaw is None or square else (0, 2)
        return [first + turn * math.pi / 2 for turn in turns]

    def _up(self, begin: Array) -> Array:
        """Straight up from a low place, the tool not turning; no way where there is no need."""
        pose = self.chain.fk(begin)
        approach, closing = pose.rotation[:, 2], pose.rotation[:, 1]
        pitch = math.asin(max(-1.0, min(1.0, -float(approach[2]))))
        azimuth = float(self.solver.azimuth(pose.position))
        if approach[0] * math.cos(azimuth) + approach[1] * math.sin(azimuth) < 0:
            pitch = math.pi - pitch
        steep = abs(float(closing[2])) > 0.5  # no direction seen from above
        yaw = math.nan if steep else math.atan2(float(closing[1]), float(closing[0]))
        for share in _HOVERS:
            height = share * (self.grasp.hover - float(pose.position[2]))
            if height < _CLOSE:
                break
            above = pose.position + np.array([0.0, 0.0, height])
            found = self.solver.solve(above, pitch, yaw, near=begin, starts=begin[None])
            if not found.solved[0]:
                continue
            count = max(2, math.ceil(height / _LINE_STEP))
            ends = np.stack([pose.position, above])
            line = self.solver.line(begin, found.q[0], ends, pitch, yaw, count)
            if line is not None:
                return line
        return begin[None]

    def _is_named(self, q: Array) -> bool:
        return any(
            float(np.abs(self.chain.nearest(q, pose) - pose).max()) < _NAMED
            for pose in self._named
        )

    def _high(self, way: Array) -> bool:
        """Whether the tool point stays above what lies on the table."""
        height = self.chain.fk(way).position[:, 2]
        return bool(height.min() > self.grasp.hover - _DIP)

    def _too_far(self, p: Array, level: bool = False) -> Unreachable:
        radius = math.hypot(p[0], p[1])
        reach = self.reach(math.atan2(p[1], p[0]), float(p[2]), level)
        text = f"{_point(p)} is out of reach: it is {radius:.2f} m from the z axis."
        if reach is None:
            return Unreachable(
                f"{text} The arm reaches no point in that direction at that height."
            )
        near, far = reach
        best = min(max(radius, near), far) / max(radius, 1e-6)
        nearest = (
            f" The nearest point in reach is x={p[0] * best:.3f} y={p[1] * best:.3f}."
            if radius > 1e-3
            else ""
        )
        return Unreachable(
            f"{text} In that direction and at that height the arm reaches from {near:.2f} to "
            f"{far:.2f} m.{nearest}"
        )

    def reach(
        self, azimuth: float, height: float, level: bool = False
    ) -> tuple[float, float] | None:
        """From where to where the arm reaches in a direction, metres from the base's z axis.

        Args:
            azimuth: Radians about z from x.
            height: Of a thing's centre, metres.
            level: True where nothing is grasped, so that high up the tool may lean until it is
                level.
        """
        key = (round(azimuth, 2), round(height, 3), level)
        if key not in self._reaches:
            if len(self._reaches) >= _REACHES:
                self._reaches.clear()
            self._reaches[key] = self._reach(*key)
        return self._reaches[key]

    def _reach(self, azimuth: float, height: float, level: bool) -> tuple[float, float] | None:
        pitches = self._leaning(height, level)
        pitches = pitches[:: max(1, len(pitches) // 4)]  # some will do to tell
        low, high = self.workspace.radius
        way = np.array([math.cos(azimuth), math.sin(azimuth), 0.0])
        z = max(height, self.grasp.floor)

        def works(radii: Array) -> npt.NDArray[np.bool_]:
            points = radii[:, None] * way
            points[:, 2] = z
            many = np.repeat(points, len(pitches), axis=0)
            found = self.solver.solve(many, np.tile(pitches, len(points)), math.nan)
            return np.asarray(found.solved.reshape(len(points), -1).any(-1))

        def planned(radius: float) -> bool:  # what a call asks for, and so the last word
            center = radius * way + [0.0, 0.0, z]
            yaws = self._yaws(center, None, False)[:2]
            if level:
                return len(self._candidates(center, 0.0, pitches, yaws, self._home).q) > 0
            aside = self.grasp.object_width / 2 + self.grasp.clearance
            return self._plan(center, aside, pitches, yaws, self._home) is not None

        radii = np.linspace(low, high, 9)
        apart = (high - low) / 8
        good = radii if works(radii[[0, -1]]).all() else radii[works(radii)]
        if not len(good):
            return None
        edges = []
        for edge, outwards in ((float(good[0]), -_REACH_STEP), (float(good[-1]), _REACH_STEP)):
            steps = np.arange(1.0, max(2, round(apart / _REACH_STEP))) * outwards + edge
            steps = steps[(steps > low) & (steps < high)]
            fits = steps[works(steps)] if len(steps) else steps
            out = fits[-1] if len(fits) else edge
            inwards = (float(out) - outwards * i for i in range(_TRIES))
            found = next((r for r in inwards if low <= r <= high and planned(r)), None)
            if found is None:
                return None
            edges.append(found)
        return edges[0], edges[1]


def _scan(pitches: list[float]) -> list[float]:
    """The preferred pitch first, then in small steps to each of the others."""
    scan = pitches[:1]
    for a, b in itertools.pairwise(pitches):
        steps = max(1, math.ceil(abs(b - a) / _PITCH_STEP - 1e-9))
        scan += [a + (b - a) * i / steps for i in range(1, steps + 1)]
    return list(dict.fromkeys(scan))


def _point(p: Array) -> str:
    return f"x={p[0]:.3f} y={p[1]:.3f} z={p[2]:.3f} m"
