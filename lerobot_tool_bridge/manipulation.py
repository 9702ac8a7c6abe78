"""What the arm's tools share: plans, moves, and what the gripper says about what it holds."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lerobot_tool_bridge.core.errors import LoadError, Rejection, ToolFailure
from lerobot_tool_bridge.kinematics.grasp import Planner
from lerobot_tool_bridge.ports import ArmPort, GripperState, Ports
from lerobot_tool_bridge.robot import Gripper, Robot, Workspace

APPROACH_SPEED = 0.12
"""Speed of the tool point close to things, m/s."""

_ROOM = 0.004  # metres that the fingers have to be wider than the thing


class Mover:
    """One arm with or without a gripper, as the tools use it.

    Args:
        robot: Has an arm.
        port: What moves it; None where nothing may move (the offline checker).
        settings: Of the tool: ``workspace`` and ``max_tool_speed``.

    Raises:
        LoadError: The robot's URDF or the settings can't be used.
    """

    def __init__(self, robot: Robot, port: ArmPort | None, settings: Mapping[str, Any]) -> None:
        assert robot.arm is not None
        self.robot = robot
        arm = robot.arm
        speed = settings.get("max_tool_speed", arm.max_tool_speed)
        if isinstance(speed, bool) or not isinstance(speed, (int, float)) or not speed > 0:
            raise LoadError("bad_file", f"max_tool_speed should be a speed in m/s, not {speed!r}.")
        arm = dataclasses.replace(
            arm,
            workspace=_narrowed(arm.workspace, settings.get("workspace", {})),
            max_tool_speed=min(float(speed), arm.max_tool_speed),
        )
        self.planner = Planner(dataclasses.replace(robot, arm=arm))
        self._port = port

    @property
    def port(self) -> ArmPort:
        """The arm.

        Raises:
            ToolFailure: There is none.
        """
        if self._port is None:
            raise ToolFailure("unavailable", "The arm is not connected to the bridge.")
        return self._port

    # --- moving -----------------------------------------------------------------------------

    async def go(self, goal: npt.ArrayLike, share: float = 1.0) -> tuple[float, ...]:
        """Moves through the air to a hover or a named pose, from where the arm is now.

        Args:
            goal: Pose.
            share: Of the arm's speeds.
        """
        start = await self.port.positions()
        way = await asyncio.to_thread(self.planner.route, start, goal)
        path = await asyncio.to_thread(self.planner.timed, way, None, share)
        return await self.port.move(path) if path else start

    async def go_home(self) -> tuple[float, ...]:
        """Moves to where the arm is out of the way."""
        return await self.go(self.robot.arm_pose("home"))

    async def follow(
        self, way: npt.NDArray[np.float64], speed: float | None = APPROACH_SPEED
    ) -> tuple[float, ...]:
        """Moves along poses, from where the arm is now."""
        start = np.array(await self.port.positions())
        path = self.planner.timed(np.concatenate([start[None], way[1:]]), speed)
        return await self.port.move(path) if path else tuple(start)

    async def held(self) -> float:
        """Width of what the gripper holds, metres; 0 where it holds nothing."""
        return 0.0

    # --- saying -----------------------------------------------------------------------------

    def where(self, q: Sequence[float], width: float = 0.0) -> str:
        """The point between the fingers, in words."""
        x, y, z = (float(v) for v in self.planner.center(q, width))
        return f"x={x:.3f} y={y:.3f} z={z:.3f} m"

    def off(self, q: Sequence[float], goal: npt.ArrayLike) -> float:
        """How far the tool point is from where another pose has it, metres."""
        chain = self.planner.chain
        return float(np.linalg.norm(chain.fk(q).position - chain.fk(goal).position))

    async def explained(self, failure: ToolFailure, doing: str) -> ToolFailure:
        """A failure in the middle of a motion, with where the arm is now.

        The arm is left where it is: what stopped it is not known, so no motion is safer than one.
        """
        if failure.code == "cancel_unconfirmed":
            return failure
        try:
            here = self.where(await self.port.positions())
            where = f"The arm holds still with its fingers at {here}."
        except ToolFailure:
            where = "Where the arm is now is not known."
        return ToolFailure(failure.code, f"Failed while {doing}. {failure.message} {where}")


class Manipulator(Mover):
    """One arm and its gripper.

    Args:
        robot: Has an arm and a gripper.
        port: See ``Mover``.
        settings: See ``Mover``.

    Raises:
        LoadError: The robot's URDF or the settings can't be used.
    """

    def __init__(self, robot: Robot, port: ArmPort | None, settings: Mapping[str, Any]) -> None:
        assert robot.gripper is not None
        super().__init__(robot, port, settings)
        self.gripper: Gripper = robot.gripper

    @classmethod
    def of(cls, ports: Ports, settings: Mapping[str, Any]) -> Manipulator | None:
        """None where the robot has no arm with a gripper, or is not known."""
        robot = ports.robot
        if robot is None or robot.arm is None or robot.gripper is None:
            return None
        return cls(robot, ports.arm, settings)

    async def open(self) -> GripperState:
        """Opens the gripper."""
        return await self.port.gripper(self.gripper.open, self.gripper.max_effort)

    async def close(self) -> GripperState:
        """Closes the gripper, on a thing or until it is shut."""
        return await self.port.gripper(self.gripper.closed, self.gripper.max_effort)

    # --- judging ----------------------------------------------------------------------------

    async def held(self) -> float:
        state = await self.port.gripper_state()
        return self.width(state) if self.holds(state) else 0.0

    def width(self, state: GripperState) -> float:
        """How far the fingers are apart, metres."""
        if not math.isfinite(state.position):
            raise ToolFailure("unavailable", "The gripper does not tell how far it is open.")
        positions, widths = zip(*self.gripper.widths, strict=True)
        return float(np.interp(state.position, positions, widths))

    @property
    def open_width(self) -> float:
        """How far the fingers are apart when open, metres."""
        positions, widths = zip(*self.gripper.widths, strict=True)
        return float(np.interp(self.gripper.open, positions, widths))

    @property
    def max_width(self) -> float:
        """The widest thing that fits between the fingers, metres."""
        room = self.robot.grasp.clearance + _ROOM
        return math.floor((self.open_width - room) * 1000) / 1000

    def holds(self, state: GripperState) -> bool:
        """Whether something is between the fingers: by opening and effort, never by flags.

        Where effort isn't measured, open fingers hold nothing.
        """
        width = self.width(state)
        if width <= self.gripper.held_width:
            return False
        if self.gripper.held_effort > 0:
            return abs(state.effort) >= self.gripper.held_effort
        return width < self.open_width - _ROOM


def mover(ports: Ports, settings: Mapping[str, Any]) -> Mover | None:
    """The arm, with its gripper where it has one; None where there is no arm."""
    if ports.robot is None or ports.robot.arm is None:
        return None
    return Manipulator.of(ports, settings) or Mover(ports.robot, ports.arm, settings)


def area(workspace: Workspace) -> str:
    """A workspace in words, for a tool's description."""
    low, high = workspace.azimuth_deg
    text = (
        f"Within reach: {workspace.radius[0]:g} to {workspace.radius[1]:g} m from the z axis "
        "(sqrt(x² + y²))"
    )
    if high - low < 360:
        text += f", {low:g} to {high:g} degrees around it (0 is ahead, 90 is left)"
    return f"{text}, z {workspace.height[0]:g} to {workspace.height[1]:g} m above the table."


