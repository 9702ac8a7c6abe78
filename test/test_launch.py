"""The launch files; what they start is ``test_bringup``'s. Skips where launch is missing."""

import importlib.util
import itertools
from pathlib import Path

import pytest
import yaml

from lerobot_tool_bridge import share
from lerobot_tool_bridge.bringup import Bringup

pytest.importorskip("launch_ros")

from launch import LaunchContext
from launch.actions import DeclareLaunchArgument, Shutdown, TimerAction
from launch_ros.actions import Node


def started(name: str, **arguments: str):
    """The actions behind a launch file's arguments, and the context that they ran in."""
    path = share.path("launch", f"{name}.launch.py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    context = LaunchContext()
    context.launch_configurations.update(arguments)
    actions = []
    for entity in module.generate_launch_description().entities:
        actions += entity.execute(context) or []
    return actions, context


def parameters(node: Node, context: LaunchContext) -> dict:
    node._perform_substitutions(context)
    command = [getattr(part[0], "text", "") for part in node.cmd]
    values = {}
    for flag, path in itertools.pairwise(command):
        if flag == "--params-file":
            # launch writes lists as tuples, with a tag that rcl overlooks
            (entry,) = yaml.full_load(Path(path).read_text()).values()
            values.update(entry["ros__parameters"])
    return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


@pytest.mark.parametrize("robot_id", ["007", "1e5", "true", "off"])
@pytest.mark.parametrize("camera", ["0", "/dev/video2"])
def test_arguments_that_look_like_numbers_stay_texts(robot_id, camera):
    options = {"robot_id": robot_id, "camera": camera, "namespace": "lab"}
    actions, context = started("robot", **options)
    nodes = {n.node_executable: n for n in actions if isinstance(n, Node)}
    for wanted in Bringup(sim=False, **options).nodes():
        got = parameters(nodes.pop(wanted.executable), context)
        assert got == dict(wanted.parameters), wanted.name
        assert {k: type(v) for k, v in got.items()} == {
            k: type(v) for k, v in wanted.parameters.items()
        }
    assert not nodes


def test_drivers_start_when_the_virtual_robot_has_its_devices(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    actions, context = started("sim")
    nodes = {n.node_executable: n for n in actions if isinstance(n, Node)}
    folder = Path(parameters(nodes["virtual_robot"], context)["device_dir"])
    assert folder.is_dir()
    assert "arm_driver" not in nodes
    for _ in range(2):
        (timer,) = [a for a in actions if isinstance(a, TimerAction)]
        actions = [made for a in timer.actions for made in a.execute(context)]
        (folder / "arm").touch()
        (folder / "gimbal").touch()
    nodes = {n.node_executable: n for n in actions if isinstance(n, Node)}
    assert parameters(nodes["arm_driver"], context)["port"] == f"{folder}/arm"
    assert "camera_driver" in nodes


def test_wrong_argument_ends_the_launch_with_a_sentence():
    actions, _ = started("robot", robot="so102")
    assert any(isinstance(a, Shutdown) for a in actions)


@pytest.mark.parametrize("name", ["sim", "robot"])
def test_every_argument_has_a_description(name):
    path = share.path("launch", f"{name}.launch.py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    declared = [
        e
        for e in module.generate_launch_description().entities
        if isinstance(e, DeclareLaunchArgument)
    ]
    assert {a.name for a in declared} == set(Bringup.options(name == "sim"))
    assert all(len(a.description) > 10 for a in declared)
