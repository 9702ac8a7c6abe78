"""How soon the bridge takes its first call, and its memory before the first picture."""

from __future__ import annotations

import time
from typing import Any

from bench.common import memory_mb, world


def measure() -> dict[str, Any]:
    took, memory = [], []
    for _ in range(5):
        with world() as w:
            start = time.perf_counter()
            process = w.spawn.node(
                "bench.bridge_with_tools", output_dir=str(w.folder / "observations")
            )
            answered = False
            while not answered:
                w.until(lambda: w.node.count_subscribers("tool_bridge/tool_calls") > 0)
                answered = w.call("bench_noop", {"value": 1.0}, limit=0.25) is not None
            took.append(time.perf_counter() - start)
            memory.append(memory_mb(process.popen.pid))
    return {
        "process start to first result, s (median of 5)": {
            "value": round(sorted(took)[2], 2),
            "at_most": 2.0,
            "all": [round(t, 2) for t in took],
        },
        "memory before the first picture, MB": {
            "value": round(max(memory), 1),
            "at_most": 95.0,
        },
    }
