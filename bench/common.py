"""What the benchmarks share: a world of processes, a client node, statistics."""

from __future__ import annotations

import itertools
import json
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test"))

from harness import Domain, Process, Spawner  # noqa: E402

RELIABLE = QoSProfile(depth=100, reliability=ReliabilityPolicy.RELIABLE)
_ids = itertools.count()


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """Median and 99th percentile in milliseconds."""
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, math.ceil(0.99 * len(ordered)) - 1)]
    return {
        "n": len(ordered),
        "median_ms": round(1000 * statistics.median(ordered), 3),
        "p99_ms": round(1000 * p99, 3),
    }


def blocks(
    rounds: int, plain: Callable[[], float], ours: Callable[[], float], size: int = 25
) -> tuple[list[float], list[float]]:
    """Measures two things in alternating blocks; the first block of each is the warm-up."""
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds // size + 1):
        for measure, times in zip((plain, ours), taken, strict=True):
            times += [measure() for _ in range(size)]
    return taken[0][size:], taken[1][size:]


def call_message(name: str, arguments: dict[str, Any]) -> tuple[str, str]:
    """An assistant message with one call under a fresh id: the id and the JSON."""
    call_id = f"bench{next(_ids):06d}"
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": call_id, "type": "function", "function": function}
    return call_id, json.dumps({"role": "assistant", "content": "", "tool_calls": [call]})


class World:
    """A domain with processes, and a plain rclpy node to drive them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._domain = Domain()
        os.environ.update(self._domain.environment())
        self.spawn = Spawner(self._domain, folder)
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=self._domain.id)
        self.node = Node("bench_client", context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.results: dict[str, dict[str, Any]] = {}
        self._calls = self.node.create_publisher(String, "tool_bridge/tool_calls", RELIABLE)
        self.node.create_subscription(
            String, "tool_bridge/tool_results", self._on_result, RELIABLE
        )

    def _on_result(self, message: String) -> None:
        result = json.loads(message.data)
        self.results[result["tool_call_id"]] = result

    def module(self, name: str, *args: str) -> Process:
        """Starts a module of this folder."""
        return self.spawn(sys.executable, "-m", f"bench.{name}", *args)

    def bridge(self, **parameters: Any) -> Process:
        """Starts the bridge with the benchmark's own tools, and waits until it takes calls."""
        process = self.spawn.node(
            "bench.bridge_with_tools",
            output_dir=str(self.folder / "observations"),
            rate_limit=0.0,
            **parameters,
        )
        self.wait_bridge()
        return process

    def wait_bridge(self) -> None:
        self.until(lambda: self._calls.get_subscription_count() > 0, 30.0)
        self.until(lambda: self.call("bench_noop", {"value": 0.0}, limit=1.0) is not None, 30.0)

    def until(self, what: Callable[[], Any], limit: float = 60.0) -> None:
        """Spins until something is true."""
        end = time.monotonic() + limit
        while not what():
            self.executor.spin_once(timeout_sec=0.05)
            if time.monotonic() > end:
                raise TimeoutError(f"waited {limit} s in vain")

    def send(self, name: str, arguments: dict[str, Any]) -> str:
        call_id, text = call_message(name, arguments)
        self._calls.publish(String(data=text))
        return call_id

    def call(
        self, name: str, arguments: dict[str, Any], limit: float = 60.0
    ) -> dict[str, Any] | None:
        """One call and its result; None where none came in time."""
        call_id = self.send(name, arguments)
        try:
            self.until(lambda: call_id in self.results, limit)
        except TimeoutError:
            return None
        return self.results.pop(call_id)

    def timed_call(self, name: str, arguments: dict[str, Any]) -> float:
        """Seconds from publishing a call to its good result."""
        start = time.perf_counter()
        result = self.call(name, arguments)
        took = time.perf_counter() - start
        if result is None or result["content"].startswith("Error"):
            raise RuntimeError(f"{name} failed: {result}")
        return took

    def close(self) -> None:
        self.spawn.close()
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.try_shutdown(context=self.context)
        self._domain.close()


@contextmanager
def world() -> Iterator[World]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        w = World(Path(folder))
        try:
            yield w
        finally:
            w.close()


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    """Resident memory of a process, MB (10^6 bytes)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"process {pid} has no VmRSS")
