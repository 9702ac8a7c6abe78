"""One action of a driver: a goal, its result, and a cancel that is confirmed or said not to be.

Built on the three services and the status topic that every ROS 2 action has, instead of
``rclpy.action.ActionClient``, since that one

- loses a goal response that arrives while another thread is still inside ``send_goal_async``;
- wakes Python with each feedback message (50 a second while the arm moves);
- can't cancel goals of others, which a stop has to;
- learns the end of a goal only through the executor. Here the status topic is polled, so that a
  cancel can be confirmed while rclpy's thread is inside a lifecycle transition.
"""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from typing import Any

from action_msgs.msg import GoalStatus, GoalStatusArray
from action_msgs.srv import CancelGoal
from rclpy.qos import qos_profile_action_status_default
from unique_identifier_msgs.msg import UUID

from lerobot_tool_bridge.core.errors import ToolFailure
from lerobot_tool_bridge.ros.link import POLL, Link, settle
from lerobot_tool_bridge.ros.polled import Polled

_ENDED = (GoalStatus.STATUS_SUCCEEDED, GoalStatus.STATUS_CANCELED, GoalStatus.STATUS_ABORTED)
_WATCH = 0.25
_RESEND = 0.1


@dataclass(frozen=True, slots=True)
class Ended:
    """How a goal ended.

    Attributes:
        status: ``action_msgs/GoalStatus``.
        result: The action's result message.
    """

    status: int
    result: Any

    @property
    def succeeded(self) -> bool:
        return bool(self.status == GoalStatus.STATUS_SUCCEEDED)

    @property
    def cancelled(self) -> bool:
        return bool(self.status == GoalStatus.STATUS_CANCELED)


