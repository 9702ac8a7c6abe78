"""Which tools there are, which are offered, and what a site's file changes."""

from __future__ import annotations

import importlib.metadata
import json
import logging
from pathlib import Path
from typing import Any, ClassVar

import pytest
from cases import field_case
from rig import make_tool

from lerobot_tool_bridge.core.catalog import DEFAULT_TOOLS, Catalogue
from lerobot_tool_bridge.core.errors import LoadError, Rejection
from lerobot_tool_bridge.core.messages import ToolCall
from lerobot_tool_bridge.core.registry import Registry, setting_names
from lerobot_tool_bridge.core.tool import Tool
from lerobot_tool_bridge.core.toolsfile import ToolSettings, load_tools_file
from lerobot_tool_bridge.ports import Ports
from lerobot_tool_bridge.robot import Gimbal, Robot

XYZ = {
    "type": "object",
    "properties": {
        "x": {"type": "number", "minimum": 0.1, "maximum": 0.3, "description": "metres"},
        "y": {"type": "number", "minimum": -0.3, "maximum": 0.3},
        "z": {"type": "number", "minimum": 0.0, "maximum": 0.2},
    },
    "required": ["x", "y", "z"],
    "additionalProperties": False,
}
GRAB = make_tool("arm_grab_object", motion=True, parameters=XYZ)
TOOLS: list[Any] = [
    "lerobot_tool_bridge.tools.say:Say",
    "lerobot_tool_bridge.tools.stop:Stop",
    GRAB,
]


class Picky(Tool):
    """A tool with settings.

    Settings:
        speed: How fast,
            in m/s.
        voice: Which.
    """

    name = "picky"
    needs = ("gimbal",)
    description = "Picky."

    @property
    def parameters(self) -> dict[str, Any]:
        pan = {"type": "number", "minimum": 0, "maximum": 270}
        return {"type": "object", "properties": {"pan": pan}}

    async def run(self, arguments: dict[str, Any], context: Any) -> str:
        return ""


def names(registry: Registry) -> list[str]:
    return [s["function"]["name"] for s in registry.schemas()]


def code(registry: Registry, name: str, arguments: dict[str, Any] | None = None) -> str:
    try:
        registry.validate(ToolCall("id", name, arguments))
    except Rejection as refusal:
        return refusal.code
    return "ok"


def data_set(folder: Path, info: dict[str, Any]) -> Path:
    (folder / "meta").mkdir(exist_ok=True)
    (folder / "meta" / "info.json").write_text(json.dumps(info))
    return folder


# --- F01: the catalogue of a data set -----------------------------------------------------------

F01 = field_case("F01")["input"]
INFO = F01["dataset"]["meta/info.json"]
FIRST, NULL, BOTH, FLAT, DICT = F01["variants"]


@pytest.mark.parametrize("extra", [{}, FIRST, NULL], ids=["absent", "empty", "null"])
def test_without_declared_tools_only_say_is_offered(extra, tmp_path, caplog):
    catalogue = Catalogue.load(data_set(tmp_path, {**INFO, **extra}))
    with caplog.at_level(logging.WARNING):
        registry = Registry.load(Ports(), None, catalogue, tools=TOOLS)
    assert names(registry) == ["say"]
    (record,) = caplog.records
    assert "only LeRobot's default, say, is offered" in record.getMessage()
    assert "without a catalogue" in record.getMessage()
    assert code(registry, "arm_grab_object", {}) == "unknown_tool"
    assert code(registry, "stop") == "ok"  # stopping is always possible


def test_declared_tools_are_offered_with_the_limits_of_the_site(tmp_path):
    catalogue = Catalogue.load(data_set(tmp_path, {**INFO, **BOTH}) / "meta" / "info.json")
    registry = Registry.load(
        Ports(), {"arm_grab_object": {"z": {"minimum": 0.05}}}, catalogue, tools=TOOLS
    )
    assert names(registry) == ["arm_grab_object", "wave_flag"]
    grab = registry.schemas()[0]["function"]["parameters"]
    assert grab["properties"]["x"]["maximum"] == 0.3
    assert grab["properties"]["z"]["minimum"] == 0.05
    assert code(registry, "wave_flag", {}) == "not_implemented"
    assert code(registry, "arm_grab_object", {"x": 0.2, "y": 0, "z": 0.02}) == "invalid_arguments"
    assert code(registry, "arm_grab_object", {"x": 0.2, "y": 0, "z": 0.06}) == "ok"
    assert code(registry, "say", {"text": "x"}) == "unknown_tool"


