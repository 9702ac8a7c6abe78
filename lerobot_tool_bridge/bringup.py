"""Which nodes run, with which parameters: the one description behind launch files, up and demo.

Plain Python: no rclpy, no launch. ``launch_description.py`` turns it into launch actions,
``cli/stack.py`` into processes. Every option is a text, as both command lines give it, and stays
one: ``robot_id:=007`` names the file ``007.json``.
"""

from __future__ import annotations

import dataclasses
import json
import re
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lerobot_tool_bridge import share
from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.robot import Robot
from lerobot_tool_bridge.sim.scene import Scene

LOG_LEVELS = ("debug", "info", "warn", "error", "fatal")
OFF = "off"

_MODULES = {
    "virtual_robot": "sim.virtual_robot",
    "arm_driver": "drivers.arm.node",
    "gimbal_driver": "drivers.gimbal.node",
    "camera_driver": "drivers.camera.node",
    "bridge": "ros.bridge",
    "scripted_policy": "policy.scripted",
    "language_policy": "policy.language_policy",
}
# rviz2 shows compressed pictures only under a name that ends like this
_STILL_FOR_RVIZ = ("tool_bridge/observations/compressed", "tool_bridge/observations")


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One node to start.

    Attributes:
        executable: As ``ros2 run`` knows it.
        name: The node's name.
        namespace: ``""`` or ``/a/b``.
        parameters: Their types are the node's own: a text stays a text.
        arguments: More arguments, before ``--ros-args``.
        remappings: Pairs of names, from and to.
        log_level: Of this node's own logger; empty for ROS's default.
        package: The ROS package that has the executable.
        managed: Whether it is a lifecycle node.
    """

    executable: str
    name: str
    namespace: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    remappings: tuple[tuple[str, str], ...] = ()
    log_level: str = ""
    package: str = share.PACKAGE
    managed: bool = True

    @property
    def full_name(self) -> str:
        """The name with its namespace."""
        return f"{self.namespace}/{self.name}"

    @property
    def log_arguments(self) -> tuple[str, ...]:
        """ROS arguments for the log level: of the node, not of rcl and the middleware."""
        if not self.log_level:
            return ()
        logger = self.full_name.strip("/").replace("/", ".")
        return ("--log-level", f"{logger}:={self.log_level}")

    def command(self) -> list[str]:
        """What starts it as a process of this Python."""
        if self.package == share.PACKAGE:
            module = f"{share.PACKAGE}.{_MODULES[self.executable]}"
            start = [sys.executable, "-m", module]
        else:
            prefix = package_prefix(self.package)
            assert prefix is not None, self.package
            start = [str(prefix / "lib" / self.package / self.executable)]
        command = [*start, *self.arguments, "--ros-args"]
        if self.namespace:
            command += ["-r", f"__ns:={self.namespace}"]
        for name, to in self.remappings:
            command += ["-r", f"{name}:={to}"]
        for name, value in self.parameters.items():
            # JSON is YAML here; the quotes keep a text from becoming a number
            command += ["-p", f"{name}:={json.dumps(value, ensure_ascii=False)}"]
        return [*command, *self.log_arguments]


def _option(default: str, text: str, only: str = "") -> Any:
    return field(default=default, metadata={"help": text, "only": only})


@dataclass(frozen=True, slots=True)
class Bringup:
    """What to bring up. Each field up to ``rviz`` is an option of the command lines.

    Attributes:
        sim: Whether the robot is the virtual one.
        device_dir: Where the virtual robot puts its devices.
        camera_port: TCP port of the virtual robot's camera.
    """

    robot: str = _option("so101", "Robot: a name in config/robots or the path of a .yaml file")
    namespace: str = _option("", "Namespace of all nodes, one for each robot")
    scene: str = _option(
        "",
        "Scene of the virtual robot: a name in config/scenes or the path of a .yaml file",
        "sim",
    )
    arm_port: str = _option(
        "", "Serial port of the arm; off: there is none (default: the robot's file)", "robot"
    )
    gimbal_port: str = _option("", "Serial port of the pan/tilt head; off: there is none", "robot")
    camera: str = _option(
        "",
        "Camera: an index (0), a device, a file or a URL; off: there is none",
        "robot",
    )
    calibration_file: str = _option("", "LeRobot's calibration of this arm (.json file)", "robot")
    robot_id: str = _option(
        "", "LeRobot's id of this arm: its calibration is searched where LeRobot keeps it", "robot"
    )
    tools_file: str = _option("", "Which tools are offered, and their limits (.yaml file)")
    tools_dir: str = _option("", "Folder of Python files whose tools are offered too")
    catalogue: str = _option("", "A data set's folder or its meta/info.json: offer its tools only")
    output_dir: str = _option("", "Folder for pictures (default: observations)")
    audit_file: str = _option("", "File to which every call is written, one JSON line each")
    policy: str = _option("false", "true starts the language policy, which takes instructions")
    llm_url: str = _option(
        "", "OpenAI-compatible server of its model, up to /v1 (default: the built-in rules)"
    )
    llm_model: str = _option("", "The model's name on that server")
    log_level: str = _option("", f"Log level of the nodes: {', '.join(LOG_LEVELS)}")
    rviz: str = _option("false", "true starts rviz2 with config/tool_bridge.rviz")
    sim: bool = True
    device_dir: str = ""
    camera_port: int = 0

    @classmethod
    def options(cls, sim: bool | None = None) -> dict[str, tuple[str, str]]:
        """Name, default and description of every option.

        Args:
            sim: True for what the virtual robot takes, False for a real one, None for all.
        """
        return {
            f.name: (str(f.default), f.metadata["help"])
            for f in dataclasses.fields(cls)
            if "help" in f.metadata
            and (sim is None or f.metadata["only"] in ("", "sim" if sim else "robot"))
        }

    def nodes(self) -> list[NodeSpec]:
        """The nodes in the order in which they start; they end in the reverse order.

        Raises:
            LoadError: An option can't be right; the text says which and what is expected.
        """
        self._check()
        robot = Robot.load(self.robot)
        common = {"robot": _name_or_file(self.robot)}
        nodes = []
        if self.sim:
            if not robot.drivers:
                raise LoadError(
                    "bad_file",
                    f"{robot.path} has no section drivers, and the virtual robot is driven by "
                    "this package's drivers only.",
                )
            nodes.append(
                self._node(
                    "virtual_robot",
                    **common,
                    device_dir=self.device_dir,
                    camera_port=self.camera_port,
                    scene=_name_or_file(self.scene),
                )
            )
        for executable, parameters in robot.drivers.items():
            own = self._driver(executable)
            if own is not None:
                nodes.append(self._node(executable, **{**common, **parameters, **own}))
        nodes.append(
            self._node(
                "bridge",
                "tool_bridge",
                **common,
                tools_file=_file(self.tools_file),
                tools_dir=_file(self.tools_dir),
                catalogue=_file(self.catalogue),
                output_dir=_file(self.output_dir),
                audit_file=_file(self.audit_file),
                without=self._absent(),
            )
        )
        if self.policy == "true":
            nodes.append(self._node("language_policy", url=self.llm_url, model=self.llm_model))
        if package_prefix("robot_state_publisher"):
            nodes.append(
                dataclasses.replace(
                    self._node(
                        "robot_state_publisher",
                        robot_description=robot.urdf.read_text(encoding="utf-8"),
                    ),
                    package="robot_state_publisher",
                    managed=False,
                )
            )
        if self.rviz == "true":
            nodes.append(
                dataclasses.replace(
                    self._node("rviz2"),
                    package="rviz2",
                    arguments=("-d", str(share.path("config", "tool_bridge.rviz"))),
                    remappings=(_STILL_FOR_RVIZ,),
                    managed=False,
                )
            )
        return nodes

    def _node(self, executable: str, name: str = "", **parameters: Any) -> NodeSpec:
        ns = self.namespace.strip("/")
        return NodeSpec(
            executable,
            name or executable,
            f"/{ns}" if ns else "",
            {k: v for k, v in parameters.items() if v != ""},
            log_level=self.log_level,
        )

    def _driver(self, executable: str) -> dict[str, Any] | None:
        """What this bring-up tells a driver, over the robot's file; None where it is off."""
        if executable == "arm_driver":
            if self.sim:
                return {"port": f"{self.device_dir}/arm"}
            return _device(
                self.arm_port,
                port=self.arm_port,
                calibration_file=_file(self.calibration_file),
                robot_id=self.robot_id,
            )
        if executable == "gimbal_driver":
            if self.sim:
                return {"port": f"{self.device_dir}/gimbal"}
            return _device(self.gimbal_port, port=self.gimbal_port)
        if executable == "camera_driver":
            if self.sim:
                return {"source": f"http://127.0.0.1:{self.camera_port}/stream"}
            return _device(self.camera, source=self.camera)
        known = ", ".join(n for n in _MODULES if n.endswith("_driver"))
        raise LoadError(
            "bad_file", f"{self.robot}: drivers names {executable}; it should be one of {known}."
        )

    def _absent(self) -> str:
        """The parts that this bring-up turned off, for the bridge to offer no tools of theirs."""
        chosen = {"arm": self.arm_port, "gimbal": self.gimbal_port, "camera": self.camera}
        return "" if self.sim else ", ".join(p for p, device in chosen.items() if device == OFF)

    def _check(self) -> None:
        """Refuses what no node could use, before anything is started."""
        tokens = [t for t in self.namespace.split("/") if t]
        if any(not re.fullmatch(r"[A-Za-z_]\w*", t, re.ASCII) for t in tokens):
            raise LoadError(
                "bad_option",
                f"namespace is {self.namespace!r}; it takes letters, digits and underscores, and "
                "starts with a letter.",
            )
        if self.log_level not in ("", *LOG_LEVELS):
            raise LoadError(
                "bad_option",
                f"log_level is {self.log_level!r}; it should be one of {', '.join(LOG_LEVELS)}.",
            )
        for name in ("tools_file", "tools_dir", "catalogue", "calibration_file"):
            value = getattr(self, name)
            if value and not Path(_file(value)).exists():
                raise LoadError("bad_option", f"{name}: there is no {value}.")
        if self.sim and self.scene:
            Scene.load(self.scene)
        for name in ("policy", "rviz"):
            if (value := getattr(self, name)) not in ("true", "false"):
                raise LoadError("bad_option", f"{name} is {value!r}; it should be true or false.")
        if self.rviz == "true" and not package_prefix("rviz2"):
            raise LoadError("bad_option", "rviz2 is not installed: sudo apt install ros-*-rviz2")


def free_port() -> int:
    """A TCP port of this machine that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def package_prefix(package: str) -> Path | None:
    """Where a ROS package is installed, if it is."""
    from ament_index_python.packages import get_package_prefix

    try:
        return Path(get_package_prefix(package))
    except (LookupError, OSError):  # not there, or no ament index at all
        return None


def _name_or_file(value: str) -> str:
    """A name in ``config`` as it is, a file as an absolute path."""
    return _file(value) if Path(value).suffix in (".yaml", ".yml") else value


def _file(value: str) -> str:
    """An absolute path: no shell expands ``~`` behind ``:=``."""
    return str(Path(value).expanduser().absolute()) if value else ""


def _device(chosen: str, **parameters: str) -> dict[str, Any] | None:
    """The parameters that were given, or None where the device is off."""
    return None if chosen == OFF else {k: v for k, v in parameters.items() if v}
