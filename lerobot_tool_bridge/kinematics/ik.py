"""Inverse kinematics for any serial arm: a tool point, and from where it is approached.

A five-axis arm can't take every 6D pose, and grasping from above needs none: what is asked for is
the tool point, the pitch of the approach, and at will the direction in which the fingers close.

Method: damped least squares (Sugihara 2011: damping by the remaining error) on many starts at
once, all in one numpy batch. The starts are the nearest of some thousand random poses whose tool
frames are computed once; where the first axis stands upright, they are turned around it first, so
that the search is dense.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lerobot_tool_bridge.kinematics.chain import Array, Chain, Pose, _cross

POSITION_TOLERANCE = 0.0005
"""Metres."""
ANGLE_TOLERANCE = math.radians(1.0)
"""Of the pitch and of the closing direction."""
AZIMUTH_TOLERANCE = math.radians(20.0)
"""How far the approach may point aside of the plane of the base axis and the tool point: a
five-axis arm whose tool point is not on its roll axis has no choice there."""

_SAMPLES = 6000
_STARTS = 10
_ITERATIONS = 30
_PER_METRE = 8.0  # 1 mm weighs as much as 0.5 degrees
_STEP = 0.6  # rad, longest step of one joint in one iteration


@dataclass(frozen=True, slots=True)
class Solutions:
    """The poses for N targets.

    Attributes:
        q: ``(N, n)`` joint positions.
        solved: ``(N,)`` where the pose is within the limits and tolerances.
    """

    q: Array
    solved: npt.NDArray[np.bool_]


class Solver:
    """Inverse kinematics of one chain.

    Args:
        chain: The arm.
    """

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        rng = np.random.default_rng(1)
        low = np.where(np.isfinite(chain.lower), chain.lower, -math.pi)
        high = np.where(np.isfinite(chain.upper), chain.upper, math.pi)
        self.middle = (low + high) / 2
        """of the joints' ranges; 0 for a joint that turns without end"""
        samples = rng.uniform(low, high, (_SAMPLES, len(chain)))
        first, last = chain.joints[0], chain.joints[-1]
        axis = first.turn @ first.axis
        self.turns = first.kind != "prismatic" and abs(axis[2]) > 0.999
        self._sense = float(np.sign(axis[2]))
        self.origin = first.offset[:2] if self.turns else np.zeros(2)
        """x and y of the upright axis that the arm turns around; 0 where it has none"""
        if self.turns:
            samples[:, 0] = self.middle[0]
        pose, jacobian = chain.fk_jacobian(samples)
        self._samples, self._pose = samples, pose
        away = pose.position[:, :2] - self.origin
        self._radius = np.linalg.norm(away, axis=-1)
        self._azimuth = np.arctan2(away[:, 1], away[:, 0])
        approach = pose.rotation[..., 2]
        self._aside = _aside(approach, self._azimuth)
        # the share of the last joint's turn that turns the tool about its approach: 1, -1, or less
        spin = float(np.sum(jacobian[0, 3:, -1] * approach[0]))
        self._spin = float(np.sign(spin)) if last.kind != "prismatic" and abs(spin) > 0.9 else 0.0

    def azimuth(self, position: npt.ArrayLike) -> Array:
        """In which direction a point lies from the axis that the arm turns around, radians."""
        away = np.asarray(position, dtype=float)[..., :2] - self.origin
        azimuth: Array = np.arctan2(away[..., 1], away[..., 0])
        return azimuth

    def directions(
        self, position: npt.ArrayLike, pitch: npt.ArrayLike, yaw: npt.ArrayLike
    ) -> tuple[Array, Array]:
        """The approach and the closing direction that targets mean.

        Args:
            position: ``(..., 3)``; the approach points away from the base axis, towards it.
            pitch: ``(...)``, radians below the horizon.
            yaw: ``(...)``, radians about z from x: where the closing direction points, seen from
                above; not a number where any will do.

        Returns:
            Unit vectors ``(..., 3)``: approach, and closing direction at right angles to it.
        """
        pitch, yaw = np.asarray(pitch, dtype=float), np.asarray(yaw, dtype=float)
        azimuth = self.azimuth(position)
        approach = _unit(azimuth) * np.cos(pitch)[..., None]
        approach[..., 2] = -np.sin(pitch)
        closing = _unit(np.where(np.isnan(yaw), azimuth + math.pi / 2, yaw))
        closing = closing - approach * np.sum(closing * approach, -1, keepdims=True)
        length = np.linalg.norm(closing, axis=-1, keepdims=True)
        return approach, closing / np.maximum(length, 1e-9)

    def solve(
        self,
        positions: npt.ArrayLike,
        pitches: npt.ArrayLike,
        yaws: npt.ArrayLike,
        near: npt.ArrayLike | None = None,
        starts: Array | None = None,
    ) -> Solutions:
        """Solves N targets at once.

        Args:
            positions: ``(N, 3)`` tool points, metres.
            pitches: ``(N,)`` approaches, radians below the horizon.
            yaws: ``(N,)`` closing directions, radians; not a number where any will do.
            near: Where more than one pose was found, the one nearest to this is taken; the
                middle of the joints' ranges by default.
            starts: ``(N, n)`` or ``(N, k, n)``: start from these alone.
        """
        p = np.asarray(positions, dtype=float).reshape(-1, 3)
        pitch = np.broadcast_to(np.asarray(pitches, dtype=float), p.shape[:1])
        yaw = np.broadcast_to(np.asarray(yaws, dtype=float), p.shape[:1])
        approach, closing = self.directions(p, pitch, yaw)
        free = np.isnan(yaw)
        q = self._starts(p, pitch, closing, free) if starts is None else starts.copy()
        if q.ndim == 2:
            q = q[:, None, :]
        p, approach, closing = p[:, None], approach[:, None], closing[:, None]
        free = free[:, None, None]
        for i in range(_ITERATIONS):
            pose, jacobian = self.chain.fk_jacobian(q)
            error, jacobian = self._error(pose, jacobian, p, approach, closing, free)
            fits = self._fits(pose, error, approach)
            if (i >= 3 and fits.any(-1).all()) or i == _ITERATIONS - 1:
                break  # what fits is q, and not what a step more would make of it
            q = self._step(q, error, jacobian)
        near = self.middle if near is None else np.asarray(near, dtype=float)
        way = np.abs(self.chain.nearest(q, near) - near).max(-1)
        best = np.argmin(np.where(fits, way, np.inf), axis=-1)
        solved, rows = np.asarray(fits.any(-1)), np.arange(len(q))
        q = q[rows, best][:, None]
        # one step more: from 0.5 mm to nothing
        pose, jacobian = self.chain.fk_jacobian(q)
        error, jacobian = self._error(pose, jacobian, p, approach, closing, free)
        finer = self._step(q, error, jacobian)
        after, _ = self._error(self.chain.fk(finer), jacobian, p, approach, closing, free)
        left = [np.linalg.norm(e[..., :3], axis=-1) for e in (error, after)]
        better = left[1] < left[0]
        q = np.where(better[..., None], finer, q)[:, 0]
        return Solutions(self.chain.nearest(q, near), solved)

    def line(
        self, begin: Array, end: Array, position: Array, pitch: float, yaw: float, count: int
    ) -> Array | None:
        """Poses along a straight way of the tool point, the tool not turning.

        Args:
            begin: Pose ``(n,)`` at the start of the way.
            end: Pose at its end, with the same pitch and yaw.
            position: Tool points ``(2, 3)`` of begin and end.
            pitch: Radians below the horizon.
            yaw: Radians.
            count: Number of steps.

        Returns:
            ``(count + 1, n)``, or None where the way leaves the joints' ranges or jumps.
        """
        share = np.linspace(0.0, 1.0, count + 1)[:, None]
        starts = begin + share * (end - begin)
        points = position[0] + share * (position[1] - position[0])
        # for the whole way the directions at its end, which a five-axis arm is least free to leave
        found = self.solve(points, pitch, yaw, starts=starts, near=(begin + end) / 2)
        if not found.solved.all():
            return None
        q = found.q
        step = np.abs(np.diff(q, axis=0)).max()
        # the same solution all along: each step about as long as the mean one
        if step > 3.0 * np.abs(end - begin).max() / count + 0.05:
            return None
        return q

    # --- inside -----------------------------------------------------------------------------

    def _starts(
        self, p: Array, pitch: Array, closing: Array, free: npt.NDArray[np.bool_]
    ) -> Array:
        """The best of the samples for each target, ``(N, k, n)``."""
        sample_z = self._pose.position[:, 2]
        sample_pitch = np.arcsin(np.clip(-self._pose.rotation[:, 2, 2], -1, 1))
        radius = np.linalg.norm(p[:, :2] - self.origin, axis=-1)
        azimuth = self.azimuth(p)
        inward = pitch > math.pi / 2
        flat = np.where(inward, math.pi - pitch, pitch)
        away = np.abs(_wrap(self._aside))
        all_starts = np.empty((len(p), _STARTS, len(self.chain)))
        for i in range(len(p)):
            score = (_PER_METRE * (sample_z - p[i, 2])) ** 2 + (sample_pitch - flat[i]) ** 2
            # approaches that point aside count by how far that moves them
            aside = math.pi - away if inward[i] else away
            score += (aside * math.cos(flat[i])) ** 2
            if self.turns:
                score += (_PER_METRE * (self._radius - radius[i])) ** 2
                first = self.middle[0] + self._sense * _wrap(azimuth[i] - self._azimuth)
                score += (first - np.clip(first, self.chain.lower[0], self.chain.upper[0])) ** 2
            else:
                flat_way = self._pose.position[:, :2] - p[i, :2]
                score += _PER_METRE**2 * np.sum(flat_way**2, axis=-1)
            chosen = np.argpartition(score, 4 * _STARTS)[: 4 * _STARTS]
            chosen = chosen[np.argsort(score[chosen])]
            half = _STARTS // 2  # the very best, and some of the next ones, for other branches
            chosen = np.concatenate([chosen[:half], chosen[half::7][: _STARTS - half]])
            starts = self._samples[chosen]
            if self.turns:
                starts[:, 0] = first[chosen]
            all_starts[i] = starts
        if self._spin:
            # turned to the closing direction at once; where any will do, half of the starts
            # have the wrist in the middle
            turn = self._spin * _angle(self.chain.fk(all_starts), closing[:, None])
            own = all_starts[..., -1] + np.where(free[:, None], 0.0, turn)
            middle = free[:, None] & (np.arange(_STARTS) % 2 == 0)
            all_starts[..., -1] = np.where(middle, self.middle[-1], own)
            all_starts = self.chain.nearest(
                all_starts, np.broadcast_to(self.middle, all_starts.shape)
            )
        return self.chain.clip(all_starts)

    def _error(
        self, pose: Pose, jacobian: Array, p: Array, approach: Array, closing: Array, free: Array
    ) -> tuple[Array, Array]:
        """What is left to do, ``(N, k, 6)``, and how the joints change it."""
        a = pose.rotation[..., 2]
        # Only the pitch is asked for: a five-axis arm could not follow an azimuth too, and would
        # trade it for distance. So the azimuth is the present one, but for steep approaches and
        # for those that point far aside.
        level = np.linalg.norm(a[..., :2], axis=-1)
        wanted = np.linalg.norm(approach[..., :2], axis=-1)
        along = np.sum(a[..., :2] * approach[..., :2], axis=-1)
        own = (level > 0.02) & (along > 0.5 * level * wanted)
        target = np.broadcast_to(approach, a.shape).copy()
        stretch = wanted / np.maximum(level, 1e-9)
        target[..., :2] = np.where(
            own[..., None], a[..., :2] * stretch[..., None], target[..., :2]
        )
        turn = _cross(a, target)
        angle = np.where(free[..., 0], 0.0, _angle(pose, closing))
        error = np.empty((*a.shape[:-1], 6))
        error[..., :3] = _PER_METRE * (p - pose.position)
        error[..., 3:] = turn + a * angle[..., None]
        jacobian[..., :3, :] *= _PER_METRE
        spin = a[..., None] * (a[..., None, :] @ jacobian[..., 3:, :])
        jacobian[..., 3:, :] -= np.where(free[..., None], spin, 0.0)
        return error, jacobian

    def _fits(self, pose: Pose, error: Array, approach: Array) -> npt.NDArray[np.bool_]:
        """Whether poses are good enough; the approach's pitch and its azimuth apart."""
        a = pose.rotation[..., 2]
        distance = np.linalg.norm(error[..., :3], axis=-1) / _PER_METRE
        pitch = np.abs(
            np.arcsin(np.clip(a[..., 2], -1, 1)) - np.arcsin(np.clip(approach[..., 2], -1, 1))
        )
        # near the vertical the sine is flat: the angle between the two counts there
        between = np.linalg.norm(_cross(a, np.broadcast_to(approach, a.shape)), axis=-1)
        ahead = np.sum(a * approach, axis=-1) > 0
        level = np.maximum(np.linalg.norm(a[..., :2], axis=-1), 0.05)
        spin = np.abs(np.sum(error[..., 3:] * a, axis=-1))
        fits: npt.NDArray[np.bool_] = (
            (distance < POSITION_TOLERANCE)
            & (np.minimum(pitch, between) < ANGLE_TOLERANCE)
            & (between < ANGLE_TOLERANCE + level * math.sin(AZIMUTH_TOLERANCE))
            & ahead
            & (spin < ANGLE_TOLERANCE)
        )
        return fits

    def _step(self, q: Array, error: Array, jacobian: Array) -> Array:
        """One damped step, within the limits."""
        damping = np.minimum(0.5 * np.sum(error**2, axis=-1), 1.0) + 1e-4
        step = _damped(jacobian, error, damping)
        low, high = self.chain.lower + 1e-9, self.chain.upper - 1e-9
        blocked = ((q <= low) & (step < 0)) | ((q >= high) & (step > 0))
        if blocked.any():  # the others have to do it without the joints that can't go on
            jacobian = np.where(blocked[..., None, :], 0.0, jacobian)
            step = _damped(jacobian, error, damping)
        longest = np.abs(step).max(-1, keepdims=True)
        return self.chain.clip(q + step * np.minimum(1.0, _STEP / np.maximum(longest, 1e-9)))


def _damped(jacobian: Array, error: Array, damping: Array) -> Array:
    transposed = np.swapaxes(jacobian, -1, -2)
    normal = transposed @ jacobian + damping[..., None, None] * np.eye(jacobian.shape[-1])
    step = np.linalg.solve(normal, transposed @ error[..., None])
    return np.asarray(step[..., 0], dtype=float)


def _unit(azimuth: Array) -> Array:
    """Level unit vectors."""
    return np.stack([np.cos(azimuth), np.sin(azimuth), np.zeros_like(azimuth)], axis=-1)


def _wrap(angle: Array) -> Array:
    wrapped: Array = (angle + math.pi) % math.tau - math.pi
    return wrapped


def _aside(approach: Array, azimuth: Array) -> Array:
    """By how much approaches point aside of the direction in which the tool point lies."""
    return _wrap(np.arctan2(approach[..., 1], approach[..., 0]) - azimuth)


def _angle(pose: Pose, closing: Array) -> Array:
    """By how much the tool has to turn about its approach to close in a direction."""
    x, y = pose.rotation[..., 0], pose.rotation[..., 1]
    angle: Array = np.arctan2(-np.sum(x * closing, axis=-1), np.sum(y * closing, axis=-1))
    return angle
