"""The language policy: what it adds to a turn, and two-step instructions in the virtual robot."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import random
import sys
import time
from typing import Any

from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

from bench.common import RELIABLE, ROOT, World, summary, world
from lerobot_tool_bridge.core.messages import result_message
from lerobot_tool_bridge.core.registry import Registry
from lerobot_tool_bridge.policy.conversation import Conversation
from lerobot_tool_bridge.policy.endpoint import Endpoint, Server
from lerobot_tool_bridge.policy.loop import Loop, Settings
from lerobot_tool_bridge.policy.prompts import SYSTEM
from lerobot_tool_bridge.ports import Ports

sys.path.insert(0, str(ROOT / "test" / "policy"))
from stub_server import Stub, call, completion

TURNS = 300
TRIALS = 20
SEED = 404
NEAR = 0.02
HALF = 0.0125
APART = 0.07
PAINT = {
    "red": [0.85, 0.1, 0.1],
    "green": [0.1, 0.6, 0.15],
    "blue": [0.1, 0.2, 0.8],
    "yellow": [0.95, 0.8, 0.1],
}
SAYINGS = (
    "pick up the {0} cube and put it at {1}, {2}",
    "pegue o cubo {0} e coloque em {1}, {2}",
    "抓住{0}方块，放到 {1}, {2}",
    "{0}いキューブをつかんで、{1}, {2} に置いて",
)
NAMES = {
    "red": ("red", "vermelho", "红色", "赤"),
    "green": ("green", "verde", "绿色", "緑"),
    "blue": ("blue", "azul", "蓝色", "青"),
    "yellow": ("yellow", "amarelo", "黄色", "黄色"),
}


def measure() -> dict[str, Any]:
    turn = summary(asyncio.run(_turns()))
    right, troubles = _instructions()
    return {
        "a turn with a server and a bridge that answer at once, median ms": {
            "value": turn["median_ms"],
            "at_most": 5.0,
            **turn,
        },
        f"two-step instructions right of {TRIALS}": {
            "value": right,
            "at_least": 19,
            "seed": SEED,
            "troubles": troubles,
        },
    }


class _Bridge:
    """Answers at once."""

    def __init__(self) -> None:
        self.tools = Registry.load(Ports()).schemas()
        self.loop: Loop | None = None

    def send(self, message: dict[str, Any]) -> None:
        (made,) = message["tool_calls"]
        result = result_message(made["id"], made["function"]["name"], "391")
        assert self.loop is not None
        asyncio.get_running_loop().call_soon(self.loop.on_result, result)

    def cancel(self, call_id: str) -> None:
        pass


async def _turns() -> list[float]:
    """Seconds of each turn: request, HTTP on this machine, reading, call, result.

    What the stub does with a request is not the policy's: that is the model's place.
    """
    stub = Stub(completion("", [call("calculator", {"expression": "17 * 23"})]))
    endpoint = Endpoint(Server(stub.url, "stub"))
    bridge = _Bridge()
    ends: list[float] = []

    def said(message: dict[str, Any]) -> None:
        if message["role"] == "tool":
            ends.append(time.perf_counter() - stub.served)

    settings = Settings(max_turns=20, system=SYSTEM)
    loop = bridge.loop = Loop(endpoint, bridge, settings, Conversation(10, 60_000, said))
    took: list[float] = []
    while len(took) < TURNS:
        ends.clear()
        await loop.run("what is 17 * 23?")
        took += [b - a for a, b in itertools.pairwise(ends)]
    await endpoint.close()
    stub.close()
    return took[20:]


class _Robot:
    """The virtual robot with the policy, and where its cubes really are."""

    def __init__(self, w: World, cubes: dict[str, tuple[float, float, float]]) -> None:
        self._world = w
        scene = w.folder / "scene.yaml"
        objects = {
            f"{name}_cube": {
                "size": [2 * HALF] * 3,
                "position": [x, y],
                "yaw_deg": yaw,
                "color": PAINT[name],
                "mass": 0.015,
            }
            for name, (x, y, yaw) in cubes.items()
        }
        table = {"size": [0.9, 1.1], "center": [0.25, 0.0], "color": [0.8, 0.78, 0.74]}
        scene.write_text(json.dumps({"table": table, "objects": objects}))
        self.places: dict[str, tuple[float, float, float]] = {}
        self.answers: list[dict[str, Any]] = []
        node = w.node
        node.create_subscription(MarkerArray, "virtual_robot/objects", self._on, 10)
        node.create_subscription(
            String,
            "language_policy/answer",
            lambda m: self.answers.append(json.loads(m.data)),
            RELIABLE,
        )
        self._say = node.create_publisher(String, "language_policy/instruction", RELIABLE)
        up = w.spawn(
            sys.executable, "-m", "lerobot_tool_bridge", "up", "--policy",
            "--scene", str(scene), "--output-dir", str(w.folder / "observations"),
        )  # fmt: skip
        up.wait_output("Ready after", 90.0)
        w.until(
            lambda: (
                self.places
                and self._say.get_subscription_count()
                and node.count_publishers("language_policy/answer")
            )
        )

    def _on(self, message: MarkerArray) -> None:
        for marker in message.markers:
            p = marker.pose.position
            self.places[marker.ns] = (p.x, p.y, p.z)

    def say(self, text: str) -> dict[str, Any]:
        self.answers.clear()
        self._say.publish(String(data=text))
        self._world.until(lambda: self.answers, 120.0)
        return self.answers[0]

    def where(self, colour: str) -> tuple[float, float, float]:
        self.places.clear()
        self._world.until(lambda: f"{colour}_cube" in self.places)
        return self.places[f"{colour}_cube"]


def _free(chance: random.Random, taken: list[tuple[float, float]]) -> tuple[float, float]:
    """A place on the table that is far enough from all others."""
    while True:
        radius, azimuth = chance.uniform(0.16, 0.27), math.radians(chance.uniform(-50, 50))
        x, y = radius * math.cos(azimuth), radius * math.sin(azimuth)
        if all(math.hypot(x - a, y - b) > APART for a, b in taken):
            return round(x, 3), round(y, 3)


def _instructions() -> tuple[int, list[str]]:
    """How many of the cubes that were asked for ended where they should, and what went wrong."""
    chance = random.Random(SEED)
    right, troubles = 0, []
    taken: list[tuple[float, float]] = []
    cubes = {}
    for name in ("red", "blue", "green"):
        taken.append(_free(chance, taken))
        cubes[name] = (*taken[-1], chance.uniform(-45, 45))
    with world() as w:
        robot = _Robot(w, cubes)
        for trial in range(TRIALS):
            colour = chance.choice(list(cubes))
            others = [robot.where(c)[:2] for c in cubes]
            x, y = _free(chance, others)
            number = trial % len(SAYINGS)
            text = SAYINGS[number].format(NAMES[colour][number], x, y)
            answer = robot.say(text)
            cx, cy, cz = robot.where(colour)
            off = math.hypot(cx - x, cy - y)
            if off < NEAR and cz < HALF + 0.005:
                right += 1
            else:
                troubles.append(f"{text}: {1000 * off:.0f} mm off; {answer['answer'][:200]}")
    return right, troubles
