"""The cases of ``field_cases.jsonl`` that need neither ROS nor a text format nor a policy."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

from cases import field_case
from rig import Bench, Still, make_tool

from lerobot_tool_bridge.core.registry import Registry
from lerobot_tool_bridge.ports import Ports
from lerobot_tool_bridge.robot import Robot


class Head:
    measures = True

    def __init__(self) -> None:
        self.at = (0.0, 0.0)

    async def positions(self) -> tuple[float, float]:
        return self.at

    async def move(self, pan: float, tilt: float, duration: float) -> tuple[float, float]:
        self.at = (pan, tilt)
        return self.at


def bench(folder: Path) -> Bench:
    ports = Ports(Robot.load("so101"), gimbal=Head(), camera=Still(), output_dir=folder)
    tools: list[Any] = [
        "lerobot_tool_bridge.tools.gimbal_control:GimbalControl",
        "lerobot_tool_bridge.tools.record_observation:RecordObservation",
        "lerobot_tool_bridge.tools.arm_grab_object:ArmGrabObject",
        "lerobot_tool_bridge.tools.arm_move_to_position:ArmMoveToPosition",
        "lerobot_tool_bridge.tools.arm_set_joint_angles:ArmSetJointAngles",
        make_tool("arm_home", motion=True, parameters=_home()),
    ]
    return Bench(Registry.load(ports, tools=tools))


def _home() -> dict[str, Any]:
    (tool,) = field_case("A03")["input"]["tools"]
    parameters: dict[str, Any] = tool["function"]["parameters"]
    return parameters


def play(folder: Path, *messages: dict[str, Any]) -> Bench:
    async def scene() -> Bench:
        made = bench(folder)
        count = 0
        for message in messages:
            made.dispatcher.submit(message)
            count += len(message["tool_calls"])
            await made.answers(count)
        return made

    return asyncio.run(scene())


def content(played: Bench, call_id: str) -> str:
    (text,) = [r["content"] for r in played.results if r["tool_call_id"] == call_id]
    return text


def test_a03_unreadable_arguments_are_never_a_default(tmp_path):
    played = play(tmp_path, field_case("A03")["input"]["message"])
    assert played.codes == ["bad_json"]
    assert played.ran == []
    assert r"invalid escape \d at character 27" in content(played, "call00001")


def test_a11_glued_objects(tmp_path):
    played = play(tmp_path, field_case("A11")["input"]["message"])
    assert played.codes == ["bad_json"]
    assert played.ran == []
    assert "text follows the first object" in content(played, "call_glued")


def test_a13_empty_and_repeated_ids(tmp_path):
    played = play(tmp_path, field_case("A13")["input"]["message"])
    assert sorted(played.ran) == ["gimbal_control", "record_observation"]
    assert sorted(played.codes) == ["duplicate_id", "ok", "ok"]
    assert len(played.results) == 3
    head = next(r for r in played.results if r["name"] == "gimbal_control")
    assert re.fullmatch(r"[A-Za-z0-9]{9}", head["tool_call_id"])
    assert (tmp_path / "left.png").exists()
    assert not (tmp_path / "right.png").exists()


def test_a14_one_id_for_every_call(tmp_path):
    first, _, second = field_case("A14")["input"]["sequence"]
    played = play(tmp_path, first["message"], second["message"])
    assert played.codes == ["ok", "duplicate_id"]
    assert played.ran == ["gimbal_control"]
    assert "Every call needs an id of its own" in played.results[1]["content"]


def test_a17_numbers_as_strings(tmp_path):
    variant = field_case("A17")["input"]["variants"][0]
    played = play(tmp_path, variant["message"])
    assert played.codes == ["invalid_arguments"]
    text = content(played, "call00001")
    for name, value in (("pan", "90"), ("tilt", "60")):
        assert f'{name} must be a number, got the string "{value}"' in text


def test_a19_wrapped_arguments(tmp_path):
    played = play(tmp_path, field_case("A19")["input"]["message"])
    assert played.codes == ["invalid_arguments"]
    text = content(played, "call00001")
    assert "x, y and z are missing" in text
    assert "properties: this tool has no such argument" in text
    assert text.endswith(". Put the arguments at the top level.")


def test_g01_limits_hold_without_a_person(tmp_path):
    sequence = field_case("G01")["input"]["sequence"]
    played = play(tmp_path, sequence[2]["message"])
    assert played.codes == ["unreachable"]
    assert played.ran == []
    assert "z should be 0.00 to 0.25 m above the table" in content(played, "call_inj")


def test_g03_ranges_in_the_unit_that_was_asked(tmp_path):
    played = play(tmp_path, field_case("G03")["input"]["message"])
    assert played.codes == ["invalid_arguments", "invalid_arguments", "unreachable"]
    assert played.ran == []
    assert "pan: 300 given, 0 to 270 degrees allowed" in content(played, "aaaaaaaa1")
    text = content(played, "aaaaaaaa2")
    assert "elbow_flex (third angle): 140 given, -96.8 to 96.8 degrees allowed" in text
    assert "the arm reaches from 0.14 to 0.38 m" in content(played, "aaaaaaaa3")
