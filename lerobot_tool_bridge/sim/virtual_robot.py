"""The virtual robot: physics behind emulated devices.

Makes ``<device_dir>/arm`` (a Feetech servo bus) and ``<device_dir>/gimbal`` (a head that speaks
what its driver is told), both pseudo-terminals, and serves the camera at
``http://127.0.0.1:<camera_port>/stream``. The driver nodes open them as they open a robot's.
"""

from __future__ import annotations

import fcntl
import math
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from geometry_msgs.msg import Point, Pose, Quaternion, Vector3
from std_msgs.msg import ColorRGBA, Header
from std_srvs.srv import Trigger
from visualization_msgs.msg import Marker, MarkerArray

from lerobot_tool_bridge.node import diagnostics
from lerobot_tool_bridge.node.managed import ManagedNode, NodeError, run
from lerobot_tool_bridge.node.parameters import Param
from lerobot_tool_bridge.robot import Robot
from lerobot_tool_bridge.sim import physics as sim
from lerobot_tool_bridge.sim.camera import VirtualCamera
from lerobot_tool_bridge.sim.devices.feetech import FeetechBus
from lerobot_tool_bridge.sim.devices.mjpeg import MjpegServer
from lerobot_tool_bridge.sim.gl import check_drawing
from lerobot_tool_bridge.sim.head import Head, make_head
from lerobot_tool_bridge.sim.scene import Object, Scene
from lerobot_tool_bridge.sim.servos import BusServo

_PERIOD = 0.1
_SHAPES = {"box": Marker.CUBE, "cylinder": Marker.CYLINDER, "sphere": Marker.SPHERE}
_SLOW = 0.9

PARAMETERS = (
    Param("robot", "so101", "The robot: a name in config/robots or the path of a .yaml file."),
    Param("scene", "cubes", "The scene: a name in config/scenes or the path of a .yaml file."),
    Param(
        "device_dir",
        "",
        "Folder in which the devices arm and gimbal appear; empty for virtual_robot-<user id> in "
        "the folder for temporary files.",
    ),
    Param(
        "camera_port",
        8090,
        "TCP port of the camera's stream on 127.0.0.1; 0 takes a free one and logs it.",
        low=0,
        high=65535,
    ),
    Param("camera_width", 640, "Width of the picture, pixels.", low=64, high=1920),
    Param("camera_height", 480, "Height of the picture, pixels.", low=48, high=1080),
    Param("camera_fps", 12.0, "Pictures a second while somebody watches.", low=0.5, high=60.0),
)


class VirtualRobot(ManagedNode):
    """Runs physics and devices from configure to cleanup, and publishes the truth while active."""

    def __init__(self, **kwargs: Any) -> None:
        self._physics: sim.Physics | None = None
        self._bus: FeetechBus | None = None
        self._head: Head | None = None
        self._camera: VirtualCamera | None = None
        self._stream: MjpegServer | None = None
        self._folder: DeviceFolder | None = None
        self._timer: Any = None
        self._interfaces: list[Any] = []
        super().__init__("virtual_robot", PARAMETERS, **kwargs)
        # what no second try can mend ends the process at once
        check_drawing()
        self._robot = Robot.load(self.param("robot"))
        self._scene = Scene.load(self.param("scene"))

    def configure(self) -> None:
        robot = self._robot
        width, height = self.param("camera_width"), self.param("camera_height")
        self._physics = physics = sim.Physics(robot, self._scene, _fovy(robot, width / height))
        self._folder = folder = DeviceFolder(Path(self.param("device_dir") or _default_dir()))
        # Interfaces and renderer first: making them holds Python up for longer than a servo may
        # take to answer.
        self._interfaces = [
            self.create_publisher(MarkerArray, "~/objects", 10),
            self.create_subscription(Marker, "~/move_object", self._move_object, 10),
            self.create_service(Trigger, "~/reset", self._reset),
        ]
        if robot.camera is not None:
            self._camera = VirtualCamera(physics, width, height)
        if robot.arm is not None:
            joints = [*robot.arm.joints, *([robot.gripper.joint] if robot.gripper else [])]
            arm = zip(_servo_ids(robot, "arm_driver", 1, len(joints)), joints, strict=True)
            self._bus = FeetechBus(
                {i: BusServo(physics.servos[j]) for i, j in arm}, folder.link("arm")
            )
        if robot.gimbal is not None:
            ids = _servo_ids(robot, "gimbal_driver", 0, 2)
            protocol = robot.drivers.get("gimbal_driver", {}).get("protocol", "zl_ascii")
            servos = [physics.servos[j] for j in robot.gimbal.joints]
            self._head = make_head(protocol, ids, servos)
            folder.link("gimbal").symlink_to(self._head.path)
        if self._camera is not None:
            port, fps = self.param("camera_port"), self.param("camera_fps")
            try:
                self._stream = MjpegServer(port, self._camera.jpeg, fps)
            except OSError as error:
                raise NodeError(
                    f"The camera's port {port} can't be used ({error.strerror}). Give another "
                    "camera_port, or 0 for any free one."
                ) from None
        physics.start()
        if self._bus is not None:
            self._bus.start()
        self.diagnostics.add("physics", self._check)
        devices = [str(folder.path / name) for name in folder.names]
        if self._stream is not None:
            devices.append(self._stream.url)
        self.get_logger().info(f"Virtual {robot.name} at {', '.join(devices)}")

    def activate(self) -> None:
        self._timer = self.steady_timer(_PERIOD, self._publish)

    def deactivate(self) -> None:
        if self._timer is not None:
            self.destroy_timer(self._timer)
            self._timer = None

    def cleanup(self) -> None:
        self.diagnostics.clear()
        for interface, destroy in zip(
            self._interfaces,
            (self.destroy_publisher, self.destroy_subscription, self.destroy_service),
            strict=False,
        ):
            destroy(interface)
        self._interfaces = []
        if self._stream is not None:
            self._stream.close()
        if self._camera is not None:
            self._camera.close()
        if self._bus is not None:
            self._bus.stop()
        if self._head is not None:
            self._head.close()
        if self._physics is not None:
            self._physics.stop()
        if self._folder is not None:
            self._folder.close()
        self._stream = self._camera = self._bus = self._head = self._physics = None
        self._folder = None

    # --- interfaces -----------------------------------------------------------------------

    def _publish(self) -> None:
        assert self._physics is not None
        header = Header(stamp=self.get_clock().now().to_msg(), frame_id=self._robot.base_frame)
        markers = [
            _marker(thing, self._physics.pose(name), header)
            for name, thing in self._physics.objects.items()
        ]
        self._interfaces[0].publish(MarkerArray(markers=markers))

    def _move_object(self, marker: Marker) -> None:
        assert self._physics is not None
        p, q = marker.pose.position, marker.pose.orientation
        values = (p.x, p.y, p.z, q.w, q.x, q.y, q.z)
        if marker.ns not in self._physics.objects or not all(map(math.isfinite, values)):
            self.get_logger().warning(
                f"move_object: {marker.ns!r} at {values[:3]} can't be moved; ns should be one of "
                f"{', '.join(self._physics.objects)}, and the pose finite."
            )
            return
        self._physics.move_object(marker.ns, sim.Pose(values[:3], values[3:]))

    def _reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        assert self._physics is not None
        self._physics.reset_objects()
        response.success = True
        response.message = "Every object is where the scene has it."
        return response

    def _check(self) -> tuple[bytes, str, Mapping[str, Any]]:
        assert self._physics is not None
        rate = self._physics.rate
        watching = self._stream.clients if self._stream is not None else 0
        values = {"rate": f"{rate:.2f}", "camera clients": watching}
        if rate < _SLOW:
            return diagnostics.WARN, f"Slow motion: time passes at {rate:.0%}.", values
        return diagnostics.OK, "In real time.", values


