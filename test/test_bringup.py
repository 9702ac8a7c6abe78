"""What the launch files and ``up`` start."""

import json
import shlex
import sys
from pathlib import Path

import pytest
import yaml

from lerobot_tool_bridge import bringup, share
from lerobot_tool_bridge.bringup import Bringup, NodeSpec
from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.core.registry import Registry
from lerobot_tool_bridge.core.toolsfile import load_tools_file
from lerobot_tool_bridge.policy.script import Script
from lerobot_tool_bridge.ports import Ports
from lerobot_tool_bridge.robot import Robot
from lerobot_tool_bridge.sim.scene import Scene


@pytest.fixture(autouse=True)
def _no_other_packages(monkeypatch):
    monkeypatch.setattr(bringup, "package_prefix", lambda name: None)


@pytest.fixture
def robot_file(tmp_path):
    """A robot with a driver for each part."""
    text = yaml.safe_load(share.path("config", "robots", "so101.yaml").read_text())
    text["urdf"] = str(share.path("config", "robots", "so101.urdf"))
    text["drivers"] = {
        "arm_driver": {"port": "/dev/ttyACM0", "baud": 1000000},
        "gimbal_driver": {"port": "/dev/ttyUSB0"},
        "camera_driver": {"source": "0", "width": 640},
    }
    path = tmp_path / "robot.yaml"
    path.write_text(yaml.safe_dump(text, sort_keys=False))
    return str(path)


def by_name(nodes: list[NodeSpec]) -> dict[str, NodeSpec]:
    return {spec.name: spec for spec in nodes}


def test_virtual_robot_starts_first_and_lends_its_devices(robot_file):
    nodes = Bringup(robot=robot_file, device_dir="/tmp/d", camera_port=8123).nodes()
    assert [n.name for n in nodes] == [
        "virtual_robot",
        "arm_driver",
        "gimbal_driver",
        "camera_driver",
        "tool_bridge",
    ]
    found = by_name(nodes)
    assert found["virtual_robot"].parameters["device_dir"] == "/tmp/d"
    assert found["virtual_robot"].parameters["camera_port"] == 8123
    assert found["arm_driver"].parameters["port"] == "/tmp/d/arm"
    assert found["arm_driver"].parameters["baud"] == 1000000
    assert found["gimbal_driver"].parameters["port"] == "/tmp/d/gimbal"
    assert found["camera_driver"].parameters["source"] == "http://127.0.0.1:8123/stream"
    assert all(n.parameters["robot"] == robot_file for n in nodes)


def test_options_of_a_real_robot_stay_texts(robot_file):
    given = {"robot_id": "007", "camera": "0", "arm_port": "/dev/arm", "namespace": "/lab/left/"}
    nodes = by_name(Bringup(robot=robot_file, sim=False, log_level="debug", **given).nodes())
    assert "virtual_robot" not in nodes
    assert nodes["arm_driver"].parameters["robot_id"] == "007"
    assert nodes["arm_driver"].parameters["port"] == "/dev/arm"
    assert nodes["camera_driver"].parameters["source"] == "0"
    assert nodes["gimbal_driver"].parameters["port"] == "/dev/ttyUSB0", "the robot's file"
    command = nodes["arm_driver"].command()
    assert 'robot_id:="007"' in command
    assert "__ns:=/lab/left" in command
    assert "lab.left.arm_driver:=debug" in command


def test_off_starts_no_driver(robot_file):
    nodes = by_name(Bringup(robot=robot_file, sim=False, camera="off", gimbal_port="off").nodes())
    assert list(nodes) == ["arm_driver", "tool_bridge"]
    assert nodes["tool_bridge"].parameters["without"] == "gimbal, camera"


