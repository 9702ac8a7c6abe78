"""What the tests of the arm driver share: an emulated arm, its robot file, and a client."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from builtin_interfaces.msg import Duration
from control_msgs.action import FollowJointTrajectory, GripperCommand
from diagnostic_msgs.msg import DiagnosticArray
from harness import Process, Ros, Spawner, wait_for
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.action import ActionClient
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectoryPoint

from lerobot_tool_bridge.drivers.feetech import registers as reg
from lerobot_tool_bridge.sim.devices.feetech import FeetechBus, SimpleServo

JOINTS = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll"]
ALL = [*JOINTS, "gripper"]
TICK = 2 * math.pi / 4096
SPEED = 1.5

# As in case D01 of the field, with an offset that fits
CALIBRATION: dict[str, Any] = {
    "shoulder_pan": (1, -35, 771, 3341),
    "shoulder_lift": (2, 982, 850, 3190),
    "elbow_flex": (3, -1411, 880, 3090),
    "wrist_flex": (4, 604, 900, 3230),
    "wrist_roll": (5, 212, 0, 4095),
    "gripper": (6, -1120, 2010, 3480),
}
CALIBRATION = {
    name: {"id": i, "drive_mode": 0, "homing_offset": h, "range_min": low, "range_max": high}
    for name, (i, h, low, high) in CALIBRATION.items()
}


def robot_file(folder: Path) -> Path:
    """A robot like the SO-101, with nothing but what the driver reads."""
    limits = {"shoulder_pan": 110, "shoulder_lift": 100, "elbow_flex": 96.8, "wrist_flex": 95}
    joints = "".join(
        f'<joint name="{name}" type="revolute"><limit lower="{low}" upper="{high}"/></joint>'
        for name in ALL
        for high in [math.radians(limits.get(name, 157 if name == "wrist_roll" else 100))]
        for low in [-high if name != "gripper" else math.radians(-10)]
    )
    (folder / "arm.urdf").write_text(f'<robot name="arm">{joints}</robot>')
    path = folder / "arm.yaml"
    path.write_text(
        f"""
name: arm
description: an arm of the tests
urdf: arm.urdf
arm:
  joints: [{", ".join(JOINTS)}]
  tool_frame: tool
  workspace: {{radius: [0.1, 0.3], height: [0.0, 0.3]}}
  poses_deg: {{home: [0, 0, 0, 0, 0]}}
  max_joint_speed: {SPEED}
gripper:
  joint: gripper
  unit: rad
  open: 1.0
  closed: 0.0
  widths: [[0.0, 0.0], [1.0, 0.06]]
  held_width: 0.005
"""
    )
    return path


def write_calibration(path: Path, **changes: Any) -> Path:
    """A calibration file; ``changes`` replace joints, None takes one out."""
    content = {**CALIBRATION, **changes}
    path.write_text(json.dumps({k: v for k, v in content.items() if v is not None}, indent=4))
    return path


def load_calibration(bus: FeetechBus) -> None:
    """Puts the calibration into the servos' memory, and every joint into its middle."""
    for entry in CALIBRATION.values():
        servo = bus.servos[entry["id"]]
        bus.poke(entry["id"], reg.HOMING_OFFSET, entry["homing_offset"])
        bus.poke(entry["id"], reg.MIN_POSITION, entry["range_min"])
        bus.poke(entry["id"], reg.MAX_POSITION, entry["range_max"])
        servo.place(entry["homing_offset"] + (entry["range_min"] + entry["range_max"]) / 2)


