"""The arm's servos in radians: opened, judged, read and commanded. No ROS in here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

from lerobot_tool_bridge.core.errors import BridgeError, LoadError
from lerobot_tool_bridge.drivers.feetech import registers as reg
from lerobot_tool_bridge.drivers.feetech.bus import NoReply, ServoBus
from lerobot_tool_bridge.drivers.feetech.calibration import JointCalibration
from lerobot_tool_bridge.drivers.feetech.protocol import decode, encode

TICK = 2.0 * math.pi / reg.TICKS_PER_TURN
"""Radians of one tick."""
TAKE_OVER_DISTANCE = 0.2
"""A servo that holds a goal as near as that (radians) keeps it when the driver takes over."""

# One block of the table from position to temperature is read in every period, and one from
# acceleration to torque limit is written when torque goes on.
_STATE = reg.PRESENT_POSITION.address
_STATE_SIZE = reg.PRESENT_TEMPERATURE.address + 1 - _STATE
_START = (
    reg.ACCELERATION,
    reg.GOAL_POSITION,
    reg.GOAL_TIME,
    reg.GOAL_VELOCITY,
    reg.TORQUE_LIMIT,
)
_ACCELERATION = 254  # 25,400 ticks/s²: the ramps are the driver's, not the servos'


class Unfit(BridgeError):
    """The hardware is not fit for torque; all reasons, a sentence each, with the cure."""


@dataclass(frozen=True, slots=True)
class ServoJoint:
    """One joint and the servo that moves it.

    Attributes:
        name: The joint.
        id: The servo.
        low, high: Limits of the joint, radians.
        zero: Ticks at which the joint is at 0.
        sign: -1 where the joint counts against the servo.
        range_min, range_max: Ticks between which goals may lie.
        calibration: What the file says; None without a file.
    """

    name: str
    id: int
    low: float
    high: float
    zero: float = reg.CENTER
    sign: int = 1
    range_min: int = 0
    range_max: int = reg.TICKS_PER_TURN - 1
    calibration: JointCalibration | None = None

    def calibrated(self, calibration: JointCalibration, gripper: bool) -> ServoJoint:
        """The joint with LeRobot's calibration.

        An arm joint's zero is the middle of its range. The gripper's closed end is the lower
        limit of its joint, since its range is not even about its zero.
        """
        sign = -1 if calibration.drive_mode else 1
        low, high = calibration.range_min, calibration.range_max
        if gripper:
            zero = (low if sign > 0 else high) - sign * self.low / TICK
        else:
            zero = (low + high) / 2
        ends = sorted(((low - zero) * sign * TICK, (high - zero) * sign * TICK))
        return replace(
            self,
            low=max(self.low, ends[0]),
            high=min(self.high, ends[1]),
            zero=zero,
            sign=sign,
            range_min=low,
            range_max=high,
            calibration=calibration,
        )

    def radians(self, ticks: float) -> float:
        return (ticks - self.zero) * self.sign * TICK

    def ticks(self, radians: float) -> int:
        """The nearest tick within the range."""
        ticks = round(self.zero + radians * self.sign / TICK)
        return max(self.range_min, min(self.range_max, ticks))


@dataclass(frozen=True, slots=True)
class Sample:
    """What one servo measured.

    Attributes:
        ticks: Position as the servo has it.
        position, velocity: Radians, radians per second.
        load: Drive, -1..1 of the most the motor can.
        voltage: Volts.
        temperature: Degrees Celsius.
        errors: Error bits.
    """

    ticks: int
    position: float
    velocity: float
    load: float
    voltage: float
    temperature: int
    errors: int


class Servos:
    """The servos of one arm on an open bus.

    Args:
        bus: The bus.
        joints: Its joints.

    Raises:
        NoReply: A servo does not answer; the text names the joints.
    """

    def __init__(self, bus: ServoBus, joints: Sequence[ServoJoint]) -> None:
        self.bus = bus
        self.joints = tuple(joints)
        self._ids = [j.id for j in joints]
        self._sent: dict[int, int] = {}
        answered = bus.scan(self._ids)
        missing = [j for j in joints if j.id not in answered]
        if missing:
            names = ", ".join(f"{j.id} is {j.name}" for j in missing)
            raise NoReply([j.id for j in missing], answered, f"; {names}")
        limits = (reg.MAX_VOLTAGE, reg.MIN_VOLTAGE, reg.MAX_TEMPERATURE, reg.MAX_TORQUE)
        self._limits = {r: bus.sync_read_register(self._ids, r) for r in limits}

    def close(self) -> None:
        self.bus.close()

    def max_temperature(self, id: int) -> int:
        """Degrees at which the servo lets go by itself."""
        return self._limits[reg.MAX_TEMPERATURE][id]

    def voltages(self, id: int) -> tuple[float, float]:
        """The supply that the servo allows, volts."""
        limits = self._limits
        return limits[reg.MIN_VOLTAGE][id] / 10, limits[reg.MAX_VOLTAGE][id] / 10

    def read(self) -> list[Sample]:
        """Reads all joints with one request.

        Raises:
            NoReply, PortError: As the bus does.
        """
        replies = self.bus.sync_read(self._ids, _STATE, _STATE_SIZE)
        return [_sample(j, replies[j.id].data, replies[j.id].errors) for j in self.joints]

    def judge(self, margin: float) -> list[Sample]:
        """Looks for reasons why torque should stay off; writes nothing.

        Args:
            margin: How far outside its range a joint may be, radians.

        Returns:
            What was measured.

        Raises:
            Unfit: All reasons.
            NoReply, PortError: As the bus does.
        """
        samples = self.read()
        faults = [
            *self._memory_faults(),
            *self._supply_faults(samples),
            *self._position_faults(samples, margin),
        ]
        if faults:
            raise Unfit("\n  ".join(faults))
        return samples

    def torque_on(self, samples: Sequence[Sample]) -> list[float]:
        """Turns torque on without a jump, or takes over where it was on.

        Args:
            samples: What ``judge`` measured.

        Returns:
            The goals that the servos hold now, radians.
        """
        bus = self.bus
        on = bus.sync_read_register(self._ids, reg.TORQUE_ENABLE)
        goals = bus.sync_read_register(self._ids, reg.GOAL_POSITION)
        blocks = {}
        held = []
        for joint, sample in zip(self.joints, samples, strict=True):
            goal = sample.ticks
            holds = abs(goals[joint.id] - sample.ticks) * TICK < TAKE_OVER_DISTANCE
            if on[joint.id] == 1 and holds:
                goal = goals[joint.id]  # letting go of it would make the joint sag
            torque = self._limits[reg.MAX_TORQUE][joint.id]
            values = (_ACCELERATION, goal, 0, 0, torque)
            blocks[joint.id] = b"".join(encode(r, v) for r, v in zip(_START, values, strict=True))
            self._sent[joint.id] = goal
            held.append(joint.radians(goal))
        bus.sync_write(blocks, _START[0].address)
        for id in self._ids:
            bus.write(id, reg.TORQUE_ENABLE, 1)
        return held

    def all_hold(self) -> bool:
        """Whether torque is on in all servos."""
        return all(self.bus.sync_read_register(self._ids, reg.TORQUE_ENABLE).values())

    def torque_off(self) -> None:
        """Lets all joints hang loose; tries all of them before it complains."""
        missing = []
        for id in self._ids:
            try:
                self.bus.write(id, reg.TORQUE_ENABLE, 0)
            except NoReply:
                missing.append(id)
        self._sent.clear()
        if missing:
            raise NoReply(missing, [id for id in self._ids if id not in missing])

    def limit_torque(self, id: int, share: float) -> None:
        """The most that one servo may push, 0..1 of its maximum."""
        most = self._limits[reg.MAX_TORQUE][id]
        self.bus.write(id, reg.TORQUE_LIMIT, round(min(max(share, 0.0), 1.0) * most))

    def write(self, positions: Iterable[float]) -> None:
        """Sends goals, in the joints' order; those that are the same as before are left out."""
        values = {}
        for joint, position in zip(self.joints, positions, strict=True):
            goal = joint.ticks(position)
            if self._sent.get(joint.id) != goal:
                self._sent[joint.id] = goal
                values[joint.id] = encode(reg.GOAL_POSITION, goal)
        if values:
            self.bus.sync_write(values, reg.GOAL_POSITION.address)

    # --- what may be wrong ----------------------------------------------------------------

    def _memory_faults(self) -> Iterable[str]:
        """Whether the servos' memory is what the file says, and the mode is the right one."""
        modes = self.bus.sync_read_register(self._ids, reg.OPERATING_MODE)
        for joint in self.joints:
            if modes[joint.id] != 0:
                yield (
                    f"{joint.name}: servo {joint.id} is in operating mode {modes[joint.id]}, "
                    "expected 0 (position): set it up with lerobot-setup-motors."
                )
        differences = list(self.differences())
        if differences:
            yield (
                f"the calibration file and the servos' memory differ: {'; '.join(differences)}. "
                "Either write the file to the servos (python -m "
                "lerobot_tool_bridge.drivers.feetech write_calibration --port ... --file ...), "
                "or calibrate again with LeRobot. Nothing was written."
            )

    def differences(self) -> Iterable[str]:
        """Where file and memory differ, a phrase each, with both values."""
        for register, field in (
            (reg.HOMING_OFFSET, "homing_offset"),
            (reg.MIN_POSITION, "range_min"),
            (reg.MAX_POSITION, "range_max"),
        ):
            values = self.bus.sync_read_register(self._ids, register)
            for joint in self.joints:
                if joint.calibration is None:
                    continue
                expected = getattr(joint.calibration, field)
                if values[joint.id] != expected:
                    yield f"{joint.name}: {field}: file {expected}, servo {values[joint.id]}"

    def _supply_faults(self, samples: Sequence[Sample]) -> Iterable[str]:
        by_text: dict[str, list[str]] = {}
        for joint, sample in zip(self.joints, samples, strict=True):
            low, high = self.voltages(joint.id)
            text = ""
            if sample.voltage > high:
                text = (
                    f"input voltage {sample.voltage:.1f} V, these servos allow up to {high:.1f} "
                    "V: wrong supply?"
                )
            elif sample.voltage < low:
                text = (
                    f"input voltage {sample.voltage:.1f} V, these servos need at least {low:.1f} "
                    "V: is the power supply plugged in?"
                )
            if text:
                by_text.setdefault(text, []).append(joint.name)
            if sample.temperature >= self.max_temperature(joint.id):
                yield (
                    f"{joint.name}: servo {joint.id} has {sample.temperature} °C, allowed is less "
                    f"than {self.max_temperature(joint.id)} °C: let it cool down."
                )
        for text, names in by_text.items():
            yield f"{', '.join(names)}: {text}"

    def _position_faults(self, samples: Sequence[Sample], margin: float) -> Iterable[str]:
        slack = margin / TICK
        for joint, sample in zip(self.joints, samples, strict=True):
            low, high = joint.range_min, joint.range_max
            if not 0 <= sample.ticks < reg.TICKS_PER_TURN:
                yield (
                    f"{joint.name} reads {sample.ticks} of {low}..{high}: unplug power and USB "
                    "once. If it stays so, calibrate again."
                )
            elif not low - slack <= sample.ticks <= high + slack:
                yield (
                    f"{joint.name} reads {sample.ticks} of {low}..{high}: move it back into its "
                    "range by hand; if it is inside, unplug power and USB once, or calibrate "
                    "again."
                )
            elif joint.calibration is None and not (
                joint.low - margin <= sample.position <= joint.high + margin
            ):
                at, least, most = (
                    f"{math.degrees(v):.0f}°" for v in (sample.position, joint.low, joint.high)
                )
                yield (
                    f"{joint.name} reads {at}, it may be from {least} to {most}: move it back by "
                    "hand; if it is inside, give the calibration (robot_id or calibration_file)."
                )