def test_files_become_absolute(robot_file, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "tools.yaml").write_text("")
    (tmp_path / "tools").mkdir()
    nodes = by_name(
        Bringup(
            robot=robot_file, tools_file="~/tools.yaml", tools_dir="~/tools", output_dir="pictures"
        ).nodes()
    )
    bridge = nodes["tool_bridge"].parameters
    assert bridge["tools_file"] == str(tmp_path / "tools.yaml")
    assert bridge["tools_dir"] == str(tmp_path / "tools")
    assert bridge["output_dir"] == str(Path.cwd() / "pictures")
    assert "catalogue" not in bridge, "what is not given is left to the node"


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"robot": "so102"}, "Known robots: .*so101"),
        ({"scene": "moon"}, "Known scenes: cubes"),
        ({"namespace": "1st"}, "starts with a letter"),
        ({"namespace": "my-arm"}, "letters, digits and underscores"),
        ({"log_level": "loud"}, "debug, info"),
        ({"tools_file": "none.yaml"}, "there is no none.yaml"),
        ({"tools_dir": "none"}, "there is no none"),
        ({"rviz": "yes"}, "true or false"),
        ({"rviz": "true"}, "not installed"),
    ],
)
def test_wrong_options_are_refused_with_a_cure(options, hint):
    with pytest.raises(LoadError, match=hint):
        Bringup(**options).nodes()


def test_unknown_driver_and_no_driver(robot_file):
    data = yaml.safe_load(Path(robot_file).read_text())
    data["drivers"] = {"leg_driver": {}}
    Path(robot_file).write_text(yaml.safe_dump(data))
    with pytest.raises(LoadError, match=r"leg_driver.*arm_driver, gimbal_driver, camera_driver"):
        Bringup(robot=robot_file).nodes()
    del data["drivers"]
    Path(robot_file).write_text(yaml.safe_dump(data))
    with pytest.raises(LoadError, match="no section drivers"):
        Bringup(robot=robot_file).nodes()
    assert [n.name for n in Bringup(robot=robot_file, sim=False).nodes()] == ["tool_bridge"]


def test_parameters_survive_the_command_line(ros, spawn):
    """rcl reads ``-p`` as YAML: what looks like a number, a truth or nothing stays a text."""
    values = {
        "a": "007",
        "b": "1e5",
        "c": "true",
        "d": "off",
        "e": "~",
        "f": 'quote " \\ größe 🙂\nline',
        "g": 7,
        "h": 0.00001,
        "i": True,
        "j": ["1", "x"],
        "k": [1.0, 2.5],
    }
    spec = NodeSpec("bridge", "probe", namespace="/lab", parameters=values)
    arguments = spec.command()[3:]
    code = (
        "import rclpy, json, sys; rclpy.init();"
        "n = rclpy.create_node('probe', automatically_declare_parameters_from_overrides=True);"
        f"v = {{k: n.get_parameter(k).value for k in {list(values)!r}}};"
        "print(json.dumps({k: list(x) if hasattr(x, '__iter__') and not isinstance(x, str) else x"
        " for k, x in v.items()}), n.get_namespace())"
    )
    process = spawn(sys.executable, "-c", code, *arguments)
    assert process.wait() == 0, process.output
    text, namespace = process.output.splitlines()[-1].rsplit(" ", 1)
    assert json.loads(text) == values, shlex.join(arguments)
    assert namespace == "/lab"


def test_example_fits_the_scene():
    """The script's numbers are those of the default scene."""
    scene = {o.name: o for o in Scene.load("cubes").objects}
    script = Script.load(share.path("examples", "pick_and_place.yaml"))
    calls = [c for turn in script.turns for c in turn.calls if not c.fails]
    grab = next(c.arguments for c in calls if c.name == "arm_grab_object")
    place = next(c.arguments for c in calls if c.name == "arm_place_object")
    (check,) = script.checks
    assert (grab["x"], grab["y"], grab["z"]) == scene[check.object].position
    assert (place["x"], place["y"], place["z"]) == check.position
    assert check.within <= 0.02


def test_example_tools_file_fits_the_default_robot(caplog):
    """Every key is one that a tool takes, and no limit is wider than the robot's."""
    ports = Ports(robot=Robot.load("so101"))
    settings = load_tools_file(share.path("config", "tools.yaml"))
    registry = Registry.load(ports, settings)
    offered = {s["function"]["name"]: s["function"]["parameters"] for s in registry.schemas()}
    assert settings.keys() <= offered.keys()
    assert offered["gimbal_control"]["properties"]["pan"]["maximum"] == 225
    assert not [r for r in caplog.records if "tools" in r.message and r.levelname != "INFO"]
