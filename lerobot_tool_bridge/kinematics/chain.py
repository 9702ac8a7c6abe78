"""A serial arm out of a URDF: where its tool point is, and how it moves with the joints.

Everything is vectorised: ``q`` may be one pose ``(n,)`` or many ``(..., n)``.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.robot import Robot

Array = npt.NDArray[np.float64]
_MOVABLE = ("revolute", "continuous", "prismatic")


class Pose(NamedTuple):
    """Where a frame is in the base frame.

    Attributes:
        position: ``(..., 3)``, metres.
        rotation: ``(..., 3, 3)``; its columns are the frame's x, y and z axes.
    """

    position: Array
    rotation: Array


@dataclass(frozen=True, slots=True)
class Joint:
    """One movable joint.

    Attributes:
        name: As in the URDF and in the joint states.
        kind: ``revolute``, ``continuous`` or ``prismatic``.
        lower: Limit, radians or metres; ``-inf`` for a continuous joint.
        upper: Limit; ``inf`` for a continuous joint.
        velocity: Limit, rad/s or m/s; ``inf`` where the URDF names none.
        axis: Unit vector in the joint's frame.
        offset: Fixed translation from the joint before (from the base for the first one).
        turn: Fixed rotation, likewise.
    """

    name: str
    kind: str
    lower: float
    upper: float
    velocity: float
    axis: Array
    offset: Array
    turn: Array


class Chain:
    """The joints between two links, and the fixed way from the last joint to the tip.

    Attributes:
        joints: From the base to the tip, which is also the order of every ``q``.
        lower, upper: Joint limits ``(n,)``.
        velocity: Speed limits ``(n,)``.
    """

    def __init__(self, joints: Sequence[Joint], tip_offset: Array, tip_turn: Array) -> None:
        self.joints = tuple(joints)
        self.lower = np.array([j.lower for j in joints])
        self.upper = np.array([j.upper for j in joints])
        self.velocity = np.array([j.velocity for j in joints])
        self._tip_offset, self._tip_turn = tip_offset, tip_turn
        self._slides = [j.kind == "prismatic" for j in joints]
        # turn @ rotation(axis, q) = a + sin(q) b + cos(q) c
        self._parts = []
        for joint in joints:
            k = _cross_matrix(joint.axis)
            k2 = k @ k
            self._parts.append((joint.turn @ (np.eye(3) + k2), joint.turn @ k, -joint.turn @ k2))

    @classmethod
    def of(cls, robot: Robot) -> Chain:
        """The arm of a robot, in the order of ``Robot.arm.joints``."""
        assert robot.arm is not None
        return cls.from_urdf(
            robot.urdf,
            robot.base_frame,
            robot.arm.tool_frame,
            robot.arm.joints,
            robot.arm.limits_deg,
        )

    @classmethod
    def from_urdf(
        cls,
        path: Path,
        base: str,
        tip: str,
        joints: Sequence[str] | None = None,
        limits_deg: Mapping[str, tuple[float, float]] | None = None,
    ) -> Chain:
        """Reads the chain between two links.

        Args:
            path: The URDF.
            base: Link whose frame everything is in.
            tip: Link of the tool point.
            joints: The movable joints that are expected, from base to tip.
            limits_deg: Narrower limits by joint, degrees (metres for a prismatic joint).

        Raises:
            LoadError: ``bad_file``: it can't be read, or has no such chain.
        """
        try:
            root = ElementTree.parse(path).getroot()
        except (OSError, ElementTree.ParseError) as error:
            raise LoadError("bad_file", f"{path} can't be read as a URDF: {error}") from None
        parents = {}
        for element in root.findall("joint"):
            child = element.find("child")
            if child is not None:
                parents[child.get("link", "")] = element
        way: list[ElementTree.Element] = []
        link = tip
        while link != base:
            if link not in parents or len(way) > 1000:
                raise LoadError("bad_file", f"{path} has no chain of joints from {base} to {tip}.")
            way.insert(0, parents[link])
            parent = parents[link].find("parent")
            link = "" if parent is None else parent.get("link", "")
        found, offset, turn = [], np.zeros(3), np.eye(3)
        for element in way:
            xyz, rotation = _origin(element, path)
            offset, turn = offset + turn @ xyz, turn @ rotation
            if element.get("type") == "fixed":
                continue
            found.append(_joint(element, offset, turn, path, limits_deg or {}))
            offset, turn = np.zeros(3), np.eye(3)
        names = [j.name for j in found]
        if joints is not None and names != list(joints):
            raise LoadError(
                "bad_file",
                f"{path}: the movable joints from {base} to {tip} are {', '.join(names)}; the "
                f"robot's file names {', '.join(joints)} (arm.joints, from base to tip).",
            )
        return cls(found, offset, turn)

    def __len__(self) -> int:
        return len(self.joints)

    def fk(self, q: npt.ArrayLike) -> Pose:
        """The tool frame in the base frame."""
        pose, _, _ = self._walk(np.asarray(q, dtype=float))
        return pose

    def points(self, q: npt.ArrayLike) -> Array:
        """Where the joints' origins are, then the tool point: ``(..., n + 1, 3)``."""
        pose, origins, _ = self._walk(np.asarray(q, dtype=float))
        return np.stack([*origins, pose.position], axis=-2)

    def fk_jacobian(self, q: npt.ArrayLike) -> tuple[Pose, Array]:
        """The tool frame, and the geometric Jacobian ``(..., 6, n)`` of its point.

        Rows 0-2 are the tool point's velocity and rows 3-5 the angular velocity, both in the base
        frame, for unit speed of each joint.
        """
        pose, origins, axes = self._walk(np.asarray(q, dtype=float))
        jacobian = np.empty((*pose.position.shape[:-1], 6, len(self)))
        for i, slides in enumerate(self._slides):
            if slides:
                jacobian[..., :3, i], jacobian[..., 3:, i] = axes[i], 0.0
            else:
                jacobian[..., :3, i] = _cross(axes[i], pose.position - origins[i])
                jacobian[..., 3:, i] = axes[i]
        return pose, jacobian

    def jacobian(self, q: npt.ArrayLike) -> Array:
        """The Jacobian alone; see ``fk_jacobian``."""
        return self.fk_jacobian(q)[1]

    def clip(self, q: npt.ArrayLike) -> Array:
        """The nearest pose within the joint limits."""
        clipped: Array = np.clip(np.asarray(q, dtype=float), self.lower, self.upper)
        return clipped

    def nearest(self, q: npt.ArrayLike, to: npt.ArrayLike) -> Array:
        """The same pose with each joint turned by whole turns, as near to ``to`` as limits allow.

        A continuous joint that reads -3.1404 goes to 3.1409 by 0.0019 rad and not by a full turn.
        """
        q, to = np.array(q, dtype=float), np.asarray(to, dtype=float)
        for i, joint in enumerate(self.joints):
            if joint.kind == "prismatic":
                continue
            turns = np.round((to[..., i] - q[..., i]) / math.tau)
            moved = q[..., i] + math.tau * turns
            fits = (moved >= joint.lower - 1e-9) & (moved <= joint.upper + 1e-9)
            q[..., i] = np.where(fits, moved, q[..., i])
        return q

    def _walk(self, q: Array) -> tuple[Pose, list[Array], list[Array]]:
        """The tool frame; each joint's origin and axis in the base frame."""
        shape = q.shape[:-1]
        position = np.zeros((*shape, 3))
        rotation = np.broadcast_to(np.eye(3), (*shape, 3, 3))
        sin, cos = np.sin(q)[..., None, None], np.cos(q)[..., None, None]
        origins, axes = [], []
        for i, joint in enumerate(self.joints):
            position = position + rotation @ joint.offset
            if self._slides[i]:
                rotation = rotation @ joint.turn
                axis = rotation @ joint.axis
                position = position + axis * q[..., i, None]
            else:
                a, b, c = self._parts[i]
                rotation = rotation @ (a + sin[..., i, :, :] * b + cos[..., i, :, :] * c)
                axis = rotation @ joint.axis
            origins.append(position)
            axes.append(axis)
        position = position + rotation @ self._tip_offset
        return Pose(position, rotation @ self._tip_turn), origins, axes


