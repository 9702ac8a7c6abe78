"""A robot under ros2_control's names that behaves as a test wants; a process of its own or not."""

from __future__ import annotations

import time
from typing import Any

import rclpy
from control_msgs.action import FollowJointTrajectory, GripperCommand, ParallelGripperCommand
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import JointState

ARM = tuple(f"joint_{i}" for i in range(1, 7))
GRIPPER = "finger_joint"
HEAD = ("head_pan", "head_tilt")


class Server:
    """One action server.

    Attributes:
        behaviour: ``succeed``; ``reject``; ``abort`` (half-way, with ``error_code`` and
            ``error_string``); ``hang`` (never ends by itself, but can be cancelled); ``deaf``
            (hangs, accepts a cancel and does not end either); ``refuse`` (hangs and refuses
            to be cancelled); ``silent`` (does not answer a goal).
        goals: Every goal that was accepted.
        cancels: When each was asked to cancel (``time.monotonic``).
        result: Overrides fields of the result.
    """

    def __init__(self, robot: FakeRobot, kind: Any, name: str) -> None:
        self.behaviour = "succeed"
        self.goals: list[Any] = []
        self.cancels: list[float] = []
        self.result: dict[str, Any] = {}
        self.running: list[tuple[Any, Future, float, dict[str, float]]] = []
        self._robot = robot
        self._kind = kind
        self.server = ActionServer(
            robot.node,
            kind,
            name,
            execute_callback=self._execute,
            goal_callback=self._goal,
            cancel_callback=self._cancel,
        )

    async def _goal(self, request: Any) -> GoalResponse:
        while self.behaviour == "silent":
            await Future()
        return GoalResponse.REJECT if self.behaviour == "reject" else GoalResponse.ACCEPT

    def _cancel(self, handle: Any) -> CancelResponse:
        self.cancels.append(time.monotonic())
        return CancelResponse.REJECT if self.behaviour == "refuse" else CancelResponse.ACCEPT

    async def _execute(self, handle: Any) -> Any:
        self.goals.append(handle.request)
        target, duration = self._robot.target(handle.request)
        start = {name: self._robot.positions[name] for name in target}
        begin, end = time.monotonic(), Future()
        self.running.append((handle, end, begin + duration, target))
        half = {n: (start[n] + target[n]) / 2 for n in target}
        self._robot.positions.update(half)
        await end
        result = self._kind.Result()
        for name, value in self.result.items():
            setattr(result, name, value)
        return result

    def step(self) -> None:
        """Ends what has to end by now."""
        for item in list(self.running):
            handle, end, due, target = item
            if handle.is_cancel_requested and self.behaviour != "deaf":
                handle.canceled()
            elif time.monotonic() < due or self.behaviour in ("hang", "deaf", "refuse"):
                continue
            elif self.behaviour == "abort":
                handle.abort()
            else:
                self._robot.positions.update(target)
                handle.succeed()
            self.running.remove(item)
            end.set_result(None)


class FakeRobot:
    """Joint states at 50 Hz, and the three action servers.

    Args:
        node: Spun by somebody else.
        parallel: Whether the gripper takes ParallelGripperCommand.
    """

    def __init__(self, node: Node, parallel: bool = False) -> None:
        self.node = node
        self.positions = dict.fromkeys((*ARM, GRIPPER, *HEAD), 0.0)
        self.positions[GRIPPER] = 0.04
        self.efforts = dict.fromkeys(self.positions, 0.0)
        self.measured = True
        self._states = node.create_publisher(JointState, "joint_states", 10)
        trajectory = "follow_joint_trajectory"
        self.arm = Server(self, FollowJointTrajectory, f"arm_controller/{trajectory}")
        self.head = Server(self, FollowJointTrajectory, f"gimbal_controller/{trajectory}")
        kind = ParallelGripperCommand if parallel else GripperCommand
        self.gripper = Server(self, kind, "gripper_controller/gripper_cmd")
        self._timers = [
            node.create_timer(0.02, self._publish),
            node.create_timer(0.005, self._step),
        ]

    def target(self, request: Any) -> tuple[dict[str, float], float]:
        """Where a goal wants which joints, and how long it may take."""
        if hasattr(request, "trajectory"):
            last = request.trajectory.points[-1]
            names = request.trajectory.joint_names
            duration = last.time_from_start.sec + last.time_from_start.nanosec * 1e-9
            return dict(zip(names, last.positions, strict=True)), duration
        if isinstance(request.command, JointState):
            return {GRIPPER: request.command.position[0]}, 0.05
        return {GRIPPER: request.command.position}, 0.05

    def close(self) -> None:
        """Takes it off the node."""
        for timer in self._timers:
            self.node.destroy_timer(timer)
        for server in (self.arm, self.head, self.gripper):
            server.server.destroy()
        self.node.destroy_publisher(self._states)

    def _publish(self) -> None:
        if self.measured:
            message = JointState(name=list(self.positions))
            message.header.stamp = self.node.get_clock().now().to_msg()
            message.position = list(self.positions.values())
            message.effort = list(self.efforts.values())
            self._states.publish(message)

    def _step(self) -> None:
        for server in (self.arm, self.head, self.gripper):
            server.step()


def main() -> None:
    """Runs it as a process, with ``behaviour`` for the arm."""
    rclpy.init()
    node = Node("fake_robot")
    robot = FakeRobot(node)
    robot.arm.behaviour = node.declare_parameter("behaviour", "succeed").value
    print("ready", flush=True)
    rclpy.spin(node)


if __name__ == "__main__":
    main()
