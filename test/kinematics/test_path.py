"""Timed joint paths."""

from __future__ import annotations

import numpy as np
import pytest

from lerobot_tool_bridge.kinematics import path as paths
from lerobot_tool_bridge.kinematics.chain import Chain
from lerobot_tool_bridge.robot import Robot

TOOL, JOINT = 0.25, 1.5


@pytest.fixture(scope="module")
def chain() -> Chain:
    return Chain.of(Robot.load("so101"))


def random_way(chain: Chain, seed: int, corners: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.uniform(chain.lower, chain.upper, (corners, len(chain)))


@pytest.mark.parametrize("seed", range(10))
def test_speeds_stay_within_the_limits(chain: Chain, seed: int) -> None:
    way = random_way(chain, seed)
    path = paths.timed(chain, way, TOOL, JOINT)
    tool, joint = paths.speeds(chain, way[0], path)
    assert tool <= TOOL
    assert joint <= JOINT
    assert tool > 0.8 * TOOL or joint > 0.8 * JOINT  # and it does not dawdle
    assert path[-1].positions == pytest.approx(way[-1])


def test_urdf_speed_limits_hold_too(chain: Chain) -> None:
    way = np.array([np.zeros(5), [0.0, 0.0, 0.0, 0.0, 2.0]])
    path = paths.timed(chain, way, 100.0, 100.0)
    assert paths.speeds(chain, way[0], path)[1] <= chain.velocity[4]


def test_starts_and_stops_softly(chain: Chain) -> None:
    way = np.array([np.zeros(5), [1.0, -0.5, 0.5, 0.3, -1.0]])
    path = paths.timed(chain, way, TOOL, JOINT)
    q = np.array([way[0], *(w.positions for w in path)])
    speed = np.abs(np.diff(q, axis=0)).max(-1) / paths.PERIOD
    assert speed[0] < 0.3 * speed.max()
    assert speed[-1] < 0.3 * speed.max()
    acceleration = np.abs(np.diff(q, n=2, axis=0)).max() / paths.PERIOD**2
    assert acceleration < 2.2 * JOINT / paths.SMOOTH


def test_starts_after_the_start_and_times_grow(chain: Chain) -> None:
    way = random_way(chain, 3)
    path = paths.timed(chain, way, TOOL, JOINT)
    assert path[0].time == pytest.approx(paths.PERIOD)
    assert (np.diff([w.time for w in path]) > 0).all()
    assert path[0].positions != tuple(way[0])


def test_nowhere_to_go_is_no_path(chain: Chain) -> None:
    assert paths.timed(chain, np.zeros((3, 5)), TOOL, JOINT) == []


def test_tiny_way_has_a_path(chain: Chain) -> None:
    way = np.array([np.zeros(5), np.full(5, 1e-4)])
    path = paths.timed(chain, way, TOOL, JOINT)
    assert path[-1].positions == pytest.approx(way[-1])
    assert path[-1].time < 0.5


def test_corner_is_rounded_not_missed(chain: Chain) -> None:
    """Turn, then lift: no joint jumps from one speed to another."""
    corner = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    way = np.array([np.zeros(5), corner, [1.0, -0.8, 0.0, 0.0, 0.0]])
    path = paths.timed(chain, way, TOOL, JOINT)
    q = np.array([w.positions for w in path])
    assert np.abs(q - corner).max(-1).min() < 0.06
