"""What rviz shows of the bridge: the workspace, the running call's target, the last result."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from lerobot_tool_bridge.core.dispatcher import Running
from lerobot_tool_bridge.robot import Robot, Workspace
from lerobot_tool_bridge.ros import qos
from lerobot_tool_bridge.ros.link import Link

_PERIOD = 0.2
_STEP = math.radians(6.0)
_TEXT = 0.025  # height of a line in metres
_MAX_TEXT = 80
_GREY, _BLUE, _GREEN, _RED = (0.6, 0.6, 0.6), (0.1, 0.5, 1.0), (0.1, 0.7, 0.2), (0.9, 0.2, 0.1)


class Markers:
    """Publishes ``~/markers``, at most five times a second and never before a result.

    The topic is latched with a depth of one, so each message has everything.

    Args:
        link: Node and loop.
        robot: For the frame and the workspace.
        running: The calls that wait or run now.
    """

    def __init__(self, link: Link, robot: Robot, running: Callable[[], Sequence[Running]]) -> None:
        self._link = link
        self._frame = robot.base_frame
        self._workspace = robot.arm.workspace if robot.arm is not None else None
        self._running = running
        self._publisher = link.node.create_publisher(MarkerArray, "~/markers", qos.LATCHED)
        self._notes: dict[str, str] = {}
        self._last = ""
        self._last_good = True
        self._due = False
        self._closed = False
        link.loop.call_soon_threadsafe(self._publish)

    def close(self) -> None:
        """Ends the publisher."""
        self._closed = True
        self._link.node.destroy_publisher(self._publisher)

    def event(self, event: Mapping[str, Any]) -> None:
        """Takes an event of a call."""
        if event["event"] == "feedback":
            self._notes[event["tool_call_id"]] = event["detail"]
        elif event["event"] == "finished":
            self._notes.pop(event["tool_call_id"], None)
        self._soon()

    def result(self, name: str, content: str) -> None:
        """Shows a result until the next one."""
        self._last, self._last_good = f"{name}: {content}", not content.startswith("Error: ")
        self._soon()

    def _soon(self) -> None:
        if not self._due:
            self._due = True
            self._link.loop.call_later(_PERIOD, self._publish)

    def _publish(self) -> None:
        self._due = False
        if self._closed:
            return
        markers = [Marker(action=Marker.DELETEALL)]
        if self._workspace is not None:
            lines = self._make("workspace", Marker.LINE_LIST, _GREY, 0.4)
            lines.scale.x = 0.002
            lines.points = [Point(x=x, y=y, z=z) for x, y, z in outline(self._workspace)]
            markers.append(lines)
        height = self._workspace.height[1] if self._workspace is not None else 0.3
        top = height + 2 * _TEXT
        for call in self._running():
            target = _target(call.arguments)
            if target is None:
                at = (0.0, 0.0, top)
                top += 1.5 * _TEXT
            else:
                ball = self._make("target", Marker.SPHERE, _BLUE, 0.7, len(markers))
                ball.scale.x = ball.scale.y = ball.scale.z = 0.02
                _place(ball, target)
                markers.append(ball)
                at = (target[0], target[1], target[2] + 0.04)
            text = f"{call.name}: {self._notes.get(call.call_id, call.state)}"
            markers.append(self._text("call", text, at, _BLUE, len(markers)))
        if self._last:
            colour = _GREEN if self._last_good else _RED
            markers.append(self._text("result", self._last, (0.0, 0.0, top), colour))
        self._publisher.publish(MarkerArray(markers=markers))

    def _make(
        self, ns: str, kind: int, colour: tuple[float, float, float], alpha: float, index: int = 0
    ) -> Marker:
        marker = Marker(ns=ns, id=index, type=kind, action=Marker.ADD, lifetime=Duration())
        marker.header.frame_id = self._frame  # stamp 0: rviz takes the newest transform
        marker.pose.orientation.w = 1.0
        marker.color = ColorRGBA(r=colour[0], g=colour[1], b=colour[2], a=alpha)
        return marker

    def _text(
        self,
        ns: str,
        text: str,
        at: tuple[float, float, float],
        colour: tuple[float, float, float],
        index: int = 0,
    ) -> Marker:
        marker = self._make(ns, Marker.TEXT_VIEW_FACING, colour, 1.0, index)
        marker.scale.z = _TEXT
        marker.text = text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"
        _place(marker, at)
        return marker


def _target(arguments: Mapping[str, Any]) -> tuple[float, float, float] | None:
    x, y, z = (arguments.get(axis) for axis in "xyz")
    if isinstance(x, int | float) and isinstance(y, int | float) and isinstance(z, int | float):
        return float(x), float(y), float(z)
    return None


def _place(marker: Marker, at: tuple[float, float, float]) -> None:
    marker.pose.position.x, marker.pose.position.y, marker.pose.position.z = at


def outline(workspace: Workspace) -> list[tuple[float, float, float]]:
    """The edges of a workspace as pairs of points, metres in the base frame."""
    low, high = (math.radians(v) for v in workspace.azimuth_deg)
    count = max(1, math.ceil((high - low) / _STEP))
    angles = [low + (high - low) * i / count for i in range(count + 1)]

    def at(radius: float, angle: float, height: float) -> tuple[float, float, float]:
        return radius * math.cos(angle), radius * math.sin(angle), height

    points = []
    for radius in workspace.radius:
        for height in workspace.height:
            for a, b in itertools.pairwise(angles):
                points += [at(radius, a, height), at(radius, b, height)]
    if high - low < math.tau - 1e-6:
        inner, outer = workspace.radius
        bottom, top = workspace.height
        for angle in (low, high):
            corners = [
                at(inner, angle, bottom),
                at(outer, angle, bottom),
                at(outer, angle, top),
                at(inner, angle, top),
            ]
            for i, corner in enumerate(corners):
                points += [corner, corners[(i + 1) % 4]]
    return points
