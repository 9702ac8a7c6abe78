"""``serial_device``: one allowed command to a device on a serial port, and its reply."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lerobot_tool_bridge.core import patterns, show
from lerobot_tool_bridge.core.errors import LoadError, Rejection, ToolFailure
from lerobot_tool_bridge.core.tool import CallContext, Tool
from lerobot_tool_bridge.ports import Ports

_LONGEST_COMMAND = 200
_LONGEST_REPLY = 1000  # characters
_MOST_BYTES = 4096
_STEP = 0.05  # seconds after which a read looks whether the call was cancelled
_KEYS = ("path", "baud_rate", "commands", "description", "line_end", "timeout", "settle", "reply")


@dataclass(frozen=True, slots=True)
class Device:
    """One port of the allow-list.

    Attributes:
        path: Of the port.
        commands: Patterns; a command has to match one as a whole.
        description: For the model.
        line_end: After each command and each reply.
        timeout: Seconds for a reply.
        settle: Seconds to wait after opening: some boards restart then.
        reply: Whether it answers at all.
    """

    name: str
    path: str
    commands: tuple[str, ...]
    description: str = ""
    baud_rate: int = 9600
    line_end: str = "\n"
    timeout: float = 1.0
    settle: float = 0.0
    reply: bool = True

    @classmethod
    def parse(cls, name: str, values: Any) -> Device:
        """Checks one entry of the settings.

        Raises:
            LoadError: ``bad_file``; names the key and what is expected.
        """
        where = f"ports.{name}"
        if not isinstance(values, Mapping):
            raise LoadError("bad_file", f"{where} should be a mapping with commands, ...")
        unknown = [str(k) for k in values if k not in _KEYS]
        if unknown:
            raise LoadError(
                "bad_file",
                f"{where} has unknown keys: {', '.join(unknown)}. Known: {', '.join(_KEYS)}.",
            )
        commands = values.get("commands")
        if not isinstance(commands, list) or not all(isinstance(c, str) for c in commands):
            raise LoadError("bad_file", f"{where}.commands should be a list of patterns.")
        for pattern in commands:
            if problem := patterns.problem(pattern):
                raise LoadError("bad_file", f"{where}.commands: {pattern!r}: {problem}.")
        given: dict[str, Any] = {"path": name, **values, "commands": tuple(commands)}
        for key, kind, low, high in (
            ("baud_rate", int, 50, 4_000_000),
            ("timeout", (int, float), 0.01, 30.0),
            ("settle", (int, float), 0.0, 10.0),
        ):
            value = given.get(key, low)
            if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
                raise LoadError("bad_file", f"{where}.{key} should be a number {low} to {high}.")
        for key in ("path", "description", "line_end"):
            if not isinstance(given.get(key, ""), str):
                raise LoadError("bad_file", f"{where}.{key} should be a text.")
        if not isinstance(given.get("reply", True), bool):
            raise LoadError("bad_file", f"{where}.reply should be true or false.")
        return cls(name=name, **given)


class SerialDevice(Tool):
    """Sends a command line that the site allows, and returns the line that comes back.

    Settings:
        ports: By the name that the model uses: path (left out, the name), baud_rate (9600),
            commands (patterns of which one has to match the whole command), description, line_end
            ("\\n"), timeout (seconds for the reply, 1), settle (seconds after opening, 0), reply
            (false where it never answers). Without any port the tool is not offered.
    """

    name = "serial_device"
    resources = frozenset({"serial"})
    motion = True  # what such a device does is not known
    timeout = 45.0

    def __init__(self, ports: Ports, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(ports, settings)
        given = self.settings.get("ports") or {}
        if not isinstance(given, Mapping):
            raise LoadError("bad_file", "ports should be a mapping: a name for each port.")
        self._devices = {str(n): Device.parse(str(n), v) for n, v in given.items()}

    def missing(self) -> str:
        if self._devices:
            return ""
        return (
            "No port is allowed. List ports and commands under serial_device in the tools file, "
            "as config/tools.yaml shows."
        )

    @property
    def description(self) -> str:
        text = "Send one command to a device on a serial port, and get its reply as text."
        for device in self._devices.values():
            about = f" {device.description.rstrip('.')}." if device.description else ""
            text += f" {device.name}:{about} Commands match {_patterns(device)}."
        return f"{text} Other commands are refused."

    @property
    def parameters(self) -> dict[str, Any]:
        port: dict[str, Any] = {"type": "string", "description": "Which device."}
        required = ["command"]
        if self._devices:
            port["enum"] = list(self._devices)
            if len(self._devices) == 1:
                port["description"] += f" Left out, {next(iter(self._devices))}."
            else:
                required.append("port")
        return {
            "type": "object",
            "properties": {
                "command": {
                    "type": "string",
                    "description": "The command, without a line end.",
                    "minLength": 1,
                    "maxLength": _LONGEST_COMMAND,
                },
                "port": port,
            },
            "required": required,
            "additionalProperties": False,
        }

    def check(self, arguments: Mapping[str, Any]) -> None:
        if not self._devices:
            raise Rejection("unavailable", "No serial device is set up on this robot.")
        device, command = self._device(arguments), arguments["command"]
        if not command.isprintable():
            raise Rejection(
                "invalid_arguments",
                "command: it has line ends or control characters; only one plain line is allowed.",
            )
        if not any(re.fullmatch(pattern, command) for pattern in device.commands):
            raise Rejection(
                "invalid_arguments",
                f"command: {show.text(command)} is not allowed on {device.name}. Allowed is what "
                f"matches {_patterns(device)}.",
            )

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        self.check(arguments)
        device = self._device(arguments)
        cancelled = threading.Event()
        work = asyncio.ensure_future(
            asyncio.to_thread(_exchange, device, arguments["command"], cancelled)
        )
        try:
            reply = await asyncio.shield(work)
        except asyncio.CancelledError:
            cancelled.set()  # the thread gives the port back at once, and is waited for
            await asyncio.wait({work})
            if not work.cancelled():
                work.exception()
            raise
        if not device.reply:
            return f"Sent to {device.name}, which sends no reply."
        if reply is None:
            return f"Sent to {device.name}; no reply came within {device.timeout:g} s."
        return f"{device.name} replied: {show.plain(reply, _LONGEST_REPLY) or '(an empty line)'}"

    def _device(self, arguments: Mapping[str, Any]) -> Device:
        name = arguments.get("port")
        return self._devices[name] if name is not None else next(iter(self._devices.values()))


def _exchange(device: Device, command: str, cancelled: threading.Event) -> str | None:
    """Sends the command, and returns the line that comes back; None where none does in time."""
    import serial

    try:
        with serial.Serial(
            device.path,
            device.baud_rate,
            timeout=_STEP,
            write_timeout=device.timeout,
            exclusive=True,
        ) as port:
            if device.settle > 0 and cancelled.wait(device.settle):
                return None
            port.reset_input_buffer()
            port.write((command + device.line_end).encode())
            return _line(port, device, cancelled) if device.reply else None
    except serial.SerialTimeoutException:
        raise ToolFailure(
            "unavailable", f"{device.name} does not take the command. Tell the operator."
        ) from None
    except (OSError, ValueError):  # SerialException is an OSError; a path is nothing for the model
        raise ToolFailure(
            "unavailable",
            f"{device.name} can't be reached: its port is missing, not permitted or in use. Tell "
            "the operator.",
        ) from None


def _line(port: Any, device: Device, cancelled: threading.Event) -> str | None:
    line_end = (device.line_end or "\n").encode()
    end = time.monotonic() + device.timeout
    data = b""
    while len(data) < _MOST_BYTES and time.monotonic() < end and not cancelled.is_set():
        data += port.read(max(1, min(port.in_waiting, _MOST_BYTES - len(data))))
        if line_end in data:
            break
    return data.partition(line_end)[0].decode(errors="replace").strip() if data else None


def _patterns(device: Device) -> str:
    return show.listed([show.plain(p, _LONGEST_COMMAND) for p in device.commands], "or")
