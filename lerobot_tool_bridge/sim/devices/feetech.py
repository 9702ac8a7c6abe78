"""An emulated Feetech servo bus behind a pseudo-terminal.

The bus answers like STS3215 servos do; what the servos are moved by is behind ``Servo``: physics
in the virtual robot, ``SimpleServo`` in tests.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Protocol

from lerobot_tool_bridge.drivers.feetech import registers as reg
from lerobot_tool_bridge.drivers.feetech.protocol import (
    BROADCAST,
    Frame,
    FrameReader,
    Instruction,
    decode,
    encode,
    encode_frame,
)
from lerobot_tool_bridge.sim.devices.pty import PtyDevice

MEMORY_SIZE = 128


class Servo(Protocol):
    """The mechanics behind one servo id.

    All methods are called from the bus's thread. Ticks are those of the encoder, 4096 a turn,
    before the homing offset: 2048 is the joint's zero on an arm whose servos have no offset.
    """

    def position_ticks(self) -> float:
        """Where the output shaft is."""

    def velocity_ticks(self) -> float:
        """Ticks per second."""

    def load(self) -> float:
        """Drive, -1..1 of the most the motor can; positive pushes towards more ticks."""

    def set_goal(self, ticks: float) -> None:
        """Where to go (while torque is on)."""

    def set_torque(self, on: bool) -> None:
        """Holds its goal, or hangs loose."""

    def set_torque_limit(self, share: float) -> None:
        """The most it may push, 0..1."""

    def set_speed_limit(self, ticks_per_s: float) -> None:
        """The fastest it may move on its own; 0 for as fast as it can."""


class SimpleServo:
    """A servo without physics: goes to its goal at a fixed speed, and stops at obstacles.

    Args:
        position: Where it starts, ticks.
        speed: Ticks per second (3400 is an STS3215 without load).

    Attributes:
        low, high: Obstacles, ticks; the servo pushes against them when its goal lies beyond.
        held: While True it does not move (a hand holds the joint).
    """

    def __init__(self, position: float = reg.CENTER, speed: float = 3400.0) -> None:
        self.low = float("-inf")
        self.high = float("inf")
        self.held = False
        self.torque = False
        self.torque_limit = 1.0
        self._speed = speed
        self._limit = 0.0
        self._position = float(position)
        self._velocity = 0.0
        self._goal = float(position)
        self._time = time.monotonic()

    def place(self, ticks: float) -> None:
        """Moves it by hand."""
        self._advance()
        self._position = float(ticks)

    def position_ticks(self) -> float:
        self._advance()
        return self._position

    def velocity_ticks(self) -> float:
        self._advance()
        return self._velocity

    def load(self) -> float:
        self._advance()
        error = self._goal - self._position
        if not self.torque or abs(error) < 1.0:
            return 0.0
        share = min(abs(error) / 100.0, self.torque_limit)
        return share if error > 0 else -share

    def set_goal(self, ticks: float) -> None:
        self._advance()
        self._goal = float(ticks)

    def set_torque(self, on: bool) -> None:
        self._advance()
        self.torque = on

    def set_torque_limit(self, share: float) -> None:
        self.torque_limit = share

    def set_speed_limit(self, ticks_per_s: float) -> None:
        self._limit = ticks_per_s

    def _advance(self) -> None:
        now = time.monotonic()
        step, self._time = now - self._time, now
        if step < 1e-4:
            return
        start = self._position
        if self.torque and not self.held:
            speed = min(self._speed, self._limit) if self._limit else self._speed
            way = max(-speed * step, min(speed * step, self._goal - start))
            self._position = max(self.low, min(self.high, start + way))
        self._velocity = (self._position - start) / step


class FeetechBus:
    """Emulated servos on a pseudo-terminal, served by a thread.

    Args:
        servos: What is behind each id; replies to a broadcast come in this order.
        link: Where a symlink to the pseudo-terminal is kept, so that its name stays the same
            after ``unplug`` and ``plug``.

    Attributes:
        servos: What is behind each id.
        memory: Registers of each servo; tests may read and write them (``poke``).
        missing: Ids that don't answer.
        errors: Error byte of the replies, by id.
        mangle: What becomes of a reply on the wire: called with the id and the packet.
        on_write: Called with id, address and bytes of every write before it takes effect.
    """

    def __init__(self, servos: Mapping[int, Servo], link: Path | None = None) -> None:
        self.servos = dict(servos)
        self._link = link
        self._pending: dict[int, tuple[int, bytes]] = {}
        self._reader = FrameReader()
        self._pty: PtyDevice | None = None
        self.memory = {id: _power_on(id, servo) for id, servo in self.servos.items()}
        self._saved = {id: bytes(m[: reg.EEPROM_END]) for id, m in self.memory.items()}
        self.missing: set[int] = set()
        self.errors: dict[int, int] = {}
        self.mangle: Callable[[int, bytes], bytes] | None = None
        self.on_write: Callable[[int, int, bytes], None] | None = None

    # --- the cable ------------------------------------------------------------------------

    @property
    def port(self) -> str:
        """What a client opens: the link, or the pseudo-terminal's own name."""
        if self._link is not None:
            return str(self._link)
        return self._pty.path if self._pty is not None else ""

    def start(self) -> FeetechBus:
        """Opens the pseudo-terminal and answers from now on."""
        self.plug()
        return self

    def stop(self) -> None:
        """Stops answering and takes the pseudo-terminal away."""
        self.unplug()

    def plug(self) -> None:
        """Makes the port appear. Does nothing where it is there."""
        if self._pty is not None:
            return
        self._reader.clear()
        self._pty = PtyDevice(self._receive, "feetech-bus")
        if self._link is not None:
            self._link.parent.mkdir(parents=True, exist_ok=True)
            self._link.unlink(missing_ok=True)
            self._link.symlink_to(self._pty.path)

    def unplug(self) -> None:
        """Makes the port vanish, as a pulled USB plug does; the servos keep their power."""
        if self._pty is None:
            return
        self._pty.close()
        self._pty = None
        if self._link is not None:
            self._link.unlink(missing_ok=True)

    def __enter__(self) -> FeetechBus:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # --- the servos -----------------------------------------------------------------------

    def peek(self, id: int, register: reg.Register) -> int:
        """A register's value, fresh."""
        self._refresh(id)
        memory = self.memory[id]
        return decode(register, memory[register.address : register.address + register.size])

    def poke(self, id: int, register: reg.Register, value: int) -> None:
        """Sets a register as if it had always held the value (saved, without side effects)."""
        data = encode(register, value)
        self.memory[id][register.address : register.address + register.size] = data
        if register.address < reg.EEPROM_END:
            self._saved[id] = bytes(self.memory[id][: reg.EEPROM_END])

    def power_cycle(self) -> None:
        """Takes the servos' power away and gives it back: unlocked EEPROM writes stay alone."""
        for id, servo in self.servos.items():
            servo.set_torque(False)
            fresh = _power_on(id, servo)
            fresh[: reg.EEPROM_END] = self._saved[id]
            self.memory[id] = fresh
            self._refresh(id)
            _set(fresh, reg.GOAL_POSITION, _get(fresh, reg.PRESENT_POSITION))

    def _refresh(self, id: int) -> None:
        """Brings what is measured up to date."""
        servo, memory = self.servos[id], self.memory[id]
        position = round(servo.position_ticks()) - _get(memory, reg.HOMING_OFFSET)
        velocity = round(max(-32767.0, min(32767.0, servo.velocity_ticks())))
        load = round(1000 * max(-1.0, min(1.0, servo.load())))
        _set(memory, reg.PRESENT_POSITION, max(-32767, min(32767, position)))
        _set(memory, reg.PRESENT_VELOCITY, velocity)
        _set(memory, reg.PRESENT_LOAD, load)
        _set(memory, reg.PRESENT_CURRENT, round(load * 0.4))  # 2.7 A when it stalls
        _set(memory, reg.MOVING, int(abs(velocity) > 10))
        _set(memory, reg.STATUS, self.errors.get(id, 0))

    def _write(self, id: int, address: int, data: bytes) -> None:
        if self.on_write is not None:
            self.on_write(id, address, data)
        servo, memory = self.servos[id], self.memory[id]
        end = min(address + len(data), MEMORY_SIZE)
        memory[address:end] = data[: end - address]
        if address < reg.EEPROM_END and not _get(memory, reg.LOCK):
            self._saved[id] = bytes(memory[: reg.EEPROM_END])

        def touched(register: reg.Register) -> bool:
            return address < register.address + register.size and register.address < end

        if touched(reg.GOAL_VELOCITY):
            servo.set_speed_limit(abs(_get(memory, reg.GOAL_VELOCITY)))
        if touched(reg.TORQUE_LIMIT):
            servo.set_torque_limit(min(1.0, _get(memory, reg.TORQUE_LIMIT) / 1000))
        if touched(reg.GOAL_POSITION):
            _set(memory, reg.TORQUE_ENABLE, 1)  # as the servos do
        if touched(reg.GOAL_POSITION) or touched(reg.TORQUE_ENABLE):
            on = _get(memory, reg.TORQUE_ENABLE) == 1
            if on:
                servo.set_goal(self._goal(memory))
            servo.set_torque(on)

    @staticmethod
    def _goal(memory: bytearray) -> int:
        """The goal in encoder ticks, within the servo's own limits."""
        goal = _get(memory, reg.GOAL_POSITION)
        low, high = _get(memory, reg.MIN_POSITION), _get(memory, reg.MAX_POSITION)
        if low < high:
            goal = max(low, min(high, goal))
        return goal + _get(memory, reg.HOMING_OFFSET)

    # --- the wire -------------------------------------------------------------------------

    def _receive(self, data: bytes) -> bytes:
        return b"".join(self._answer(frame) for frame in self._reader.feed(data))

    def _answer(self, frame: Frame) -> bytes:
        if frame.code == Instruction.SYNC_READ and len(frame.data) > 2:
            address, size = frame.data[:2]
            return b"".join(self._reply(i, self._read(i, address, size)) for i in frame.data[2:])
        if frame.code == Instruction.SYNC_WRITE and len(frame.data) > 2:
            address, size = frame.data[:2]
            rest = frame.data[2:]
            for at in range(0, len(rest) - size, size + 1):
                if self._there(rest[at]):
                    self._write(rest[at], address, rest[at + 1 : at + 1 + size])
            return b""
        ids = self.servos if frame.id == BROADCAST else [frame.id]
        replies = [self._single(i, frame) for i in ids if self._there(i)]
        if frame.id == BROADCAST and frame.code != Instruction.PING:
            return b""
        return b"".join(replies)

    def _single(self, id: int, frame: Frame) -> bytes:
        """Does what one packet asks of one servo."""
        data = b""
        if frame.code == Instruction.READ and len(frame.data) == 2:
            data = self._read(id, *frame.data)
        elif frame.code == Instruction.WRITE and frame.data:
            self._write(id, frame.data[0], frame.data[1:])
        elif frame.code == Instruction.REG_WRITE and frame.data:
            self._pending[id] = (frame.data[0], frame.data[1:])
        elif frame.code == Instruction.ACTION:
            pending = self._pending.pop(id, None)
            if pending is not None:
                self._write(id, *pending)
        elif frame.code != Instruction.PING:
            return b""
        return self._reply(id, data)

    def _there(self, id: int) -> bool:
        return id in self.servos and id not in self.missing

    def _read(self, id: int, address: int, size: int) -> bytes:
        if not self._there(id):
            return b""
        self._refresh(id)
        return bytes(self.memory[id][address : address + size]).ljust(size, b"\0")

    def _reply(self, id: int, data: bytes) -> bytes:
        if not self._there(id):
            return b""
        packet = encode_frame(id, self.errors.get(id, 0), data)
        return self.mangle(id, packet) if self.mangle is not None else packet


def _get(memory: bytearray, register: reg.Register) -> int:
    return decode(register, memory[register.address : register.address + register.size])


def _set(memory: bytearray, register: reg.Register, value: int) -> None:
    memory[register.address : register.address + register.size] = encode(register, value)


def _power_on(id: int, servo: Servo) -> bytearray:
    """A servo's registers as they are after power-on, with the factory's EEPROM."""
    memory = bytearray(MEMORY_SIZE)
    for register, value in (
        (reg.MODEL, reg.MODEL_NUMBER),
        (reg.ID, id),
        (reg.MAX_POSITION, reg.TICKS_PER_TURN - 1),
        (reg.MAX_TEMPERATURE, 70),
        (reg.MAX_VOLTAGE, 80),
        (reg.MIN_VOLTAGE, 40),
        (reg.MAX_TORQUE, 1000),
        (reg.P_GAIN, 32),
        (reg.D_GAIN, 32),
        (reg.TORQUE_LIMIT, 1000),
        (reg.LOCK, 1),
        (reg.GOAL_POSITION, round(servo.position_ticks())),
        (reg.PRESENT_VOLTAGE, 74),
        (reg.PRESENT_TEMPERATURE, 30),
    ):
        _set(memory, register, value)
    return memory
