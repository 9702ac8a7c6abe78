"""Subscriptions from which messages are taken only when somebody wants them.

The middleware receives them without Python: 50 joint states a second that nobody reads cost the
bridge nothing, and the newest one is there at once when a call needs it. They need no executor
either, so that a confirmed stop does not depend on whether rclpy's thread is busy.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile


class Never(CallbackGroup):
    """Keeps its entities out of the executor's wait set."""

    def can_execute(self, entity: Any) -> bool:
        return False

    def beginning_execution(self, entity: Any) -> bool:
        return False

    def ending_execution(self, entity: Any) -> None:
        pass


class Taken(NamedTuple):
    """A message and where it came from.

    Attributes:
        message: The message.
        arrived: When it arrived (``time.monotonic``).
        publisher: First 16 bytes of the publisher's id; empty where the middleware tells none.
    """

    message: Any
    arrived: float
    publisher: bytes


class Polled:
    """A subscription that is polled.

    Args:
        node: Who subscribes.
        kind: Type of the messages.
        topic: As ``create_subscription`` takes it.
        qos: Its depth is how many messages wait at most; the oldest give way.
    """

    def __init__(self, node: Node, kind: type, topic: str, qos: QoSProfile) -> None:
        self._node = node
        self._subscription = node.create_subscription(
            kind, topic, lambda _: None, qos, callback_group=Never()
        )
        self.qos = qos
        self.topic: str = self._subscription.topic_name

    def take(self) -> Taken | None:
        """The oldest message that waits."""
        subscription = self._subscription
        with subscription.handle:
            taken = subscription.handle.take_message(subscription.msg_type, False)
        if taken is None:
            return None
        message, info = taken
        # the middleware stamps with the system clock; ages are small, so a jump of that clock
        # matters only for what waited across it
        age = max(0.0, (time.time_ns() - info["received_timestamp"]) * 1e-9)
        gid = info.get("publisher_gid") or {}
        return Taken(message, time.monotonic() - age, bytes(gid.get("data", b""))[:16])

    @property
    def publishers(self) -> int:
        """How many publishers it is matched with."""
        return int(self._subscription.get_publisher_count())

    def close(self) -> None:
        """Ends the subscription."""
        self._node.destroy_subscription(self._subscription)