def coordinates(
    what: str,
    workspace: Workspace | None,
    note: str = " A 25 mm cube that lies on the table has z = 0.0125.",
) -> dict[str, Any]:
    """The arguments x, y and z; limits stand in words, for a refusal that says the reach."""
    reach, height = "", ""
    if workspace is not None:
        reach = f" At most {workspace.radius[1]:g} from the base."
        height = f", {workspace.height[0]:g} to {workspace.height[1]:g}"
    return {
        "x": {"type": "number", "description": f"Metres ahead of the robot's base.{reach}"},
        "y": {
            "type": "number",
            "description": f"Metres to the left of the base, negative to the right.{reach}",
        },
        "z": {
            "type": "number",
            "description": f"Height of {what} over the table, metres{height}.{note}",
        },
    }


def refuse_millimetres(arguments: Mapping[str, Any]) -> None:
    """Says so where numbers look like millimetres.

    Raises:
        Rejection: ``unreachable``.
    """
    big = [name for name in ("x", "y", "z") if abs(arguments[name]) >= 10]
    if big:
        given = ", ".join(f"{name}={arguments[name]:g}" for name in big)
        raise Rejection("unreachable", f"{given} is out of reach. x, y and z are metres.")


def _narrowed(workspace: Workspace, settings: Any) -> Workspace:
    """The part of a workspace that a site allows."""
    if not isinstance(settings, Mapping):
        raise LoadError("bad_file", "workspace should be a mapping: radius, height, azimuth_deg.")
    known = {f.name for f in dataclasses.fields(workspace)}
    changed: dict[str, tuple[float, float]] = {}
    for name, value in settings.items():
        if (
            name not in known
            or not isinstance(value, (list, tuple))
            or len(value) != 2
            or any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in value)
        ):
            raise LoadError(
                "bad_file",
                f"workspace.{name} should be one of {', '.join(sorted(known))}, each a list of "
                f"two numbers; it is {value!r}.",
            )
        low, high = getattr(workspace, name)
        changed[name] = (max(low, float(value[0])), min(high, float(value[1])))
        if not changed[name][0] < changed[name][1]:
            raise LoadError("bad_file", f"workspace.{name} leaves nothing of {[low, high]}.")
    return dataclasses.replace(workspace, **changed)  # type: ignore[arg-type]
