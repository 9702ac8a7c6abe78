"""The running physics: servos that pull, things that lie about."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lerobot_tool_bridge.robot import Robot
from lerobot_tool_bridge.sim import model as models
from lerobot_tool_bridge.sim.gl import load_mujoco
from lerobot_tool_bridge.sim.scene import Object, Scene

_TICK = 0.005  # seconds between two looks at the clock
_BEHIND = 0.1  # seconds that physics makes up for; what is beyond is lost
_SAFE = 1e-6


@dataclass(frozen=True, slots=True)
class Pose:
    """Where a thing is in the base frame: metres, and a quaternion (w, x, y, z)."""

    position: tuple[float, float, float]
    orientation: tuple[float, float, float, float]


class Servo:
    """One driven joint.

    The goal is followed by a setpoint with limited speed; the setpoint is what the position loop
    pulls towards. All methods may be called from any thread.

    Attributes:
        joint: Its name.
        low, high: The joint's limits, radians.
    """

    def __init__(self, physics: Physics, joint: str, max_speed: float) -> None:
        self._physics = physics
        self.joint = joint
        model = physics.model
        self._actuator = model.actuator(joint).id
        self._position = int(model.joint(joint).qposadr[0])
        self._velocity = int(model.joint(joint).dofadr[0])
        self.low, self.high = (float(v) for v in model.joint(joint).range)
        self._strength = float(model.actuator_forcerange[self._actuator][1])
        self._gain = model.actuator_gainprm[self._actuator].copy()
        self._bias = model.actuator_biasprm[self._actuator].copy()
        self._max_speed = self._speed = max_speed
        self._setpoint = self._goal = self.position
        self.set_torque(False)

    @property
    def position(self) -> float:
        """Radians."""
        return float(self._physics.data.qpos[self._position])

    @property
    def velocity(self) -> float:
        """rad/s."""
        return float(self._physics.data.qvel[self._velocity])

    @property
    def load(self) -> float:
        """What it pulls with, -1..1 of the most that it can."""
        return float(self._physics.data.actuator_force[self._actuator]) / self._strength

    @property
    def torque(self) -> bool:
        """Whether it pulls at all."""
        return self._torque

    def set_goal(self, goal: float) -> None:
        """Where to go, radians."""
        self._goal = goal

    def set_torque(self, on: bool) -> None:
        """Holds its goal, or hangs loose; holding begins where it is."""
        with self._physics.lock:
            if on and getattr(self, "_torque", None) is not True:
                self._setpoint = self.position
            self._torque = on
            model = self._physics.model
            model.actuator_gainprm[self._actuator] = self._gain if on else 0.0
            model.actuator_biasprm[self._actuator] = self._bias if on else 0.0

    def set_torque_limit(self, share: float) -> None:
        """The most that it may pull with, 0..1 of its strength."""
        limit = max(_SAFE, share * self._strength)
        with self._physics.lock:
            self._physics.model.actuator_forcerange[self._actuator] = (-limit, limit)

    def set_speed_limit(self, speed: float) -> None:
        """rad/s; 0 for as fast as it can."""
        self._speed = min(speed, self._max_speed) if speed > 0 else self._max_speed

    def advance(self, step: float) -> None:
        """Moves the setpoint on. For ``Physics``, under its lock."""
        way = self._speed * step
        self._setpoint += max(-way, min(way, self._goal - self._setpoint))
        self._physics.data.ctrl[self._actuator] = self._setpoint


class Physics:
    """The model and its state, stepped in a thread in real time between ``start`` and ``stop``.

    Attributes:
        model, data: MuJoCo's; use ``data`` under ``lock``.
        servos: By joint.
        objects: By name, as in the scene.
        rate: Simulated seconds per second, lately; 1 where the machine keeps up.
    """

    def __init__(self, robot: Robot, scene: Scene, camera_fovy_deg: float = 60.0) -> None:
        self._mujoco = load_mujoco()
        self.lock = threading.RLock()
        self.model = models.build(robot, scene, camera_fovy_deg)
        self.data = self._mujoco.MjData(self.model)
        self.objects: Mapping[str, Object] = {o.name: o for o in scene.objects}
        self.rate = 1.0
        self._running = False
        self._thread: threading.Thread | None = None
        for joint, position in _start_pose(robot).items():
            self.data.qpos[self.model.joint(joint).qposadr[0]] = position
        self._mujoco.mj_forward(self.model, self.data)
        limits = models.velocity_limits(robot.urdf)
        self.servos = {
            j: Servo(self, j, limits.get(j, math.inf)) for j in models.driven_joints(robot)
        }

    def start(self) -> None:
        """Lets time pass."""
        self._running = True
        self._thread = threading.Thread(target=self._run, name="physics", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread. Safe to call twice."""
        self._running = False
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def step(self, seconds: float) -> None:
        """Steps that long at once, for tests and experiments without the thread."""
        for _ in range(max(1, round(seconds / models.TIMESTEP))):
            with self.lock:
                self._step()

    def pose(self, body: str) -> Pose:
        """Where a body (a link or an object) is."""
        with self.lock:
            data = self.data.body(body)
            x, y, z = (float(v) for v in data.xpos)
            qw, qx, qy, qz = (float(v) for v in data.xquat)
        return Pose((x, y, z), (qw, qx, qy, qz))

    def move_object(self, name: str, pose: Pose) -> None:
        """Puts an object somewhere, at rest.

        Raises:
            KeyError: There is none of that name.
        """
        joint = self.model.joint(self.objects[name].name)
        position, velocity = int(joint.qposadr[0]), int(joint.dofadr[0])
        length = math.sqrt(sum(v * v for v in pose.orientation))
        turn = [v / length for v in pose.orientation] if length > _SAFE else [1.0, 0.0, 0.0, 0.0]
        with self.lock:
            self.data.qpos[position : position + 7] = [*pose.position, *turn]
            self.data.qvel[velocity : velocity + 6] = 0.0
            self._mujoco.mj_forward(self.model, self.data)

    def reset_objects(self) -> None:
        """Puts every object back to where the scene has it."""
        for thing in self.objects.values():
            half = thing.yaw / 2
            turn = (math.cos(half), 0.0, 0.0, math.sin(half))
            self.move_object(thing.name, Pose(thing.position, turn))

    def show(self, target: Any) -> None:
        """Poses the bodies, cameras and lights of another ``MjData`` as they are now."""
        with self.lock:
            target.qpos[:] = self.data.qpos
        self._mujoco.mj_kinematics(self.model, target)
        self._mujoco.mj_camlight(self.model, target)

    def _step(self) -> None:
        for servo in self.servos.values():
            servo.advance(models.TIMESTEP)
        self._mujoco.mj_step(self.model, self.data)

    def _run(self) -> None:
        steps = round(_TICK / models.TIMESTEP)
        due = time.monotonic()
        since, done = due, 0
        while self._running:
            with self.lock:
                for _ in range(steps):
                    self._step()
            due += _TICK
            done += 1
            now = time.monotonic()
            if now < due:
                time.sleep(due - now)
            elif now > due + _BEHIND:
                due = now  # a machine that can't keep up gets slow motion, not a jump
            if now - since > 1.0:
                self.rate = done * _TICK / (now - since)
                since, done = now, 0


def _start_pose(robot: Robot) -> dict[str, float]:
    """Joint positions at power-on: the arm at home, the gripper closed, the head ahead."""
    pose: dict[str, float] = {}
    if robot.arm is not None:
        pose.update(zip(robot.arm.joints, robot.arm_pose("home"), strict=True))
    if robot.gripper is not None:
        pose[robot.gripper.joint] = robot.gripper.widths[0][0]
    if robot.gimbal is not None:
        ahead = (math.radians(v) for v in robot.gimbal.ahead_deg)
        pose.update(zip(robot.gimbal.joints, ahead, strict=True))
    return pose
