"""Where the asyncio loop and rclpy's thread meet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from rclpy.client import Client
from rclpy.node import Node

from lerobot_tool_bridge.core.errors import ToolFailure
from lerobot_tool_bridge.core.within import within
from lerobot_tool_bridge.ros.waiter import Waiter

POLL = 0.003
"""Seconds between two looks at something that has no way to wake the loop."""


class Link:
    """What the ports need to talk to ROS from the loop.

    Args:
        node: Spins in a thread of its own.
        loop: Runs in the main thread.
        waiter: Brings the responses of the clients that it makes.
        server_timeout: Seconds for which a missing driver is waited for.
        cancel_limit: Seconds for which a cancel may stay unconfirmed.
    """

    def __init__(
        self,
        node: Node,
        loop: asyncio.AbstractEventLoop,
        waiter: Waiter,
        server_timeout: float = 5.0,
        cancel_limit: float = 1.0,
    ) -> None:
        self.node = node
        self.loop = loop
        self.waiter = waiter
        self.server_timeout = server_timeout
        self.cancel_limit = cancel_limit

    def request(
        self, client: Client, request: Any, then: Callable[[Any], None] | None = None
    ) -> asyncio.Future[Any]:
        """Sends a service request.

        Args:
            client: Its server should be ready.
            request: The request.
            then: Called with the response in the waiter's thread, before the loop hears of it.

        Returns:
            The response, for the loop. Cancelling the future forgets the request.
        """
        answer: asyncio.Future[Any] = self.loop.create_future()
        pending = client.call_async(request)

        def forward(future: Any) -> None:
            response = future.result()
            if then is not None:
                then(response)
            self.loop.call_soon_threadsafe(settle, answer, response)

        def forget(future: asyncio.Future[Any]) -> None:
            if future.cancelled():
                client.remove_pending_request(pending)

        pending.add_done_callback(forward)
        answer.add_done_callback(forget)
        return answer

    async def until(self, ready: Callable[[], bool], limit: float) -> bool:
        """Polls a condition; False where it did not come true within the limit."""
        end = self.loop.time() + limit
        while not ready():
            if self.loop.time() > end:
                return False
            await asyncio.sleep(0.01)
        return True

    async def service(self, client: Client, request: Any, what: str, limit: float) -> Any:
        """Calls a service and returns its response.

        Args:
            client: Made once and kept.
            request: The request.
            what: Who answers, for the sentence (``the camera``).
            limit: Seconds that the answer may take.

        Raises:
            ToolFailure: ``unavailable``: it is not there, or did not answer.
        """
        if not await self.until(client.service_is_ready, self.server_timeout):
            raise ToolFailure(
                "unavailable",
                f"{what} does not answer: there is no service {client.srv_name}. "
                "Is its driver running?",
            )
        try:
            return await within(limit, self.request(client, request))
        except TimeoutError:
            raise ToolFailure(
                "unavailable", f"{what} did not answer within {limit:g} s ({client.srv_name})."
            ) from None


def settle(future: asyncio.Future[Any], value: Any) -> None:
    """Gives a future its result unless it has one."""
    if not future.done():
        future.set_result(value)
