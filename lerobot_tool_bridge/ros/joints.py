"""The newest measured state of each joint."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sensor_msgs.msg import JointState

from lerobot_tool_bridge.core.errors import ToolFailure
from lerobot_tool_bridge.ros import qos
from lerobot_tool_bridge.ros.link import POLL, Link
from lerobot_tool_bridge.ros.polled import Polled

FRESH = 0.5
"""Seconds after which a joint state is too old to act on."""

LOST = 1.0
"""Seconds without a joint state after which the driver of a motion counts as lost."""

_WATCH = 0.2
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Joint:
    """One joint as measured.

    Attributes:
        position: Radians or metres.
        effort: As its driver reports it; 0 where it reports none.
        arrived: When the state arrived (``time.monotonic``).
    """

    position: float
    effort: float
    arrived: float


class JointStates:
    """A joint states topic, read when it is needed. Several drivers may publish on it.

    Args:
        link: Node and loop.
        topic: sensor_msgs/JointState.
    """

    def __init__(self, link: Link, topic: str) -> None:
        self._link = link
        self._states = Polled(link.node, JointState, topic, qos.STATES)
        self._joints: dict[str, Joint] = {}

    @property
    def topic(self) -> str:
        return self._states.topic

    def close(self) -> None:
        """Ends the subscription."""
        self._states.close()

    def age(self, names: Sequence[str]) -> float:
        """Seconds since the oldest of these joints was measured; infinite where one never was."""
        self._read()
        now = time.monotonic()
        return max(
            (now - self._joints[n].arrived if n in self._joints else math.inf for n in names),
            default=0.0,
        )

    async def read(self, names: Sequence[str], since: float | None = None) -> tuple[Joint, ...]:
        """The joints as measured now.

        Args:
            names: Which, in the order of the answer.
            since: Only states that arrived after this (``time.monotonic``) count. Otherwise they
                may be as old as ``FRESH``.

        Raises:
            ToolFailure: ``unavailable``: no fresh state came.
        """
        begin = time.monotonic()
        oldest = begin - FRESH if since is None else since
        # the first state of all waits for discovery
        limit = FRESH if self._joints else self._link.server_timeout
        while True:
            self._read()
            found = [self._joints.get(name) for name in names]
            fresh = tuple(j for j in found if j is not None and j.arrived > oldest)
            if len(fresh) == len(names):
                return fresh
            if time.monotonic() > begin + limit:
                raise ToolFailure("unavailable", self._why(names))
            await asyncio.sleep(POLL)

    async def guard(self, names: Sequence[str], motion: Coroutine[Any, Any, T], what: str) -> T:
        """Runs a motion, and ends it when nobody tells any more where its joints are.

        A driver that was killed is missed by the middleware after 20 s only; its joint states
        are missed at once. Joints that nobody measured before the motion are not watched.

        Args:
            names: The joints that move.
            motion: Runs until the motion's end.
            what: Who moves, for the sentence (``the arm``).

        Raises:
            ToolFailure: ``unavailable``, or what the motion raised.
        """
        watch = self.age(names) <= LOST
        running = asyncio.ensure_future(motion)
        try:
            while not running.done():
                await asyncio.wait({running}, timeout=_WATCH)
                if watch and not running.done() and self.age(names) > LOST:
                    running.cancel()
                    await asyncio.gather(running, return_exceptions=True)
                    raise ToolFailure(
                        "unavailable",
                        f"No joint state came for {LOST:g} s while {what} moved: its driver died "
                        "or lost its device. Where it stopped is not known.",
                    )
        except asyncio.CancelledError:
            running.cancel()
            await running  # what it raises goes up in place of the cancel
            raise
        return running.result()

    def _why(self, names: Sequence[str]) -> str:
        never = [n for n in names if n not in self._joints]
        if len(never) == len(names):
            return f"No joint state has come on {self.topic}. The driver may not be running."
        if never:
            return f"The joint states on {self.topic} lack {', '.join(never)}."
        return (
            f"No fresh joint state on {self.topic}: the last one is {self.age(names):.1f} s old. "
            "The driver may have died or lost its device."
        )

    def _read(self) -> None:
        while taken := self._states.take():
            message = taken.message
            for i, (name, position) in enumerate(
                zip(message.name, message.position, strict=False)
            ):
                if math.isfinite(position):
                    effort = message.effort[i] if i < len(message.effort) else 0.0
                    self._joints[name] = Joint(position, effort, taken.arrived)
