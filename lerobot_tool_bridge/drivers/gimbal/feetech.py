"""Heads with Feetech bus servos, which measure their position.

The servos need a bus (a USB adapter) of their own: one process holds a port.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from lerobot_tool_bridge.drivers.arm.servos import TICK, Sample, ServoJoint, Servos, Unfit
from lerobot_tool_bridge.drivers.feetech.bus import BAUD_RATE, BusError, NoReply, ServoBus
from lerobot_tool_bridge.drivers.gimbal.protocol import CENTER_DEG, Axis, State
from lerobot_tool_bridge.robot import Range

MIDDLE = 2048
_MARGIN = 0.1
_MISSED = 5
"""Readings in a row that may fail before the head counts as lost."""


class FeetechHead:
    """See ``HeadProtocol``."""

    measures = True

    def __init__(self, port: str, baud_rate: int, axes: Sequence[Axis]) -> None:
        joints = [_servo_joint(axis) for axis in axes]
        bus = ServoBus.open(port, baud_rate or BAUD_RATE)
        try:
            self._servos = Servos(bus, joints)
            self._samples = self._servos.read()
        except BaseException:
            bus.close()
            raise
        self._missed = 0

    @staticmethod
    def reach_deg(axis: Axis) -> Range:
        return -math.inf, math.inf  # a whole turn, wherever its middle is

    def read(self) -> State | None:
        try:
            self._samples = self._servos.read()
            self._missed = 0
        except NoReply:
            self._missed += 1
            if self._missed >= _MISSED:
                raise
        return _state(self._samples)

    def hold(self) -> list[float] | None:
        try:
            self._samples = self._servos.judge(_MARGIN)
        except Unfit as error:
            raise BusError(str(error)) from None
        return self._servos.torque_on(self._samples)

    def write(self, positions: Sequence[float], duration: float) -> None:
        """The speed is the driver's, which writes in every period."""
        self._servos.write(positions)

    def stop(self) -> None:
        self._servos.write([s.position for s in self._servos.read()])

    def release(self) -> None:
        self._servos.torque_off()

    def close(self) -> None:
        self._servos.close()


def _servo_joint(axis: Axis) -> ServoJoint:
    sign = -1 if axis.inverted else 1
    return ServoJoint(
        axis.joint.name,
        axis.servo_id,
        axis.joint.low,
        axis.joint.high,
        zero=(axis.center_ticks or MIDDLE) - sign * math.radians(CENTER_DEG) / TICK,
        sign=sign,
    )


def _state(samples: Sequence[Sample]) -> State:
    return State([s.position for s in samples], [s.velocity for s in samples])
