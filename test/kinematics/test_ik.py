"""Inverse kinematics of a five-axis and a six-axis arm."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np
import pytest

from lerobot_tool_bridge.kinematics.chain import Chain
from lerobot_tool_bridge.kinematics.ik import AZIMUTH_TOLERANCE, Solver
from lerobot_tool_bridge.robot import Robot

TARGETS = 1000


@pytest.fixture(scope="module", params=["so101", "six_axis"])
def solver(request: pytest.FixtureRequest) -> Solver:
    return Solver(Chain.of(Robot.load(request.param)))


def reachable(solver: Solver, count: int) -> Iterator[tuple[np.ndarray, float, float]]:
    """Tool points, pitches and yaws of random poses that look away from the base."""
    chain = solver.chain
    low = np.where(np.isfinite(chain.lower), chain.lower, -math.pi)
    high = np.where(np.isfinite(chain.upper), chain.upper, math.pi)
    rng = np.random.default_rng(5)
    while count:
        pose = chain.fk(rng.uniform(low, high))
        x, y, z = pose.rotation[:, 2]
        aside = math.remainder(math.atan2(y, x) - float(solver.azimuth(pose.position)), math.tau)
        if pose.position[2] < 0 or abs(aside) > 0.9 * AZIMUTH_TOLERANCE:
            continue
        count -= 1
        closing = pose.rotation[:, 1]
        yield pose.position, math.asin(-z), math.atan2(closing[1], closing[0])


def test_reachable_targets_are_found(solver: Solver) -> None:
    """At least 99.5 % within 1 mm and 1°, in a few milliseconds each."""
    found, times = 0, []
    for position, pitch, _ in reachable(solver, TARGETS):
        begin = time.perf_counter()
        solved = solver.solve(position, [pitch], [math.nan])
        times.append(time.perf_counter() - begin)
        if not solved.solved[0]:
            continue
        pose = solver.chain.fk(solved.q[0])
        assert np.linalg.norm(pose.position - position) < 0.001
        assert math.asin(np.clip(-pose.rotation[2, 2], -1, 1)) == pytest.approx(pitch, abs=0.02)
        assert (solved.q[0] >= solver.chain.lower).all()
        assert (solved.q[0] <= solver.chain.upper).all()
        found += 1
    print(f"\n{found} of {TARGETS}, median {1000 * np.median(times):.1f} ms")
    assert found >= 0.995 * TARGETS
    assert np.median(times) < 0.1  # a busy machine; 2 to 3 ms on a quiet one


def test_closing_direction_is_kept_from_above(solver: Solver) -> None:
    radius = 0.24 if len(solver.chain) == 5 else 0.4
    yaws = np.linspace(-math.pi, math.pi, 17)
    azimuth = np.radians(np.linspace(-60, 60, 17))
    points = np.stack([radius * np.cos(azimuth), radius * np.sin(azimuth), 0 * azimuth + 0.02], -1)
    either = np.concatenate([yaws, yaws + math.pi])
    found = solver.solve(np.concatenate([points, points]), math.pi / 2, either)
    assert (found.solved[:17] | found.solved[17:]).all()
    pose = solver.chain.fk(found.q[found.solved])
    closing = np.stack([np.cos(either), np.sin(either)], -1)[found.solved]
    assert np.sum(pose.rotation[:, :2, 1] * closing, -1) == pytest.approx(1.0, abs=0.001)
    assert pose.rotation[:, 2, 2] == pytest.approx(-1.0, abs=0.001)


def test_nearest_of_the_solutions_is_taken(solver: Solver) -> None:
    q = np.radians([20, -20, 30, 60, 0] if len(solver.chain) == 5 else [20, 10, 40, 0, 40, 0])
    pose = solver.chain.fk(q)
    pitch = math.asin(-pose.rotation[2, 2])
    yaw = math.atan2(pose.rotation[1, 1], pose.rotation[0, 1])
    found = solver.solve(pose.position, [pitch], [yaw], near=q)
    assert found.solved[0]
    assert np.abs(found.q[0] - q).max() < 0.1


def test_out_of_reach_is_not_solved(solver: Solver) -> None:
    points = [[2.0, 0.0, 0.1], [0.0, 0.0, -1.0], [-5.0, 3.0, 0.0]]
    assert not solver.solve(points, math.pi / 2, math.nan).solved.any()


def test_straight_line_of_the_tool_point(solver: Solver) -> None:
    radius = 0.22 if len(solver.chain) == 5 else 0.4
    ends = np.array([[radius, 0.05, 0.09], [radius, 0.05, 0.015]])
    found = solver.solve(ends, math.pi / 2, 1.4)
    assert found.solved.all()
    begin, end = solver.solve(ends, math.pi / 2, 1.4, near=found.q[0]).q
    way = solver.line(begin, end, ends, math.pi / 2, 1.4, 12)
    assert way is not None
    points = solver.chain.fk(way).position
    assert points[:, :2] == pytest.approx(np.tile(ends[0, :2], (13, 1)), abs=0.001)
    assert (np.diff(points[:, 2]) < 0).all()


def test_what_is_called_solved_is_solved_beside_what_is_not(solver: Solver) -> None:
    """One target out of reach makes the others go through every iteration."""
    targets = [*reachable(solver, 100)]
    points = np.array([[2.0, 0.0, 0.1], *(p for p, _, _ in targets)])
    pitches = np.array([0.5, *(pitch for _, pitch, _ in targets)])
    found = solver.solve(points, pitches, math.nan)
    assert not found.solved[0]
    off = np.linalg.norm(solver.chain.fk(found.q).position - points, axis=-1)
    assert off[found.solved].max() < 0.001
