"""A session as rows, and back."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from lerobot_tool_bridge.core.catalog import SAY_SCHEMA
from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.core.messages import result_message
from lerobot_tool_bridge.dataset.reader import read_episode
from lerobot_tool_bridge.dataset.writer import SessionWriter

OPENAI = {
    "role": "assistant",
    "content": "On it.",
    "tool_calls": [
        {
            "id": "call_1",
            "type": "function",
            "function": {"name": "say", "arguments": '{"text": "你好"}'},
        },
        {"id": "call_2", "type": "function", "function": {"name": "say", "arguments": '{"text":'}},
    ],
}
ANTHROPIC = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "tu_1", "name": "stop", "input": {}}],
}


def session(folder: Path) -> SessionWriter:
    writer = SessionWriter(folder, fps=10, task="greet")
    (lost,) = writer.called(0.51, json.dumps(OPENAI))
    assert "say" in lost
    writer.answered(0.62, result_message("call_1", "say", "Spoken (1.0 s)."))
    writer.answered(0.63, result_message("call_2", "say", "Error: bad_json: ..."))
    assert writer.called(2.0, ANTHROPIC) == []
    assert writer.called(2.5, {"role": "assistant", "content": "Done."}) == []
    assert writer.called(2.6, b"{no json") != []
    assert writer.called(2.7, {"role": "user", "content": "hi"}) != []
    return writer


def names(folder: Path | str) -> list[tuple[float, str, Any]]:
    return [
        (round(e.time, 2), function["name"], function["arguments"])
        for e in read_episode(folder).events
        for c in e.row["tool_calls"]
        for function in [(json.loads(c) if isinstance(c, str) else c)["function"]]
    ]


def test_what_was_called_and_answered_is_there_at_once(tmp_path: Path) -> None:
    writer = session(tmp_path / "s")
    lines = [json.loads(x) for x in (tmp_path / "s/session.jsonl").read_text().splitlines()]
    assert writer.messages == len(lines) == 5
    assert [r["frame_index"] for r in lines] == [5, 6, 6, 20, 25]
    (first,) = lines[0]["language_events"]
    function = {"name": "say", "arguments": {"text": "你好"}}
    assert first == {
        "role": "assistant",
        "content": "On it.",
        "style": None,
        "camera": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
    }
    (answer,) = lines[1]["language_events"]
    assert (answer["role"], answer["content"]) == ("tool", "Spoken (1.0 s).")
    assert (answer["tool_call_id"], answer["name"]) == ("call_1", "say")
    assert names(tmp_path / "s/session.jsonl") == [
        (0.51, "say", {"text": "你好"}),
        (2.0, "stop", {}),
    ]


def test_the_data_set_is_read_back(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    assert "5 messages" in session(tmp_path).close([SAY_SCHEMA])
    episode = read_episode(tmp_path)
    assert (episode.frames, episode.warnings) == (26, ())
    assert names(tmp_path) == [(0.5, "say", {"text": "你好"}), (2.0, "stop", {})]
    table = pq.read_table(tmp_path / "data/chunk-000/file-000.parquet")
    assert table["index"].to_pylist() == list(range(26))
    event = table.schema.field("language_events").type.value_type
    assert [f.name for f in event] == ["role", "content", "style", "camera", "tool_calls"]
    rows = table["language_events"].to_pylist()
    assert [r["role"] for r in rows[6]] == ["tool", "tool"]
    info = json.loads((tmp_path / "meta/info.json").read_text())
    assert info["total_frames"] == 26
    assert info["tools"] == [SAY_SCHEMA]
    assert pq.read_table(tmp_path / "meta/tasks.parquet").to_pylist() == [
        {"task_index": 0, "task": "greet"}
    ]


def test_without_pyarrow_the_lines_are_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install" in session(tmp_path).close()
    assert names(tmp_path) == [(0.51, "say", {"text": "你好"}), (2.0, "stop", {})]


def test_an_empty_session(tmp_path: Path) -> None:
    SessionWriter(tmp_path / "s").close()
    with pytest.raises(LoadError, match="no rows"):
        read_episode(tmp_path / "s")


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    with pytest.raises(LoadError, match="not empty"):
        SessionWriter(tmp_path)


@pytest.mark.parametrize("line", ["{", "[]", '{"episode_index": "0"}', "3"])
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "session.jsonl"
    file.write_text(f"\n{line}\n")
    with pytest.raises(LoadError, match="line 2"):
        read_episode(file)
