"""A tool that runs one action, against the same goal from a plain client, in blocks in turn."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from builtin_interfaces.msg import Duration
from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectoryPoint

from bench.common import World, blocks, summary, world

ROUNDS = 300


class Plain:
    """A standing action client, as somebody would write it.

    On a node of its own: its client takes in the status of every goal, also of the bridge's, and
    that is not to count as the bridge's time.
    """

    def __init__(self, w: World) -> None:
        self._node = Node("plain_client", context=w.context)
        self._executor = SingleThreadedExecutor(context=w.context)
        self._executor.add_node(self._node)
        name = "gimbal_controller/follow_joint_trajectory"
        self._client = ActionClient(self._node, FollowJointTrajectory, name)
        self._until(self._client.server_is_ready)

    def _until(self, what: Callable[[], bool]) -> None:
        while not what():
            self._executor.spin_once(timeout_sec=0.1)

    def close(self) -> None:
        self._executor.shutdown()
        self._node.destroy_node()

    def timed(self, tilt: float) -> float:
        goal = FollowJointTrajectory.Goal()
        goal.trajectory.joint_names = ["gimbal_pan", "gimbal_tilt"]
        point = JointTrajectoryPoint(positions=[2.356, tilt], time_from_start=Duration())
        goal.trajectory.points.append(point)
        for _ in range(10):  # what came while the bridge had its turn is not to count as ours
            self._executor.spin_once(timeout_sec=0.0)
        start = time.perf_counter()
        accepted = self._client.send_goal_async(goal)
        self._until(accepted.done)
        ended = accepted.result().get_result_async()
        self._until(ended.done)
        return time.perf_counter() - start


def measure() -> dict[str, Any]:
    with world() as w:
        w.module("action_server")
        w.bridge()
        plain_client = Plain(w)
        plain, ours = blocks(
            ROUNDS,
            lambda: plain_client.timed(2.0),
            lambda: w.timed_call("bench_action", {"value": 2.0}),
        )
        plain_client.close()
        p, o = summary(plain), summary(ours)
        both = {"bridge": o, "plain": p}
        return {
            "action / plain client, ratio of medians": {
                "value": round(o["median_ms"] / p["median_ms"], 2),
                "at_most": 1.25,
                **both,
            },
            "action / plain client, ratio of p99": {
                "value": round(o["p99_ms"] / p["p99_ms"], 2),
                "at_most": 2.0,
            },
        }
