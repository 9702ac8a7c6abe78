"""What the launch files have in common: ``bringup``'s nodes as launch actions."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
    Shutdown,
    TimerAction,
)
from launch.event_handlers import OnShutdown
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from lerobot_tool_bridge.bringup import Bringup, NodeSpec, free_port
from lerobot_tool_bridge.core.errors import LoadError

_DEVICE_LIMIT = 20.0
_LOOK = 0.2


def describe(sim: bool) -> LaunchDescription:
    """Arguments and nodes of ``sim.launch.py`` or ``robot.launch.py``."""
    options = Bringup.options(sim)
    return LaunchDescription(
        [
            *(
                DeclareLaunchArgument(name, default_value=default, description=text)
                for name, (default, text) in options.items()
            ),
            OpaqueFunction(function=_start, args=[sim, list(options)]),
        ]
    )


def _start(context: LaunchContext, sim: bool, names: list[str]) -> list[Any]:
    # the plain texts: a substitution's value would be read as YAML on its way to the node
    options = {name: context.launch_configurations[name] for name in names}
    actions: list[Any] = []
    if sim:
        folder = tempfile.mkdtemp(prefix="virtual_robot-")
        options.update(device_dir=folder)
        actions.append(
            RegisterEventHandler(
                OnShutdown(on_shutdown=lambda *_: shutil.rmtree(folder, ignore_errors=True))
            )
        )
    try:
        nodes = Bringup(sim=sim, camera_port=free_port() if sim else 0, **options).nodes()
    except LoadError as error:
        return [*actions, LogInfo(msg=f"error: {error}"), Shutdown(reason=str(error))]
    if not sim:
        return [_action(node) for node in nodes]
    drivers = [n for n in nodes if n.executable.endswith("_driver")]
    actions += [_action(node) for node in nodes if node not in drivers]
    ports = [Path(n.parameters["port"]) for n in drivers if "port" in n.parameters]
    return [*actions, *_when_there(ports, [_action(node) for node in drivers], _DEVICE_LIMIT)]


def _when_there(paths: list[Path], actions: list[Any], limit: float) -> list[Any]:
    """The actions, as soon as the virtual robot has made its devices, or at the limit.

    The drivers would wait for them as well, but not without an error in the log.
    """
    if limit <= 0 or all(path.exists() for path in paths):
        return actions
    again = OpaqueFunction(function=lambda context: _when_there(paths, actions, limit - _LOOK))
    return [TimerAction(period=_LOOK, actions=[again])]


def _action(spec: NodeSpec) -> Node:
    return Node(
        package=spec.package,
        executable=spec.executable,
        name=spec.name,
        namespace=spec.namespace,
        parameters=[{name: _value(value) for name, value in spec.parameters.items()}],
        remappings=list(spec.remappings),
        arguments=list(spec.arguments),
        ros_arguments=list(spec.log_arguments),
        output="screen",
        emulate_tty=True,
    )


def _value(value: Any) -> Any:
    """A parameter with the type that it has: launch would make 7 out of the text 007."""
    if isinstance(value, str):
        return ParameterValue(value, value_type=str)
    if isinstance(value, list | tuple) and value and isinstance(value[0], str):
        return ParameterValue(list(value), value_type=list[str])
    return value
