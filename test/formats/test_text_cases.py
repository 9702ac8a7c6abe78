"""The text cases of the case files, through the checker and the dispatcher."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "core"))

import cases
from rig import Bench

from lerobot_tool_bridge.core.catalog import Catalogue
from lerobot_tool_bridge.core.check import check_text
from lerobot_tool_bridge.core.registry import Registry
from lerobot_tool_bridge.formats import TextReader
from lerobot_tool_bridge.ports import Ports
from lerobot_tool_bridge.robot import Robot

TEXTS = [c for c in cases.load("adversarial.jsonl") if "text" in c["input"]]
FIELD = ("A05", "A07", "A09", "A17", "A21", "A25")


def _registry() -> Registry:
    return Registry.load(Ports(), None, Catalogue.load(cases.FOLDER / "tools.json"), offline=True)


def _robot_registry() -> Registry:
    return Registry.load(Ports(robot=Robot.load("so101")), offline=True)


def _check(given: dict[str, Any], registry: Registry) -> dict[str, Any]:
    texts = TextReader(given["format"], registry.schemas())
    return check_text(given["text"], texts, registry, finish_reason=given.get("finish_reason"))


@pytest.mark.parametrize("case", TEXTS, ids=lambda c: c["id"])
def test_adversarial(case: dict[str, Any]):
    expect = case["expect"]
    result = _check(case["input"], _registry())
    assert result["outcome"] == expect["outcome"]
    ran = [c["name"] for c in result["calls"] if not c["code"]]
    assert ran == expect["executed"]
    if "code" in expect:
        assert [c["code"] for c in result["calls"]] == [expect["code"]]
    if "args" in expect:
        assert result["calls"][0]["arguments"] == expect["args"]
    if "note_code" in expect:
        assert [n["code"] for n in result["notes"]] == [expect["note_code"]]


def _variants(case: dict[str, Any]) -> list[dict[str, Any]]:
    given = case["input"]
    return [v for v in given.get("variants", [given]) if "text" in v]


@pytest.mark.parametrize("case_id", FIELD)
def test_field(case_id: str):
    case = cases.field_case(case_id)
    expect, registry = case["expect"], _robot_registry()
    results = [_check(v, registry) for v in _variants(case)]
    ran = [[c["name"] for c in r["calls"] if not c["code"]] for r in results]
    if "executed" in expect:
        assert ran == [expect["executed"]]
    if "executed_per_variant" in expect:
        assert ran == expect["executed_per_variant"]
    if "args" in expect:
        assert results[0]["calls"][0]["arguments"] == expect["args"]
    notes = [[n["code"] for n in r.get("notes", [])] for r in results]
    if case_id == "A07":
        assert notes == [["malformed"]]
        assert "line 3, column 1" in results[0]["notes"][0]["detail"]
    elif case_id == "A09":
        assert notes == [["reasoning"]]
        assert "commentary" in results[0]["notes"][0]["detail"]
    elif case_id == "A17":
        assert results[0]["calls"][0]["arguments"] == {"pan": 90, "tilt": 60}
    elif case_id == "A21":
        assert notes == [["other_format"], [], ["other_format"]]
        assert "text_format to json" in results[0]["notes"][0]["detail"]
    elif case_id == "A25":
        assert results[0]["calls"][0]["arguments"] == {"pan": 90, "tilt": 60}
        assert notes[3] == ["truncated"]
        assert results[4]["content"] == "The cube is on the left."


@pytest.mark.parametrize("case_id", ["A05", "A25"])
def test_every_position(case_id: str):
    (given,) = [v for v in _variants(cases.field_case(case_id)) if v.get("split")]
    reader = TextReader(given["format"], _robot_registry().schemas())
    whole = reader.read(given["text"])
    for place in range(len(given["text"]) + 1):
        stream = reader.stream()
        stream.feed(given["text"][:place])
        stream.feed(given["text"][place:])
        assert stream.finish() == whole


def test_a_hint_is_given_once_a_session():
    reader = TextReader("hermes")
    text = '{"name": "calculator", "arguments": {"expression": "1"}}'
    assert [n.code for n in reader.read(text).notes] == ["other_format"]
    assert reader.read(text).notes == ()


def _dispatch(folder: Path, text: str, name: str, **more: Any) -> Bench:
    async def play() -> Bench:
        bench = Bench.for_cases(folder)
        schemas = bench.dispatcher.registry.schemas()
        bench.dispatcher._texts = TextReader(name, schemas)
        message = {"role": "assistant", "content": text, **more}
        bench.dispatcher.submit(json.dumps(message))
        await bench.answers(1, limit=2.0 if "</tool_call>" in text else 0.0)
        return bench

    return asyncio.run(play())


def test_the_dispatcher_runs_calls_of_a_text(tmp_path: Path):
    text = '<tool_call>{"name": "move_joint", "arguments": {"joint": "elbow", "angle": 0.5}}'
    bench = _dispatch(tmp_path, f"{text}</tool_call>{text[:-9]}", "hermes", finish_reason="length")
    assert bench.ran == ["move_joint"]
    assert len(bench.results) == 1
    assert [e["code"] for e in bench.events if e["event"] == "note"] == ["truncated"]


def test_the_dispatcher_says_what_it_does_not_run(tmp_path: Path):
    case = cases.field_case("A09")["input"]
    bench = _dispatch(tmp_path, case["text"], "harmony")
    assert bench.results == []
    (event,) = bench.events
    assert (event["event"], event["code"]) == ("note", "reasoning")


def test_structured_calls_come_first(tmp_path: Path):
    call = {"function": {"name": "calculator", "arguments": {"expression": "1+1"}}}
    text = '<tool_call>{"name": "say", "arguments": {"text": "no"}}</tool_call>'
    bench = _dispatch(tmp_path, text, "hermes", tool_calls=[call])
    assert bench.ran == ["calculator"]


def test_a_text_is_read_out_of_parts(tmp_path: Path):
    text = '<tool_call>{"name": "calculator", "arguments": {"expression": "2"}}</tool_call>'
    parts: Any = [{"type": "text", "text": text[:20]}, {"type": "text", "text": text[20:]}]
    bench = _dispatch(tmp_path, "</tool_call>", "hermes", content=parts)
    assert bench.ran == ["calculator"]