class Arm:
    """Six emulated servos, the driver in a process of its own, and a client of it."""

    def __init__(self, ros: Ros, spawn: Spawner, folder: Path) -> None:
        self.ros = ros
        self.spawn = spawn
        self.folder = folder
        self.robot = robot_file(folder)
        self.servos = {i: SimpleServo() for i in range(1, 7)}
        self.bus = FeetechBus(self.servos, folder / "dev" / "arm").start()
        self.goals: list[tuple[int, int]] = []
        self.writes: list[tuple[int, int, bytes]] = []
        self.bus.on_write = self._note
        self.states: list[JointState] = []
        self.health: list[Any] = []
        ros.node.create_subscription(
            JointState, "joint_states", self.states.append, qos_profile_sensor_data
        )
        ros.node.create_subscription(
            DiagnosticArray, "/diagnostics", lambda m: self.health.extend(m.status), 10
        )
        self.follow = ros.make(
            lambda: ActionClient(
                ros.node, FollowJointTrajectory, "arm_controller/follow_joint_trajectory"
            )
        )
        self.grip = ros.make(
            lambda: ActionClient(ros.node, GripperCommand, "gripper_controller/gripper_cmd")
        )
        self._get_state = ros.node.create_client(GetState, "arm_driver/get_state")
        self._change_state = ros.node.create_client(ChangeState, "arm_driver/change_state")
        self.process: Process | None = None

    def _note(self, id: int, address: int, data: bytes) -> None:
        self.writes.append((id, address, data))
        end = address + len(data)
        if address <= reg.GOAL_POSITION.address and end >= reg.GOAL_POSITION.address + 2:
            at = reg.GOAL_POSITION.address - address
            value = int.from_bytes(data[at : at + 2], "little")
            self.goals.append((id, value))

    def start(self, *ros_args: str, **parameters: Any) -> Process:
        """Starts the driver."""
        parameters = {"robot": str(self.robot), "port": self.bus.port, **parameters}
        self.process = self.spawn.node(
            "lerobot_tool_bridge.drivers.arm.node", *ros_args, **parameters
        )
        return self.process

    def start_active(self, **parameters: Any) -> Process:
        """Starts the driver and waits until it holds the arm."""
        process = self.start(**parameters)
        self.wait_state("active")
        self.follow.wait_for_server(10.0)
        self.grip.wait_for_server(10.0)
        wait_for(lambda: self.states, name="joint states")
        return process

    def state(self) -> str:
        """The driver's state; empty where it does not say."""
        if not self._get_state.wait_for_service(2.0):
            return ""
        try:  # a killed process may be taken for the server for a while
            future = self._get_state.call_async(GetState.Request())
            return str(self.ros.result(future, 2.0).current_state.label)
        except TimeoutError:
            return ""

    def wait_state(self, state: str) -> None:
        try:
            wait_for(lambda: self.state() == state)
        except TimeoutError:
            raise AssertionError(f"not {state}, it said:\n{self.output}") from None

    def change(self, transition: int) -> bool:
        request = ChangeState.Request()
        request.transition.id = transition
        assert self._change_state.wait_for_service(10.0)
        return bool(self.ros.result(self._change_state.call_async(request)).success)

    @property
    def output(self) -> str:
        return self.process.output if self.process is not None else ""

    def send(
        self,
        points: Sequence[tuple[Sequence[float], float]],
        names: Sequence[str] = JOINTS,
        **fields: Any,
    ) -> Any:
        """Sends a trajectory of (positions, time); returns the handle of the accepted goal."""
        goal = FollowJointTrajectory.Goal(**fields)
        goal.trajectory.joint_names = list(names)
        goal.trajectory.points = [
            JointTrajectoryPoint(positions=[float(p) for p in ps], time_from_start=seconds(t))
            for ps, t in points
        ]
        handle = self.ros.result(self.follow.send_goal_async(goal), name="goal response")
        assert handle.accepted
        handle.answer = handle.get_result_async()
        return handle

    def move(self, points: Any, names: Sequence[str] = JOINTS, **fields: Any) -> Any:
        """Sends a trajectory and returns (status, result)."""
        answer = self.end(self.send(points, names, **fields))
        return answer.status, answer.result

    def end(self, handle: Any, limit: float = 30.0) -> Any:
        return self.ros.result(handle.answer, limit, "result")

    def close_gripper(self, position: float, effort: float = 0.0) -> Any:
        goal = GripperCommand.Goal()
        goal.command.position = position
        goal.command.max_effort = effort
        handle = self.ros.result(self.grip.send_goal_async(goal), name="goal response")
        handle.answer = handle.get_result_async()
        answer = self.end(handle)
        return answer.status, answer.result

    def angle(self, id: int) -> float:
        """Where a servo stands, radians about 2048."""
        return (self.servos[id].position_ticks() - reg.CENTER) * TICK

    def max_step(self) -> float:
        """The largest step between two goals of any servo, rad."""
        return max(
            abs(after - before) * TICK
            for id in self.servos
            for mine in [[g for i, g in self.goals if i == id]]
            for before, after in itertools.pairwise(mine)
        )

    def diagnostic(self, name: str) -> Any:
        """The newest status of one check."""
        found = [s for s in self.health if s.name == f"arm_driver: {name}"]
        return found[-1] if found else None

    def close(self) -> None:
        self.follow.destroy()
        self.grip.destroy()
        self.bus.stop()


def seconds(value: float) -> Duration:
    whole = math.floor(value)
    return Duration(sec=whole, nanosec=round((value - whole) * 1e9))
