"""``up``: children in order, their lines with their names, and an end that leaves nothing."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from harness import wait_for
from std_msgs.msg import String

from lerobot_tool_bridge.cli import stack as stack_module
from lerobot_tool_bridge.cli import up
from lerobot_tool_bridge.cli.stack import Processes, Signals

CHILD = """
import signal, sys, threading
stop = threading.Event()
signal.signal(signal.SIGINT, lambda *_: stop.set())
print("up", flush=True)
stop.wait()
print("down", flush=True)
"""
STUBBORN = """
import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
print("up", flush=True)
time.sleep(60)
"""


@pytest.fixture
def lines():
    return []


@pytest.fixture
def processes(lines):
    processes = Processes(lambda name, line: lines.append((name, line)))
    yield processes
    hurry = threading.Event()
    hurry.set()
    processes.end(hurry)


def test_children_end_in_the_reverse_order(processes, lines):
    for name in ("robot", "driver", "bridge"):
        processes.start(name, [sys.executable, "-c", CHILD])
    wait_for(lambda: len(lines) == 3)
    assert processes.end() == []
    downs = [name for name, line in lines if line == "down"]
    assert downs == ["bridge", "driver", "robot"]
    assert processes.running == []
    assert processes.newly_dead() == [], "they were asked to end"


def test_child_that_does_not_end_is_killed(processes, lines, monkeypatch):
    monkeypatch.setattr(stack_module, "END_LIMIT", 0.2)
    processes.start("stubborn", [sys.executable, "-c", STUBBORN])
    wait_for(lambda: lines)
    assert processes.end() == ["stubborn"]


def test_child_that_dies_is_told_once(processes):
    processes.start("one", [sys.executable, "-c", "import sys; sys.exit(3)"])
    killed = processes.start("two", [sys.executable, "-c", STUBBORN])
    found = wait_for(processes.newly_dead)
    assert found == [("one", "status 3")]
    killed.kill()
    found = wait_for(processes.newly_dead)
    assert found == [("two", "SIGKILL")]
    assert processes.newly_dead() == []


def test_children_die_with_a_parent_that_was_killed(tmp_path):
    code = f"""
import sys
from lerobot_tool_bridge.cli.stack import Processes
processes = Processes(lambda name, line: print(line, flush=True))
print(processes.start("child", [sys.executable, "-c", {CHILD!r}]).pid, flush=True)
input()
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    child = int(parent.stdout.readline())
    assert parent.stdout.readline() == "up\n"
    parent.kill()
    parent.wait()
    parent.stdin.close()
    parent.stdout.close()

    def ended() -> bool:
        try:
            return Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
        except FileNotFoundError:
            return True

    wait_for(ended)


def test_first_signal_asks_and_second_hurries():
    with Signals() as signals:
        os.kill(os.getpid(), signal.SIGINT)
        wait_for(signals.stop.is_set)
        assert not signals.hurry.is_set()
        os.kill(os.getpid(), signal.SIGTERM)
        wait_for(signals.hurry.is_set)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--scene", "cubes", "--no-sim"], "--scene is for the virtual robot"),
        (["--arm-port", "/dev/ttyACM0"], "--arm-port is for a real robot: add --no-sim"),
        (["--robot", "so102"], "Known robots"),
        (["--namespace", "1"], "starts with a letter"),
    ],
)
def test_wrong_options(words, hint, capsys):
    try:
        status = up.main(words)
    except SystemExit as error:
        status = error.code
    assert status == 2
    assert hint in capsys.readouterr().err


@pytest.mark.timeout(180)
def test_virtual_robot_up_and_down(ros, spawn, tmp_path):
    """The real thing, in a namespace: ready, a node dies and is reported, SIGTERM ends all."""
    process = spawn(
        sys.executable,
        *("-m", "lerobot_tool_bridge", "up", "--namespace", "lab"),
        *("--output-dir", str(tmp_path / "pictures")),
        env={"TMPDIR": str(tmp_path)},
    )
    tools: list[String] = ros.collect(String, "/lab/tool_bridge/tools", latched())
    process.wait_output("Ready after", 90)
    wait_for(lambda: tools)
    for name in ("virtual_robot", "arm_driver", "gimbal_driver", "camera_driver"):
        assert f"{name:>13} | " in process.output
    children = children_of(process.popen.pid)
    assert len(children) >= 5
    camera = next(p for p, words in children.items() if "camera.node" in words)
    os.kill(camera, signal.SIGKILL)
    process.wait_output("camera_driver ended by itself (SIGKILL); the others go on.")
    process.signal(signal.SIGTERM)
    assert process.wait() == 1, process.output
    assert "was killed" not in process.output
    assert not any(Path(f"/proc/{pid}").exists() for pid in children)
    assert not list(tmp_path.glob("virtual_robot-*")), "the devices are gone"


def latched():
    from lerobot_tool_bridge.ros.qos import LATCHED

    return LATCHED


def children_of(parent: int) -> dict[int, str]:
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            stat = (path / "stat").read_text().rsplit(")", 1)[1].split()
            if int(stat[1]) == parent:
                found[int(path.name)] = (path / "cmdline").read_text().replace("\0", " ")
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found
