"""The bridge reads calls out of text when a format is named."""

from __future__ import annotations

import sys

from bridge_client import HERE, BridgeProcess
from harness import Ros, Spawner, wait_for


def test_calls_in_content(ros: Ros, spawn: Spawner) -> None:
    bridge = BridgeProcess(ros, spawn, text_format="hermes", text_prefix="<think>")
    good = '<tool_call>{"name": "echo", "arguments": {"text": "from a text"}}</tool_call>'
    text = f"Shall I {good}?</think>I will. {good}<tool_call>{{"
    bridge.publish({"role": "assistant", "content": text, "finish_reason": "length"})
    wait_for(lambda: [r for r in bridge.results if r["content"] == "from a text"])
    wait_for(lambda: len([e for e in bridge.events if e["event"] == "note"]) == 2)
    assert [e["code"] for e in bridge.events if e["event"] == "note"] == ["reasoning", "truncated"]
    bare = '{"name": "echo", "arguments": {}}'
    bridge.publish({"role": "assistant", "content": f"</think>{bare}"})
    wait_for(lambda: bridge.events[-1]["code"] == "other_format")
    assert len([r for r in bridge.results if r["content"] == "from a text"]) == 1


def test_a_format_that_there_is_not(spawn: Spawner) -> None:
    process = spawn(
        *(sys.executable, str(HERE / "bridge_for_tests.py"), "--ros-args"),
        *("-p", f"robot:={HERE / 'robot.yaml'}", "-p", "speech:=log", "-p", "text_format:=herms"),
    )
    process.wait_output("Did you mean hermes")