class _Goal:
    """One goal under way; its futures belong to the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.id = uuid.uuid4().bytes
        self.accepted: asyncio.Future[Any] = loop.create_future()
        self.result: asyncio.Future[Any] = loop.create_future()
        self.given_up = False

    @property
    def message_id(self) -> UUID:
        return UUID(uuid=list(self.id))


class Action:
    """An action server of a driver, as the loop sees it. Made once and kept.

    Args:
        link: Node and loop.
        kind: The action's type.
        name: The action's name, relative to the node's namespace.
        what: Who does it, for sentences (``the arm``).
    """

    def __init__(self, link: Link, kind: Any, name: str, what: str) -> None:
        self._link = link
        self._kind = kind
        self.what = what
        node = link.node
        self.name: str = node.resolve_topic_name(name)
        self._send = link.waiter.client(
            kind.Impl.SendGoalService, f"{self.name}/_action/send_goal"
        )
        self._result = link.waiter.client(
            kind.Impl.GetResultService, f"{self.name}/_action/get_result"
        )
        self._cancel = link.waiter.client(CancelGoal, f"{self.name}/_action/cancel_goal")
        self._status = Polled(
            node,
            GoalStatusArray,
            f"{self.name}/_action/status",
            qos_profile_action_status_default,
        )
        self._statuses: dict[bytes, dict[bytes, int]] = {}
        """What each server said last of its goals."""

    def close(self) -> None:
        """Ends the connection. No goal may be under way."""
        self._status.close()
        for client in (self._send, self._result, self._cancel):
            self._link.waiter.destroy_client(client)

    @property
    def ready(self) -> bool:
        """Whether a server is there."""
        return bool(
            self._send.service_is_ready()
            and self._result.service_is_ready()
            and self._cancel.service_is_ready()
        )

    async def run(self, goal: Any) -> Ended:
        """Sends a goal and waits for its end.

        Raises:
            ToolFailure: ``unavailable`` (no server, or it died on the way), ``goal_rejected``, or
                ``cancel_unconfirmed`` in place of the ``CancelledError``.
        """
        await self._wait_ready()
        under_way = self._start(goal)
        try:
            await self._wait_accepted(under_way)
            return await self._wait_result(under_way)
        except asyncio.CancelledError:
            if not await _uncancelled(self._end(under_way)):
                raise ToolFailure(
                    "cancel_unconfirmed",
                    f"{self.what.capitalize()} was told to stop and did not confirm it within "
                    f"{self._link.cancel_limit:g} s: it may still be moving.",
                ) from None
            raise

    def cancel_all(self) -> None:
        """Tells the server to cancel every goal, whoever sent it, and waits for nothing.

        May be called in any thread.
        """
        if self._cancel.service_is_ready():
            self._cancel.call_async(CancelGoal.Request())

    async def stop(self) -> bool | None:
        """Cancels every goal, whoever sent it, and waits until none runs.

        Returns:
            True: confirmed. False: not within the limit. None: there is no server.
        """
        if not self._cancel.service_is_ready():
            return None
        loop = self._link.loop
        end = loop.time() + self._link.cancel_limit
        told: set[bytes] = set()
        answer, resend = self._link.request(self._cancel, CancelGoal.Request()), 0.0
        try:
            while loop.time() < end:
                if answer.done():
                    told |= {bytes(g.goal_id.uuid) for g in answer.result().goals_canceling}
                    if not self._running(told):
                        return True
                    if loop.time() > resend:  # for a goal that was accepted since
                        answer = self._link.request(self._cancel, CancelGoal.Request())
                        resend = loop.time() + _RESEND
                await asyncio.sleep(POLL)
            return False
        finally:
            answer.cancel()

    # --- one goal -------------------------------------------------------------------------

    async def _wait_ready(self) -> None:
        # what is there is not waited for; what is not gets the time that discovery may take
        if not self.ready and not await self._link.until(
            lambda: self.ready, self._link.server_timeout
        ):
            raise ToolFailure("unavailable", self._why_missing())

    def _why_missing(self) -> str:
        what, name = self.what.capitalize(), self.name
        served = dict(self._link.node.get_service_names_and_types())
        types = [t.removesuffix("_SendGoal") for t in served.get(f"{name}/_action/send_goal", ())]
        own = f"{self._kind.__module__.split('.')[0]}/action/{self._kind.__name__}"
        others = [t for t in types if t != own]  # our own client stands among them
        if others:
            return f"{what} can't be used: {name} is there as {others[0]}, not as {own}."
        return (
            f"{what} can't be reached: nothing serves {name}. Its driver may not be running or "
            "not be active."
        )

    def _start(self, goal: Any) -> _Goal:
        under_way = _Goal(self._link.loop)
        request = self._kind.Impl.SendGoalService.Request(goal_id=under_way.message_id, goal=goal)

        def answered(response: Any) -> None:  # in the waiter's thread, to save a crossing
            if not response.accepted:
                return
            if under_way.given_up:  # accepted after all: it must not run
                self._cancel.call_async(_cancel_request(under_way))
            else:
                self._ask_result(under_way)

        under_way.accepted = self._link.request(self._send, request, answered)
        return under_way

    def _ask_result(self, under_way: _Goal) -> None:
        request = self._kind.Impl.GetResultService.Request(goal_id=under_way.message_id)
        pending = self._result.call_async(request)
        soon = self._link.loop.call_soon_threadsafe
        pending.add_done_callback(lambda f: soon(settle, under_way.result, f.result()))

    async def _wait_accepted(self, under_way: _Goal) -> None:
        limit = self._link.server_timeout
        done, _ = await asyncio.wait({under_way.accepted}, timeout=limit)
        if not done:
            under_way.given_up = True
            raise ToolFailure(
                "unavailable",
                f"{self.what.capitalize()} did not answer a goal within {limit:g} s: its driver "
                "hangs or has just died.",
            )
        if not under_way.accepted.result().accepted:
            raise ToolFailure(
                "goal_rejected",
                f"{self.what.capitalize()} refused the goal and gave no reason; its driver's log "
                "may say more. It may be inactive, busy, or the goal is outside of its limits.",
            )

    async def _wait_result(self, under_way: _Goal) -> Ended:
        servers = None
        while True:
            done, _ = await asyncio.wait({under_way.result}, timeout=_WATCH)
            if done:
                response = under_way.result.result()
                if response.status == GoalStatus.STATUS_UNKNOWN:
                    raise self._lost("was started again")
                return Ended(response.status, response.result)
            seen = self._servers()
            if not seen or not self._result.service_is_ready():
                raise self._lost("died")
            if servers is not None and seen - servers:
                # a new server: if it replaces the old one, it says that it knows no such goal
                self._ask_result(under_way)
            servers = seen if servers is None else servers | seen

    def _lost(self, how: str) -> ToolFailure:
        return ToolFailure(
            "unavailable",
            f"The driver of {self.what} {how} while it worked on the goal: where it stopped is "
            "not known. Look before the next motion.",
        )

    def _servers(self) -> set[bytes]:
        infos = self._link.node.get_publishers_info_by_topic(self._status.topic)
        return {bytes(info.endpoint_gid)[:16] for info in infos}

    # --- the end of goals -----------------------------------------------------------------

    async def _end(self, under_way: _Goal) -> bool:
        """Cancels a goal; True when it is known that it does not run any more."""
        loop = self._link.loop
        under_way.given_up = True
        end = loop.time() + self._link.cancel_limit
        resend = 0.0
        while not self._over(under_way):
            now = loop.time()
            if now > end:
                return False
            if now > resend:
                # also before it was accepted, and again: requests may overtake one another
                self._cancel.call_async(_cancel_request(under_way))
                resend = now + _RESEND
            await asyncio.sleep(POLL)
        return True

    def _over(self, under_way: _Goal) -> bool:
        if under_way.result.done():
            return bool(under_way.result.result().status != GoalStatus.STATUS_UNKNOWN)
        if under_way.accepted.done() and not under_way.accepted.result().accepted:
            return True
        self._read_status()
        return any(goals.get(under_way.id) in _ENDED for goals in self._statuses.values())

    def _running(self, told: set[bytes]) -> bool:
        """Whether any goal runs, or one of those that were told to stop has not ended."""
        self._read_status()
        servers = self._servers()
        statuses: dict[bytes, int] = {}
        for publisher, goals in list(self._statuses.items()):
            if publisher and publisher not in servers:
                del self._statuses[publisher]  # it is gone, and its goals with it
            statuses.update(goals)
        return any(status not in _ENDED for status in statuses.values()) or any(
            statuses.get(goal) not in _ENDED for goal in told
        )

    def _read_status(self) -> None:
        while taken := self._status.take():
            self._statuses[taken.publisher] = {
                bytes(s.goal_info.goal_id.uuid): s.status for s in taken.message.status_list
            }


def _cancel_request(under_way: _Goal) -> CancelGoal.Request:
    request = CancelGoal.Request()
    request.goal_info.goal_id = under_way.message_id
    return request


async def _uncancelled(work: Any) -> bool:
    """Runs a coroutine to its end although the task is cancelled again meanwhile."""
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            continue
    return bool(task.result())