def _sample(joint: ServoJoint, data: bytes, errors: int) -> Sample:
    def value(register: reg.Register) -> int:
        start = register.address - _STATE
        return decode(register, data[start : start + register.size])

    ticks = value(reg.PRESENT_POSITION)
    return Sample(
        ticks=ticks,
        position=joint.radians(ticks),
        velocity=value(reg.PRESENT_VELOCITY) * joint.sign * TICK,
        load=value(reg.PRESENT_LOAD) * joint.sign / 1000,
        voltage=value(reg.PRESENT_VOLTAGE) / 10,
        temperature=value(reg.PRESENT_TEMPERATURE),
        errors=errors,
    )


def urdf_limits(urdf: Path, names: Sequence[str]) -> Mapping[str, tuple[float, float]]:
    """Position limits of joints, from a URDF; a continuous joint may turn once either way.

    Raises:
        LoadError: ``bad_file``: the file can't be read, or lacks a joint or its limits.
    """
    try:
        root = ElementTree.parse(urdf).getroot()
    except (OSError, ElementTree.ParseError) as error:
        raise LoadError("bad_file", f"Can't read the URDF {urdf}: {error}.") from None
    found = {j.get("name"): j for j in root.iter("joint")}
    limits = {}
    for name in names:
        joint = found.get(name)
        if joint is None:
            raise LoadError("bad_file", f"{urdf} has no joint {name}.")
        limit = joint.find("limit")
        try:
            if joint.get("type") == "continuous":
                limits[name] = (-math.pi, math.pi)
            elif limit is None:
                raise ValueError
            else:
                limits[name] = (float(limit.get("lower", "")), float(limit.get("upper", "")))
        except ValueError:
            raise LoadError(
                "bad_file", f"{urdf}: joint {name} needs a limit with lower and upper."
            ) from None
    return limits
