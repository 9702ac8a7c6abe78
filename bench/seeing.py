"""See, locate, grab: two cubes of different colours, one is asked for by its colour.

Through the whole virtual stack, and with what the tools answer alone: a picture, the places in it,
a grasp. The cubes stand where the camera sees past the arm's home pose, which hides the table to
its right (azimuth below -35 degrees).
"""

from __future__ import annotations

import math
import random
import re
import statistics
from typing import Any

from bench.common import World, world
from bench.virtual import Virtual

TRIALS = 30
SEED = 303
HALF = 0.0125
APART = 0.06
AWAY = (-0.15, -0.4)  # behind the camera
COLORS = {
    "red": [0.85, 0.1, 0.1],
    "green": [0.1, 0.6, 0.15],
    "blue": [0.1, 0.2, 0.8],
    "yellow": [0.95, 0.8, 0.1],
}


def measure() -> dict[str, Any]:
    chance = random.Random(SEED)
    errors, lifted, troubles = [], 0, []
    with world() as w:
        robot = Virtual(w, _scene())
        for trial in range(TRIALS):
            asked, other = chance.sample(list(COLORS), 2)
            for i, color in enumerate(COLORS):
                if color not in (asked, other):
                    robot.put(AWAY[0], AWAY[1] + 0.05 * i, 0.0, color)
            (x, y), (u, v) = _places(chance)
            robot.put(x, y, math.radians(chance.uniform(-45, 45)), asked)
            robot.put(u, v, math.radians(chance.uniform(-45, 45)), other)
            found, said = _see(w, asked, trial)
            if found is None:
                troubles.append(f"{trial}: {asked} at {x:.3f} {y:.3f} not placed: {said[:300]}")
                continue
            errors.append(1000 * math.hypot(found["x"] - x, found["y"] - y))
            result = w.call("arm_grab_object", found)
            up, rest = robot.where(asked), robot.where(other)
            if up[2] > HALF + 0.03 and rest[2] < HALF + 0.03:
                lifted += 1
            else:
                troubles.append(f"{trial}: {found}: {result and result['content'][:200]}")
            w.call("arm_place_object", {"x": 0.2, "y": 0.0, "z": HALF})
    return {
        "error of the place that is seen, median mm": {
            "value": round(statistics.median(errors), 2) if errors else math.inf,
            "at_most": 10.0,
            "worst_mm": round(max(errors, default=math.inf), 2),
            "placed": len(errors),
            "seed": SEED,
        },
        f"right cube lifted of {TRIALS}": {
            "value": lifted,
            "at_least": 27,
            "troubles": troubles,
        },
    }


def _scene() -> str:
    lines = [
        "table: {size: [0.9, 1.1], center: [0.25, 0.0], color: [0.8, 0.78, 0.74]}",
        "objects:",
    ]
    for i, (name, color) in enumerate(COLORS.items()):
        lines.append(
            f"  {name}: {{size: [0.025, 0.025, 0.025], position: [0.2, {0.1 * i - 0.1:.2f}], "
            f"color: {color}, mass: 0.015}}"
        )
    return "\n".join(lines) + "\n"


def _places(chance: random.Random) -> tuple[tuple[float, float], tuple[float, float]]:
    def place() -> tuple[float, float]:
        radius, azimuth = chance.uniform(0.15, 0.28), math.radians(chance.uniform(-35, 60))
        return radius * math.cos(azimuth), radius * math.sin(azimuth)

    first = place()
    while True:
        second = place()
        if math.dist(first, second) > APART:
            return first, second


def _see(w: World, color: str, trial: int) -> tuple[dict[str, float] | None, str]:
    """The arguments of a grasp, as the tools' answers give them; what they said."""
    saved = w.call("record_observation", {"label": f"table {trial}"})
    seen = w.call("vlm_detect_objects", {"image_path": "latest"})
    if saved is None or seen is None:
        return None, "no answer"
    for line in seen["content"].splitlines():
        if f"{color} object" in line and "x=" in line:
            numbers = re.findall(r"(x|y|z|yaw_deg|width)=(-?[\d.]+)", line)
            return {k: float(v) for k, v in numbers}, line
    return None, f"{saved['content']} / {seen['content']}"


if __name__ == "__main__":
    print(measure())
