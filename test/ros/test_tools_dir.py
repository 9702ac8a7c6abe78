"""Plain Python files as tools of a running bridge, and what ``call --stats`` tells of them."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path

import pytest
from bridge_client import BridgeProcess
from harness import Ros, Spawner

FUNCTIONS = '''
import threading

from lerobot_tool_bridge.functions import FunctionRegistry, register_function


@register_function("greet", "Greets somebody.")
def greet(name: str, loud: bool | None = None) -> str:
    """
    Args:
        name: who
    """
    word = FunctionRegistry.get_config("greet")["word"]
    return f"{word}, {name}{'!' if loud else '.'}"


@register_function("hang", "Never ends.", timeout=0.5)
def hang() -> str:
    threading.Event().wait()
    return ""
'''
SETTINGS = "function_calling: {tools: {greet: {word: Olá, name: {maxLength: 10}}}}"


@pytest.fixture
def bridge(ros: Ros, spawn: Spawner, tmp_path: Path) -> BridgeProcess:
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "functions.py").write_text(FUNCTIONS)
    (folder / "broken.py").write_text("import no_such_module\n")
    (tmp_path / "tools.yaml").write_text(SETTINGS)
    return BridgeProcess(
        ros, spawn, robot="", tools_dir=str(folder), tools_file=str(tmp_path / "tools.yaml")
    )


def run_call(spawn: Spawner, *words: str) -> str:
    process = spawn(sys.executable, "-m", "lerobot_tool_bridge", "call", *words)
    process.wait()
    return process.output


def test_functions_of_a_folder(bridge: BridgeProcess, ros: Ros, spawn: Spawner) -> None:
    assert "broken.py is skipped: line 1: ModuleNotFoundError" in bridge.process.output
    assert bridge.call("greet", name="Ana", loud=None) == "Olá, Ana."
    assert "at most 10" in bridge.call("greet", name="x" * 11)
    hanging = bridge.send("hang")
    assert "it still runs" in bridge.answer(hanging)
    assert bridge.code(hanging) == "timeout cancel_unconfirmed"
    assert "unavailable" in bridge.call("greet", name="Ana")

    output = run_call(spawn, "--stats")
    assert "calls are taken" in output
    counts = "3 calls, 1 succeeded, 2 errors"
    assert re.search(rf"greet +{counts}.* total \d.* average \d.* p50 \d.* p95 \d", output), output
    assert re.search(r"hang +1 call, 0 succeeded, 1 error, 1 timeout", output)
    assert "unavailable" in bridge.call("hang")

    bridge.process.signal(signal.SIGTERM)  # the thread that hangs does not hold it up
    assert bridge.process.wait() == 0
