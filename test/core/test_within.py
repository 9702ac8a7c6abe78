"""A time limit that never swallows a cancel."""

import asyncio

import pytest

from lerobot_tool_bridge.core.within import within


def test_in_time_and_too_late():
    async def scene():
        assert await within(5.0, asyncio.sleep(0.0, "done")) == "done"
        never = asyncio.get_running_loop().create_future()
        with pytest.raises(TimeoutError):
            await within(0.01, never)
        assert never.cancelled()

    asyncio.run(scene())


def test_what_the_work_raises():
    async def work():
        raise KeyError("x")

    with pytest.raises(KeyError):
        asyncio.run(within(5.0, work()))


def test_a_cancel_in_the_moment_in_which_the_work_is_done():
    async def scene():
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        task = loop.create_task(within(5.0, answer))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        answer.set_result("done")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())
