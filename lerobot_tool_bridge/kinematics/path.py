"""Joint paths with times: as fast as the limits of joints and tool point allow, softly at ends."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lerobot_tool_bridge.kinematics.chain import Array, Chain
from lerobot_tool_bridge.ports import Waypoint

PERIOD = 0.05
"""Seconds between waypoints; controllers draw straight lines between them."""
SMOOTH = 0.3
"""Seconds over which a motion is averaged: from rest to full speed, and around corners."""
MARGIN = 0.9
"""Share of a limit that is used: a controller that catches up overshoots a little."""

_JOINT_STEP = 0.02  # rad, fineness of the path that speeds are computed on
_TICK = 0.01  # seconds, fineness of the averaging


def straight(begin: npt.ArrayLike, end: npt.ArrayLike) -> Array:
    """Joint positions ``(m, n)`` from one pose to another, all joints in step."""
    begin, end = np.asarray(begin, dtype=float), np.asarray(end, dtype=float)
    steps = max(2, math.ceil(float(np.abs(end - begin).max()) / _JOINT_STEP))
    path: Array = begin + np.linspace(0.0, 1.0, steps + 1)[:, None] * (end - begin)
    return path


def join(*parts: Array) -> Array:
    """Paths one after the other; what is doubled at the seams is left out."""
    path = np.concatenate(parts)
    moved = np.abs(np.diff(path, axis=0)).max(-1) > 1e-9
    joined: Array = path[np.concatenate([[True], moved])]
    return joined


def timed(chain: Chain, path: Array, tool_speed: float, joint_speed: float) -> list[Waypoint]:
    """Gives a path its times.

    The path is run through at full speed, and what comes out is averaged over ``SMOOTH`` seconds:
    that starts and stops softly and rounds the corners, and no average of speeds is above them.

    Args:
        chain: The arm.
        path: Joint positions ``(m, n)``, the first being where the arm is.
        tool_speed: Highest speed of the tool point, m/s.
        joint_speed: Highest speed of any joint, rad/s (m/s); the URDF's limits hold too.

    Returns:
        Waypoints without the start; empty where the path goes nowhere.
    """
    fine = join(path[:1], *(straight(a, b)[1:] for a, b in itertools.pairwise(path)))
    if len(fine) < 2:
        return []
    limits = np.minimum(chain.velocity, joint_speed) * MARGIN
    by_joint = (np.abs(np.diff(fine, axis=0)) / limits).max(-1)
    way = np.linalg.norm(np.diff(chain.fk(fine).position, axis=0), axis=-1)
    # when each point is passed at full speed
    clock = np.concatenate([[0.0], np.cumsum(np.maximum(by_joint, way / (tool_speed * MARGIN)))])
    total = float(clock[-1])
    window = np.hanning(round(SMOOTH / _TICK) + 2)
    window /= window.sum()
    ticks = math.ceil((total + SMOOTH) / PERIOD) * round(PERIOD / _TICK)
    passed = np.clip((np.arange(ticks + 1) * _TICK), 0.0, total)
    ahead = np.concatenate([np.zeros(len(window) - 1), passed])
    full = np.stack([np.interp(ahead, clock, column) for column in fine.T], axis=-1)
    smooth = np.stack([np.convolve(column, window, mode="valid") for column in full.T], axis=-1)
    points = smooth[:: round(PERIOD / _TICK)][1:]
    points[-1] = path[-1]
    return [Waypoint(tuple(map(float, q)), float((i + 1) * PERIOD)) for i, q in enumerate(points)]


def speeds(chain: Chain, start: npt.ArrayLike, path: Sequence[Waypoint]) -> tuple[float, float]:
    """The highest speeds of a timed path: of the tool point (m/s) and of a joint (rad/s)."""
    q = np.array([np.asarray(start, dtype=float), *(w.positions for w in path)])
    t = np.array([0.0, *(w.time for w in path)])
    if len(q) < 2:
        return 0.0, 0.0
    dt = np.diff(t)
    joint = np.abs(np.diff(q, axis=0)).max(-1) / dt
    share = np.linspace(0.0, 1.0, 6)[:, None, None]
    points = chain.fk(q[:-1] + share * np.diff(q, axis=0)).position
    way = np.linalg.norm(np.diff(points, axis=0), axis=-1).sum(0)
    return float((way / dt).max()), float(joint.max())
