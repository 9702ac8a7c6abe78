"""An arm port right on the physics: for experiments and tests of grasping without ROS."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lerobot_tool_bridge.kinematics.chain import Chain
from lerobot_tool_bridge.ports import GripperState, Waypoint
from lerobot_tool_bridge.robot import Robot
from lerobot_tool_bridge.sim.physics import Physics, Pose
from lerobot_tool_bridge.sim.scene import Object, Scene

CUBE = 0.025
_PERIOD = 0.02
_GRIPPER_SPEED = 1.5
_STALL_TORQUE = 2.94


def one_cube(size: float = CUBE) -> Scene:
    """A table with one cube."""
    cube = Object(
        "cube", "box", (size,) * 3, (0.2, 0.0, size / 2), 0.0, (0.8, 0.1, 0.1, 1.0), 0.015
    )
    return Scene(objects=(cube,))


@dataclass
class MujocoArm:
    """Implements ``ArmPort``; time passes as fast as the physics can.

    Attributes:
        time: Simulated seconds so far.
        tool_speed, joint_speed: The highest that were measured, m/s and rad/s.
    """

    robot: Robot
    physics: Physics
    time: float = 0.0
    tool_speed: float = 0.0
    joint_speed: float = 0.0
    commands: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert self.robot.arm is not None
        assert self.robot.gripper is not None
        self._servos = [self.physics.servos[j] for j in self.robot.arm.joints]
        self._hand = self.physics.servos[self.robot.gripper.joint]
        self._chain = Chain.of(self.robot)
        self._trace: list[np.ndarray] = []
        for servo in self.physics.servos.values():
            servo.set_goal(servo.position)
            servo.set_torque(True)
        self._goal = np.array([s.position for s in self._servos])
        self._hand_goal = self._hand.position

    async def positions(self) -> tuple[float, ...]:
        return tuple(s.position for s in self._servos)

    async def move(self, path: Sequence[Waypoint]) -> tuple[float, ...]:
        self.commands.append("move")
        times = [0.0, *(w.time for w in path)]
        points = np.array([self._goal, *(w.positions for w in path)])
        for t in np.arange(_PERIOD, times[-1] + _PERIOD, _PERIOD):
            self._goal = np.array([np.interp(t, times, column) for column in points.T])
            for servo, goal in zip(self._servos, self._goal, strict=True):
                servo.set_goal(float(goal))
            self._pass(_PERIOD)
        self._settle(self._servos)
        return await self.positions()

    async def gripper_state(self) -> GripperState:
        return GripperState(self._hand.position, self._hand.load * _STALL_TORQUE, False, False)

    async def gripper(self, position: float, max_effort: float) -> GripperState:
        self.commands.append(f"gripper {position:g}")
        self._hand.set_torque_limit(max_effort / _STALL_TORQUE)
        while self._hand_goal != position:
            step = _GRIPPER_SPEED * _PERIOD
            self._hand_goal += max(-step, min(step, position - self._hand_goal))
            self._hand.set_goal(self._hand_goal)
            self._pass(_PERIOD)
        self._settle([self._hand])
        return await self.gripper_state()

    def _settle(self, servos: Sequence[object]) -> None:
        for _ in range(25):
            self._pass(_PERIOD)
            if all(abs(s.velocity) < 0.02 for s in servos):  # type: ignore[attr-defined]
                break

    def _pass(self, seconds: float) -> None:
        self.physics.step(seconds)
        self.time += seconds
        # over three periods, as a driver's joint states at 50 Hz can tell
        q = np.array([s.position for s in self._servos])
        self._trace = [*self._trace[-3:], q]
        if len(self._trace) == 4:
            a, b = self._chain.fk(self._trace[0]), self._chain.fk(q)
            way = float(np.linalg.norm(b.position - a.position))
            self.tool_speed = max(self.tool_speed, way / (3 * _PERIOD))
            turn = float(np.abs(q - self._trace[0]).max())
            self.joint_speed = max(self.joint_speed, turn / (3 * _PERIOD))


def put(physics: Physics, name: str, x: float, y: float, yaw: float, z: float = CUBE / 2) -> None:
    """Puts a thing upright on the table."""
    physics.move_object(name, Pose((x, y, z), (math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2))))


def somewhere(rng: random.Random, low: float = 0.15, high: float = 0.28) -> tuple[float, float]:
    """A place on the table in front of the arm."""
    radius, azimuth = rng.uniform(low, high), math.radians(rng.uniform(-60.0, 60.0))
    return radius * math.cos(azimuth), radius * math.sin(azimuth)
