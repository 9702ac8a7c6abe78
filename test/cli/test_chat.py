"""``chat``: the whole thing, from a typed sentence to a cube that has moved."""

import json
import sys

import pytest

from lerobot_tool_bridge.cli import chat


@pytest.mark.timeout(240)
def test_the_whole_chat(spawn, tmp_path):
    out = tmp_path / "out"
    process = spawn(
        sys.executable, "-m", "lerobot_tool_bridge", "chat", "--output", str(out),
        "look left", "pick up the blue cube and put it at 0.2, -0.1", "拍一张照片，叫桌子",
    )  # fmt: skip
    assert process.wait(220) == 0, process.output
    assert "→ arm_place_object(x=0.2, y=-0.1" in process.output
    assert "… Closing the gripper" in process.output
    assert "robot 完成了" in process.output
    assert (out / "桌子.png").exists()
    messages = [json.loads(x) for x in (out / "conversation.jsonl").read_text().splitlines()]
    assert [m["role"] for m in messages].count("user") == 3
    calls = [c["id"] for m in messages for c in m.get("tool_calls", ())]
    assert calls == [m["tool_call_id"] for m in messages if m["role"] == "tool"]


def test_parameters_of_the_policy(capsys, tmp_path):
    assert chat.main(["--param", "text_format", "--output", str(tmp_path / "x")]) == 1
    assert "NAME:=VALUE" in capsys.readouterr().err
    given = chat._parameters(["text_format:=hermes", "retries:=2", 'system_prompt:="007"'])
    assert given == {"text_format": "hermes", "retries": 2, "system_prompt": "007"}
