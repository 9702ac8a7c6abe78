"""What the tests of running nodes share: a domain of their own, a node that listens, processes."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from lerobot_tool_bridge import share

T = TypeVar("T")
LIMIT = 30.0
"""Seconds after which a thing that should have happened by itself counts as missing."""


def wait_for(what: Callable[[], T], limit: float = LIMIT, name: str = "") -> T:
    """Polls until ``what()`` is true, and returns its value.

    Raises:
        TimeoutError: It did not become true within ``limit`` seconds.
    """
    end = time.monotonic() + limit
    while True:
        value = what()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"waited {limit} s in vain for {name or what}")
        time.sleep(0.005)


class Domain:
    """A ROS domain that no other test on this machine has at the same time."""

    def __init__(self) -> None:
        folder = Path(tempfile.gettempdir()) / f"ros-test-domains-{os.getuid()}"
        folder.mkdir(exist_ok=True)
        start = os.getpid() % 100
        for offset in range(100):
            self.id = 1 + (start + offset) % 100
            self._file = (folder / str(self.id)).open("w")
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                self._file.close()
        else:
            raise RuntimeError("all 100 test domains are taken")

    def environment(self) -> dict[str, str]:
        """For child processes: this domain, loopback only."""
        share.quick_discovery()
        return {
            **os.environ,
            "ROS_DOMAIN_ID": str(self.id),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        }

    def close(self) -> None:
        self._file.close()


class Ros:
    """A plain rclpy node of the test, spun in a thread of its own."""

    def __init__(self, domain: Domain) -> None:
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        share.quick_discovery()
        self.domain = domain
        self.context = rclpy.Context()
        rclpy.init(
            context=self.context,
            domain_id=domain.id,
            signal_handler_options=SignalHandlerOptions.NO,
        )
        self.node = Node("test_node", context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self._thread = threading.Thread(target=self.executor.spin, name="test-rclpy")
        self._thread.start()

    def collect(self, kind: type, topic: str, qos: Any = 100) -> list[Any]:
        """Subscribes, and returns the list to which every message is appended."""
        messages: list[Any] = []
        self.node.create_subscription(kind, topic, messages.append, qos)
        return messages

    def make(self, make: Callable[[], T]) -> T:
        """Makes something in the node's own thread.

        For action clients: an executor that spins meanwhile may see them before they are whole.
        """
        task = self.executor.create_task(make)
        self.executor.wake()
        return self.result(task)  # type: ignore[no-any-return]

    def call(self, kind: type, name: str, request: Any = None, limit: float = LIMIT) -> Any:
        """Calls a service and returns its response."""
        client = self.node.create_client(kind, name)
        try:
            if not client.wait_for_service(limit):
                raise TimeoutError(f"no service {name} within {limit} s")
            return self.result(client.call_async(request or kind.Request()), limit, name)
        finally:
            self.node.destroy_client(client)

    def result(self, future: Any, limit: float = LIMIT, name: str = "a future") -> Any:
        """Waits for an rclpy future and returns its result."""
        wait_for(future.done, limit, name)
        return future.result()

    def close(self) -> None:
        self.executor.shutdown(timeout_sec=2.0)
        self._thread.join(5.0)
        self.node.destroy_node()
        rclpy.try_shutdown(context=self.context)


class Process:
    """A child process whose output goes to a file; ended by its id."""

    def __init__(self, command: list[str], log: Path, env: dict[str, str]) -> None:
        self.log = log
        with log.open("wb") as out:
            self.popen = subprocess.Popen(
                command, stdout=out, stderr=subprocess.STDOUT, env=env, start_new_session=True
            )

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_output(self, text: str, limit: float = LIMIT) -> None:
        """Waits until the process has printed a text; fails at once where it ended before."""

        def there() -> bool:
            if text in self.output:
                return True
            if self.popen.poll() is not None:
                raise AssertionError(f"ended before it said {text!r}:\n{self.output}")
            return False

        try:
            wait_for(there, limit, repr(text))
        except TimeoutError as error:
            raise AssertionError(f"{error}; it said:\n{self.output}") from None

    def signal(self, number: int) -> None:
        if self.popen.poll() is None:
            self.popen.send_signal(number)

    def wait(self, limit: float = LIMIT) -> int:
        return self.popen.wait(limit)

    def close(self, limit: float = 10.0) -> None:
        self.signal(signal.SIGTERM)
        try:
            self.popen.wait(limit)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait(limit)


class Spawner:
    """Starts processes for one test and ends what is left of them."""

    def __init__(self, domain: Domain, folder: Path) -> None:
        self._domain = domain
        self._folder = folder
        self._all: list[Process] = []

    def __call__(self, *command: str, env: dict[str, str] | None = None) -> Process:
        """Starts a command; ``env`` is added to the environment."""
        log = self._folder / f"process-{len(self._all)}.log"
        process = Process(list(command), log, {**self._domain.environment(), **(env or {})})
        self._all.append(process)
        return process

    def node(self, module: str, *ros_args: str, **parameters: Any) -> Process:
        """Starts a node's module with parameters (``__`` in a name stands for a dot)."""
        command = [sys.executable, "-m", module, "--ros-args", *ros_args]
        for name, value in parameters.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if isinstance(value, str):
                text = f'"{value}"'
            command += ["-p", f"{name.replace('__', '.')}:={text}"]
        return self(*command)

    def close(self) -> None:
        for process in reversed(self._all):
            process.close()
