"""``arm_driver``: an arm and a gripper of Feetech servos, with ROS's standard interfaces.

One thread does it all: in every period it reads the servos, moves the control on, writes the
goals and publishes the joint states; goals, cancels and services come in between.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from control_msgs.action import FollowJointTrajectory, GripperCommand
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
    GripperControl,
    GripperEnding,
    Joint,
    Status,
    Trajectory,
)
from lerobot_tool_bridge.drivers.arm.servos import Sample, ServoJoint, Servos, Unfit, urdf_limits
from lerobot_tool_bridge.drivers.feetech import calibration
from lerobot_tool_bridge.drivers.feetech.bus import BAUD_RATE, BusError, NoReply, ServoBus
from lerobot_tool_bridge.drivers.feetech.protocol import ErrorBits, describe_errors
from lerobot_tool_bridge.node.diagnostics import ERROR, OK, WARN
from lerobot_tool_bridge.node.managed import ManagedNode, NodeError, run
from lerobot_tool_bridge.node.parameters import Param
from lerobot_tool_bridge.robot import Robot

T = TypeVar("T")
NAME = "arm_driver"
RECONNECT_PERIOD = 1.0
SILENCE_LIMIT = 1.0
"""Seconds without all servos' replies, after which the arm counts as missing or lost. A busy
machine keeps a USB port waiting for a part of that; a cable that fell out stays out."""
WARM = 10
"""Degrees below the servo's own limit at which its temperature becomes a warning."""
FEEDBACK_RATE = 10.0

PARAMETERS = (
    Param("robot", "so101", "The robot's description: a name in config/robots, or a .yaml file."),
    Param("port", "", "Serial port of the servo bus (/dev/ttyACM0)."),
    Param("baud_rate", BAUD_RATE, "Of the servo bus.", low=9600, high=3_000_000),
    Param(
        "servo_ids",
        [1, 2, 3, 4, 5, 6],
        "Ids of the servos, in the order of the robot's arm joints and then its gripper.",
    ),
    Param(
        "calibration_file",
        "",
        "LeRobot's calibration of this arm (JSON). Without one, and without robot_id, the "
        "servos' own offsets count: a joint is at zero where its servo reads 2048.",
    ),
    Param(
        "robot_id",
        "",
        "LeRobot's id of this arm: <id>.json in LeRobot's calibration folder is the file.",
    ),
    Param("rate", 50.0, "Control periods and joint states a second.", low=10.0, high=200.0),
    Param(
        "max_speed",
        0.0,
        "Speed limit of each arm joint, rad/s; 0 takes max_joint_speed of the robot's file.",
        low=0.0,
        high=10.0,
    ),
    Param("gripper_max_speed", 3.0, "Speed limit of the gripper, rad/s.", low=0.1, high=10.0),
    Param(
        "start_tolerance",
        0.1,
        "A first point at time 0 has to be as near to the arm as that, rad.",
        low=0.0,
        high=1.0,
    ),
    Param(
        "path_tolerance",
        0.5,
        "A joint that is farther from its trajectory ends the goal, rad; 0 for none. A goal may "
        "bring its own.",
        low=0.0,
        high=10.0,
    ),
    Param(
        "goal_tolerance",
        0.07,
        "A joint has arrived when it is as near as that, rad. A goal may bring its own.",
        low=0.001,
        high=1.0,
    ),
    Param(
        "goal_time",
        2.0,
        "Seconds after its end that a trajectory may take to arrive. A goal may bring its own.",
        low=0.0,
        high=60.0,
    ),
    Param(
        "position_margin",
        0.1,
        "How far outside its range a joint may be for torque to go on, rad.",
        low=0.0,
        high=1.0,
    ),
    Param(
        "torque_off_on_deactivate",
        True,
        "Let the arm hang loose when the driver is deactivated or ends; false leaves it holding.",
    ),
    Param(
        "stall_torque",
        2.94,
        "The servos' torque at full drive, Nm: the unit of efforts (drive times this).",
        low=0.1,
        high=100.0,
    ),
    Param("gripper_tolerance", 0.03, "The gripper has arrived when it is as near as that, rad.",
          low=0.001, high=1.0),
    Param("gripper_stall_time", 0.4, "Seconds without moving after which the gripper has stalled.",
          low=0.1, high=5.0),
    Param("gripper_timeout", 8.0, "Seconds after which a gripper command is aborted.",
          low=0.5, high=60.0),
    Param(
        "allow_stalling",
        True,
        "A gripper command that ends in a stall (on an object) succeeded; false aborts it.",
    ),
)  # fmt: skip


