"""Code written for LeRobot's tools."""

from __future__ import annotations

import json
import threading
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pytest

from lerobot_tool_bridge import lerobot
from lerobot_tool_bridge.core.catalog import Catalogue
from lerobot_tool_bridge.core.errors import LoadError, ToolFailure
from lerobot_tool_bridge.core.registry import Registry
from lerobot_tool_bridge.lerobot import (
    DEFAULT_TOOLS,
    SAY_TOOL_SCHEMA,
    TOOL_REGISTRY,
    RecordObservationTool,
    SayTool,
    Tool,
    get_tools,
)
from lerobot_tool_bridge.local import Local
from lerobot_tool_bridge.ports import Frame, Ports

OBSERVE = {
    "type": "function",
    "function": {
        "name": "record_observation",
        "description": "Capture a high-resolution still image for the user.",
        "parameters": {
            "type": "object",
            "properties": {
                "label": {"type": "string", "description": "Short label for the saved image."}
            },
            "required": ["label"],
        },
    },
}
DANCE = {"type": "function", "function": {"name": "dance", "parameters": {"type": "object"}}}


class Still:
    async def still(self) -> Frame:
        return Frame("mono8", b"\x80", 1, 1, 1, False, False, 1.0, "camera", "test")

    def publish_observation(self, data: bytes, media: str, frame: Frame) -> None:
        pass


class Meta:
    """As much of ``LeRobotDatasetMetadata`` as there is to it."""

    def __init__(self, tools: Any) -> None:
        self.tools = tools


class LampTool:
    name = "lamp"
    schema: ClassVar[dict[str, Any]] = {
        "type": "function",
        "function": {
            "name": "lamp",
            "description": "Switches the lamp.",
            "parameters": {
                "type": "object",
                "properties": {"on": {"type": "boolean"}},
                "required": ["on"],
            },
        },
    }

    def __init__(self, schema: dict[str, Any] | None = None, colour: str = "white") -> None:
        self.schema = schema or LampTool.schema
        self.colour = colour
        self.threads: list[str] = []

    def call(self, arguments: dict[str, Any]) -> str:
        self.threads.append(threading.current_thread().name)
        return f"{self.colour} {arguments['on']}"


@pytest.fixture
def lamp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOOL_REGISTRY, "lamp", LampTool)


def write(folder: Path, tools: Any) -> Path:
    (folder / "meta").mkdir()
    (folder / "meta" / "info.json").write_text(json.dumps({"features": {}, "tools": tools}))
    return folder


def test_a_registered_class_is_made_for_what_the_data_set_declares(lamp, tmp_path):
    folder = write(tmp_path, [SAY_TOOL_SCHEMA, OBSERVE, DANCE, LampTool.schema])
    for meta in (
        folder,
        str(folder),
        folder / "meta" / "info.json",
        json.loads((folder / "meta" / "info.json").read_text()),
        Meta([SAY_TOOL_SCHEMA, OBSERVE, DANCE, LampTool.schema]),
    ):
        tools = get_tools(meta)
        assert list(tools) == ["say", "record_observation", "lamp"]  # dance is only declared
        assert all(isinstance(t, Tool) for t in tools.values())
        assert tools["lamp"].schema == LampTool.schema
        assert tools["record_observation"].schema == OBSERVE


@pytest.mark.parametrize("declared", [None, []])
def test_default_tools_where_the_catalogue_is_missing_or_empty(declared, tmp_path):
    assert DEFAULT_TOOLS == [SAY_TOOL_SCHEMA]
    assert SAY_TOOL_SCHEMA["function"]["name"] == "say"
    for meta in (Meta(declared), write(tmp_path, declared), {"features": {}}):
        tools = get_tools(meta)
        assert list(tools) == ["say"]
        assert tools["say"].schema == SAY_TOOL_SCHEMA


