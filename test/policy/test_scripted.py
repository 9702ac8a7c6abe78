"""``scripted_policy``: plays a script on a bridge and judges how the calls ended."""

import json
import signal

import pytest
from fake_bridge import FakeBridge
from harness import wait_for

from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.policy.script import Script

MODULE = "lerobot_tool_bridge.policy.scripted"
SCRIPT = """
messages:
  - {role: user, content: Move please.}
  - role: assistant
    content: Both at once.
    tool_calls:
      - {name: move, arguments: {x: 1, label: größer}}
      - {name: move, arguments: {x: -1}, fails: true}
  - {role: assistant, content: Done.}
"""


def answer(name, arguments):
    return ("succeeded", "moved") if arguments["x"] > 0 else ("rejected", "Error: x is negative.")


def play(ros, spawn, tmp_path, text):
    script = tmp_path / "script.yaml"
    script.write_text(text)
    (tmp_path / "chat.jsonl").write_text("kept\n")
    bridge = FakeBridge(ros, answer)
    process = spawn.node(
        MODULE,
        script=str(script),
        conversation=str(tmp_path / "chat.jsonl"),
        result_timeout=20.0,
    )
    return bridge, process


def test_plays_waits_and_saves(ros, spawn, tmp_path):
    bridge, process = play(ros, spawn, tmp_path, SCRIPT)
    assert process.wait() == 0, process.output
    assert (tmp_path / "chat.jsonl").read_text() == "kept\n"
    chat = [json.loads(line) for line in (tmp_path / "chat-2.jsonl").read_text().splitlines()]
    assert [m["role"] for m in chat] == ["user", "assistant", "tool", "tool", "assistant"]
    assert chat[1] == bridge.messages[0]
    asked = [c["id"] for c in chat[1]["tool_calls"]]
    assert [m["tool_call_id"] for m in chat[2:4]] == asked
    assert len(set(asked)) == 2
    assert "move" in process.output
    assert "Done." in process.output


def test_ends_where_a_call_did_not_end_as_it_should(ros, spawn, tmp_path):
    bridge, process = play(ros, spawn, tmp_path, SCRIPT.replace(", fails: true", ""))
    assert process.wait() == 1
    assert "move should have worked" in process.output
    assert len(bridge.messages) == 1, "what came after was not said"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("messages: [{role: system, content: x}]", "system"),
        ("messages: [{role: user, content: x, tools: []}]", "tools"),
        ("messages: [{role: assistant, tool_calls: [{arguments: {}}]}]", "name"),
        ("checks: []", "checks"),
        ("messages: [", "can't be read"),
    ],
)
def test_script_that_cannot_be_played(tmp_path, text, hint):
    path = tmp_path / "script.yaml"
    path.write_text(text)
    with pytest.raises(LoadError, match=hint):
        Script.load(path)


def test_several_signals_end_a_node_once_and_in_order(spawn, tmp_path):
    """A terminal and launch both send SIGINT; the second must not cut off the first's work."""
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    process = spawn.node(MODULE, script=str(script), conversation=str(tmp_path / "chat.jsonl"))
    wait_for((tmp_path / "chat.jsonl").exists)
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
        process.signal(number)
    assert process.wait() == 0, process.output
