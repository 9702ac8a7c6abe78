"""``gimbal_driver``: a pan/tilt head as two joints behind FollowJointTrajectory.

A joint's angle in radians is the head's angle in degrees (0–270), converted. Where the servos
measure nothing (hobby servos), ``joint_states`` has the commanded positions, and nothing before
the first goal: nobody knows where the head is then. That first goal is one slow move at the speed
limit over the whole range, as it might have to go all the way, whatever time it asks for.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionServer, CancelResponse
from rclpy.task import Future
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectoryPoint

from lerobot_tool_bridge.drivers import goals
from lerobot_tool_bridge.drivers.arm.control import (
    ArmControl,
    Code,
    Ending,
    GoalError,
    Joint,
    Point,
    Status,
    Tolerances,
    Trajectory,
)
from lerobot_tool_bridge.drivers.feetech.bus import BusError
from lerobot_tool_bridge.drivers.gimbal.protocol import (
    PROTOCOLS,
    Axis,
    HeadProtocol,
    State,
    find,
)
from lerobot_tool_bridge.node.diagnostics import ERROR, OK
from lerobot_tool_bridge.node.managed import ManagedNode, NodeError, run
from lerobot_tool_bridge.node.parameters import Param
from lerobot_tool_bridge.robot import Range, Robot

RECONNECT_PERIOD = 0.5
REFRESH_PERIOD = 1.0
"""Seconds after which an unchanged command is sent again, for what was lost on the wire."""
FEEDBACK_PERIOD = 0.1
GOAL_TIME = 2.0

PARAMETERS = (
    Param("robot", "so101", "The robot's description: a name in config/robots, or a .yaml file."),
    Param("protocol", "zl_ascii", "What the servos speak.", choices=tuple(PROTOCOLS)),
    Param("port", "", "Serial port of the head (/dev/ttyUSB0)."),
    Param("baud_rate", 0, "Of the port; 0 is the protocol's own.", low=0, high=3_000_000),
    Param("servo_ids", [0, 1], "Ids of the pan and the tilt servo."),
    Param(
        "pan_pulse_us",
        [500.0, 2500.0],
        "PWM servos: pulses at both ends of pan_pulse_deg, µs; from high to low where it is "
        "mounted the other way round.",
    ),
    Param("pan_pulse_deg", [0.0, 270.0], "PWM servos: pan angles at pan_pulse_us, degrees."),
    Param("tilt_pulse_us", [500.0, 2500.0], "PWM servos: as pan_pulse_us."),
    Param("tilt_pulse_deg", [0.0, 270.0], "PWM servos: tilt angles at tilt_pulse_us, degrees."),
    Param(
        "center_ticks",
        [0, 0],
        "Bus servos: readings where pan and tilt are at 135°; 0 for the middle of their range.",
    ),
    Param(
        "inverted",
        [False, False],
        "Bus servos and waveshare_json: whether they count against the joint.",
    ),
    Param(
        "max_speed",
        0.0,
        "Speed limit of each joint, rad/s; 0 takes the robot's.",
        low=0.0,
        high=20.0,
    ),
    Param("rate", 50.0, "Control periods and joint states a second.", low=10.0, high=200.0),
    Param(
        "start_tolerance",
        0.1,
        "A first point at time 0 has to be as near to the head as that, rad.",
        low=0.0,
        high=1.0,
    ),
    Param(
        "goal_tolerance",
        0.05,
        "A joint that measures has arrived when it is as near as that, rad.",
        low=0.001,
        high=1.0,
    ),
    Param(
        "release_on_deactivate",
        False,
        "Let the head hang loose when the driver is deactivated or ends, where servos can.",
    ),
)


@dataclass(slots=True)
class _Goal:
    handle: Any
    ending: Future


class GimbalDriver(ManagedNode):
    """See the module."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("gimbal_driver", PARAMETERS, **kwargs)
        self._axes: tuple[Axis, ...] = ()
        self._head: HeadProtocol | None = None
        self._control = ArmControl((), 1.0)
        self._measured: State | None = None
        self._known = False  # whether it is known where the head is
        self._active = False
        self._holding = False
        self._trouble = ""
        self._goal: _Goal | None = None
        self._timer: Any = None
        self._publisher: Any = None
        self._server: Any = None
        self._last_tick = 0.0
        self._retry_at = 0.0
        self._feedback_at = 0.0
        self._sent: tuple[list[float], float] = ([], 0.0)
        self._said_commanded = False

    # --- life cycle ---------------------------------------------------------------------------

    def configure(self) -> None:
        robot = Robot.load(self.param("robot"))
        if robot.gimbal is None:
            raise NodeError(f"{robot.path} describes no gimbal.")
        speed = self.param("max_speed") or robot.gimbal.max_speed
        limits = (robot.gimbal.pan_deg, robot.gimbal.tilt_deg)
        self._axes = tuple(
            self._axis(index, name, limits[index], speed)
            for index, name in enumerate(robot.gimbal.joints)
        )
        joints = [axis.joint for axis in self._axes]
        self._control = ArmControl(joints, 1.0 / self.param("rate"), "head")
        self._known = False
        self._measured = None
        self._connect()
        self._publisher = self.create_publisher(JointState, robot.gimbal.joint_states, 10)
        if self._server is None:  # it stays: it may have results to deliver
            self._server = ActionServer(
                self,
                FollowJointTrajectory,
                robot.gimbal.action,
                self._follow,
                cancel_callback=lambda _: CancelResponse.ACCEPT,
            )
        self.diagnostics.hardware_id = self.param("port")
        self.diagnostics.add("head", self._check)
        self._last_tick = time.monotonic()
        self._timer = self.steady_timer(1.0 / self.param("rate"), self._tick)
        self.get_logger().info(f"Head on {self.param('port')} ({self.param('protocol')}).")
        if not self._measures and not self._said_commanded:
            self._said_commanded = True
            self.get_logger().info(
                "Its servos report no position: joint_states are what was commanded."
            )

    def activate(self) -> None:
        if self._head is None:
            raise NodeError(self._trouble)
        self._active = True
        self._take_over(self._head)

    def deactivate(self) -> None:
        moved = self._goal is not None
        self._end(Ending(Status.ABORTED, Code.INVALID_GOAL, "The driver was deactivated."))
        held, self._active, self._holding = self._holding, False, False
        if not held or self._head is None:
            return
        try:
            if moved:
                self._head.stop()
            if self.param("release_on_deactivate"):
                self._head.release()
        except BusError as error:
            self.get_logger().error(f"The head may still move or hold: {error}")

    def cleanup(self) -> None:
        if self._timer is not None:
            self.destroy_timer(self._timer)
        if self._publisher is not None:
            self.destroy_publisher(self._publisher)
        if self._head is not None:
            self._head.close()
        self._timer = self._publisher = self._head = None
        self.diagnostics.clear()

    def _axis(self, index: int, name: str, limits_deg: Range, speed: float) -> Axis:
        which = ("pan", "tilt")[index]
        pulse_us = _pair(self.param(f"{which}_pulse_us"), f"{which}_pulse_us")
        pulse_deg = _pair(self.param(f"{which}_pulse_deg"), f"{which}_pulse_deg")
        for other in ("servo_ids", "center_ticks", "inverted"):
            _pair(self.param(other), other, different=other == "servo_ids")
        axis = Axis(
            Joint(name, math.radians(limits_deg[0]), math.radians(limits_deg[1]), speed),
            self.param("servo_ids")[index],
            pulse_us,
            pulse_deg,
            self.param("center_ticks")[index],
            self.param("inverted")[index],
            index,
        )
        # its servo may not reach all of it
        low, high = find(self.param("protocol")).reach_deg(axis)
        low, high = max(low, limits_deg[0]), min(high, limits_deg[1])
        if not low < high:
            raise NodeError(
                f"The {which} servo reaches nothing of {limits_deg[0]:g}° to {limits_deg[1]:g}°. "
                "See center_ticks, inverted and the pulses."
            )
        return replace(axis, joint=Joint(name, math.radians(low), math.radians(high), speed))

    # --- the head -----------------------------------------------------------------------------

    @property
    def _measures(self) -> bool:
        return self._head is not None and self._head.measures

    def _connect(self) -> None:
        kind = find(self.param("protocol"))
        self._head = kind(self.param("port"), self.param("baud_rate"), self._axes)
        self._trouble = ""

    def _take_over(self, head: HeadProtocol) -> None:
        held = head.hold()
        if held is not None:
            self._control.hold(held)
            self._known = True
        self._holding = True

    def _lost(self, error: BusError) -> Ending:
        """The port is gone: ends the goal, and returns how."""
        if self._head is not None:
            self._head.close()
        self._head = None
        self._holding = self._known = False  # it may lose its power, and be turned by hand
        self._trouble = str(error)
        self.get_logger().error(f"Lost the head: {error} Trying to reconnect.")
        ending = Ending(Status.ABORTED, Code.INVALID_GOAL, f"The driver lost the head: {error}")
        self._end(ending)
        self._retry_at = time.monotonic() + RECONNECT_PERIOD
        self.diagnostics.publish()
        return ending

    def _retry(self, now: float) -> None:
        self._retry_at = now + RECONNECT_PERIOD
        try:
            if self._head is None:
                self._connect()
            if self._active and self._head is not None:
                self._take_over(self._head)
        except BusError as error:
            if self._head is not None:
                self._head.close()
                self._head = None
            if str(error) != self._trouble:
                self.get_logger().error(f"The head can't go on: {error}")
            self._trouble = str(error)
            return
        self.get_logger().info(f"Reconnected to {self.param('port')}.")
        self.diagnostics.publish()

    # --- one period ---------------------------------------------------------------------------

    def _tick(self) -> None:
        now = time.monotonic()
        elapsed, self._last_tick = now - self._last_tick, now
        if self._head is None or (self._active and not self._holding):
            if now < self._retry_at:
                return
            self._retry(now)
        head = self._head
        if head is None:
            return
        try:
            measured = self._measured = head.read()
            if self._holding:
                self._step(head, now, elapsed, measured)
        except BusError as error:
            self._lost(error)
            return
        if measured is not None:
            self._publish(measured)
        elif self._known:
            _, velocities = self._control.desired
            still = [0.0] * len(self._axes)
            moving = self._control.busy and velocities
            self._publish(State(self._control.command, velocities if moving else still))

    def _step(
        self, head: HeadProtocol, now: float, elapsed: float, measured: State | None
    ) -> None:
        control, goal = self._control, self._goal
        state = measured or State(control.command, [0.0] * len(self._axes))
        if goal is not None and goal.handle.is_cancel_requested:
            if self._known:
                control.hold(state.positions)
                self._write(head, now)
                text = "Canceled; the head holds."
            else:
                control.hold(control.command)
                head.stop()
                text = "Canceled on the first move: the head was told to stop."
            self._end(Ending(Status.CANCELED, Code.SUCCESSFUL, text))
            return
        ending = control.step(elapsed, state.positions, state.velocities)
        if self._known:
            self._write(head, now)
        if ending is not None:
            self._known = True
            self._end(ending)
        elif goal is not None and now >= self._feedback_at:
            self._feedback_at = now + FEEDBACK_PERIOD
            self._feedback(goal, state.positions)

    def _write(self, head: HeadProtocol, now: float) -> None:
        """Sends the command if it is a new one, or was sent a while ago."""
        command, sent_at = self._sent
        if command == self._control.command and now - sent_at < REFRESH_PERIOD:
            return
        self._sent = (list(self._control.command), now)
        head.write(self._control.command, 1.0 / self.param("rate"))

    def _publish(self, state: State) -> None:
        message = JointState(name=[axis.joint.name for axis in self._axes])
        message.header.stamp = self.get_clock().now().to_msg()
        message.position, message.velocity = state.positions, state.velocities
        self._publisher.publish(message)

    def _feedback(self, goal: _Goal, positions: Sequence[float]) -> None:
        wanted, speeds = self._control.desired
        if not wanted or not self._known:
            return
        feedback = FollowJointTrajectory.Feedback()
        feedback.header.stamp = self.get_clock().now().to_msg()
        feedback.joint_names = [axis.joint.name for axis in self._axes]
        feedback.desired = JointTrajectoryPoint(positions=wanted, velocities=speeds)
        feedback.actual = JointTrajectoryPoint(positions=list(positions))
        feedback.error = JointTrajectoryPoint(
            positions=[w - p for w, p in zip(wanted, positions, strict=True)]
        )
        goal.handle.publish_feedback(feedback)

    # --- goals --------------------------------------------------------------------------------

    async def _follow(self, handle: Any) -> Any:
        """Runs one goal to its end."""
        try:
            goal = self._start(handle)
        except GoalError as error:
            self.get_logger().warning(f"Refused a trajectory: {error}")
            ending = Ending(Status.ABORTED, error.code, str(error))
        except BusError as error:
            ending = self._lost(error)
        else:
            ending = await goal.ending
        if ending.status is Status.SUCCEEDED:
            handle.succeed()
        elif ending.status is Status.CANCELED:
            handle.canceled()
        else:
            handle.abort()
        return FollowJointTrajectory.Result(error_code=int(ending.code), error_string=ending.text)

    def _start(self, handle: Any) -> _Goal:
        head = self._head
        if head is None or not self._holding:
            why = self._trouble or f"the driver is {self.state}; activate it first."
            raise GoalError(Code.INVALID_GOAL, f"The head can't move: {why}")
        request, joints = handle.request, self._control.joints
        points = goals.points(request.trajectory, joints)
        tolerances = goals.tolerances(
            request, joints, 0.0, self.param("goal_tolerance"), GOAL_TIME
        )
        if not self._known:
            trajectory = self._first(points)
            wait = 0.0
        else:
            trajectory = Trajectory(
                joints,
                self._control.commanded(),
                self._measured.positions if self._measured else self._control.command,
                points,
                self.param("start_tolerance"),
            )
            stamp = request.trajectory.header.stamp
            wait = goals.delay(stamp, self.get_clock(), trajectory.duration)
        self._end(
            Ending(Status.ABORTED, Code.PATH_TOLERANCE_VIOLATED, "A new goal replaced this one.")
        )
        if not self._known:
            self._control.hold(trajectory.end)
            head.write(trajectory.end, trajectory.duration)
        if not head.measures:
            tolerances = Tolerances((None, None), (None, None), tolerances.goal_time)
        self._control.start(trajectory, tolerances, wait)
        self._goal = _Goal(handle, Future(executor=self.executor))
        return self._goal

    def _first(self, points: Sequence[Point]) -> Trajectory:
        """The way to the last point from wherever the head is: as long as that may take."""
        joints = self._control.joints
        if not points:
            raise GoalError(Code.INVALID_GOAL, "The trajectory has no points.")
        whole = max((j.high - j.low) / j.speed for j in joints)
        end = points[-1]
        if not math.isfinite(end.time):
            raise GoalError(Code.INVALID_GOAL, "The last point has no finite time.")
        there = Point(0.0, end.positions)
        last = Point(max(whole, end.time), end.positions)
        return Trajectory(joints, there, end.positions, [last], 0.0)

    def _end(self, ending: Ending) -> None:
        goal, self._goal = self._goal, None
        if ending.status is Status.ABORTED and self._control.busy:
            self._control.hold(self._control.command)
        if goal is None:
            return
        if ending.status is Status.ABORTED:
            self.get_logger().warning(ending.text)
        goal.ending.set_result(ending)

    # --- diagnostics --------------------------------------------------------------------------

    def _check(self) -> tuple[bytes, str, Mapping[str, Any]]:
        values: dict[str, Any] = {
            "protocol": self.param("protocol"),
            "positions": "measured" if self._measures else "commanded, not measured",
            "moving": self._goal is not None,
        }
        if self._known:
            for axis, position in zip(self._axes, self._control.command, strict=True):
                values[axis.joint.name] = f"{math.degrees(position):.1f}°"
        if self._head is None:
            return ERROR, self._trouble or "not connected", values
        if self._active and not self._holding:
            return ERROR, self._trouble, values
        where = "" if self._known else "; nobody knows where it is before its first move"
        return OK, f"connected to {self.param('port')}{where}", values


def _pair(values: Sequence[Any], name: str, different: bool = True) -> tuple[Any, Any]:
    if len(values) != 2 or (different and values[0] == values[1]):
        kind = "two different values" if different else "two values"
        raise NodeError(f"{name} is {list(values)}; it should have {kind}.")
    return values[0], values[1]


def main() -> int:
    """Runs the node."""
    return run(GimbalDriver)


if __name__ == "__main__":
    sys.exit(main())
