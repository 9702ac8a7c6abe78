"""Grabs and places a cube at random places in the virtual robot, through the whole stack."""

from __future__ import annotations

import math
import random
import statistics
from typing import Any

from bench.common import world
from bench.virtual import Virtual

TRIALS = 30
SEED = 101
HALF = 0.0125


def measure() -> dict[str, Any]:
    chance = random.Random(SEED)

    def place() -> tuple[float, float]:
        radius, azimuth = chance.uniform(0.15, 0.28), math.radians(chance.uniform(-60, 60))
        return radius * math.cos(azimuth), radius * math.sin(azimuth)

    lifted, errors, troubles = 0, [], []
    with world() as w:
        robot = Virtual(w)
        for trial in range(TRIALS):
            x, y = place()
            yaw = chance.uniform(-45, 45)
            to_x, to_y = place()
            robot.put(x, y, math.radians(yaw))
            grab = {"x": round(x, 4), "y": round(y, 4), "z": HALF, "yaw_deg": round(yaw, 1)}
            result = w.call("arm_grab_object", grab)
            if result is None or robot.cube[2] < HALF + 0.03:
                troubles.append(f"{trial}: {grab}: {result and result['content'][:160]}")
                w.call("arm_place_object", {"x": 0.2, "y": 0.0, "z": HALF})
                continue
            lifted += 1
            goal = {"x": round(to_x, 4), "y": round(to_y, 4), "z": HALF}
            result = w.call("arm_place_object", goal)
            if result is None or result["content"].startswith("Error"):
                troubles.append(f"{trial}: {goal}: {result and result['content'][:160]}")
                continue
            cx, cy, _ = robot.cube
            errors.append(1000 * math.hypot(cx - to_x, cy - to_y))
    return {
        f"cubes lifted of {TRIALS}": {"value": lifted, "at_least": 29, "seed": SEED},
        "place error, median mm": {
            "value": round(statistics.median(errors), 2),
            "at_most": 8.0,
            "worst_mm": round(max(errors), 2),
            "placed": len(errors),
            "troubles": troubles,
        },
    }
