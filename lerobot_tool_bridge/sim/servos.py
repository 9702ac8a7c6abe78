"""The joints of the physics, as the emulated devices want to see their servos."""

from __future__ import annotations

import math

from lerobot_tool_bridge.sim.physics import Servo

_TICKS_PER_RAD = 4096 / math.tau
_CENTER = 2048


class BusServo:
    """A joint behind a Feetech servo: 4096 ticks a turn.

    Args:
        servo: The joint.
        middle: Where the joint is at 2048 ticks, radians.
    """

    def __init__(self, servo: Servo, middle: float = 0.0) -> None:
        self._servo = servo
        self._middle = middle

    def position_ticks(self) -> float:
        return _CENTER + (self._servo.position - self._middle) * _TICKS_PER_RAD

    def velocity_ticks(self) -> float:
        return self._servo.velocity * _TICKS_PER_RAD

    def load(self) -> float:
        return self._servo.load

    def set_goal(self, ticks: float) -> None:
        self._servo.set_goal(self._middle + (ticks - _CENTER) / _TICKS_PER_RAD)

    def set_torque(self, on: bool) -> None:
        self._servo.set_torque(on)

    def set_torque_limit(self, share: float) -> None:
        self._servo.set_torque_limit(share)

    def set_speed_limit(self, ticks_per_s: float) -> None:
        self._servo.set_speed_limit(ticks_per_s / _TICKS_PER_RAD)


class HobbyServo:
    """A joint behind a PWM servo of 270 degrees: 500 µs at zero, 2500 µs at the other end."""

    _RANGE_US = (500.0, 2500.0)
    _RANGE_RAD = 1.5 * math.pi

    def __init__(self, servo: Servo) -> None:
        self._servo = servo
        self._goal = servo.position  # where a servo stands when it gets its first pulse
        servo.set_goal(self._goal)
        servo.set_torque(True)

    def set_target(self, pulse_us: float, time_ms: float) -> None:
        low, high = self._RANGE_US
        goal = (pulse_us - low) / (high - low) * self._RANGE_RAD
        way = abs(goal - self._servo.position)
        self._servo.set_speed_limit(way / (time_ms / 1000) if time_ms > 0 else 0.0)
        self._servo.set_goal(goal)