def test_flat_schemas_are_understood(tmp_path):
    registry = Registry.load(
        Ports(), None, Catalogue.load(data_set(tmp_path, {**INFO, **FLAT})), tools=TOOLS
    )
    assert names(registry) == ["say"]
    assert registry.schemas()[0]["type"] == "function"


def test_a_dict_is_one_clear_error(tmp_path):
    with pytest.raises(LoadError, match="'tools' should be a list of function schemas") as caught:
        Catalogue.load(data_set(tmp_path, {**INFO, **DICT}))
    assert str(tmp_path) in caught.value.message


def test_files_that_are_no_catalogue(tmp_path):
    for path, words in (
        (tmp_path / "none.json", "can't be read"),
        (tmp_path, "no meta/info.json"),
    ):
        with pytest.raises(LoadError, match=words):
            Catalogue.load(path)
    (tmp_path / "bad.json").write_text('{"tools": [')
    with pytest.raises(LoadError, match=r"bad\.json: This is not JSON"):
        Catalogue.load(tmp_path / "bad.json")


def test_bad_tools_of_a_catalogue_are_skipped_and_named(caplog):
    catalogue = Catalogue.parse(
        [
            DEFAULT_TOOLS[0],
            {"type": "function", "function": {"name": "../x"}},
            {"type": "function", "function": {"name": "say"}},
            {"type": "custom", "name": "y"},
            {"type": "function", "function": {"name": "z", "parameters": {"type": "array"}}},
            {"type": "function", "function": {"name": "n", "parameters": {"maximum": 1e999}}},
            5,
        ]
    )
    registry = Registry.load(Ports(), None, catalogue, tools=TOOLS)
    assert names(registry) == ["say"]
    assert [p.code for p in registry.problems] == [
        *("tool_name", "tool_name", "bad_schema", "bad_schema", "bad_schema", "bad_schema"),
    ]
    assert "tool 2" in registry.problems[0].message


# --- tools and plugins --------------------------------------------------------------------------


def test_the_built_in_tools_all_load():
    registry = Registry.load(Ports())
    assert registry.problems == []
    wanted = {"say", "stop", "arm_grab_object", "gimbal_control", "record_observation"}
    assert wanted <= set(names(registry))
    for schema in registry.schemas():
        assert schema["function"]["description"]


def test_a_broken_tool_is_reported_and_skipped(monkeypatch):
    class Broken(Picky):
        name = "broken"

        def __init__(self, *args: Any) -> None:
            raise RuntimeError("no module named x")

    class BadSchema(Picky):
        name = "bad_schema"

        @property
        def parameters(self) -> dict[str, Any]:
            raise KeyError("robot")

    point = importlib.metadata.EntryPoint("x", "no_such_package.tools:X", "g")
    double = importlib.metadata.EntryPoint("y", "lerobot_tool_bridge.tools.say:Say", "g")
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point, double])
    monkeypatch.setattr(
        "lerobot_tool_bridge.tools.BUILTIN", (*TOOLS, "no_such_module:X", Broken, BadSchema, int)
    )
    registry = Registry.load(Ports())
    assert names(registry) == ["say", "stop", "arm_grab_object"]
    text = "\n".join(p.message for p in registry.problems)
    for words in (
        "no_such_module",
        "no_such_package",
        "broken can't be made",
        "bad_schema has no",
        "neither a subclass of Tool",
        "there is a tool say already",
    ):
        assert words in text


def test_tools_that_need_what_the_robot_lacks():
    robot = Robot("r", "", Path("x.urdf"))
    registry = Registry.load(Ports(robot=robot), tools=[*TOOLS, Picky])
    assert "picky" not in names(registry)
    with_head = Robot("r", "", Path("x.urdf"), gimbal=Gimbal(("pan", "tilt")))
    assert "picky" in names(Registry.load(Ports(robot=with_head), tools=[Picky]))
    declared = Catalogue.parse([{"type": "function", "function": {"name": "picky"}}])
    registry = Registry.load(Ports(robot=robot), None, declared, tools=[Picky])
    with pytest.raises(Rejection, match="no gimbal") as caught:
        registry.validate(ToolCall("i", "picky", {}))
    assert caught.value.code == "not_implemented"


def test_unknown_tool_suggests_but_never_guesses():
    registry = Registry.load(Ports(), tools=TOOLS)
    with pytest.raises(Rejection, match="Did you mean arm_grab_object") as caught:
        registry.validate(ToolCall("i", "arm_grab_objekt", {}))
    assert caught.value.code == "unknown_tool"
    assert code(registry, "x" * 256, {}) == "unknown_tool"