class DeviceFolder:
    """A folder with links to this process's pseudo-terminals.

    A lock file keeps two virtual robots apart; it also tells that links found here are stale, as
    whoever made them is gone.

    Attributes:
        path: The folder.
        names: Of the links that were asked for.

    Raises:
        NodeError: Another virtual robot uses it, or it can't be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        self.names: list[str] = []
        self._lock: TextIO | None = None
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / ".virtual_robot").open("a")
        except OSError as error:
            raise NodeError(
                f"device_dir {self.path} can't be used ({error.strerror}). Give another one."
            ) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise NodeError(
                f"Another virtual robot has its devices in {self.path}. Give another device_dir."
            ) from None
        self._lock = lock

    def link(self, name: str) -> Path:
        """The path for a link, free to be made.

        Raises:
            NodeError: Something lies there that no virtual robot has made.
        """
        path = self.path / name
        if path.is_symlink() and re.fullmatch(r"/dev/pts/\d+", os.readlink(path)):
            path.unlink()
        if path.is_symlink() or path.exists():
            raise NodeError(
                f"{path} is not a link of a virtual robot. Move it away, or give another "
                "device_dir."
            )
        self.names.append(name)
        return path

    def close(self) -> None:
        """Removes the links and frees the folder. Safe to call twice."""
        if self._lock is None:
            return
        for name in self.names:
            (self.path / name).unlink(missing_ok=True)
        self._lock.close()  # the file stays: unlinked, two could hold a lock of that name
        self._lock = None


def _default_dir() -> str:
    return f"{tempfile.gettempdir()}/virtual_robot-{os.getuid()}"


def _servo_ids(robot: Robot, driver: str, first: int, count: int) -> Sequence[int]:
    """The servos' ids as the driver is told them, else counted from the first."""
    ids = robot.drivers.get(driver, {}).get("servo_ids") or range(first, first + count)
    if len(ids) != count:
        raise NodeError(
            f"{robot.path}: drivers.{driver}.servo_ids has {len(ids)} values, expected {count}."
        )
    return [int(i) for i in ids]


def _fovy(robot: Robot, aspect: float) -> float:
    """Vertical field of view in degrees; the driver is told the horizontal one."""
    horizontal = float(robot.drivers.get("camera_driver", {}).get("fov_deg") or 70.0)
    return math.degrees(2 * math.atan(math.tan(math.radians(horizontal) / 2) / aspect))


def _marker(thing: Object, pose: sim.Pose, header: Header) -> Marker:
    x, y, z = pose.position
    qw, qx, qy, qz = pose.orientation
    r, g, b, a = thing.color
    sx, sy, sz = thing.extent
    return Marker(
        header=header,
        ns=thing.name,
        id=0,
        type=_SHAPES[thing.shape],
        action=Marker.ADD,
        pose=Pose(position=Point(x=x, y=y, z=z), orientation=Quaternion(w=qw, x=qx, y=qy, z=qz)),
        scale=Vector3(x=sx, y=sy, z=sz),
        color=ColorRGBA(r=r, g=g, b=b, a=a),
    )


def main() -> int:
    """Runs the node."""
    return run(VirtualRobot)


if __name__ == "__main__":
    raise SystemExit(main())
