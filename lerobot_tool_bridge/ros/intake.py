"""Messages that are taken the moment they are there, in a thread of their own.

rclpy's executor builds its wait set anew for every message, out of everything that the node has.
For the bridge, with its services and the clients of every driver, that is half a millisecond in
which it keeps the interpreter. Here the wait set holds the few subscriptions alone; it also goes
on while the executor is busy with a transition.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any

from rclpy.guard_condition import GuardCondition
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import String

from lerobot_tool_bridge.ros.cdr import decode_string
from lerobot_tool_bridge.ros.polled import Never

_BATCH = 50

Batch = list[tuple[bytes, int]]
"""Texts, and when each was sent (nanoseconds since the epoch, its sender's clock)."""


class Intake:
    """Subscriptions to ``std_msgs/String``, taken as bytes.

    Args:
        node: Who subscribes.
        topics: Pairs of a topic and what gets its messages, in batches of at most 50; called in
            the intake's thread.
        qos: Of all of them.
    """

    def __init__(
        self, node: Node, topics: Sequence[tuple[str, Callable[[Batch], None]]], qos: QoSProfile
    ) -> None:
        self._node = node
        self._taken = [
            (
                node.create_subscription(
                    String, topic, lambda _: None, qos, raw=True, callback_group=Never()
                ),
                take,
            )
            for topic, take in topics
        ]
        self._wake = GuardCondition(callback=None, callback_group=None, context=node.context)
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="intake")
        self._thread.start()

    def close(self) -> None:
        """Ends the thread and the subscriptions."""
        self._ended = True
        self._wake.trigger()
        self._thread.join()
        self._wake.destroy()
        for subscription, _ in self._taken:
            self._node.destroy_subscription(subscription)

    def _run(self) -> None:
        try:
            self._wait()
        except Exception as error:  # a bridge that is deaf must not look alive
            self._node.get_logger().fatal(f"Calls can't be taken any more: {error!r}")
            os.kill(os.getpid(), signal.SIGTERM)

    def _wait(self) -> None:
        context = self._node.context.handle
        wake = self._wake.handle
        handles = [(s.handle, take) for s, take in self._taken]
        with contextlib.ExitStack() as held:
            for handle in (context, wake, *(h for h, _ in handles)):
                held.enter_context(handle)
            waiting = _rclpy.WaitSet(len(handles), 1, 0, 0, 0, 0, context)
            while not self._ended:
                waiting.clear_entities()
                for handle, _ in handles:
                    waiting.add_subscription(handle)
                waiting.add_guard_condition(wake)
                waiting.wait(-1)
                for handle, take in handles:
                    while batch := _take(handle):
                        take(batch)


def _take(handle: Any) -> Batch:
    """What waits now."""
    batch: Batch = []
    while len(batch) < _BATCH:
        taken = handle.take_message(String, True)
        if taken is None:
            break
        batch.append((decode_string(taken[0]), taken[1]["source_timestamp"]))
    return batch
