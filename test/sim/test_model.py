"""The physics model has the URDF's numbers."""

import dataclasses
import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.robot import Robot
from lerobot_tool_bridge.sim import model
from lerobot_tool_bridge.sim.gl import load_mujoco
from lerobot_tool_bridge.sim.scene import Scene

mujoco = load_mujoco()
ROBOT = Robot.load("so101")
URDF = ElementTree.parse(ROBOT.urdf).getroot()


@pytest.fixture(scope="module")
def built() -> Any:
    return model.build(ROBOT, Scene.load("cubes"))


def _vector(element: Any, name: str) -> np.ndarray:
    return np.array([float(v) for v in element.get(name, "0 0 0").split()])


def _turn(axis: np.ndarray, angle: float) -> np.ndarray:
    x, y, z = axis
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + math.sin(angle) * k + (1 - math.cos(angle)) * k @ k


def _where(link: str, positions: dict[str, float]) -> np.ndarray:
    """A link's 4×4 pose in the root link, by a walk up the URDF."""
    pose = np.eye(4)
    while (joint := URDF.find(f"joint/child[@link='{link}']/..")) is not None:
        origin = joint.find("origin")
        roll, pitch, yaw = _vector(origin, "rpy")
        step = np.eye(4)
        step[:3, :3] = (
            _turn(np.array([0, 0, 1]), yaw)
            @ _turn(np.array([0, 1, 0]), pitch)
            @ _turn(np.array([1, 0, 0]), roll)
        )
        step[:3, 3] = _vector(origin, "xyz")
        if joint.get("type") == "revolute":
            spin = np.eye(4)
            spin[:3, :3] = _turn(_vector(joint.find("axis"), "xyz"), positions[joint.get("name")])
            step = step @ spin
        pose = step @ pose
        link = joint.find("parent").get("link")
    return pose


def test_joints_and_limits_are_those_of_the_urdf(built: Any) -> None:
    moving = {j.get("name"): j for j in URDF.iter("joint") if j.get("type") == "revolute"}
    assert set(model.driven_joints(ROBOT)) == set(moving)
    for name, joint in moving.items():
        limit = joint.find("limit")
        expected = [float(limit.get("lower")), float(limit.get("upper"))]
        assert built.joint(name).range == pytest.approx(expected, abs=1e-9)
        strength = float(limit.get("effort"))
        assert built.actuator(name).forcerange == pytest.approx([-strength, strength])
    assert set(model.velocity_limits(ROBOT.urdf)) == set(moving)


@pytest.mark.parametrize("link", ["tool", "jaw", "camera_optical_frame"])
def test_links_are_where_the_urdf_has_them(built: Any, link: str) -> None:
    rng = np.random.default_rng(3)
    data = mujoco.MjData(built)
    joints = model.driven_joints(ROBOT)
    for _ in range(20):
        positions = {j: rng.uniform(*built.joint(j).range) for j in joints}
        for joint, position in positions.items():
            data.qpos[built.joint(joint).qposadr[0]] = position
        mujoco.mj_kinematics(built, data)
        pose = _where(link, positions)
        assert data.body(link).xpos == pytest.approx(pose[:3, 3], abs=1e-6)
        assert data.body(link).xmat == pytest.approx(pose[:3, :3].ravel(), abs=1e-6)


def test_the_fingers_are_as_far_apart_as_the_robot_file_says(built: Any) -> None:
    """The width table, measured with a box that is put between the fingers at the tool point."""
    assert ROBOT.gripper is not None
    data = mujoco.MjData(built)
    joint = built.joint(ROBOT.gripper.joint)
    jaws = [g for g in range(built.ngeom) if built.geom_bodyid[g] == built.body("jaw").id]
    tool = built.body("tool").id
    for position, width in ROBOT.gripper.widths:
        data.qpos[joint.qposadr[0]] = position
        mujoco.mj_kinematics(built, data)
        nearest = math.inf
        for geom in (g for g in jaws if built.geom_contype[g]):
            side = np.array(np.meshgrid([-1, 1], np.linspace(-1, 1, 41), [-1, 1])).reshape(3, -1).T
            points = side * built.geom_size[geom] @ data.geom_xmat[geom].reshape(3, 3).T
            inside = (points + data.geom_xpos[geom] - data.xpos[tool]) @ data.xmat[tool].reshape(
                3, 3
            )
            at_tool = np.abs(inside[:, 2]) < 0.0125
            nearest = min(nearest, *inside[at_tool, 1], math.inf)
        assert nearest == pytest.approx(width, abs=0.003), position


def test_a_thing_with_the_name_of_a_link_is_refused() -> None:
    thing = dataclasses.replace(Scene.load("cubes").objects[0], name="jaw")
    with pytest.raises(LoadError, match="jaw"):
        model.build(ROBOT, Scene(objects=(thing,)))


def test_a_file_that_is_no_urdf_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.urdf"
    path.write_text("<robot")
    with pytest.raises(LoadError, match=r"broken\.urdf"):
        model.build(dataclasses.replace(ROBOT, urdf=path), Scene())