def joint_range(path: Path, name: str) -> tuple[float, float] | None:
    """The limits of any joint of a URDF, radians or metres; None where it has none.

    Raises:
        LoadError: ``bad_file``: the URDF can't be read.
    """
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        raise LoadError("bad_file", f"{path} can't be read as a URDF: {error}") from None
    for element in root.findall("joint"):
        if element.get("name") == name and element.find("limit") is not None:
            joint = _joint(element, np.zeros(3), np.eye(3), path, {})
            return joint.lower, joint.upper
    return None


def _cross(a: Array, b: Array) -> Array:
    """``np.cross`` for vectors of three, several times as fast."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    out[..., 0] = a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1]
    out[..., 1] = a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2]
    out[..., 2] = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return out


def _cross_matrix(v: Array) -> Array:
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def _vector(text: str, path: Path, what: str) -> Array:
    try:
        vector = np.array([float(word) for word in text.split()])
    except ValueError:
        vector = np.empty(0)
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise LoadError("bad_file", f"{path}: {what} should be three numbers, it is {text!r}.")
    return vector


def _origin(element: ElementTree.Element, path: Path) -> tuple[Array, Array]:
    origin = element.find("origin")
    attributes: Mapping[str, str] = {} if origin is None else origin.attrib
    what = f"the origin of joint {element.get('name')}"
    xyz = _vector(attributes.get("xyz", "0 0 0"), path, what)
    roll, pitch, yaw = _vector(attributes.get("rpy", "0 0 0"), path, what)
    x, y, z = (
        np.eye(3) + math.sin(angle) * k + (1 - math.cos(angle)) * (k @ k)
        for angle, k in zip((roll, pitch, yaw), map(_cross_matrix, np.eye(3)), strict=True)
    )
    return xyz, z @ y @ x


def _joint(
    element: ElementTree.Element,
    offset: Array,
    turn: Array,
    path: Path,
    limits_deg: Mapping[str, tuple[float, float]],
) -> Joint:
    name, kind = element.get("name", ""), element.get("type", "")
    if kind not in _MOVABLE or element.find("mimic") is not None:
        raise LoadError(
            "bad_file",
            f"{path}: joint {name} is {kind or 'of no type'}"
            f"{' and mimics another' if kind in _MOVABLE else ''}; an arm's joints should be "
            f"one of {', '.join(_MOVABLE)}, each driven by itself.",
        )
    axis_element = element.find("axis")
    text = "1 0 0" if axis_element is None else axis_element.get("xyz", "1 0 0")
    axis = _vector(text, path, f"the axis of joint {name}")
    length = float(np.linalg.norm(axis))
    if length < 1e-9:
        raise LoadError("bad_file", f"{path}: the axis of joint {name} is zero.")
    limit = element.find("limit")
    given: Mapping[str, Any] = {} if limit is None else limit.attrib
    try:
        lower, upper = float(given.get("lower", 0.0)), float(given.get("upper", 0.0))
        velocity = float(given.get("velocity", 0.0)) or math.inf
    except ValueError:
        raise LoadError(
            "bad_file", f"{path}: the limits of joint {name} are no numbers."
        ) from None
    if kind == "continuous":
        lower, upper = -math.inf, math.inf
    if name in limits_deg:
        low, high = limits_deg[name]
        if kind != "prismatic":
            low, high = math.radians(low), math.radians(high)
        lower, upper = max(lower, low), min(upper, high)
    if not lower < upper:
        raise LoadError(
            "bad_file", f"{path}: joint {name} can't move: its limits are {lower} and {upper}."
        )
    return Joint(name, kind, lower, upper, velocity, axis / length, offset, turn)
