"""2,000 calls as fast as they go: none lost, in order, against the plain echo's rate."""

from __future__ import annotations

import json
import time
from typing import Any

from std_msgs.msg import String

from bench.calls import Echo
from bench.common import RELIABLE, memory_mb, world

CALLS = 2000
WINDOW = 50
"""Messages under way at once: the topics keep the last 100."""


def measure() -> dict[str, Any]:
    with world() as w:
        bridge = w.bridge()
        echo = Echo(w)
        order: list[str] = []

        def on(message: String) -> None:
            order.append(json.loads(message.data)["tool_call_id"])

        w.node.create_subscription(String, "tool_bridge/tool_results", on, RELIABLE)
        w.until(lambda: w.node.count_subscribers("tool_bridge/tool_results") >= 2)
        w.call("bench_noop", {"value": 0.0})
        rates: dict[str, list[float]] = {"plain": [], "bridge": []}
        memory = []
        for _ in range(3):
            sent = 0
            before = echo.received
            start = time.perf_counter()
            while echo.received - before < CALLS:
                while sent < CALLS and sent - (echo.received - before) < WINDOW:
                    echo.publish(json.dumps({"value": sent}))
                    sent += 1
                w.executor.spin_once(timeout_sec=0.1)
            rates["plain"].append(CALLS / (time.perf_counter() - start))
            order.clear()
            ids: list[str] = []
            start = time.perf_counter()
            while len(order) < CALLS:
                while len(ids) < CALLS and len(ids) - len(order) < WINDOW:
                    ids.append(w.send("bench_noop", {"value": float(len(ids))}))
                w.executor.spin_once(timeout_sec=0.1)
            rates["bridge"].append(CALLS / (time.perf_counter() - start))
            memory.append(memory_mb(bridge.popen.pid))
            if order != ids:
                raise RuntimeError("results were lost or came in another order")
        ratio = max(rates["bridge"]) / max(rates["plain"])
        return {
            "calls a second / plain echo's": {
                "value": round(ratio, 2),
                "at_least": 0.4,
                "bridge_per_s": round(max(rates["bridge"])),
                "plain_per_s": round(max(rates["plain"])),
                "lost": 0,
                "order_kept": True,
            },
            "growth of memory over 2,000 calls, MB": {
                "value": round(memory[-1] - memory[-2], 1),
                "at_most": 1.0,
                "after_each_2000": [round(m, 1) for m in memory],
            },
        }