@dataclass(slots=True)
class _Goal:
    """A goal that runs: its handle, and what its end is told to."""

    handle: Any
    future: Any


class ArmDriver(ManagedNode):
    """The node; see the module and ``PARAMETERS``."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(NAME, PARAMETERS, **kwargs)
        self._joints: tuple[ServoJoint, ...] = ()
        self._arm_size = 0
        self._calibration_file: Path | None = None
        self._servos: Servos | None = None
        self._samples: list[Sample] = []
        self._arm = ArmControl((), 1.0)
        self._gripper: GripperControl | None = None
        self._arm_goal: _Goal | None = None
        self._gripper_goal: _Goal | None = None
        self._effort_share = 1.0  # of the gripper's most torque, as its last command had it
        self._full_torque = 1.0
        self._active = False
        self._holding = False  # torque is on and goals are written
        self._trouble = ""  # why it is not holding though it is active
        self._missed = 0
        self._answered = 0.0
        self._retry_at = 0.0
        self._last_tick = 0.0
        self._last_feedback = 0.0
        self._periods = 0
        self._reported = (0, 0.0)
        self._reconnects = 0
        self._timer: Any = None
        self._publisher: Any = None
        self._message = JointState()
        self._servers: list[Any] = []

    # --- life cycle -----------------------------------------------------------------------

    def configure(self) -> None:
        robot = Robot.load(self.param("robot"))
        self._make_joints(robot)
        self._servos = _patiently(self._open)
        self._samples = _patiently(self._servos.read)
        self._trouble = ""
        self._full_torque = self.param("stall_torque")
        assert robot.arm is not None
        self._publisher = self.create_publisher(JointState, robot.arm.joint_states, 10)
        self._message = JointState(name=[j.name for j in self._joints])
        self._make_servers(robot)
        self.diagnostics.hardware_id = self.param("port")
        self.diagnostics.add("bus", self._check_bus)
        for index, joint in enumerate(self._joints):
            self.diagnostics.add(joint.name, partial(self._check_joint, index))
        self._last_tick = self._answered = time.monotonic()
        self._reported = (self._periods, self._last_tick)
        self._timer = self.steady_timer(1.0 / self.param("rate"), self._tick)
        self.get_logger().info(
            f"{len(self._joints)} servos on {self.param('port')}, "
            f"{self._calibration_file or 'no calibration file: 2048 ticks are zero'}"
        )

    def activate(self) -> None:
        if self._servos is None:
            raise NodeError(self._trouble)
        _patiently(self._take_over)
        self._active = True

    def deactivate(self) -> None:
        self._end_goals("The driver was deactivated.")
        held, self._holding, self._active = self._holding, False, False
        if not held or self._servos is None:
            return
        try:
            if self.param("torque_off_on_deactivate"):
                self._servos.torque_off()
            else:
                self._hold_here()
                self._servos.write(self._commands())
        except BusError as error:
            self.get_logger().error(f"The arm may still hold: {error}")

    def cleanup(self) -> None:
        # The action servers stay: they have results to deliver, and answer when there is no arm
        if self._timer is not None:
            self.destroy_timer(self._timer)
        if self._publisher is not None:
            self.destroy_publisher(self._publisher)
        if self._servos is not None:
            self._servos.close()
        self._timer = self._publisher = self._servos = None
        self.diagnostics.clear()

    def _make_joints(self, robot: Robot) -> None:
        """Joints, limits and calibration, from the robot's files and the parameters."""
        if robot.arm is None:
            raise NodeError(f"{robot.path} describes no arm.")
        names = list(robot.arm.joints)
        if robot.gripper is not None:
            names.append(robot.gripper.joint)
        ids = self.param("servo_ids")
        if len(ids) != len(names) or len(set(ids)) != len(ids):
            raise NodeError(
                f"servo_ids is {ids}; it should have a different id for each of "
                f"{', '.join(names)}."
            )
        limits = dict(urdf_limits(robot.urdf, names))
        for name, (low, high) in robot.arm.limits_deg.items():
            least, most = limits[name]
            limits[name] = (max(least, math.radians(low)), min(most, math.radians(high)))
        joints = [ServoJoint(n, i, *limits[n]) for n, i in zip(names, ids, strict=True)]
        self._calibration_file = self._find_calibration()
        if self._calibration_file is not None:
            read = calibration.load(self._calibration_file, {j.name: j.id for j in joints})
            grip = robot.gripper.joint if robot.gripper is not None else ""
            joints = [j.calibrated(read[j.name], j.name == grip) for j in joints]
        self._joints = tuple(joints)
        self._arm_size = len(robot.arm.joints)
        period = 1.0 / self.param("rate")
        speed = self.param("max_speed") or robot.arm.max_joint_speed
        controlled = [Joint(j.name, j.low, j.high, speed) for j in joints[: self._arm_size]]
        self._arm = ArmControl(controlled, period)
        self._gripper = None
        if robot.gripper is not None:
            if robot.gripper.type != "gripper_command":
                raise NodeError(
                    f"{robot.path}: gripper.type is {robot.gripper.type}; this driver offers "
                    "gripper_command."
                )
            last = joints[-1]
            self._gripper = GripperControl(
                Joint(last.name, last.low, last.high, self.param("gripper_max_speed")),
                period,
                tolerance=self.param("gripper_tolerance"),
                stall_time=self.param("gripper_stall_time"),
                stall_distance=0.01,
                timeout=self.param("gripper_timeout"),
            )

    def _find_calibration(self) -> Path | None:
        if self.param("calibration_file"):
            return Path(self.param("calibration_file")).expanduser()
        if self.param("robot_id"):
            return calibration.find(self.param("robot_id"))
        return None

    def _make_servers(self, robot: Robot) -> None:
        if self._servers:
            return
        assert robot.arm is not None
        kinds: list[tuple[Any, str, Any]] = [
            (FollowJointTrajectory, robot.arm.action, self._follow)
        ]
        if robot.gripper is not None:
            kinds.append((GripperCommand, robot.gripper.action, self._grip))
        self._servers = [
            ActionServer(
                self, kind, name, execute, cancel_callback=lambda _: CancelResponse.ACCEPT
            )
            for kind, name, execute in kinds
        ]

    # --- servos ---------------------------------------------------------------------------

    def _open(self) -> Servos:
        bus = ServoBus.open(self.param("port"), self.param("baud_rate"))
        try:
            return Servos(bus, self._joints)
        except BaseException:
            bus.close()
            raise

    def _take_over(self) -> None:
        """Judges the hardware and turns torque on where it stands."""
        assert self._servos is not None
        self._samples = self._servos.judge(self.param("position_margin"))
        self._holding = True
        held = self._servos.torque_on(self._samples)
        self._effort_share = 1.0
        self._arm.hold(held[: self._arm_size])
        if self._gripper is not None:
            self._gripper.hold(held[-1])
        self._trouble = ""

    def _lost(self, error: BusError) -> None:
        """The bus is gone: ends everything that needs it, and tries to get it back."""
        assert self._servos is not None
        self._servos.close()
        self._servos = None
        self._holding = False
        self._trouble = str(error)
        self.get_logger().error(f"Lost the arm: {error} Trying to reconnect.")
        self._end_goals(f"The driver lost the arm: {error}")
        self._retry_at = time.monotonic() + RECONNECT_PERIOD
        self.diagnostics.publish()

    def _let_go(self, now: float) -> None:
        """Servos came back without torque: their power was away. Takes over again, as at start.

        Going on would pull the joints from where they fell to where they were, all at once.
        """
        self._holding = False
        self._trouble = "The servos lost their power for a moment; check plug and supply."
        self.get_logger().error(self._trouble)
        self._end_goals(self._trouble)
        self._retry_at = now

    def _retry(self, now: float) -> None:
        """Reconnects, and takes over where the driver is active."""
        self._retry_at = now + RECONNECT_PERIOD
        try:
            if self._servos is None:
                self._servos = self._open()
                self._samples = self._servos.read()
                self._answered = time.monotonic()
                self._reconnects += 1
                self.get_logger().info(f"Reconnected to {self.param('port')}.")
            if self._active:
                self._take_over()
                self.get_logger().info("The arm holds again.")
        except (BusError, Unfit) as error:
            if self._servos is not None and not isinstance(error, Unfit):
                self._servos.close()
                self._servos = None
            self._holding = False
            if str(error) != self._trouble:
                self.get_logger().error(f"The arm can't go on: {error}")
            self._trouble = str(error)
            return
        self._trouble = ""
        self.diagnostics.publish()

    def _commands(self) -> list[float]:
        if self._gripper is None:
            return self._arm.command
        return [*self._arm.command, self._gripper.command]

    def _hold_here(self) -> None:
        positions = [s.position for s in self._samples]
        self._arm.hold(positions[: self._arm_size])
        if self._gripper is not None:
            self._gripper.hold(positions[-1])

    # --- one period -----------------------------------------------------------------------

    def _tick(self) -> None:
        now = time.monotonic()
        elapsed, self._last_tick = now - self._last_tick, now
        troubled = self._servos is None or (self._active and not self._holding)
        if troubled and now >= self._retry_at:
            self._retry(now)
        servos = self._servos
        if servos is None:
            return
        try:
            self._samples = servos.read()
            self._answered = now
            if self._missed and self._holding and not servos.all_hold():
                self._let_go(now)
            self._missed = 0
            if self._holding:
                self._step(now, elapsed)
                servos.write(self._commands())
        except NoReply as error:
            self._missed += 1
            if self._missed > 2 and now - self._answered > SILENCE_LIMIT:
                self._missed = 0
                self._lost(error)
            return
        except BusError as error:
            self._lost(error)
            return
        self._periods += 1
        self._publish()

    def _step(self, now: float, elapsed: float) -> None:
        """Moves arm and gripper on, and ends their goals."""
        n = self._arm_size
        positions = [s.position for s in self._samples]
        if self._arm_goal is not None:
            if self._arm_goal.handle.is_cancel_requested:
                self._arm.hold(positions[:n])
                self._end_arm(Ending(Status.CANCELED, Code.SUCCESSFUL, "Canceled; the arm holds."))
            else:
                ending = self._arm.step(
                    elapsed, positions[:n], [s.velocity for s in self._samples[:n]]
                )
                if ending is not None:
                    self._end_arm(ending)
                elif now - self._last_feedback > 1.0 / FEEDBACK_RATE:
                    self._last_feedback = now
                    self._feedback(positions[:n])
        gripper = self._gripper
        if gripper is None:
            return
        if self._gripper_goal is not None and self._gripper_goal.handle.is_cancel_requested:
            gripper.hold(positions[-1])
            self._end_gripper(Status.CANCELED)
            return
        closed = gripper.step(elapsed, positions[-1])
        if closed is not None and self._gripper_goal is not None:
            good = closed.reached or (closed.stalled and self.param("allow_stalling"))
            self._end_gripper(Status.SUCCEEDED if good else Status.ABORTED, closed)

    def _publish(self) -> None:
        message = self._message
        message.header.stamp = self.get_clock().now().to_msg()
        message.position = [s.position for s in self._samples]
        message.velocity = [s.velocity for s in self._samples]
        message.effort = [s.load * self._full_torque for s in self._samples]
        self._publisher.publish(message)

    def _feedback(self, positions: list[float]) -> None:
        assert self._arm_goal is not None
        wanted, speeds = self._arm.desired
        if not wanted:
            return
        feedback = FollowJointTrajectory.Feedback()
        feedback.header.stamp = self.get_clock().now().to_msg()
        feedback.joint_names = [j.name for j in self._joints[: self._arm_size]]
        feedback.desired = JointTrajectoryPoint(positions=wanted, velocities=speeds)
        feedback.actual = JointTrajectoryPoint(
            positions=positions, velocities=[s.velocity for s in self._samples[: self._arm_size]]
        )
        feedback.error = JointTrajectoryPoint(
            positions=[w - p for w, p in zip(wanted, positions, strict=True)]
        )
        self._arm_goal.handle.publish_feedback(feedback)

    # --- goals ----------------------------------------------------------------------------

    async def _follow(self, handle: Any) -> Any:
        """Runs one FollowJointTrajectory goal to its end."""
        try:
            self._start_arm(handle)
        except GoalError as error:
            ending = Ending(Status.ABORTED, error.code, str(error))
            self.get_logger().warning(f"Refused a trajectory: {error}")
        else:
            assert self._arm_goal is not None
            ending = await self._arm_goal.future
        _finish(handle, ending.status)
        return FollowJointTrajectory.Result(error_code=int(ending.code), error_string=ending.text)

    def _start_arm(self, handle: Any) -> None:
        self._check_ready()
        request = handle.request
        joints = self._arm.joints
        trajectory = Trajectory(
            joints,
            self._arm.commanded(),
            [s.position for s in self._samples[: self._arm_size]],
            goals.points(request.trajectory, joints),
            self.param("start_tolerance"),
        )
        tolerances = goals.tolerances(
            request,
            joints,
            self.param("path_tolerance"),
            self.param("goal_tolerance"),
            self.param("goal_time"),
        )
        delay = goals.delay(request.trajectory.header.stamp, self.get_clock(), trajectory.duration)
        self._end_arm(
            Ending(Status.ABORTED, Code.PATH_TOLERANCE_VIOLATED, "A new goal replaced this one.")
        )
        self._arm.start(trajectory, tolerances, delay)
        self._arm_goal = _Goal(handle, Future(executor=self.executor))

    async def _grip(self, handle: Any) -> Any:
        """Runs one GripperCommand goal to its end."""
        flags = GripperEnding(False, False)
        try:
            self._start_gripper(handle)
        except (GoalError, BusError) as error:
            self.get_logger().warning(f"Refused a gripper command: {error}")
            status = Status.ABORTED
        else:
            assert self._gripper_goal is not None
            status, flags = await self._gripper_goal.future
        result = GripperCommand.Result(stalled=flags.stalled, reached_goal=flags.reached)
        if self._samples:
            result.position = self._samples[-1].position
            result.effort = self._samples[-1].load * self._full_torque
        _finish(handle, status)
        return result

    def _start_gripper(self, handle: Any) -> None:
        self._check_ready()
        assert self._gripper is not None
        assert self._servos is not None
        command = handle.request.command
        effort = command.max_effort
        if not (math.isfinite(effort) and effort >= 0.0):
            raise GoalError(Code.INVALID_GOAL, f"max_effort is {effort}, it should be 0 or more.")
        share = min(1.0, effort / self._full_torque) if effort else 1.0
        measured = self._samples[-1].position
        self._gripper.start(command.position, measured)
        self._end_gripper(Status.ABORTED)
        if share != self._effort_share:
            try:
                self._servos.limit_torque(self._joints[-1].id, share)
            except BusError:
                self._gripper.hold(measured)
                raise
            self._effort_share = share
        self._gripper_goal = _Goal(handle, Future(executor=self.executor))

    def _check_ready(self) -> None:
        if not self._holding:
            raise GoalError(
                Code.INVALID_GOAL,
                f"The driver can't move the arm: {self._trouble}"
                if self._trouble
                else f"The driver is {self.state}; activate it first.",
            )

    def _end_arm(self, ending: Ending) -> None:
        goal, self._arm_goal = self._arm_goal, None
        if goal is None:
            return
        if ending.status is Status.ABORTED:
            self.get_logger().warning(ending.text)
        goal.future.set_result(ending)

    def _end_gripper(
        self,
        status: Status,
        flags: GripperEnding = GripperEnding(False, False),  # noqa: B008
    ) -> None:
        goal, self._gripper_goal = self._gripper_goal, None
        if goal is not None:
            goal.future.set_result((status, flags))

    def _end_goals(self, why: str) -> None:
        self._end_arm(Ending(Status.ABORTED, Code.PATH_TOLERANCE_VIOLATED, why))
        self._end_gripper(Status.ABORTED)

    # --- diagnostics ----------------------------------------------------------------------

    def _check_bus(self) -> tuple[bytes, str, Mapping[str, Any]]:
        before, since = self._reported
        now = time.monotonic()
        self._reported = (self._periods, now)
        values: dict[str, Any] = {
            "rate": f"{(self._periods - before) / max(now - since, 1e-6):.1f} Hz",
            "reconnects": self._reconnects,
            "torque": "on" if self._holding else "off",
            "calibration": self._calibration_file or "none",
        }
        if self._servos is None:
            return ERROR, self._trouble, values
        values["timeouts"] = self._servos.bus.timeouts
        values["damaged replies"] = self._servos.bus.damaged
        if self._active and not self._holding:
            return ERROR, self._trouble, values
        if self._missed:
            return WARN, "servos did not answer in time", values
        return OK, f"{len(self._joints)} servos on {self.param('port')}", values

    def _check_joint(self, index: int) -> tuple[bytes, str, Mapping[str, Any]]:
        joint, sample, servos = self._joints[index], self._samples[index], self._servos
        values = {
            "servo": joint.id,
            "position": f"{math.degrees(sample.position):.1f}°",
            "ticks": sample.ticks,
            "load": f"{100 * sample.load:.0f} %",
            "voltage": f"{sample.voltage:.1f} V",
            "temperature": f"{sample.temperature} °C",
            "error bits": describe_errors(sample.errors) or "none",
        }
        if servos is None:
            return ERROR, "not connected; these are the last values", values
        low, high = servos.voltages(joint.id)
        hottest = servos.max_temperature(joint.id)
        if sample.errors:
            text = f"the servo reports {describe_errors(sample.errors)}"
            if sample.errors & ErrorBits.OVERLOAD:
                text += ": it lets go; take the load off, and deactivate and activate the driver"
            return ERROR, text, values
        if sample.temperature >= hottest:
            return ERROR, f"too hot (allowed is less than {hottest} °C)", values
        if not low <= sample.voltage <= high:
            return ERROR, f"voltage is not {low:.1f}..{high:.1f} V", values
        if sample.temperature >= hottest - WARM:
            return WARN, f"getting hot (allowed is less than {hottest} °C)", values
        return OK, "", values


def _patiently(action: Callable[[], T]) -> T:
    """Tries again while servos are silent, up to the limit."""
    end = time.monotonic() + SILENCE_LIMIT
    while True:
        try:
            return action()
        except NoReply:
            if time.monotonic() > end:
                raise


def _finish(handle: Any, status: Status) -> None:
    """Tells the action server how a goal ended."""
    if status is Status.SUCCEEDED:
        handle.succeed()
    elif status is Status.CANCELED:
        handle.canceled()
    else:
        handle.abort()


def main() -> int:
    """Runs the node."""
    return run(ArmDriver)


if __name__ == "__main__":
    raise SystemExit(main())
