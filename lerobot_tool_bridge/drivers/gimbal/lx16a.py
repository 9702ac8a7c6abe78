"""Heads with LX-16A bus servos (Hiwonder, LewanSoul), which measure their position.

A packet is ``55 55 id length command parameters… checksum``; the length counts from itself to the
checksum, and the checksum is the inverted sum of everything from the id on. Positions 0 to 1000
are 0 to 240 degrees, so a joint reaches 120 degrees to either side of its servo's middle.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence
from enum import IntEnum

from lerobot_tool_bridge.drivers.feetech.bus import NoReply
from lerobot_tool_bridge.drivers.gimbal.line import Line
from lerobot_tool_bridge.drivers.gimbal.protocol import CENTER_DEG, Axis, State
from lerobot_tool_bridge.robot import Range

BAUD_RATE = 115_200
MIDDLE = 500
TICKS = 1000
TICK_DEG = 0.24
LONGEST_MS = 30_000

_HEADER = b"\x55\x55"
_REPLY_TIMEOUT = 0.03
_RETRIES = 2
_MISSED = 5
"""Readings in a row that may fail before the head counts as lost."""
_WINDOW = 6
"""Readings over which a speed is taken: one tick in one period looks like 12 degrees a second."""


class Command(IntEnum):
    """What a packet asks for."""

    MOVE_TIME_WRITE = 1
    MOVE_STOP = 12
    POS_READ = 28
    LOAD_WRITE = 31


class Lx16a:
    """See ``HeadProtocol``."""

    measures = True

    def __init__(self, port: str, baud_rate: int, axes: Sequence[Axis]) -> None:
        self._axes = tuple(axes)
        self._line = Line(port, baud_rate or BAUD_RATE)
        self._seen: deque[tuple[float, list[float]]] = deque(maxlen=_WINDOW)
        self._missed = 0
        try:
            self._measure()
        except BaseException:
            self._line.close()
            raise

    @staticmethod
    def reach_deg(axis: Axis) -> Range:
        ends = [_degrees(axis, ticks) for ticks in (0, TICKS)]
        return min(ends), max(ends)

    def read(self) -> State | None:
        try:
            self._measure()
            self._missed = 0
        except NoReply:
            self._missed += 1
            if self._missed >= _MISSED:
                raise
        (begin, first), (end, last) = self._seen[0], self._seen[-1]
        passed = max(end - begin, 1e-3)
        speeds = [(b - a) / passed for a, b in zip(first, last, strict=True)]
        return State(list(last), speeds)

    def hold(self) -> list[float] | None:
        positions = self._measure()
        for axis, position in zip(self._axes, positions, strict=True):
            self._send(axis.servo_id, Command.MOVE_STOP)
            self._send(axis.servo_id, Command.LOAD_WRITE, b"\x01")
            self._move(axis, position, 0.0)
        return positions

    def write(self, positions: Sequence[float], duration: float) -> None:
        for axis, position in zip(self._axes, positions, strict=True):
            self._move(axis, position, duration)

    def stop(self) -> None:
        for axis in self._axes:
            self._send(axis.servo_id, Command.MOVE_STOP)

    def release(self) -> None:
        for axis in self._axes:
            self._send(axis.servo_id, Command.LOAD_WRITE, b"\x00")

    def close(self) -> None:
        self._line.close()

    def _move(self, axis: Axis, position: float, duration: float) -> None:
        ticks = max(0, min(TICKS, round(_ticks(axis, math.degrees(position)))))
        time_ms = max(0, min(LONGEST_MS, round(duration * 1000)))
        self._send(axis.servo_id, Command.MOVE_TIME_WRITE, _word(ticks) + _word(time_ms))

    def _measure(self) -> list[float]:
        positions: list[float] = []
        for axis in self._axes:
            ticks = self._position(axis.servo_id)
            if ticks is None:
                ids = [a.servo_id for a in self._axes]
                answered = ids[: len(positions)]
                raise NoReply([axis.servo_id], answered)
            positions.append(math.radians(_degrees(axis, ticks)))
        self._seen.append((time.monotonic(), positions))
        return positions

    def _position(self, servo_id: int) -> int | None:
        """A servo's reading, which may lie a little outside of its range; None for no answer."""
        for _ in range(_RETRIES):
            self._line.drop_input()
            self._send(servo_id, Command.POS_READ)
            data = b""
            end = time.monotonic() + _REPLY_TIMEOUT
            while (left := end - time.monotonic()) > 0:
                data += self._line.read(left)
                for sender, code, parameters in unpack(data):
                    # a request that comes back as an echo has no parameters
                    if (sender, code, len(parameters)) == (servo_id, Command.POS_READ, 2):
                        return int.from_bytes(parameters, "little", signed=True)
        return None

    def _send(self, servo_id: int, command: Command, parameters: bytes = b"") -> None:
        self._line.write(pack(servo_id, command, parameters))


def pack(servo_id: int, command: int, parameters: bytes = b"") -> bytes:
    """One packet."""
    body = bytes([servo_id, len(parameters) + 3, command]) + parameters
    return _HEADER + body + bytes([~sum(body) & 0xFF])


def unpack(data: bytes) -> list[tuple[int, int, bytes]]:
    """The whole and undamaged packets in what was received: id, command, parameters."""
    found = []
    at = data.find(_HEADER)
    while 0 <= at <= len(data) - 6:
        size = data[at + 3]
        body = data[at + 2 : at + 2 + size]
        check = data[at + 2 + size : at + 3 + size]
        if size >= 3 and check == bytes([~sum(body) & 0xFF]):
            found.append((body[0], body[2], body[3:]))
            at = data.find(_HEADER, at + 3 + size)
        else:
            at = data.find(_HEADER, at + 1)
    return found


def _word(value: int) -> bytes:
    return value.to_bytes(2, "little")


def _degrees(axis: Axis, ticks: float) -> float:
    sign = -1.0 if axis.inverted else 1.0
    return CENTER_DEG + sign * TICK_DEG * (ticks - (axis.center_ticks or MIDDLE))


def _ticks(axis: Axis, degrees: float) -> float:
    sign = -1.0 if axis.inverted else 1.0
    return (axis.center_ticks or MIDDLE) + sign * (degrees - CENTER_DEG) / TICK_DEG
