"""The whole virtual robot (physics, drivers, bridge), as ``up`` starts it."""

from __future__ import annotations

import math
import sys
from typing import Any

from rclpy.qos import QoSProfile
from visualization_msgs.msg import Marker, MarkerArray

from bench.common import World

SCENE = """\
table: {size: [0.9, 1.1], center: [0.25, 0.0], color: [0.8, 0.78, 0.74]}
objects:
  cube: {size: [0.025, 0.025, 0.025], position: [0.2, 0.0], color: [0.85, 0.1, 0.1], mass: 0.015}
"""


class Virtual:
    """Things on the table, moved and looked at by their true poses."""

    def __init__(self, w: World, scene_text: str = SCENE) -> None:
        self._world = w
        scene = w.folder / "scene.yaml"
        scene.write_text(scene_text)
        self.poses: dict[str, Any] = {}
        self.observations = w.folder / "observations"
        w.node.create_subscription(MarkerArray, "virtual_robot/objects", self._on, 10)
        self._move = w.node.create_publisher(
            Marker, "virtual_robot/move_object", QoSProfile(depth=10)
        )
        up = w.spawn(
            sys.executable, "-m", "lerobot_tool_bridge", "up",
            "--scene", str(scene), "--output-dir", str(self.observations),
        )  # fmt: skip
        up.wait_output("Ready after", 90.0)
        w.until(lambda: self.poses and self._move.get_subscription_count() > 0)
        w.until(lambda: w.call("gimbal_control", {"pan": 135, "tilt": 78}, limit=10.0) is not None)

    def _on(self, message: MarkerArray) -> None:
        for marker in message.markers:
            self.poses[marker.ns] = marker.pose

    @property
    def cube(self) -> tuple[float, float, float]:
        """Where the cube really is, metres in base_link, as seen after this call."""
        return self.where("cube")

    def where(self, thing: str) -> tuple[float, float, float]:
        """The same for any thing of the scene."""
        self.poses.clear()
        self._world.until(lambda: thing in self.poses)
        position = self.poses[thing].position
        return position.x, position.y, position.z

    def put(self, x: float, y: float, yaw: float, thing: str = "cube") -> None:
        """Puts a cube somewhere else on the table, and waits until it lies there."""
        marker = Marker(ns=thing)
        marker.header.frame_id = "base_link"
        pose = marker.pose
        pose.position.x, pose.position.y, pose.position.z = x, y, 0.0126
        pose.orientation.z, pose.orientation.w = math.sin(yaw / 2), math.cos(yaw / 2)
        self._move.publish(marker)

        def there() -> bool:
            cx, cy, cz = self.where(thing)
            return math.hypot(cx - x, cy - y) < 0.002 and cz < 0.015

        self._world.until(there)
