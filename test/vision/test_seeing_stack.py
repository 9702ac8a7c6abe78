"""From the camera's driver to the arm's arguments, through every process of the virtual robot."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from harness import Ros, Spawner, wait_for
from std_msgs.msg import String

from lerobot_tool_bridge.ros.qos import COMMANDS
from lerobot_tool_bridge.sim.scene import Scene

LIMIT = 60.0


@pytest.mark.timeout(180)
def test_a_picture_and_the_places_in_it(ros: Ros, spawn: Spawner, tmp_path: Path) -> None:
    up = spawn(
        *(sys.executable, "-m", "lerobot_tool_bridge", "up"),
        *("--output-dir", str(tmp_path / "seen")),
    )
    results = ros.collect(String, "tool_bridge/tool_results", COMMANDS)
    calls = ros.node.create_publisher(String, "tool_bridge/tool_calls", COMMANDS)
    up.wait_output("Ready after", 90.0)
    wait_for(lambda: calls.get_subscription_count() > 0)

    def ask(*asked: tuple[str, dict[str, Any]]) -> list[str]:
        before = len(results)
        items = [{"name": name, "arguments": arguments} for name, arguments in asked]
        calls.publish(String(data=json.dumps({"role": "assistant", "tool_calls": items})))
        wait_for(lambda: len(results) == before + len(asked), LIMIT, str(asked))
        return [json.loads(m.data)["content"] for m in results[before:]]

    (turned,) = ask(("gimbal_control", {"pan": 135, "tilt": 78}))
    assert not turned.startswith("Error"), turned
    # in one message: the second waits for the first, as both need the camera
    saved, seen = ask(
        ("record_observation", {"label": "table"}),
        ("vlm_detect_objects", {"image_path": "latest"}),
    )
    assert saved == "saved table.png"
    side = json.loads((tmp_path / "seen" / "table.json").read_text())
    assert side["intrinsics"]["width"] == side["width"]
    assert abs(side["joints"]["gimbal_tilt"] - math.radians(78)) < 0.02
    assert "shoulder_pan" in side["joints"]
    assert side["gripper_effort"] is not None
    assert side["moving"] == []
    for thing in Scene.load("cubes").objects:
        color = thing.name.removesuffix("_cube")
        (line,) = (x for x in seen.splitlines() if f"{color} object" in x)
        x, y, z = (float(re.search(rf"\b{n}=(\S+)", line)[1]) for n in "xyz")  # type: ignore[index]
        assert math.dist((x, y, z), thing.position) < 0.01, line
