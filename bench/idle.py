"""A 1080p 30 Hz camera runs: the bridge's CPU without a call, and how soon a stop arrives."""

from __future__ import annotations

import time
from typing import Any

from std_msgs.msg import Float64
from std_srvs.srv import Trigger

from bench.common import cpu_seconds, summary, world

SECONDS = 20.0
STOPS = 100


def measure() -> dict[str, Any]:
    with world() as w:
        camera = w.module("camera")
        server = w.module("hanging_server")
        bridge = w.bridge()
        stamps: list[float] = []
        began: list[float] = []
        for topic, stored in (("bench/cancelled_at", stamps), ("bench/began_at", began)):
            w.node.create_subscription(Float64, topic, lambda m, s=stored: s.append(m.data), 10)
        w.until(lambda: w.node.count_publishers("bench/cancelled_at") > 0)
        before, start = cpu_seconds(bridge.popen.pid), time.monotonic()
        while time.monotonic() - start < SECONDS:
            w.executor.spin_once(timeout_sec=0.5)
        share = (cpu_seconds(bridge.popen.pid) - before) / (time.monotonic() - start)
        stop = w.node.create_client(Trigger, "tool_bridge/stop")
        reset = w.node.create_client(Trigger, "tool_bridge/reset")
        w.until(lambda: stop.service_is_ready() and reset.service_is_ready())
        took = []
        for _ in range(STOPS):
            running = len(began)
            call = w.send("bench_action", {"value": 2.0})
            w.until(lambda n=running: len(began) > n)
            seen = len(stamps)
            asked = time.monotonic()
            answer = stop.call_async(Trigger.Request())
            w.until(lambda n=seen: len(stamps) > n)
            took.append(stamps[seen] - asked)
            w.until(lambda c=call: c in w.results)
            w.until(answer.done)
            done = reset.call_async(Trigger.Request())
            w.until(done.done)
        assert camera.popen.poll() is None
        assert server.popen.poll() is None
        return {
            "CPU of the bridge without a call, % of a core": {
                "value": round(100 * share, 2),
                "at_most": 1.0,
            },
            "~/stop to the driver's cancel, p99 ms": {
                "value": summary(took)["p99_ms"],
                "at_most": 50.0,
                "median_ms": summary(took)["median_ms"],
                "n": STOPS,
            },
        }
