"""A robot's nodes as child processes: started, watched until they are active, ended in order."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FrameType
from typing import Any

import rclpy
from lifecycle_msgs.srv import GetState
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from lerobot_tool_bridge import share
from lerobot_tool_bridge.bringup import NodeSpec
from lerobot_tool_bridge.latch import Latch

END_LIMIT = 12.0
"""Seconds that a node may take to end after SIGINT; then it is killed."""

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def loopback_by_default() -> bool:
    """Keeps this process and its children to this machine, unless the user chose otherwise.

    Returns:
        Whether it did.
    """
    share.quick_discovery()
    chosen = "ROS_AUTOMATIC_DISCOVERY_RANGE" in os.environ or "ROS_LOCALHOST_ONLY" in os.environ
    if not chosen:
        os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    return not chosen


def _die_with_parent() -> None:
    """In the child: a robot must not go on unattended when its ``up`` was killed."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Processes:
    """Child processes with their lines passed on; ended one by one, the last one first.

    Start them in the main thread: the kernel ends them with the thread that started them.

    Args:
        echo: Called with a process's name and each of its lines, from threads.
    """

    def __init__(self, echo: Callable[[str, str], None]) -> None:
        self._echo = echo
        self._all: dict[str, tuple[subprocess.Popen[bytes], threading.Thread]] = {}
        self._reported: set[str] = set()

    def start(
        self, name: str, command: Sequence[str], env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Starts one; ``env`` is added to the environment."""
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
            start_new_session=True,  # the terminal's Ctrl-C reaches it through us, in order
            preexec_fn=_die_with_parent,
        )
        reader = threading.Thread(target=self._read, args=(name, process), name=f"read {name}")
        reader.start()
        self._all[name] = (process, reader)
        return process

    def _read(self, name: str, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            with contextlib.suppress(OSError):  # nobody reads us; the child must not block
                self._echo(name, line.decode(errors="replace").rstrip())

    @property
    def running(self) -> list[str]:
        """The names of those that run."""
        return [name for name, (process, _) in self._all.items() if process.poll() is None]

    def newly_dead(self) -> list[tuple[str, str]]:
        """Name and end of each that ended since the last time, in words."""
        found = []
        for name, (process, _) in self._all.items():
            code = process.poll()
            if code is not None and name not in self._reported:
                self._reported.add(name)
                found.append((name, f"status {code}" if code >= 0 else _signal_name(-code)))
        return found

    def end(self, hurry: Latch | None = None) -> list[str]:
        """Ends all that still run, in the reverse order of their start.

        Args:
            hurry: When set, what still runs is killed.

        Returns:
            The names of those that had to be killed.
        """
        killed = []
        for name, (process, reader) in reversed(self._all.items()):
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                limit = time.monotonic() + END_LIMIT
                while process.poll() is None and time.monotonic() < limit:
                    if hurry is not None and hurry.is_set():
                        break
                    time.sleep(0.01)
                if process.poll() is None:
                    process.kill()
                    process.wait()
                    killed.append(name)
            self._reported.add(name)
            reader.join(1.0)
        return killed


class Stack:
    """The nodes of one bring-up, and an eye on their life cycle.

    Args:
        nodes: In the order of their start.
        processes: Where they run.
        domain: ROS domain; None for the environment's.
    """

    def __init__(
        self, nodes: Iterable[NodeSpec], processes: Processes, domain: int | None = None
    ) -> None:
        self.nodes = list(nodes)
        self.processes = processes
        self._env = {} if domain is None else {"ROS_DOMAIN_ID": str(domain)}
        self._context = rclpy.Context()
        rclpy.init(
            args=[],
            context=self._context,
            domain_id=domain,
            signal_handler_options=SignalHandlerOptions.NO,
        )
        self.node = Node("up", context=self._context, enable_rosout=False)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._states: dict[str, str] = {}

    def start(self, while_waiting: Callable[[], None]) -> None:
        """Starts the nodes; the virtual robot first, since the drivers open its devices.

        Args:
            while_waiting: Called ten times a second; may raise to give up.
        """
        for spec in self.nodes:
            self.processes.start(spec.name, spec.command(), self._env)
            if spec.executable == "virtual_robot":
                self.wait_active([spec], while_waiting)

    def wait_active(self, nodes: Sequence[NodeSpec], while_waiting: Callable[[], None]) -> None:
        """Waits until nodes are active.

        Args:
            nodes: Those that are no lifecycle nodes are left out.
            while_waiting: Called ten times a second; may raise to give up.
        """
        left = {
            spec.name: self.node.create_client(GetState, f"{spec.full_name}/get_state")
            for spec in nodes
            if spec.managed
        }
        asked: dict[str, Any] = {}
        try:
            while left:
                while_waiting()
                for name, client in left.items():
                    if name not in asked and client.service_is_ready():
                        asked[name] = client.call_async(GetState.Request())
                self.spin(0.1)
                for name, future in list(asked.items()):
                    if future.done():
                        del asked[name]
                        self._states[name] = future.result().current_state.label
                        if self._states[name] == "active":
                            self.node.destroy_client(left.pop(name))
        finally:
            for client in left.values():
                self.node.destroy_client(client)

    def spin(self, seconds: float) -> None:
        """Lets the own node work for a while."""
        end = time.monotonic() + seconds
        while (rest := end - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=rest)

    def waiting_for(self) -> list[str]:
        """The nodes that are not active, each with its state."""
        return [
            f"{spec.name} ({self._states.get(spec.name, 'not there yet')})"
            for spec in self.nodes
            if spec.managed and self._states.get(spec.name) != "active"
        ]

    def close(self) -> None:
        """Ends the own node; the processes go on."""
        self._executor.shutdown(timeout_sec=1.0)
        self.node.destroy_node()
        rclpy.try_shutdown(context=self._context)


class Signals:
    """SIGINT, SIGTERM and SIGHUP (the terminal was closed) as events.

    The first asks for the end, the second hurries it.
    """

    def __init__(self) -> None:
        self.stop = Latch()
        self.hurry = Latch()

    def __enter__(self) -> Signals:
        self._before = {n: signal.signal(n, self._on) for n in _ENDS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on(self, number: int, frame: FrameType | None) -> None:
        (self.hurry if self.stop.is_set() else self.stop).set()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
