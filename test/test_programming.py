"""The examples for code of other systems, and docs/programming.md which shows them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PRINTED = {
    "lerobot_tools": [
        "['wave_flag'] waved 2 times",
        "Error: invalid_arguments: times: 0 given, at least 1 allowed.",
    ],
    "transformers_tools": [
        '"required": ["location"]}',
        "('assistant', ''), ('tool', '22.0')]",
    ],
    "twinkle_tools": [
        "['search', 'search_web'] 2",
        "搜索结果：Python 教程",
        "Error: bad_json",
        "Error: invalid_arguments: query is missing.",
        "Error: tool_error: search_web failed: no network.",
        'Error: unknown_tool: There is no tool "find".',
    ],
    "registered_functions": [
        "['my_tool', 'async_tool', 'safe_tool', 'loud_tool', 'expensive_calc']",
        "操作完成: a 6",
        "invalid_arguments: param2 must be a whole number",
        "异步结果: b",
        "处理结果: c",
        "D\n101\n101\n2 0.5\n1\n",
    ],
    "lesson_tools": [
        '"expressao": "28*3/4"} -> 21.0',
        "-> A derivada mede",
        "-> Error: unknown_tool",
        "-> Error: invalid_arguments: expressao is missing.",
        "-> Error: bad_expression",
        "-> Error: bad_call: A call is cut off",
        "-> Error: bad_call: There is no request",
    ],
}


@pytest.mark.parametrize("name", PRINTED)
def test_example_runs(name: str) -> None:
    file = ROOT / "examples" / f"{name}.py"
    run = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    position = 0
    for words in PRINTED[name]:
        position = run.stdout.find(words, position)
        assert position >= 0, f"{words!r} is missing in:\n{run.stdout}"


def test_the_document_names_every_example() -> None:
    text = (ROOT / "docs" / "programming.md").read_text(encoding="utf-8")
    for name in PRINTED:
        assert f"examples/{name}.py" in text
