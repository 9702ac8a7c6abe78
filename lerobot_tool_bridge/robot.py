"""A robot as one YAML file: what the bridge, the drivers and the launch files know of it.

Units are those of ROS (metres, radians, seconds) but for names that end in ``_deg``. Joint limits
and the arm's geometry stand in the URDF alone; ``limits_deg`` may only narrow them.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lerobot_tool_bridge import share
from lerobot_tool_bridge.core.errors import LoadError

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where the tool point may go: a part of a cylinder around the base frame's z axis.

    Attributes:
        radius: Distance from the z axis, metres.
        height: z in the base frame, metres.
        azimuth_deg: Angle around the z axis from x, degrees.
    """

    radius: Range
    height: Range
    azimuth_deg: Range = (-180.0, 180.0)


@dataclass(frozen=True, slots=True)
class Arm:
    """The arm's names, speeds and poses.

    Attributes:
        joints: In the order of every trajectory.
        tool_frame: URDF link of the tool point: z points along the approach, y along the line on
            which the fingers close.
        workspace: Where the tool point may go.
        action: FollowJointTrajectory.
        joint_states: Topic that has the arm's joints (and the gripper's).
        limits_deg: Narrower limits than the URDF's, by joint.
        max_tool_speed: Speed of the tool point, m/s.
        max_joint_speed: Speed of every joint, rad/s.
        poses_deg: Named poses; ``home`` (safe to go to from anywhere, out of the camera's view)
            is the one that every robot needs.
    """

    joints: tuple[str, ...]
    tool_frame: str
    workspace: Workspace
    poses_deg: Mapping[str, tuple[float, ...]]
    action: str = "arm_controller/follow_joint_trajectory"
    joint_states: str = "joint_states"
    limits_deg: Mapping[str, Range] = field(default_factory=dict)
    max_tool_speed: float = 0.25
    max_joint_speed: float = 1.5


@dataclass(frozen=True, slots=True)
class Gripper:
    """The gripper; positions are in ``unit``, as its action takes them.

    Attributes:
        joint: Its joint in the joint states.
        unit: ``rad`` or ``m``.
        open: Position when open.
        closed: Position that a closing command asks for, with nothing between the fingers.
        widths: Pairs (position, width between the fingers in metres), by rising position.
        held_width: Something is held where the measured width is above this, metres.
        held_effort: ... and the measured effort is at least this. 0 where it isn't measured.
        max_effort: Sent with each command.
        type: ``gripper_command`` or ``parallel_gripper_command``.
        action: The action's name.
    """

    joint: str
    unit: str
    open: float
    closed: float
    widths: tuple[tuple[float, float], ...]
    held_width: float
    held_effort: float = 0.0
    max_effort: float = 0.0
    type: str = "gripper_command"
    action: str = "gripper_controller/gripper_cmd"


@dataclass(frozen=True, slots=True)
class Grasp:
    """How things are grasped from above.

    Attributes:
        pitch_deg: Angles of the approach below the horizon, the preferred one first; 90 is
            straight down. In between is tried too.
        hover: Distance from which the approach starts and to which things are lifted, metres.
        object_width: Width that is assumed where the call names none, metres.
        clearance: Free way on either side of the thing before the fingers close, metres.
        fixed_finger: True where one finger stands still and the other closes against it, so that
            the tool point has to be set aside by half the thing's width.
        floor: Lowest height of the tool point over the table, metres.
    """

    pitch_deg: tuple[float, ...] = (90.0, 45.0)
    hover: float = 0.06
    object_width: float = 0.025
    clearance: float = 0.004
    fixed_finger: bool = False
    floor: float = 0.008


@dataclass(frozen=True, slots=True)
class Gimbal:
    """The pan/tilt head. A joint's angle in radians is the model's angle in degrees, converted.

    Attributes:
        joints: Pan and tilt.
        pan_deg: Limits, degrees.
        tilt_deg: Limits, degrees.
        ahead_deg: Pan and tilt at which the camera looks straight ahead and level.
        look_deg: Named views (``table``, ...), pan and tilt.
        max_speed: rad/s.
        measures: False where the servos report no position.
        action: FollowJointTrajectory.
        joint_states: Topic that has its joints.
    """

    joints: tuple[str, str]
    pan_deg: Range = (0.0, 270.0)
    tilt_deg: Range = (0.0, 270.0)
    ahead_deg: tuple[float, float] = (135.0, 135.0)
    look_deg: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    max_speed: float = 1.5
    measures: bool = True
    action: str = "gimbal_controller/follow_joint_trajectory"
    joint_states: str = "joint_states"


@dataclass(frozen=True, slots=True)
class Camera:
    """The camera that ``record_observation`` asks.

    Attributes:
        name: For side files and messages.
        frame: Optical frame (z forward, x right).
        image: sensor_msgs/Image topic, used where there is no still service; may be empty.
        compressed_image: sensor_msgs/CompressedImage topic, likewise; may be empty.
        still_service: std_srvs/Trigger that has one still published; may be empty.
        still_topic: sensor_msgs/CompressedImage where it is published.
        info: sensor_msgs/CameraInfo of the topics; may be empty.
        still_info: sensor_msgs/CameraInfo that comes with each still; where nobody publishes it,
            ``info`` counts. May be empty.
    """

    name: str = "camera"
    frame: str = "camera_optical_frame"
    image: str = "camera/image_raw"
    compressed_image: str = ""
    still_service: str = "camera/capture_still"
    still_topic: str = "camera/still/compressed"
    info: str = "camera/camera_info"
    still_info: str = "camera/still/camera_info"


