"""The demo: the whole thing, and what it does with its folder."""

import json
import sys
from pathlib import Path

import pytest

from lerobot_tool_bridge.cli import demo
from lerobot_tool_bridge.cli.demo import make_room, misplaced
from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.policy.script import Check

CHECK = Check("cube", (0.2, 0.1, 0.0125), 0.02)


def test_what_is_misplaced_is_told():
    assert misplaced([CHECK], {"cube": (0.21, 0.1, 0.0125)}) == ""
    wrong = misplaced([CHECK], {"cube": (0.25, 0.1, 0.0125)})
    assert "50 mm away, at most 20 mm" in wrong
    assert "says nothing of cube" in misplaced([CHECK], {})


def test_earlier_runs_are_kept(tmp_path):
    folder = tmp_path / "demo_output"
    make_room(folder)
    for number in (1, 2):
        (folder / "nodes.log").write_text(f"run {number}")
        (folder / "before.png").write_text(f"run {number}")
        make_room(folder)
        assert [p.name for p in folder.iterdir()] == ["earlier"]
    for number in (1, 2):
        assert (folder / "earlier" / str(number) / "before.png").read_text() == f"run {number}"


def test_folder_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.pdf").write_text("x")
    with pytest.raises(LoadError, match="in use for something else"):
        make_room(tmp_path)
    assert (tmp_path / "thesis.pdf").exists()


def test_script_that_cannot_be_played_is_told(capsys, tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text("messages: []\ncheck: [{object: cube, position: [0, 0], within: 1}]")
    assert demo.main(["--script", str(script), "--output", str(tmp_path / "out")]) == 1
    assert "position" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.timeout(240)
def test_the_whole_demo(spawn, tmp_path):
    out = tmp_path / "out"
    process = spawn(sys.executable, "-m", "lerobot_tool_bridge", "demo", "--output", str(out))
    assert process.wait(220) == 0, process.output
    assert "red_cube is " in process.output
    chat = [json.loads(line) for line in (out / "conversation.jsonl").read_text().splitlines()]
    calls = [c for m in chat for c in m.get("tool_calls", ())]
    results = {m["tool_call_id"]: m for m in chat if m["role"] == "tool"}
    assert results.keys() == {c["id"] for c in calls}, "one result for each call"
    errors = [m for m in results.values() if m["content"].startswith("Error: ")]
    assert [m["name"] for m in errors] == ["arm_grab_object"], "the wrong call, and no other"
    assert sorted(p.name for p in out.glob("*.png")) == ["after.png", "before.png"]
    audit = [json.loads(line) for line in (out / "audit.jsonl").read_text().splitlines()]
    assert len(audit) >= len(calls)
    assert not list(Path(out).glob("earlier"))
