"""What has to be quick, in a thread of its own: calls and cancels that come, answers of drivers.

rclpy's executor builds its wait set anew for every message, out of everything that the node has.
For the bridge that is half a millisecond in which it keeps the interpreter. Here the wait set
holds only what a call waits for. It also goes on while the executor is busy with a transition.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

from rclpy.client import Client
from rclpy.guard_condition import GuardCondition
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription
from std_msgs.msg import String

from lerobot_tool_bridge.ros.cdr import decode_string
from lerobot_tool_bridge.ros.polled import Never

_BATCH = 50

Batch = list[tuple[bytes, int]]
"""Texts, and when each was sent (nanoseconds since the epoch, its sender's clock)."""


class Waiter:
    """Waits for messages and responses, and hands them on at once.

    Callbacks run in its thread: they should be short, and must not raise.

    Args:
        node: Whose subscriptions and clients they are.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._subscriptions: dict[Subscription, Callable[[Batch], None]] = {}
        self._clients: list[Client] = []
        self._changed = False
        self._ended = False
        self._lock = threading.Lock()
        self._wake = GuardCondition(callback=None, callback_group=None, context=node.context)
        self._thread = threading.Thread(target=self._run, name="waiter")
        self._thread.start()

    def subscribe(self, topic: str, take: Callable[[Batch], None], qos: QoSProfile) -> None:
        """Subscribes to ``std_msgs/String``, taken as bytes in batches of at most 50."""
        subscription = self._node.create_subscription(
            String, topic, lambda _: None, qos, raw=True, callback_group=Never()
        )
        with self._lock:
            self._subscriptions[subscription] = take
        self._notice()

    def client(self, kind: Any, name: str) -> Client:
        """A client whose futures are settled in this thread."""
        client = self._node.create_client(kind, name, callback_group=Never())
        with self._lock:
            self._clients.append(client)
        self._notice()
        return client

    def destroy_client(self, client: Client) -> None:
        """Ends a client; rclpy keeps its handle alive while it is waited for."""
        with self._lock:
            self._clients.remove(client)
        self._notice()
        self._node.destroy_client(client)

    def close(self) -> None:
        """Ends the thread, the subscriptions and the clients."""
        self._ended = True
        self._notice()
        self._thread.join()
        self._wake.destroy()
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        for client in self._clients:
            self._node.destroy_client(client)

    def _notice(self) -> None:
        self._changed = True
        self._wake.trigger()

    def _run(self) -> None:
        try:
            while not self._ended:
                self._wait()
        except Exception as error:  # a bridge that is deaf must not look alive
            self._node.get_logger().fatal(f"Calls can't be taken any more: {error!r}")
            os.kill(os.getpid(), signal.SIGTERM)

    def _wait(self) -> None:
        """Waits and hands on, until what there is to wait for has changed."""
        with self._lock:
            self._changed = False
            subscriptions = [(s.handle, take) for s, take in self._subscriptions.items()]
            clients = [(c.handle, c) for c in self._clients]
        context, wake = self._node.context.handle, self._wake.handle
        with contextlib.ExitStack() as held:
            for handle in (
                context,
                wake,
                *(h for h, _ in subscriptions),
                *(h for h, _ in clients),
            ):
                held.enter_context(handle)
            waiting = _rclpy.WaitSet(len(subscriptions), 1, 0, len(clients), 0, 0, context)
            while not self._changed:
                waiting.clear_entities()
                for handle, _ in subscriptions:
                    waiting.add_subscription(handle)
                for handle, _ in clients:
                    waiting.add_client(handle)
                waiting.add_guard_condition(wake)
                waiting.wait(-1)
                answered = waiting.get_ready_entities("client")
                for handle, client in clients:
                    if handle.pointer in answered:
                        _settle(handle, client)
                for handle, take in subscriptions:
                    while batch := _take(handle):
                        take(batch)


def _settle(handle: Any, client: Client) -> None:
    """Gives the future of a request the response that came."""
    header, response = handle.take_response(client.srv_type.Response)
    if header is None:
        return
    try:
        future = client.get_pending_request(header.request_id.sequence_number)
    except KeyError:  # nobody waits for it any more
        return
    future.set_result(response)


def _take(handle: Any) -> Batch:
    """The messages that have come."""
    batch: Batch = []
    while len(batch) < _BATCH:
        taken = handle.take_message(String, True)
        if taken is None:
            break
        batch.append((decode_string(taken[0]), taken[1]["source_timestamp"]))
    return batch
