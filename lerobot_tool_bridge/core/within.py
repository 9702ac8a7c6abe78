"""Time limits that never swallow a cancel."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")


async def within(limit: float, work: Awaitable[T]) -> T:
    """Awaits for so many seconds at most.

    Up to Python 3.11, ``asyncio.wait_for`` loses a cancel that comes in the moment in which the
    work is done. Here a lost cancel would be a robot that moves on.

    Raises:
        TimeoutError: The time is up; the work was cancelled.
    """
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait([task], timeout=limit)
    except asyncio.CancelledError:
        await _end(task)
        raise
    if not done:
        await _end(task)
        raise TimeoutError
    return task.result()


async def _end(task: asyncio.Future[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