def test_arguments_of_constructors(lamp, tmp_path):
    meta = Meta([OBSERVE, LampTool.schema])
    tools = get_tools(meta, lamp={"colour": "red"}, output_dir=str(tmp_path), colour="blue")
    assert tools["lamp"].call({"on": True}) == "red True"
    assert get_tools(meta, colour="blue")["lamp"].call({"on": True}) == "blue True"
    with pytest.raises(TypeError):  # a name that is wrong is not swallowed
        get_tools(meta, lamp={"color": "red"})


def test_what_can_not_be_read_is_said(tmp_path):
    with pytest.raises(LoadError, match=r"meta should have tools"):
        get_tools(3)
    with pytest.raises(LoadError, match=r"no meta/info\.json"):
        get_tools(tmp_path)
    with pytest.raises(LoadError, match="should be a list"):
        get_tools({"tools": {"say": {}}})


def test_say_takes_the_page_s_arguments():
    tool = SayTool(SAY_TOOL_SCHEMA, voice="alba", output_dir=None, speech="log")
    assert isinstance(tool.call({"text": "On it."}), str)
    with pytest.raises(ToolFailure, match="text is missing"):
        tool.call({})


def test_record_observation_gives_the_page_s_answer(tmp_path):
    tool = RecordObservationTool(OBSERVE, output_dir=str(tmp_path), camera=Still())
    assert tool.call({"label": "cup"}) == "saved cup.png"
    assert (tmp_path / "cup.png").exists()
    for label in ("../cup", "/etc/cup", ""):
        with pytest.raises(ToolFailure):
            tool.call({"label": label})
    with pytest.raises(ToolFailure, match="no camera"):
        RecordObservationTool(output_dir=str(tmp_path)).call({"label": "cup"})
    assert RecordObservationTool().schema["function"]["name"] == "record_observation"


def test_the_one_dispatcher_runs_them(lamp):
    tools = get_tools(Meta([LampTool.schema]))
    bridge = Local([*tools.values(), DANCE])
    row = {
        "role": "assistant",
        "content": None,
        "style": None,
        "timestamp": 12.4,
        "camera": None,
        "tool_calls": [
            {
                "type": "function",
                "function": {"name": "lamp", "arguments": {"on": True, "label": None}},
            },
            json.dumps({"type": "function", "function": {"name": "dance", "arguments": {}}}),
        ],
    }
    message, *answers = bridge.turn(row)
    assert [a["content"].split(":")[0] for a in answers] == ["white True", "Error"]
    assert "not_implemented" in answers[1]["content"]
    ids = [c["id"] for c in message["tool_calls"]]
    assert [a["tool_call_id"] for a in answers] == ids
    lamp_tool = tools["lamp"]
    assert isinstance(lamp_tool, LampTool)
    assert lamp_tool.threads == ["tool lamp"]


def test_a_class_of_that_form_is_a_tool_of_the_bridge(lamp, tmp_path):
    catalogue = Catalogue.parse([LampTool.schema])
    registry = Registry.load(Ports(), {"lamp": {"colour": "red"}}, catalogue, tools=[LampTool])
    (entry,) = registry
    assert entry.tool is not None
    assert entry.resources == {"tool lamp"}

    class Bare:
        """Its schema is the data set's."""

        name = "lamp"

        def call(self, arguments):
            return "on"

    registry = Registry.load(Ports(), None, catalogue, tools=[Bare])
    (entry,) = registry
    assert registry.schemas()[0]["function"]["description"] == "Switches the lamp."
    assert entry.schema.parameters["required"] == ["on"]


def test_an_entry_point_may_have_any_form(monkeypatch):
    from test_twinkle_api import Search

    points = [
        EntryPoint(k.__name__, f"{k.__module__}:{k.__name__}", "g") for k in (LampTool, Search)
    ]
    points.append(EntryPoint("broken", "no_such_package:x", "g"))
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
    registry = Registry.load(Ports())
    assert {"lamp", "search", "say"} <= {e.name for e in registry}
    assert [p.code for p in registry.problems] == ["bad_tool"]
    assert "no_such_package" in registry.problems[0].message


def test_public_names():
    assert set(lerobot.__all__) <= set(dir(lerobot))
