"""``record_observation`` of the virtual camera, against the camera's own still; a frame's cost."""

from __future__ import annotations

import json
import time
from typing import Any

from sensor_msgs.msg import CompressedImage
from std_srvs.srv import Trigger

from bench.common import summary, world
from bench.virtual import Virtual
from lerobot_tool_bridge.robot import Robot
from lerobot_tool_bridge.sim.camera import VirtualCamera
from lerobot_tool_bridge.sim.physics import Physics
from lerobot_tool_bridge.sim.scene import Scene

ROUNDS = 40


def measure() -> dict[str, Any]:
    plain, ours, late = [], [], 0
    with world() as w:
        robot = Virtual(w)
        stills: list[CompressedImage] = []
        capture = w.node.create_client(Trigger, "camera/capture_still")
        w.node.create_subscription(CompressedImage, "camera/still/compressed", stills.append, 1)
        w.until(capture.service_is_ready)
        for i in range(ROUNDS):
            seen = len(stills)
            start = time.perf_counter()
            capture.call_async(Trigger.Request())
            w.until(lambda n=seen: len(stills) > n)
            plain.append(time.perf_counter() - start)
            asked = time.time()
            ours.append(w.timed_call("record_observation", {"label": f"still {i}"}))
            side = json.loads((robot.observations / f"still {i}.json").read_text())
            late += side["stamp"] <= asked
    p, o = summary(plain), summary(ours)
    return {
        "record_observation over the camera's own still, ms": {
            "value": round(o["median_ms"] - p["median_ms"], 2),
            "at_most": 20.0,
            "bridge": o,
            "camera": p,
        },
        "pictures older than their call": {"value": late, "at_most": 0, "of": ROUNDS},
        "frame of 640x480, median ms": {"value": _frame_ms(), "at_most": 100.0},
    }


def _frame_ms() -> float:
    """Median time of one picture of the virtual camera, in this process, physics running."""
    physics = Physics(Robot.load("so101"), Scene.load("cubes"))
    camera = VirtualCamera(physics, 640, 480)
    physics.start()
    took = []
    for _ in range(30):
        start = time.perf_counter()
        camera.image()
        took.append(time.perf_counter() - start)
    camera.close()
    physics.stop()
    return summary(took)["median_ms"]
