"""A scene as one YAML file: the table, and the things that lie on it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lerobot_tool_bridge import share
from lerobot_tool_bridge.core.errors import LoadError

SHAPES = {"box": 3, "cylinder": 2, "sphere": 1}
"""How many numbers a shape's size has: edges; diameter and height; diameter."""


@dataclass(frozen=True, slots=True)
class Object:
    """A thing that can be moved.

    Attributes:
        shape: ``box``, ``cylinder`` or ``sphere``.
        size: Edges of a box, diameter and height of a cylinder, diameter of a sphere; metres.
        position: Of its centre in the base frame, metres.
        yaw: Around the vertical, radians.
        color: Red, green, blue, opacity; 0..1.
        mass: kg.
    """

    name: str
    shape: str
    size: tuple[float, ...]
    position: tuple[float, float, float]
    yaw: float
    color: tuple[float, float, float, float]
    mass: float

    @property
    def extent(self) -> tuple[float, float, float]:
        """Size of the box around it, upright."""
        if self.shape == "box":
            return self.size[0], self.size[1], self.size[2]
        return self.size[0], self.size[0], self.size[-1]


@dataclass(frozen=True, slots=True)
class Scene:
    """What is around the robot.

    Attributes:
        table_size: Along x and y, metres; its top is the base frame's z = 0.
        table_center: Its middle, metres.
        table_color: Red, green, blue, opacity.
    """

    table_size: tuple[float, float] = (0.9, 1.1)
    table_center: tuple[float, float] = (0.25, 0.0)
    table_color: tuple[float, ...] = (0.8, 0.78, 0.74, 1.0)
    objects: tuple[Object, ...] = field(default_factory=tuple)

    @classmethod
    def load(cls, name_or_path: str) -> Scene:
        """Reads a scene file.

        Args:
            name_or_path: ``cubes`` for ``config/scenes/cubes.yaml``, or a path that ends in
                ``.yaml``.

        Raises:
            LoadError: ``bad_file``; the text names the file, the key and what is expected.
        """
        path, data = share.config("scene", name_or_path)
        return _scene(data if data is not None else {}, str(path))


def _scene(data: Any, where: str) -> Scene:
    data = _mapping(data, where, {"table", "objects"})
    table = _mapping(data.get("table", {}), f"{where}: table", {"size", "center", "color"})
    objects = data.get("objects", {})
    if not isinstance(objects, dict):
        raise LoadError("bad_file", f"{where}: objects should be a mapping from name to object.")
    default = Scene()
    size = _numbers(table.get("size", default.table_size), f"{where}: table.size", 2)
    center = _numbers(table.get("center", default.table_center), f"{where}: table.center", 2)
    return Scene(
        table_size=(size[0], size[1]),
        table_center=(center[0], center[1]),
        table_color=_color(table.get("color", default.table_color), f"{where}: table.color"),
        objects=tuple(_object(str(k), v, f"{where}: objects.{k}") for k, v in objects.items()),
    )


def _object(name: str, data: Any, where: str) -> Object:
    keys = {"shape", "size", "position", "yaw_deg", "color", "mass"}
    data = _mapping(data, where, keys)
    shape = data.get("shape", "box")
    if shape not in SHAPES:
        raise LoadError("bad_file", f"{where}.shape should be one of {', '.join(SHAPES)}.")
    size = _numbers(data.get("size"), f"{where}.size", SHAPES[shape])
    if min(size) <= 0:
        raise LoadError("bad_file", f"{where}.size should be above 0.")
    position = data.get("position")
    if isinstance(position, list) and len(position) == 2:  # on the table
        position = [*position, size[-1] / 2]
    x, y, z = _numbers(position, f"{where}.position", 3)
    (yaw,) = _numbers([data.get("yaw_deg", 0.0)], f"{where}.yaw_deg", 1)
    volume = math.prod(size) if shape == "box" else size[0] ** 2 * size[-1]
    (mass,) = _numbers([data.get("mass", 1000.0 * volume)], f"{where}.mass", 1)
    if mass < 1e-4:
        raise LoadError("bad_file", f"{where}.mass should be at least 0.0001 kg.")
    color = _color(data.get("color", [0.5, 0.5, 0.5]), f"{where}.color")
    return Object(name, shape, size, (x, y, z), math.radians(yaw), color, mass)


def _mapping(data: Any, where: str, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise LoadError("bad_file", f"{where} should be a mapping, it is {data!r}.")
    unknown = sorted(str(k) for k in data if k not in known)
    if unknown:
        raise LoadError(
            "bad_file",
            f"{where} has unknown keys: {', '.join(unknown)}. Known: {', '.join(sorted(known))}.",
        )
    return data


def _numbers(value: Any, where: str, count: int) -> tuple[float, ...]:
    good = isinstance(value, (list, tuple)) and len(value) == count
    if not good or any(
        isinstance(v, bool) or not isinstance(v, (int, float)) or not math.isfinite(v)
        for v in value
    ):
        raise LoadError("bad_file", f"{where} should be {count} number(s), it is {value!r}.")
    return tuple(float(v) for v in value)


def _color(value: Any, where: str) -> tuple[float, float, float, float]:
    if isinstance(value, (list, tuple)) and len(value) == 3:
        value = [*value, 1.0]
    color = _numbers(value, where, 4)
    if min(color) < 0 or max(color) > 1:
        raise LoadError("bad_file", f"{where} should be 3 or 4 numbers from 0 to 1.")
    return color[0], color[1], color[2], color[3]