@dataclass(frozen=True, slots=True)
class Robot:
    """One robot.

    Attributes:
        drivers: Parameters of this package's own driver nodes, by node name; a robot that brings
            its drivers along has none.
        path: The file that it was read from.
    """

    name: str
    description: str
    urdf: Path
    base_frame: str = "base_link"
    arm: Arm | None = None
    gripper: Gripper | None = None
    grasp: Grasp = field(default_factory=Grasp)
    gimbal: Gimbal | None = None
    camera: Camera | None = None
    drivers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    path: Path = Path()

    def without(self, parts: Iterable[str]) -> Robot:
        """The same robot without some of its parts; without its arm it has no gripper either.

        Raises:
            LoadError: ``bad_option``: there is no such part.
        """
        absent = set(parts)
        known = {"arm", "gripper", "gimbal", "camera"}
        if absent - known:
            raise LoadError(
                "bad_option",
                f"A robot has no part {', '.join(sorted(absent - known))} that could be left "
                f"out; there are {', '.join(sorted(known))}.",
            )
        if "arm" in absent:
            absent.add("gripper")
        nothing: dict[str, Any] = dict.fromkeys(absent)
        return dataclasses.replace(self, **nothing)

    def has(self, part: str) -> bool:
        """Whether the robot has a part that a tool needs (``arm``, ``gripper``, ...)."""
        return getattr(self, part, None) is not None

    @classmethod
    def load(cls, name_or_path: str) -> Robot:
        """Reads a robot's file.

        Args:
            name_or_path: ``so101`` for ``config/robots/so101.yaml``, or a path that ends in
                ``.yaml``.

        Raises:
            LoadError: ``bad_file``; the text names the file, the key and what is expected.
        """
        path, data = share.config("robot", name_or_path)
        if not isinstance(data, dict):
            raise LoadError("bad_file", f"{path} should be a mapping with name, urdf, arm, ...")
        robot: Robot = _build(cls, {**data, "path": str(path)}, str(path))
        urdf = robot.urdf if robot.urdf.is_absolute() else path.parent / robot.urdf
        robot = dataclasses.replace(robot, urdf=urdf)
        _check(robot)
        return robot

    def arm_pose(self, name: str) -> tuple[float, ...]:
        """A named pose of the arm, radians in the order of the joints."""
        assert self.arm is not None
        return tuple(math.radians(v) for v in self.arm.poses_deg[name])


def _check(robot: Robot) -> None:
    """Refuses what would surprise later, with the file's name and the cure."""
    arm = robot.arm
    if arm is not None:
        if "home" not in arm.poses_deg:
            raise LoadError("bad_file", f"{robot.path}: arm.poses_deg needs a pose named home.")
        for name, pose in arm.poses_deg.items():
            if len(pose) != len(arm.joints):
                raise LoadError(
                    "bad_file",
                    f"{robot.path}: arm.poses_deg.{name} has {len(pose)} values, "
                    f"the arm has {len(arm.joints)} joints.",
                )
        for joint in arm.limits_deg:
            if joint not in arm.joints:
                raise LoadError(
                    "bad_file",
                    f"{robot.path}: arm.limits_deg names {joint}, which is no joint of the arm "
                    f"({', '.join(arm.joints)}).",
                )
    if robot.gripper is not None:
        positions = [p for p, _ in robot.gripper.widths]
        if len(positions) < 2 or positions != sorted(set(positions)):
            raise LoadError(
                "bad_file",
                f"{robot.path}: gripper.widths needs at least two pairs (position, width in m) "
                "by rising position.",
            )
        if robot.gripper.type not in ("gripper_command", "parallel_gripper_command"):
            raise LoadError(
                "bad_file",
                f"{robot.path}: gripper.type is {robot.gripper.type}; it should be "
                "gripper_command or parallel_gripper_command.",
            )


def _build(kind: Any, value: Any, where: str) -> Any:
    """Makes a value of a type out of plain YAML, or says where it doesn't fit."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if origin is types.UnionType:
        return _build(next(a for a in args if a is not type(None)), value, where)
    if dataclasses.is_dataclass(kind):
        return _build_dataclass(kind, value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise LoadError("bad_file", f"{where} should be a list, it is {value!r}.")
        if args[-1] is Ellipsis:
            return tuple(_build(args[0], v, f"{where}[{i}]") for i, v in enumerate(value))
        if len(value) != len(args):
            raise LoadError(
                "bad_file", f"{where} should have {len(args)} values, it has {len(value)}."
            )
        return tuple(
            _build(a, v, f"{where}[{i}]") for i, (a, v) in enumerate(zip(args, value, strict=True))
        )
    if origin is Mapping:
        if not isinstance(value, dict):
            raise LoadError("bad_file", f"{where} should be a mapping, it is {value!r}.")
        return {str(k): _build(args[1], v, f"{where}.{k}") for k, v in value.items()}
    if kind is Path:
        return Path(str(value))
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (kind is float and not math.isfinite(value)):
        raise LoadError("bad_file", f"{where} should be a {kind.__name__}, it is {value!r}.")
    return value


def _build_dataclass(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise LoadError("bad_file", f"{where} should be a mapping, it is {value!r}.")
    hints = typing.get_type_hints(kind)
    fields = {f.name: f for f in dataclasses.fields(kind)}
    unknown = [str(k) for k in value if k not in fields]
    if unknown:
        raise LoadError(
            "bad_file",
            f"{where} has unknown keys: {', '.join(unknown)}. Known: {', '.join(fields)}.",
        )
    missing = [
        name
        for name, f in fields.items()
        if name not in value
        and f.default is dataclasses.MISSING
        and f.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise LoadError("bad_file", f"{where} lacks {', '.join(missing)}.")
    sep = "." if ":" in where else ": "
    return kind(**{k: _build(hints[k], v, f"{where}{sep}{k}") for k, v in value.items()})
