"""``serial_device`` in front of a pseudo-terminal."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import serial
from harness import wait_for

from lerobot_tool_bridge.core.errors import LoadError, Rejection, ToolFailure
from lerobot_tool_bridge.core.registry import Registry
from lerobot_tool_bridge.core.schema import Schema
from lerobot_tool_bridge.core.tool import CallContext
from lerobot_tool_bridge.ports import Ports
from lerobot_tool_bridge.sim.devices.pty import PtyDevice
from lerobot_tool_bridge.tools.serial_device import SerialDevice


class Lamp:
    """Answers each line by what ``answer`` makes of it."""

    def __init__(self) -> None:
        self.got = b""
        self.answer: Callable[[bytes], bytes] = lambda line: b"OK " + line + b"\r\n"
        self._pty = PtyDevice(self._receive, "lamp")
        self.path = self._pty.path
        self.close = self._pty.close

    def _receive(self, data: bytes) -> bytes:
        self.got += data
        *lines, _ = (self.got.rpartition(b"\n")[0] + b"\n").split(b"\n")
        return self.answer(lines[-1]) if data.endswith(b"\n") else b""


@pytest.fixture
def lamp() -> Iterator[Lamp]:
    lamp = Lamp()
    yield lamp
    lamp.close()


def make(lamp: Lamp, **more: Any) -> SerialDevice:
    port = {"path": lamp.path, "commands": ["LED (ON|OFF)", r"DIM \d{1,3}"], **more}
    return SerialDevice(Ports(), {"ports": {"lamp": port}})


def call(tool: SerialDevice, **arguments: Any) -> str:
    checked = Schema(tool.parameters).validate(arguments)
    tool.check(checked)
    return asyncio.run(tool.run(checked, CallContext("a")))


def test_sends_what_is_allowed_and_returns_the_reply(lamp: Lamp) -> None:
    tool = make(lamp, description="The lamp over the table.")
    assert call(tool, command="LED ON") == "lamp replied: OK LED ON"
    assert call(tool, command="DIM 20", port="lamp") == "lamp replied: OK DIM 20"
    assert lamp.got == b"LED ON\nDIM 20\n"
    assert "lamp: The lamp over the table. Commands match LED (ON|OFF) or DIM" in tool.description


@pytest.mark.parametrize(
    "command",
    [
        "LED",
        "LED ON ",
        "xLED ON",
        "LED ON\nDIM 5",
        "LED ON\n",
        "DIM 1\x00",
        "DIM 1234",
        "",
        "D" * 300,
    ],
)
def test_everything_else_is_refused(lamp: Lamp, command: str) -> None:
    with pytest.raises(Rejection) as error:
        call(make(lamp), command=command)
    assert error.value.code == "invalid_arguments"
    assert lamp.got == b""


@pytest.mark.parametrize("port", ["/dev/ttyACM0", "Lamp", "../lamp", ""])
def test_only_ports_of_the_list(lamp: Lamp, port: str) -> None:
    with pytest.raises(Rejection) as error:
        call(make(lamp), command="LED ON", port=port)
    assert error.value.code == "invalid_arguments"


def test_several_ports_have_to_be_named(lamp: Lamp) -> None:
    entry = {"path": lamp.path, "commands": ["A"]}
    tool = SerialDevice(Ports(), {"ports": {"one": entry, "two": {**entry, "commands": ["B"]}}})
    assert call(tool, command="B", port="two") == "two replied: OK B"
    with pytest.raises(Rejection, match="port"):
        call(tool, command="A")
    with pytest.raises(Rejection, match=r'"A" is not allowed on two\. Allowed is what matches B'):
        call(tool, command="A", port="two")


def test_a_device_that_does_not_reply(lamp: Lamp) -> None:
    lamp.answer = lambda line: b""
    tool = make(lamp, timeout=0.1)
    assert call(tool, command="LED ON") == "Sent to lamp; no reply came within 0.1 s."
    assert "sends no reply" in call(make(lamp, reply=False), command="LED OFF")
    wait_for(lambda: lamp.got.endswith(b"LED OFF\n"))


def test_replies_that_are_no_text(lamp: Lamp) -> None:
    lamp.answer = lambda line: b"\xff\x1b[2J<tool_call>\n"
    answer = call(make(lamp), command="LED ON")
    assert answer == "lamp replied: \ufffd\\u001b[2J<tool_call>"
    lamp.answer = lambda line: b"x" * 10_000
    assert len(call(make(lamp, timeout=0.3), command="LED ON")) < 1100
    lamp.answer = lambda line: b"part"
    assert call(make(lamp, timeout=0.1), command="LED ON") == "lamp replied: part"


def test_an_old_reply_is_not_taken_for_the_new_one(lamp: Lamp) -> None:
    lamp.answer = lambda line: b"first\nsecond\n"
    assert call(make(lamp), command="LED ON") == "lamp replied: first"
    lamp.answer = lambda line: b"third\n"
    assert call(make(lamp), command="LED ON") == "lamp replied: third"


def test_a_port_that_is_gone_or_taken(lamp: Lamp) -> None:
    with serial.Serial(lamp.path, exclusive=True), pytest.raises(ToolFailure, match="in use"):
        call(make(lamp), command="LED ON")
    lamp.close()
    with pytest.raises(ToolFailure, match="can't be reached") as error:
        call(make(lamp), command="LED ON")
    assert error.value.code == "unavailable"
    assert lamp.path not in error.value.message


def test_cancelled_it_gives_the_port_back_at_once(lamp: Lamp) -> None:
    lamp.answer = lambda line: b""

    async def scene() -> None:
        tool = make(lamp, timeout=30.0)
        task = asyncio.create_task(tool.run({"command": "LED ON"}, CallContext("a")))
        while not lamp.got:
            await asyncio.sleep(0.01)
        before = threading.active_count()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 5.0)
        serial.Serial(lamp.path, exclusive=True).close()
        assert threading.active_count() <= before

    asyncio.run(scene())


def test_offered_only_where_a_port_is_allowed(lamp: Lamp) -> None:
    assert "serial_device" not in {e.name for e in Registry.load(Ports())}
    settings = {"serial_device": {"ports": {"lamp": {"path": lamp.path, "commands": ["A"]}}}}
    registry = Registry.load(Ports(), settings)
    (entry,) = [e for e in registry if e.name == "serial_device"]
    assert entry.motion
    assert entry.schema.parameters["properties"]["port"]["enum"] == ["lamp"]
    assert registry.problems == []
    with pytest.raises(Rejection, match="No serial device"):
        SerialDevice(Ports()).check({"command": "A"})


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("/dev/ttyUSB0", "mapping"),
        ({}, "commands should be a list"),
        ({"commands": "A"}, "commands should be a list"),
        ({"commands": ["(a+)+"]}, "commands: '\\(a\\+\\)\\+'"),
        ({"commands": ["("]}, "no regular expression"),
        ({"commands": ["A"], "baud": 9600}, "unknown keys: baud"),
        ({"commands": ["A"], "baud_rate": "fast"}, "baud_rate should be a number"),
        ({"commands": ["A"], "timeout": 1e9}, "timeout should be a number"),
        ({"commands": ["A"], "path": 3}, "path should be a text"),
        ({"commands": ["A"], "reply": "no"}, "reply should be true or false"),
    ],
)
def test_settings_that_cannot_be(entry: Any, says: str) -> None:
    with pytest.raises(LoadError, match=says):
        SerialDevice(Ports(), {"ports": {"lamp": entry}})
