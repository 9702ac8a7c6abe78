"""Packets of the Feetech SMS/STS servo bus (half duplex serial, little endian).

An instruction is ``FF FF ID LEN INST params CHK``; a status reply is the same with the servo's
error bits in INST's place. LEN counts the params plus two; CHK is the inverted low byte of the
sum from ID on. A reply with error bits is a valid reply: its data hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, IntFlag

from lerobot_tool_bridge.drivers.feetech.registers import Register

HEADER = b"\xff\xff"
BROADCAST = 0xFE


class Instruction(IntEnum):
    """What a packet asks for."""

    PING = 1
    READ = 2
    WRITE = 3
    REG_WRITE = 4
    ACTION = 5
    RESET = 6
    SYNC_READ = 0x82
    SYNC_WRITE = 0x83


class ErrorBits(IntFlag):
    """What a servo complains of in the error byte of a reply."""

    VOLTAGE = 1
    SENSOR = 2
    TEMPERATURE = 4
    CURRENT = 8
    OVERLOAD = 32


def describe_errors(bits: int) -> str:
    """Error bits in words: ``voltage, overload``; empty where there are none."""
    words = [flag.name.lower() for flag in ErrorBits if bits & flag and flag.name]
    rest = bits & ~sum(ErrorBits)
    if rest:
        words.append(f"unknown bits 0x{rest:02x}")
    return ", ".join(words)


@dataclass(frozen=True, slots=True)
class Frame:
    """One packet without its wrapping.

    Attributes:
        id: The servo's id.
        code: Instruction, or the error bits of a reply.
        data: Parameters.
    """

    id: int
    code: int
    data: bytes


def encode_frame(id: int, code: int, data: bytes = b"") -> bytes:
    """A packet ready for the wire."""
    body = bytes((id, len(data) + 2, code)) + data
    return HEADER + body + bytes((~sum(body) & 0xFF,))


def read_request(id: int, address: int, size: int) -> bytes:
    return encode_frame(id, Instruction.READ, bytes((address, size)))


def write_request(id: int, address: int, data: bytes) -> bytes:
    return encode_frame(id, Instruction.WRITE, bytes((address,)) + data)


def sync_read_request(ids: Iterable[int], address: int, size: int) -> bytes:
    return encode_frame(BROADCAST, Instruction.SYNC_READ, bytes((address, size, *ids)))


def sync_write_request(values: Iterable[tuple[int, bytes]], address: int, size: int) -> bytes:
    """Writes ``size`` bytes from ``address`` on in several servos; they don't reply."""
    data = b"".join(bytes((id,)) + value for id, value in values)
    return encode_frame(BROADCAST, Instruction.SYNC_WRITE, bytes((address, size)) + data)


class FrameReader:
    """Finds packets in a stream of bytes, and goes on behind garbage.

    Attributes:
        damaged: Packets so far whose checksum was wrong.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.damaged = 0

    def clear(self) -> None:
        """Forgets what came in so far."""
        self._buffer.clear()

    def feed(self, data: bytes) -> list[Frame]:
        """Takes bytes as they came, and returns the packets that are complete now."""
        buffer = self._buffer
        buffer += data
        frames: list[Frame] = []
        while True:
            start = buffer.find(HEADER)
            if start < 0:
                del buffer[: -1 if buffer.endswith(b"\xff") else len(buffer)]
                return frames
            del buffer[:start]
            if len(buffer) < 4:
                return frames
            length = buffer[3]
            if buffer[2] == 0xFF or length < 2:  # no id, no length: not the start of a packet
                del buffer[:1]
                continue
            end = 4 + length
            if len(buffer) < end:
                return frames
            if ~sum(buffer[2 : end - 1]) & 0xFF != buffer[end - 1]:
                self.damaged += 1
                del buffer[:1]
                continue
            frames.append(Frame(buffer[2], buffer[4], bytes(buffer[5 : end - 1])))
            del buffer[:end]


def encode(register: Register, value: int) -> bytes:
    """A register's value as its bytes.

    Raises:
        ValueError: The value does not fit; it would come back as another one.
    """
    limit = 1 << (register.sign_bit if register.sign_bit is not None else 8 * register.size)
    low = 1 - limit if register.sign_bit is not None else 0
    if not low <= value < limit:
        raise ValueError(f"{register.name} is {value}, it should be {low}..{limit - 1}")
    return (abs(value) | (limit if value < 0 else 0)).to_bytes(register.size, "little")


def decode(register: Register, data: bytes | bytearray) -> int:
    """A register's value from its bytes; signed ones hold a sign bit and the magnitude."""
    value = int.from_bytes(data[: register.size], "little")
    if register.sign_bit is None or not value & (1 << register.sign_bit):
        return value
    return -(value & ((1 << register.sign_bit) - 1))
