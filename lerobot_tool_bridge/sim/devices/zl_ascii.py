"""An emulated pan/tilt head with hobby servos behind a ZL ASCII controller.

Understood: ``#000P1500T1000!`` (servo 0 to a pulse of 1500 µs within 1000 ms), several of them in
one pair of braces, ``#000PDST!`` (stop where it is), ``#255P…`` for all servos, and the version
query ``#000PVER!``. Everything else is ignored without an answer, as by the controller; a position
can't be read from PWM servos.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from lerobot_tool_bridge.sim.devices.pty import PtyDevice

PULSE_US = (500, 2500)
MIDDLE_US = 1500.0
BROADCAST = 255

_VERSION = b"#%03dP ZServo V1.00!"
_COMMAND = re.compile(rb"#(\d{3})P(?:(\d{4})T(\d{4})|(VER)|(DST))!")
_LONGEST = len(b"#000P1500T1000!")


class Servo(Protocol):
    """One servo of the head."""

    def set_target(self, pulse_us: float, time_ms: float) -> None:
        """Goes to a pulse within a time, from wherever it is. Called in the device's thread."""


@dataclass(slots=True)
class _Move:
    """What the controller knows of a servo: how it turns it, not where it is."""

    begin: float
    begin_us: float
    end_us: float
    time_ms: float

    def now(self, time: float) -> float:
        passed = (time - self.begin) * 1000.0
        share = min(1.0, passed / self.time_ms) if self.time_ms else 1.0
        return self.begin_us + share * (self.end_us - self.begin_us)


class ZlAsciiHead:
    """The controller with its servos, on a pseudo-terminal.

    Args:
        servos: By id (0–254).

    Attributes:
        path: The terminal that a driver opens.
    """

    def __init__(self, servos: Mapping[int, Servo]) -> None:
        self._servos = servos
        self._moves = {id: _Move(0.0, MIDDLE_US, MIDDLE_US, 0.0) for id in servos}
        self._rest = b""
        self._pty = PtyDevice(self._receive, "zl_ascii")
        self.path = self._pty.path

    def close(self) -> None:
        """Pulls the plug. Safe to call twice."""
        self._pty.close()

    def _receive(self, data: bytes) -> bytes:
        text = self._rest + data
        answer = b""
        end = 0
        for match in _COMMAND.finditer(text):
            end = match.end()
            servo_id = int(match[1])
            if match[4]:
                if servo_id in self._servos or servo_id == BROADCAST:
                    answer += _VERSION % servo_id
                continue
            for id in self._addressed(servo_id):
                if match[5]:
                    self._turn(id, None, 0.0)
                elif PULSE_US[0] <= int(match[2]) <= PULSE_US[1]:
                    self._turn(id, float(match[2]), float(match[3]))
        self._rest = text[end:][-_LONGEST:]  # a command may arrive in pieces; garbage is dropped
        return answer

    def _addressed(self, servo_id: int) -> list[int]:
        if servo_id == BROADCAST:
            return list(self._servos)
        return [servo_id] if servo_id in self._servos else []

    def _turn(self, servo_id: int, pulse_us: float | None, time_ms: float) -> None:
        """Turns a servo; None stops it."""
        now = time.monotonic()
        here = self._moves[servo_id].now(now)
        end = here if pulse_us is None else pulse_us
        self._moves[servo_id] = _Move(now, here, end, time_ms)
        self._servos[servo_id].set_target(end, time_ms)
