"""Every structured case of ``adversarial.jsonl``, through the dispatcher."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import cases
import pytest
from rig import Bench

from lerobot_tool_bridge.core.catalog import Catalogue
from lerobot_tool_bridge.core.registry import Registry
from lerobot_tool_bridge.ports import Ports

ALL = cases.load("adversarial.jsonl")
MESSAGES = [c for c in ALL if "message" in c["input"]]
SCHEMAS = [c for c in ALL if "tool" in c["input"]]


def test_nothing_is_left_out():
    texts = [c for c in ALL if "text" in c["input"]]
    assert len(MESSAGES) + len(SCHEMAS) + len(texts) == len(ALL) == 92


@pytest.mark.parametrize("form", ["object", "wire"])
@pytest.mark.parametrize("case", MESSAGES, ids=lambda c: c["id"])
def test_message(case: dict[str, Any], form: str, tmp_path: Path):
    asyncio.run(_play(case, form, tmp_path))


async def _play(case: dict[str, Any], form: str, folder: Path) -> None:
    state, expect = case["input"].get("state", {}), case["expect"]
    overlapped = []
    busy = []

    async def work(arguments: dict[str, Any], context: Any) -> str:
        overlapped.extend(busy)
        busy.append(context.call_id)
        await asyncio.sleep(state.get("hang_s", 0.001))
        busy.remove(context.call_id)
        if "raises" in state:
            raise RuntimeError("/home/u/secret.key")
        return "done"

    bench = Bench.for_cases(folder / "pictures", work, 0.2 if "hang_s" in state else 30.0)
    _set_up(bench, state, folder)
    message = case["input"]["message"]
    count = len(message.get("tool_calls") or [])
    payload = message if form == "object" else json.dumps(message)
    bench.dispatcher.submit(payload, state.get("age_s", 0.0))
    if expect["outcome"] == "ignore":
        await asyncio.sleep(0.01)
        assert bench.events == []
        assert bench.results == []
        return
    await bench.answers(count)
    assert bench.ran == expect["executed"]
    assert len(bench.results) == count
    assert overlapped == []
    if expect["outcome"] == "execute":
        assert set(bench.codes) == {"ok"}
    elif "per_call" in expect:
        ids = [c["id"] for c in message["tool_calls"]]
        if len(set(ids)) == len(ids):
            codes = [_code(bench.finished(i)) for i in ids]
            assert codes == expect["per_call"]
        else:
            assert sorted(bench.codes) == sorted(expect["per_call"])
    else:
        assert set(bench.codes) == {expect["code"]}
    for result in bench.results:
        _check_result(result, expect)
    if "existing" in state:
        assert (folder / "pictures" / "cup.png").read_bytes() == b"old"
    if "symlink" in state:
        assert not (folder / "victim.png").exists()


def _code(event: dict[str, Any]) -> str:
    return "ok" if event["status"] == "succeeded" else event["code"]


def _set_up(bench: Bench, state: dict[str, Any], folder: Path) -> None:
    pictures = folder / "pictures"
    pictures.mkdir()
    gate = bench.dispatcher._gate
    gate.stopped = bool(state.get("estop"))
    for call_id in state.get("answered", []):
        gate._remember(call_id)
    gate._session.extend([time.monotonic()] * state.get("calls_last_second", 0))
    for name in state.get("existing", []):
        (pictures / name).write_bytes(b"old")
    for name, target in state.get("symlink", {}).items():
        (pictures / name).symlink_to(target)


def _check_result(result: dict[str, str], expect: dict[str, Any]) -> None:
    assert list(result) == ["role", "tool_call_id", "name", "content"]
    assert all(isinstance(v, str) and v for v in result.values())
    json.dumps(result, ensure_ascii=False).encode()
    assert len(result["content"]) < 1500
    assert "Traceback" not in result["content"]
    assert "secret" not in result["content"]
    if expect["outcome"] == "reject":
        assert result["content"].startswith(f"Error: {expect['code']}: ")


@pytest.mark.parametrize("case", SCHEMAS, ids=lambda c: c["id"])
def test_schema(case: dict[str, Any]):
    catalogue = Catalogue.parse([case["input"]["tool"]])
    registry = Registry.load(Ports(), None, catalogue, tools=[])
    assert [p.code for p in registry.problems] == [case["expect"]["code"]]
    assert len(registry) == 0
