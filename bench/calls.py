"""A call of a tool that does nothing, against a plain rclpy echo of the same payload.

In alternating blocks: noise of the machine meets both sides alike, and what one side still does
after its last answer is not counted as the other's.
"""

from __future__ import annotations

import time
from typing import Any

from std_msgs.msg import String

from bench.common import RELIABLE, World, blocks, call_message, summary, world

ROUNDS = 1000


class Echo:
    """The plain echo's client, on the same node as the bridge's."""

    def __init__(self, w: World) -> None:
        self._world = w
        self.received = 0
        self._publisher = w.node.create_publisher(String, "echo/in", RELIABLE)
        w.node.create_subscription(String, "echo/out", self._on, RELIABLE)
        w.module("echo")
        w.until(lambda: self._publisher.get_subscription_count() > 0)
        before = self.received
        while self.received == before:
            self.publish("ready?")
            w.executor.spin_once(timeout_sec=0.2)

    def _on(self, message: String) -> None:
        self.received += 1

    def publish(self, text: str) -> None:
        self._publisher.publish(String(data=text))

    def timed(self, text: str) -> float:
        want = self.received + 1
        start = time.perf_counter()
        self.publish(text)
        self._world.until(lambda: self.received >= want)
        return time.perf_counter() - start


def measure() -> dict[str, Any]:
    with world() as w:
        w.bridge()
        echo = Echo(w)
        arguments = {"value": 0.5}
        _, text = call_message("bench_noop", arguments)
        floor, bridge = blocks(
            ROUNDS, lambda: echo.timed(text), lambda: w.timed_call("bench_noop", arguments)
        )
        plain_summary, ours_summary = summary(floor), summary(bridge)
        ratio = ours_summary["median_ms"] / plain_summary["median_ms"]
        return {
            "call / plain echo, ratio of medians": {
                "value": round(ratio, 2),
                "at_most": 2.0,
                "bridge": ours_summary,
                "plain": plain_summary,
            }
        }
