"""A robot's file: what is wrong in it is said with the file, the key and the cure."""

import math

import pytest
import yaml

from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.core.registry import Registry
from lerobot_tool_bridge.ports import Ports
from lerobot_tool_bridge.robot import Robot

ROBOTS = ("so101", "six_axis")


def so101() -> dict:
    return yaml.safe_load(Robot.load("so101").path.read_text())


@pytest.fixture
def load(tmp_path):
    def load(data) -> Robot:
        path = tmp_path / "mine.yaml"
        path.write_text(yaml.safe_dump(data))
        return Robot.load(str(path))

    return load


@pytest.mark.parametrize("name", ROBOTS)
def test_the_robots_that_come_along(name):
    robot = Robot.load(name)
    assert robot.urdf.is_file()
    assert len(robot.arm_pose("home")) == len(robot.arm.joints)


def test_degrees_become_radians(load):
    data = so101()
    data["arm"]["poses_deg"]["home"] = [0, 90, 0, 0, -180]
    assert load(data).arm_pose("home") == pytest.approx((0, math.pi / 2, 0, 0, -math.pi))


def test_a_name_that_is_none():
    with pytest.raises(LoadError, match="Known robots: six_axis, so101"):
        Robot.load("so100")


def change(path: str, value):
    def apply(data):
        *parents, last = path.split(".")
        for key in parents:
            data = data[key]
        if value is None:
            del data[last]
        else:
            data[last] = value

    return apply


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (change("gripper.opne", 0.8), "gripper has unknown keys: opne"),
        (change("arm.joints", None), "arm lacks joints"),
        (change("arm.max_tool_speed", "fast"), "arm.max_tool_speed should be a float"),
        (change("arm.max_tool_speed", math.inf), "arm.max_tool_speed should be a float"),
        (change("arm.max_joint_speed", True), "arm.max_joint_speed should be a float"),
        (change("arm.workspace.radius", [0.1]), "radius should have 2 values, it has 1"),
        (change("arm.workspace", 0.3), "arm.workspace should be a mapping"),
        (change("arm.poses_deg.home", None), "needs a pose named home"),
        (change("arm.poses_deg.home", [0, 0]), "home has 2 values, the arm has 5 joints"),
        (change("arm.limits_deg", {"elbow": [0, 1]}), "names elbow, which is no joint"),
        (change("gripper.widths", [[0.5, 0.1], [0.1, 0.0]]), "by rising position"),
        (change("gripper.type", "vacuum"), "gripper_command or parallel_gripper_command"),
    ],
)
def test_faults_name_file_key_and_cure(load, fault, text):
    data = so101()
    fault(data)
    with pytest.raises(LoadError, match=text) as error:
        load(data)
    assert "mine.yaml" in error.value.message
    assert error.value.code == "bad_file"


@pytest.mark.parametrize("text", ["[1, 2", "- a list", "\xff"])
def test_no_mapping(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(LoadError, match=r"mine\.yaml"):
        Robot.load(str(path))


def test_absent_parts_take_their_tools_along():
    def offered(robot: Robot) -> set[str]:
        return {s["function"]["name"] for s in Registry.load(Ports(robot)).schemas()}

    robot = Robot.load("so101")
    everything = offered(robot)
    headless = offered(robot.without(["gimbal"]))
    assert everything - headless == {"gimbal_control", "gimbal_move_relative"}
    armless = offered(robot.without(["arm"]))
    assert not any(name.startswith("arm_") for name in armless)
    assert any(name.startswith("arm_") for name in everything)
    with pytest.raises(LoadError, match="no part legs"):
        robot.without(["legs"])
