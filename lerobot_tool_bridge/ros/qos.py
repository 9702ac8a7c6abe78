"""The QoS profiles of the wire protocol, and the one that a camera asks for."""

from __future__ import annotations

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

COMMANDS = QoSProfile(
    depth=100,
    history=HistoryPolicy.KEEP_LAST,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE,
)
"""Calls, results and events. Never latched: a restarted bridge would run an old call again."""

LATCHED = QoSProfile(
    depth=1,
    history=HistoryPolicy.KEEP_LAST,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
"""The catalogue, the last still, the markers: whoever comes late gets the last one."""

STATES = QoSProfile(
    depth=20,
    history=HistoryPolicy.KEEP_LAST,
    reliability=ReliabilityPolicy.BEST_EFFORT,
    durability=DurabilityPolicy.VOLATILE,
)
"""Joint states. Best effort fits every publisher; the depth leaves room for several of them."""


def images(node: Node, topic: str) -> QoSProfile:
    """What a subscription to an image topic has to ask for, so that frames arrive.

    Reliable where every publisher offers it: a large frame is many packets, and without
    repetition hardly one arrives whole. Best effort where any publisher offers no more, because a
    mismatch is silent.
    """
    publishers = node.get_publishers_info_by_topic(topic)
    reliable = all(
        p.qos_profile.reliability is not ReliabilityPolicy.BEST_EFFORT for p in publishers
    )
    return QoSProfile(
        depth=1,
        history=HistoryPolicy.KEEP_LAST,
        reliability=(ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT),
        durability=DurabilityPolicy.VOLATILE,
    )
