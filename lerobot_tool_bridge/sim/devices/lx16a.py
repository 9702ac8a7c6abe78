"""An emulated bus of LX-16A servos.

Understood: move within a time (1), stop (12), id (14), temperature (26), voltage (27), position
(28), torque on and off (31) and whether it is on (32). Everything else, and every damaged packet,
is ignored without an answer.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Mapping
from typing import Protocol

from lerobot_tool_bridge.sim.devices.pty import PtyDevice

TICKS = 1000
BROADCAST = 254
TEMPERATURE_C = 30
VOLTAGE_MV = 7400

_LONGEST = 10


class Servo(Protocol):
    """One servo of the head; positions are ticks of 0.24 degrees, 0 to 1000."""

    def position_ticks(self) -> float:
        """Where it is."""

    def set_target(self, ticks: float, time_ms: float) -> None:
        """Goes there within a time, from wherever it is; torque is on."""

    def set_torque(self, on: bool) -> None:
        """Holds where it is, or hangs loose."""


class SimpleServo:
    """A servo without physics: goes evenly to its target within the time.

    Args:
        position: Where it starts, ticks.

    Attributes:
        held: While True it does not move (a hand holds the head).
        torque: Whether it pulls.
    """

    def __init__(self, position: float = TICKS / 2) -> None:
        self.held = False
        self.torque = False
        self._begin = (time.monotonic(), float(position))
        self._end = self._begin

    def place(self, ticks: float) -> None:
        """Turns it by hand."""
        self._begin = self._end = (time.monotonic(), float(ticks))

    def position_ticks(self) -> float:
        (begin, a), (end, b) = self._begin, self._end
        now = time.monotonic()
        if now >= end:
            return b
        return a + (b - a) * (now - begin) / (end - begin)

    def set_target(self, ticks: float, time_ms: float) -> None:
        self.torque = True
        if self.held:
            return
        now = time.monotonic()
        self._begin = (now, self.position_ticks())
        self._end = (now + time_ms / 1000.0, ticks)

    def set_torque(self, on: bool) -> None:
        self.torque = on
        self.place(self.position_ticks())


class Lx16aHead:
    """The servos on a pseudo-terminal.

    Args:
        servos: By id (0–253).

    Attributes:
        path: The terminal that a driver opens.
        missing: Ids that don't answer, and do nothing.
        echo: Whether what is sent comes back too, as on a bus of one wire.
    """

    def __init__(self, servos: Mapping[int, Servo]) -> None:
        self.missing: set[int] = set()
        self.echo = False
        self._servos = servos
        self._torque = dict.fromkeys(servos, False)
        self._rest = b""
        self._pty = PtyDevice(self._receive, "lx16a")
        self.path = self._pty.path

    def close(self) -> None:
        """Pulls the plug. Safe to call twice."""
        self._pty.close()

    def _receive(self, data: bytes) -> bytes:
        self._rest += data
        answers = [self._do(*packet) for packet in self._packets()]
        return (data if self.echo else b"") + b"".join(answers)

    def _packets(self) -> Iterator[tuple[int, int, bytes]]:
        """Takes the packets out of what has come: id, command, parameters."""
        while (start := self._rest.find(b"\x55\x55")) >= 0:
            packet = self._rest[start:]
            if len(packet) < 4:
                break
            length = packet[3]
            if not 3 <= length <= _LONGEST - 3:
                self._rest = packet[1:]
                continue
            if len(packet) < length + 3:
                self._rest = packet
                return
            total = sum(packet[2 : length + 3]) & 0xFF  # a sum and its inverse make 255
            self._rest = packet[length + 3 :] if total == 0xFF else packet[1:]
            if total == 0xFF:
                yield packet[2], packet[4], packet[5 : length + 2]
        self._rest = self._rest[-3:]

    def _do(self, servo_id: int, command: int, parameters: bytes) -> bytes:
        ids = list(self._servos) if servo_id == BROADCAST else [servo_id]
        return b"".join(
            self._one(i, command, parameters)
            for i in ids
            if i in self._servos and i not in self.missing
        )

    def _one(self, servo_id: int, command: int, parameters: bytes) -> bytes:
        servo = self._servos[servo_id]
        if command == 1 and len(parameters) == 4:
            ticks, time_ms = struct.unpack("<HH", parameters)
            self._torque[servo_id] = True
            servo.set_target(min(TICKS, ticks), min(30_000, time_ms))
        elif command == 12 and not parameters:
            servo.set_target(servo.position_ticks(), 0.0)
        elif command == 31 and len(parameters) == 1:
            self._torque[servo_id] = bool(parameters[0])
            servo.set_torque(self._torque[servo_id])
        elif not parameters:
            answer = self._answer(servo_id, command)
            if answer:
                body = bytes([servo_id, len(answer) + 3, command]) + answer
                return b"\x55\x55" + body + bytes([255 - (sum(body) & 0xFF)])
        return b""

    def _answer(self, servo_id: int, command: int) -> bytes:
        if command == 14:
            return bytes([servo_id])
        if command == 26:
            return bytes([TEMPERATURE_C])
        if command == 27:
            return struct.pack("<H", VOLTAGE_MV)
        if command == 28:
            return struct.pack("<h", round(self._servos[servo_id].position_ticks()))
        if command == 32:
            return bytes([self._torque[servo_id]])
        return b""
