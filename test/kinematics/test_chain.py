"""The arm's geometry, read from URDFs."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.kinematics.chain import Chain
from lerobot_tool_bridge.robot import Robot

ROBOTS = ("so101", "six_axis")


def poses(chain: Chain, count: int, seed: int = 0) -> np.ndarray:
    low = np.where(np.isfinite(chain.lower), chain.lower, -math.pi)
    high = np.where(np.isfinite(chain.upper), chain.upper, math.pi)
    return np.random.default_rng(seed).uniform(low, high, (count, len(chain)))


@pytest.mark.parametrize("name", ROBOTS)
def test_jacobian_is_the_derivative_of_fk(name: str) -> None:
    chain = Chain.of(Robot.load(name))
    step = 1e-6
    for q in poses(chain, 5):
        pose, jacobian = chain.fk_jacobian(q)
        for i, unit in enumerate(np.eye(len(chain))):
            moved = chain.fk(q + step * unit)
            turn = (moved.rotation @ pose.rotation.T - np.eye(3)) / step
            angular = [turn[2, 1], turn[0, 2], turn[1, 0]]
            linear = (moved.position - pose.position) / step
            assert jacobian[:, i] == pytest.approx([*linear, *angular], abs=1e-4)


@pytest.mark.parametrize("name", ROBOTS)
def test_many_poses_at_once_are_the_same_as_one_by_one(name: str) -> None:
    chain = Chain.of(Robot.load(name))
    many = poses(chain, 6).reshape(2, 3, -1)
    together = chain.fk(many)
    assert together.rotation.shape == (2, 3, 3, 3)
    one = chain.fk(many[1, 2])
    assert together.position[1, 2] == pytest.approx(one.position)
    assert together.rotation[1, 2] == pytest.approx(one.rotation)


def test_known_pose_of_the_so101() -> None:
    """All joints in the middle of their range: stretched ahead, the gripper level."""
    pose = Chain.of(Robot.load("so101")).fk(np.zeros(5))
    assert pose.position == pytest.approx([0.387, 0.0, 0.226], abs=0.001)
    assert pose.rotation[:, 2] == pytest.approx([1.0, 0.0, 0.0], abs=1e-6)


def test_limits_come_from_the_urdf_and_may_be_narrowed() -> None:
    robot = Robot.load("so101")
    chain = Chain.of(robot)
    assert chain.upper[0] == pytest.approx(math.radians(110), abs=0.01)
    assert (chain.velocity > 0).all()
    narrow = Chain.from_urdf(
        robot.urdf, "base_link", "tool", limits_deg={"shoulder_pan": (-200.0, 45.0)}
    )
    assert narrow.upper[0] == pytest.approx(math.radians(45))
    assert narrow.lower[0] == chain.lower[0]


def test_continuous_joint_goes_the_short_way() -> None:
    chain = Chain.of(Robot.load("six_axis"))
    here, goal = np.zeros(6), np.zeros(6)
    here[5], goal[5] = -3.1404, 3.1409
    assert chain.nearest(goal, here)[5] == pytest.approx(-3.1423, abs=1e-3)


def test_limited_joint_never_leaves_its_limits() -> None:
    """joint_4 goes from -180° to 180°: from one end to the other there is only the long way."""
    chain = Chain.of(Robot.load("six_axis"))
    here, goal = np.zeros(6), np.zeros(6)
    here[3], goal[3] = -3.1404, 3.1409
    assert chain.nearest(goal, here)[3] == pytest.approx(3.1409)


URDF = """<robot name="r"><link name="base"/><link name="tip"/>
  <joint name="j" type="{type}"><parent link="base"/><child link="tip"/>
    <origin xyz="{xyz}"/><axis xyz="{axis}"/><limit lower="{lower}" upper="1"/>{more}</joint>
</robot>"""


def write(folder: Path, **changes: str) -> Path:
    values = {"type": "revolute", "xyz": "0 0 1", "axis": "0 0 1", "lower": "-1", "more": ""}
    path = folder / "robot.urdf"
    path.write_text(URDF.format(**{**values, **changes}))
    return path


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"type": "floating"}, "joint j is floating"),
        ({"more": '<mimic joint="k"/>'}, "mimics another"),
        ({"axis": "0 0 0"}, "axis of joint j is zero"),
        ({"axis": "0 1"}, "three numbers"),
        ({"xyz": "0 0 up"}, "origin of joint j should be three numbers"),
        ({"lower": "2"}, "joint j can't move"),
        ({"lower": "low"}, "limits of joint j are no numbers"),
    ],
)
def test_unusable_urdf(changes: dict[str, str], says: str, tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=says) as error:
        Chain.from_urdf(write(tmp_path, **changes), "base", "tip")
    assert "robot.urdf" in error.value.message


def test_other_links_joints_and_files(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert len(Chain.from_urdf(path, "base", "tip", ["j"])) == 1
    with pytest.raises(LoadError, match="no chain of joints from base to hand"):
        Chain.from_urdf(path, "base", "hand")
    with pytest.raises(LoadError, match=r"movable joints from base to tip are j; .* names k"):
        Chain.from_urdf(path, "base", "tip", ["k"])
    path.write_text("<robot")
    with pytest.raises(LoadError, match="can't be read as a URDF"):
        Chain.from_urdf(path, "base", "tip")


def test_prismatic_joint_slides(tmp_path: Path) -> None:
    chain = Chain.from_urdf(write(tmp_path, type="prismatic"), "base", "tip")
    pose, jacobian = chain.fk_jacobian([0.3])
    assert pose.position == pytest.approx([0, 0, 1.3])
    assert jacobian[:, 0] == pytest.approx([0, 0, 1, 0, 0, 0])
