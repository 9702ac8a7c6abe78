"""``check``: one JSON line for each message, without ROS."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CASES = Path(__file__).parent.parent / "cases"
TOOLS = ["--tools", str(CASES / "tools.json")]


def check(*arguments: str, lines: str = "") -> tuple[int, list[dict[str, Any]], str]:
    done = subprocess.run(
        [sys.executable, "-m", "lerobot_tool_bridge", "check", *arguments],
        input=lines.encode(),
        capture_output=True,
        timeout=60,
    )
    return done.returncode, [json.loads(x) for x in done.stdout.splitlines()], done.stderr.decode()


def line(name: str, arguments: Any, call_id: str = "call00001", **more: Any) -> str:
    function = {"name": name, "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    return json.dumps({"role": "assistant", "content": "", "tool_calls": [call], **more}) + "\n"


def test_good_messages(tmp_path: Path):
    file = tmp_path / "messages.jsonl"
    file.write_text(
        line("move_joint", '{"joint": "elbow", "angle": 0.5}')
        + line("say", {"text": "hé"})
        + json.dumps({"role": "assistant", "content": "Done."})
        + "\n\n"
        + line("say", {"text": "x"}, role="user")
    )
    status, results, error = check(*TOOLS, str(file))
    assert (status, error) == (0, "")
    assert [r["outcome"] for r in results] == ["execute", "execute", "content", "ignore", "ignore"]
    assert results[0] == {
        "outcome": "execute",
        "calls": [
            {
                "id": "call00001",
                "name": "move_joint",
                "arguments": {"joint": "elbow", "angle": 0.5},
                "code": "",
                "detail": "",
            }
        ],
    }


def test_bad_messages_from_standard_input():
    two = json.loads(line("say", {"text": "a"}))
    two["tool_calls"] *= 2
    lines = (
        line("move_joint", '{"joint": "elbow", "angle": 90}')
        + line("calculator", {"expression": "1/0"})
        + json.dumps(two)
        + "\nno JSON\n"
    )
    status, results, _ = check(*TOOLS, "-", lines=lines)
    assert status == 1
    assert [r["outcome"] for r in results] == ["reject", "reject", "partial", "reject"]
    assert results[0]["calls"][0]["code"] == "invalid_arguments"
    assert "-3.1416 to 3.1416 allowed" in results[0]["calls"][0]["detail"]
    assert results[1]["calls"][0]["code"] == "bad_expression"
    assert [c["code"] for c in results[2]["calls"]] == ["", "duplicate_id"]
    assert results[3]["code"] == "bad_message"


def test_limits_of_the_robot_and_of_the_site(tmp_path: Path):
    site = tmp_path / "tools.yaml"
    site.write_text("function_calling: {tools: {gimbal_control: {pan: {maximum: 100}}}}")
    lines = line("gimbal_control", {"pan": 120, "tilt": 90})
    assert check("-", lines=lines)[0] == 0
    status, (result,), _ = check("--tools-file", str(site), "--robot", "so101", "-", lines=lines)
    assert status == 1
    assert "pan: 120 given, 0 to 100 degrees allowed" in result["calls"][0]["detail"]


@pytest.mark.parametrize(
    "arguments",
    [["nothing.jsonl"], ["--tools", "nothing.json", "-"], ["--tools-file", "no.yaml", "-"]],
)
def test_files_that_are_missing(arguments: list[str]):
    status, results, error = check(*arguments)
    assert (status, results) == (2, [])
    assert error.startswith("error: ")
    assert "Traceback" not in error


def test_a_bad_tool_is_named(tmp_path: Path):
    file = tmp_path / "tools.json"
    file.write_text(json.dumps([{"type": "function", "function": {"name": "../x"}}]))
    status, _, error = check("--tools", str(file), "-")
    assert status == 2
    assert '"../x" is no name for a tool' in error


def test_no_ros_is_needed():
    code = (
        "import sys; sys.modules['rclpy'] = sys.modules['ament_index_python'] = None\n"
        "from lerobot_tool_bridge.__main__ import main\n"
        f"sys.exit(main(['check', '--tools', {str(CASES / 'tools.json')!r}, '-']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=line("say", {"text": "x"}).encode(), timeout=60
    )
    assert done.returncode == 0


def test_usage_names_the_verbs():
    command = [sys.executable, "-m", "lerobot_tool_bridge"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert all(verb in done.stderr for verb in ("up", "call", "check", "demo"))
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "needs no ROS" in done.stdout