def test_a_check_that_fails_inside_is_no_crash():
    class Failing(Picky):
        name = "failing"

        def check(self, arguments: Any) -> None:
            raise ZeroDivisionError

    assert code(Registry.load(Ports(), tools=[Failing]), "failing", {}) == "tool_error"


# --- the site's tools file ----------------------------------------------------------------------


def test_tools_file(tmp_path, caplog):
    file = tmp_path / "tools.yaml"
    file.write_text(
        "function_calling:\n"
        "  tools:\n"
        "    say: {enabled: false}\n"
        "    picky:\n"
        "      description: Look around.\n"
        "      timeout: 12\n"
        "      max_per_second: 2.5\n"
        "      pan: {minimum: 90, maximum: 300}\n"
        "      speed: 0.1\n"
        "      z_mim: 3\n"
        "    arm_grab_objekt: {}\n"
    )
    settings = load_tools_file(file)
    with caplog.at_level(logging.WARNING):
        registry = Registry.load(Ports(), settings, tools=[*TOOLS, Picky])
    assert names(registry) == ["stop", "arm_grab_object", "picky"]
    (entry,) = [e for e in registry if e.name == "picky"]
    assert (entry.description, entry.timeout, entry.max_per_second) == ("Look around.", 12.0, 2.5)
    pan = entry.schema.parameters["properties"]["pan"]
    assert (pan["minimum"], pan["maximum"]) == (90, 270)
    assert entry.tool is not None
    assert entry.tool.settings["speed"] == 0.1
    text = caplog.text
    assert "picky.z_mim" in text
    assert "speed and voice" in text
    assert "picky.speed" not in text
    assert "Did you mean arm_grab_object?" in text
    assert setting_names(Picky) == ["speed", "voice"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "not a YAML file"),
        ("tools: {}", "should have the layout"),
        ("function_calling: {tools: [say]}", "should have the layout"),
        ("function_calling: {tools: {say: 5}}", "the entry say should be a mapping"),
        ("function_calling: {tools: {say: {enabled: 'no'}}}", "say.enabled"),
        ("function_calling: {tools: {say: {timeout: -1}}}", "say.timeout is -1"),
        ("function_calling: {tools: {say: {timeout: true}}}", "say.timeout is true"),
        ("function_calling: {tools: {say: {timeout: .nan}}}", "say.timeout"),
        ("function_calling: {tools: {say: {description: 5}}}", "say.description"),
    ],
)
def test_tools_files_that_are_wrong(text: str, words: str, tmp_path: Path):
    file = tmp_path / "tools.yaml"
    file.write_text(text)
    with pytest.raises(LoadError) as caught:
        load_tools_file(file)
    assert words in caught.value.message
    assert "tools.yaml" in caught.value.message


def test_an_empty_section_is_fine(tmp_path):
    file = tmp_path / "tools.yaml"
    file.write_text("function_calling:\n  tools:\n")
    assert load_tools_file(file) == {}
    assert ToolSettings.parse("x", None) == ToolSettings()


class Lamp(Tool):
    """One of several tools for a lamp.

    Settings:
        plug: Where it is plugged in.
    """

    name = "lamp_on"
    family = "lamp"
    description = "Turns the lamp on."
    parameters: ClassVar = {"type": "object"}

    def missing(self):
        return "" if self.settings.get("plug") else "Set lamp: {plug: ...} in the tools file."

    async def run(self, arguments, context):
        return str(self.settings["plug"])


class LampOff(Lamp):
    name = "lamp_off"


def test_a_family_is_set_at_once_and_not_offered_before(caplog):
    tools = [Lamp, LampOff]
    with caplog.at_level(logging.INFO):
        registry = Registry.load(Ports(), tools=tools)
    assert not names(registry)
    assert registry.problems == []
    assert "lamp_on is not offered: Set lamp: {plug: ...} in the tools file." in caplog.text
    caplog.clear()
    settings = {"lamp": {"plug": 3}, "lamp_off": {"plug": 4}}
    registry = Registry.load(Ports(), settings, tools=tools)
    assert [e.tool.settings["plug"] for e in registry] == [3, 4]
    assert not caplog.records
    off = Registry.load(Ports(), {"lamp": {"plug": 3, "enabled": False}}, tools=tools)
    assert not names(off)
    off = Registry.load(Ports(), {"lamp": {"plug": 3}, "lamp_on": {"enabled": False}}, tools=tools)
    assert names(off) == ["lamp_off"]
