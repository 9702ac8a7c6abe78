"""The servo bus on a serial port: requests, replies, retries, and errors as sentences.

BusError
├── PortError       the port can't be opened, or went away
└── NoReply         servos don't answer, others may
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import grp
import os
import stat
import termios
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import serial

from lerobot_tool_bridge.core.errors import BridgeError
from lerobot_tool_bridge.drivers.feetech import protocol
from lerobot_tool_bridge.drivers.feetech.registers import Register

BAUD_RATE = 1_000_000
REPLY_TIMEOUT = 0.02
"""Seconds for all replies to one request: they take 2 ms for six servos, and USB adds some."""
RETRIES = 2


class BusError(BridgeError):
    """The bus can't do what was asked; one sentence: what is wrong and what to do."""


class PortError(BusError):
    """The serial port can't be opened, or is gone."""


class NoReply(BusError):
    """Some servos don't answer.

    Attributes:
        missing: Ids that gave no readable reply.
        answered: Ids that did, of those that were asked.
    """

    def __init__(self, missing: Sequence[int], answered: Sequence[int], why: str = "") -> None:
        self.missing = tuple(missing)
        self.answered = tuple(answered)
        servos = "servo" if len(missing) == 1 else "servos"
        others = f"{_list(answered)} did" if answered else "no other did either"
        super().__init__(
            f"no answer from {servos} {_list(missing)} ({others}){why}. "
            "Check the cables between the servos, and the servos' power and ids."
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """What one servo answered.

    Attributes:
        errors: Its error bits (``protocol.ErrorBits``); the data hold all the same.
        data: The registers that were asked for.
    """

    errors: int
    data: bytes


class ServoBus:
    """One open bus.

    Args:
        port: An open serial port (``open_port``).

    Attributes:
        timeouts: Requests so far that not every servo answered in time.
        damaged: Replies so far with a wrong checksum.
    """

    def __init__(self, port: serial.Serial) -> None:
        self._port = port
        self._reader = protocol.FrameReader()
        self.timeouts = 0

    @classmethod
    def open(cls, path: str, baud_rate: int = BAUD_RATE) -> ServoBus:
        """Opens a port for this process alone.

        Raises:
            PortError: It is missing, not permitted, held by another process, or no serial port.
        """
        return cls(open_port(path, baud_rate))

    @property
    def damaged(self) -> int:
        return self._reader.damaged

    def close(self) -> None:
        """Gives the port back."""
        self._port.close()

    def ping(self, id: int) -> bool:
        """Whether a servo answers."""
        return bool(self._retry([id], protocol.encode_frame(id, protocol.Instruction.PING), 0))

    def scan(self, ids: Iterable[int]) -> list[int]:
        """Those of the ids that answer."""
        return [id for id in ids if self.ping(id)]

    def read(self, id: int, register: Register) -> int:
        """Reads one register of one servo.

        Raises:
            NoReply: It does not answer.
            PortError: The port is gone.
        """
        return self.sync_read_register([id], register)[id]

    def write(self, id: int, register: Register, value: int) -> None:
        """Writes one register of one servo, and waits for its word that it did.

        Raises:
            NoReply: It does not answer.
            PortError: The port is gone.
            ValueError: The value does not fit into the register.
        """
        data = protocol.encode(register, value)
        request = protocol.write_request(id, register.address, data)
        if not self._retry([id], request, 0):
            raise NoReply([id], [])

    def sync_read(self, ids: Sequence[int], address: int, size: int) -> dict[int, Reply]:
        """Reads a block of registers of several servos with one request.

        Raises:
            NoReply: Not all answered, also when those that did not were asked again.
            PortError: The port is gone.
        """
        replies: dict[int, Reply] = {}
        for _ in range(1 + RETRIES):
            left = [id for id in ids if id not in replies]
            replies |= self._exchange(left, protocol.sync_read_request(left, address, size), size)
            if len(replies) == len(ids):
                return replies
        raise NoReply([id for id in ids if id not in replies], [id for id in ids if id in replies])

    def sync_read_register(self, ids: Sequence[int], register: Register) -> dict[int, int]:
        """Reads one register of several servos with one request; raises as ``sync_read`` does."""
        replies = self.sync_read(ids, register.address, register.size)
        return {id: protocol.decode(register, replies[id].data) for id in ids}

    def sync_write(self, values: Mapping[int, bytes], address: int) -> None:
        """Writes a block of registers of several servos; they don't reply.

        Raises:
            PortError: The port is gone.
        """
        size = len(next(iter(values.values())))
        self._send(protocol.sync_write_request(values.items(), address, size))

    def _retry(self, ids: Sequence[int], request: bytes, size: int) -> dict[int, Reply]:
        for _ in range(1 + RETRIES):
            replies = self._exchange(ids, request, size)
            if replies:
                return replies
        return {}

    def _exchange(self, ids: Sequence[int], request: bytes, size: int) -> dict[int, Reply]:
        """Sends a request and collects the replies of so many data bytes that come in time."""
        self._reader.clear()
        self._send(request)
        replies: dict[int, Reply] = {}
        length = size + 6
        end = time.monotonic() + REPLY_TIMEOUT
        expected = len(ids) * length
        while True:
            try:
                data = self._port.read(expected)
            except (OSError, TypeError) as error:  # TypeError: closed under our hands
                raise self._gone(error) from None
            for frame in self._reader.feed(data):
                if frame.id in ids and len(frame.data) == size:
                    replies[frame.id] = Reply(frame.code, frame.data)
            if len(replies) == len(ids):
                return replies
            if not data or time.monotonic() > end:
                self.timeouts += 1
                return replies
            expected = (len(ids) - len(replies)) * length

    def _send(self, request: bytes) -> None:
        try:
            self._port.reset_input_buffer()
            self._port.write(request)
        except (OSError, termios.error, TypeError) as error:
            raise self._gone(error) from None

    def _gone(self, error: Exception) -> PortError:
        return PortError(
            f"{self._port.port} is gone ({_reason(error)}). Plug the arm's USB cable in again."
        )


def open_port(path: str, baud_rate: int = BAUD_RATE) -> serial.Serial:
    """Opens a serial port exclusively.

    The lock is the kernel's own, so that a killed process leaves none behind. Processes that
    have the port open without any lock (LeRobot's programs do) count as holders too: two readers
    would steal each other's replies.

    Raises:
        PortError: With the reason and what to do.
    """
    if not path:
        raise PortError(f"no port is given. {_ports_that_exist()}")
    if not os.path.exists(path):
        raise PortError(f"there is no port {path}. {_ports_that_exist()}")
    try:
        if not _is_terminal(path):
            raise PortError(f"{path} is no serial port. {_ports_that_exist()}")
        holder = _holder(path)
        if holder:
            raise PortError(_held(path, holder))
        port = serial.Serial(path, baud_rate, timeout=REPLY_TIMEOUT, exclusive=True)
        if not os.path.realpath(path).startswith("/dev/pts/"):  # there it outlives a killed owner
            fcntl.ioctl(port.fd, termios.TIOCEXCL)  # also against those that ask for no lock
    except (OSError, termios.error) as error:
        raise PortError(_why_not(path, error)) from None
    with contextlib.suppress(ValueError, OSError, AttributeError):
        port.set_low_latency_mode(True)  # FTDI chips wait 16 ms otherwise
    return port


def _is_terminal(path: str) -> bool:
    fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    try:
        return os.isatty(fd)
    finally:
        os.close(fd)


def _why_not(path: str, error: Exception) -> str:
    code = getattr(error, "errno", None)
    if code in (errno.EACCES, errno.EPERM):
        group = _group(path)
        return (
            f"no permission for {path}. Add yourself to the group {group} "
            f"(sudo usermod -aG {group} $USER) and log in again."
        )
    if code in (errno.EBUSY, errno.EAGAIN):
        return _held(path, _holder(path))
    if code in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
        return f"there is no device behind {path}. {_ports_that_exist()}"
    return f"can't open {path} as a serial port ({_reason(error)}). {_ports_that_exist()}"


def _held(path: str, holder: str) -> str:
    return f"{path} is held by {holder or 'another process'}. End that one first."


def _group(path: str) -> str:
    try:
        return grp.getgrgid(os.stat(path).st_gid).gr_name
    except (OSError, KeyError):
        return "dialout"


def _holder(path: str) -> str:
    """Another process that has a device open, as ``python3 train.py (pid 4711)``; or empty.

    Only processes of the same user can be looked into, without being root.
    """
    device = os.stat(path).st_rdev
    for folder in glob.iglob("/proc/[0-9]*"):
        if folder == f"/proc/{os.getpid()}":
            continue
        with contextlib.suppress(OSError):
            for entry in os.scandir(f"{folder}/fd"):
                with contextlib.suppress(OSError):
                    # the link's text first: following every link would touch every device
                    if not os.readlink(entry.path).startswith("/dev/"):
                        continue
                    info = os.stat(entry.path)
                    if stat.S_ISCHR(info.st_mode) and info.st_rdev == device:
                        words = Path(folder, "cmdline").read_bytes().split(b"\0")
                        command = " ".join(b" ".join(words).decode(errors="replace").split())
                        return f"{command[:60] or 'a process'} (pid {Path(folder).name})"
    return ""


def _ports_that_exist() -> str:
    ports = sorted(p for kind in ("ACM", "USB", "AMA") for p in glob.glob(f"/dev/tty{kind}*"))
    if not ports:
        return "No serial port exists: is the arm's USB cable plugged in?"
    return f"Ports that exist: {', '.join(ports)}."


def _reason(error: Exception) -> str:
    code = getattr(error, "errno", None)
    return os.strerror(code) if isinstance(code, int) else str(error)


def _list(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids))
