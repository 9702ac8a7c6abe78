"""A robot under ros2_control's names that behaves as a test wants; a process of its own or not."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rclpy
from control_msgs.action import FollowJointTrajectory, GripperCommand, ParallelGripperCommand
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import JointState

from lerobot_tool_bridge.robot import Robot

ROBOT = Path(__file__).parent / "robot.yaml"


@dataclass
class _Run:
    handle: Any
    end: Future
    due: float
    target: dict[str, float]
    behaviour: str


class Server:
    """One action server.

    Attributes:
        behaviour: ``succeed``; ``reject``; ``abort`` (half-way, with ``error_code`` and
            ``error_string``); ``hang`` (never ends by itself, but can be cancelled); ``deaf``
            (hangs, accepts a cancel and does not end either); ``refuse`` (hangs and refuses
            to be cancelled); ``silent`` (does not answer a goal).
        goals: Every goal that was accepted.
        asked: Whether any goal came.
        cancels: When each was asked to cancel (``time.monotonic``).
        result: Overrides fields of the result.
    """

    def __init__(self, robot: FakeRobot, kind: Any, name: str) -> None:
        self.behaviour = "succeed"
        self.goals: list[Any] = []
        self.cancels: list[float] = []
        self.asked = False
        self.result: dict[str, Any] = {}
        self.running: list[_Run] = []
        self._robot = robot
        self._kind = kind
        self.server = ActionServer(
            robot.node,
            kind,
            name,
            execute_callback=self._execute,
            goal_callback=self._goal,
            cancel_callback=self._cancel,
            callback_group=ReentrantCallbackGroup(),  # a silent one must not hold the node up
        )

    async def _goal(self, request: Any) -> GoalResponse:
        self.asked = True
        while self.behaviour == "silent":
            await _later()
        return GoalResponse.REJECT if self.behaviour == "reject" else GoalResponse.ACCEPT

    def _cancel(self, handle: Any) -> CancelResponse:
        self.cancels.append(time.monotonic())
        return CancelResponse.REJECT if self.behaviour == "refuse" else CancelResponse.ACCEPT

    async def _execute(self, handle: Any) -> Any:
        self.goals.append(handle.request)
        target, duration = self._robot.target(handle.request)
        start = {name: self._robot.positions[name] for name in target}
        print("executing", flush=True)
        run = _Run(
            handle,
            Future(),
            time.monotonic() + duration / self._robot.haste,
            target,
            self.behaviour,
        )
        self.running.append(run)
        half = {n: (start[n] + target[n]) / 2 for n in target}
        self._robot.positions.update(half)
        await run.end
        result = self._kind.Result()
        self._robot.measure(result)
        for name, value in self.result.items():
            setattr(result, name, value)
        return result

    def step(self) -> None:
        """Ends what has to end by now."""
        for run in list(self.running):
            if run.handle.is_cancel_requested and run.behaviour != "deaf":
                run.handle.canceled()
            elif time.monotonic() < run.due or run.behaviour in ("hang", "deaf", "refuse"):
                continue
            elif run.behaviour == "abort":
                run.handle.abort()
            else:
                self._robot.reach(run.target)
                run.handle.succeed()
            self.running.remove(run)
            run.end.set_result(None)

    def release(self) -> None:
        """Ends all goals that hang."""
        for run in self.running:
            run.behaviour = "succeed"


class _later:
    """Lets the executor look again when it wakes the next time."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class FakeRobot:
    """Joint states at 50 Hz, and the three action servers.

    Args:
        node: Spun by somebody else.
        robot: Its names; None for ``robot.yaml``.
        measured: Whether it publishes joint states.

    Attributes:
        positions: Where the joints are.
        efforts: What they carry.
        told: The positions that were published last.
        haste: How many times as fast as asked it moves.
        thing: Position at which the fingers meet a thing; None for none.
    """

    def __init__(self, node: Node, robot: Robot | None = None, measured: bool = True) -> None:
        self.node = node
        self.robot = robot = robot or Robot.load(str(ROBOT))
        assert robot.arm is not None
        assert robot.gripper is not None
        head = robot.gimbal.joints if robot.gimbal is not None else ()
        self.finger = robot.gripper.joint
        self.positions = dict.fromkeys((*robot.arm.joints, self.finger, *head), 0.0)
        self.positions[self.finger] = robot.gripper.open
        self.efforts = dict.fromkeys(self.positions, 0.0)
        self.told: dict[str, float] = {}
        self.haste = 1.0
        self.thing: float | None = None
        self.measured = measured
        self._states = node.create_publisher(JointState, "joint_states", 10)
        self.arm = Server(self, FollowJointTrajectory, robot.arm.action)
        parallel = robot.gripper.type == "parallel_gripper_command"
        kind = ParallelGripperCommand if parallel else GripperCommand
        self.gripper = Server(self, kind, robot.gripper.action)
        self.servers = [self.arm, self.gripper]
        if robot.gimbal is not None:
            self.head = Server(self, FollowJointTrajectory, robot.gimbal.action)
            self.servers.append(self.head)
        self._timers = [
            node.create_timer(0.02, self._publish),
            node.create_timer(0.005, self._step),
        ]

    def close(self) -> None:
        """Ends what the node's own end would leave."""
        for timer in self._timers:
            self.node.destroy_timer(timer)
        for server in self.servers:
            server.server.destroy()

    def target(self, request: Any) -> tuple[dict[str, float], float]:
        """Where a goal wants which joints, and how long it may take."""
        if hasattr(request, "trajectory"):
            last = request.trajectory.points[-1]
            names = request.trajectory.joint_names
            duration = last.time_from_start.sec + last.time_from_start.nanosec * 1e-9
            return dict(zip(names, last.positions, strict=True)), duration
        if isinstance(request.command, JointState):
            return {self.finger: request.command.position[0]}, 0.05
        return {self.finger: request.command.position}, 0.05

    def reach(self, target: dict[str, float]) -> None:
        """Goes there, but for fingers that close on a thing."""
        self.positions.update(target)
        held = self.thing is not None and self.positions[self.finger] <= self.thing
        if held:
            self.positions[self.finger] = self.thing
        self.efforts[self.finger] = 10.0 if held else 0.0

    def measure(self, result: Any) -> None:
        """Fills in a gripper's result."""
        position, effort = self.positions[self.finger], self.efforts[self.finger]
        if hasattr(result, "state"):
            result.state = JointState(name=[self.finger], position=[position], effort=[effort])
        elif hasattr(result, "effort"):
            result.position, result.effort = position, effort
        if hasattr(result, "stalled"):
            result.stalled, result.reached_goal = effort > 0, effort == 0

    def _publish(self) -> None:
        if self.measured:
            message = JointState(name=list(self.positions))
            message.header.stamp = self.node.get_clock().now().to_msg()
            message.position = list(self.positions.values())
            message.effort = list(self.efforts.values())
            self._states.publish(message)
            self.told = dict(self.positions)

    def _step(self) -> None:
        for server in self.servers:
            server.step()


def main() -> None:
    """Runs it as a process; parameters ``behaviour`` (of all servers) and ``measured``."""
    rclpy.init()
    node = Node("fake_robot")
    robot = FakeRobot(node, measured=node.declare_parameter("measured", True).value)
    behaviour = node.declare_parameter("behaviour", "succeed").value
    for server in robot.servers:
        server.behaviour = behaviour
    print("ready", flush=True)
    rclpy.spin(node)


if __name__ == "__main__":
    main()
