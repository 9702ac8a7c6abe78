"""``replay`` and ``record`` beside a bridge."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from fake_bridge import FakeBridge
from harness import Process, Ros, Spawner, wait_for

from lerobot_tool_bridge.dataset.reader import read_episode

MODULE = (sys.executable, "-m", "lerobot_tool_bridge")
CALLS = [
    (0.2, [("move", {"x": 1.0}), ("move", {"x": 2.0, "label": None})]),
    (4.0, [("move", {"x": 3.0})]),
]


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """As ``record`` writes it, without the answers."""
    lines = []
    for at, calls in CALLS:
        atoms = [{"type": "function", "function": {"name": n, "arguments": a}} for n, a in calls]
        event = {"role": "assistant", "content": "Go.", "style": None, "camera": None}
        row = {"timestamp": at, "frame_index": int(at * 30), "episode_index": 0}
        lines.append({**row, "language_events": [{**event, "tool_calls": atoms}]})
    file = tmp_path / "session.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return file


def ready(spawn: Spawner, *words: str) -> Process:
    return spawn(*MODULE, *words, env={"PYTHONUNBUFFERED": "1"})


def test_round_trip(ros: Ros, spawn: Spawner, session: Path, tmp_path: Path) -> None:
    came: list[float] = []

    def answer(name: str, arguments: dict[str, Any]) -> tuple[str, str]:
        came.append(time.monotonic())
        good = arguments["x"] != 2.0
        return ("succeeded", "moved") if good else ("failed", "Error: tool_error: stuck")

    bridge = FakeBridge(ros, answer)
    recorder = ready(spawn, "record", str(tmp_path / "kept"), "--task", "move about")
    recorder.wait_output("recording")
    node = ros.node
    for topic in ("tool_calls", "tool_results"):
        wait_for(lambda t=topic: node.count_subscribers(f"/tool_bridge/{t}") >= 1)
    wait_for(lambda: node.count_subscribers("/tool_bridge/tool_calls") >= 2, name="record")
    player = ready(spawn, "replay", str(session), "--speed", "4")
    assert player.wait() == 1, player.output
    assert bridge.calls() == [("move", a) for _, calls in CALLS for _, a in calls]
    first, _ = bridge.messages
    assert (first["style"], first["camera"], first["content"]) == (None, None, "Go.")
    assert len({c["id"] for m in bridge.messages for c in m["tool_calls"]}) == 3
    assert came[2] - came[0] > 0.7  # 3.8 s at four times the speed
    lines = player.output.splitlines()
    assert "episode 0: 2 frames, 3 tool calls" in lines
    assert sum(line.endswith("→ moved") for line in lines) == 2
    assert sum("→ Error: tool_error: stuck" in line for line in lines) == 1
    assert lines[-1] == "1 failed"

    recorder.signal(signal.SIGTERM)
    assert recorder.wait() == 0, recorder.output
    kept = read_episode(tmp_path / "kept" / "session.jsonl")
    recorded = [
        (c["function"]["name"], c["function"]["arguments"])
        for e in kept.events
        for c in e.row["tool_calls"]
    ]
    assert recorded == bridge.calls()
    answers = [
        event["content"]
        for line in (tmp_path / "kept" / "session.jsonl").read_text().splitlines()
        for event in json.loads(line)["language_events"]
        if event["role"] == "tool"
    ]
    assert answers == ["moved", "Error: tool_error: stuck", "moved"]
    info = json.loads((tmp_path / "kept" / "meta" / "info.json").read_text())
    assert [t["function"]["name"] for t in info["tools"]] == ["move"]


def test_ctrl_c_cancels_what_runs_and_sends_no_more(
    ros: Ros, spawn: Spawner, session: Path
) -> None:
    bridge = FakeBridge(ros, lambda name, arguments: None)
    player = ready(spawn, "replay", str(session), "--speed", "0.1")
    wait_for(bridge.calls)
    player.signal(signal.SIGINT)
    assert player.wait() == 130, player.output
    assert sorted(bridge.cancelled) == sorted(c["id"] for c in bridge.messages[0]["tool_calls"])
    assert len(bridge.messages) == 1


def test_no_bridge(spawn: Spawner, session: Path) -> None:
    player = ready(spawn, "replay", str(session), "--bridge", "nobody")
    assert player.wait() == 3
    assert "no bridge answers as nobody" in player.output
