"""Plain Python as tools: threads that can't be ended, results, errors, caches, limits, counts."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from typing import Any

import pytest
from rig import Bench, call, make_tool, message

from lerobot_tool_bridge.core import plain
from lerobot_tool_bridge.core.adapt import adapt, function_tool
from lerobot_tool_bridge.core.errors import LoadError, ToolFailure
from lerobot_tool_bridge.core.gate import Limits
from lerobot_tool_bridge.core.registry import Registry
from lerobot_tool_bridge.core.statistics import Statistics
from lerobot_tool_bridge.ports import Ports


def play(*scenes: Any) -> None:
    for scene in scenes:
        asyncio.run(scene())


# --- threads ------------------------------------------------------------------------------------


def test_a_thread_that_does_not_end_is_never_said_to_have_ended(caplog):
    go_on = threading.Event()
    others: list[str] = []

    def hang(x: int = 0) -> str:
        go_on.wait(30)
        return "late"

    def beside() -> str:
        others.append("ran")
        return "beside"

    def free() -> str:
        return "free"

    async def scene() -> None:
        bench = Bench.of(
            function_tool(hang, "hang", timeout=0.1),
            function_tool(beside, "beside"),
            function_tool(free, "free", resources=()),
        )
        submit = bench.dispatcher.submit
        submit(message(call("hang", {}, "c1"), call("beside", {}, "c2"), call("free", {}, "c3")))
        await bench.answers(3)
        assert bench.finished("c1")["status"] == "timeout"
        assert bench.finished("c1")["code"] == "cancel_unconfirmed"
        text = next(r for r in bench.results if r["tool_call_id"] == "c1")["content"]
        assert "it still runs" in text
        assert "refused until it has ended" in text
        # what shares something with it may not begin, what does not may
        assert bench.finished("c2")["code"] == "unavailable"
        assert "hang" in bench.finished("c2")["detail"]
        assert bench.finished("c3")["status"] == "succeeded"
        submit(message(call("hang", {}, "c4")))
        await bench.answers(4)
        assert bench.finished("c4")["code"] == "unavailable"
        assert others == []
        go_on.set()
        while any(left.thread.is_alive() for left in plain._left):
            await asyncio.sleep(0.01)
        submit(message(call("beside", {}, "c5"), call("hang", {}, "c6")))
        await bench.answers(6)
        assert bench.codes[-2:] == ["ok", "ok"]

    play(scene)
    assert plain._left == []


def test_an_async_function_is_really_cancelled():
    ended: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            ended.append("cleaned up")

    async def scene() -> None:
        bench = Bench.of(function_tool(slow, "slow", timeout=0.05))
        bench.dispatcher.submit(message(call("slow", {}, "c1"), call("slow", {}, "c2")))
        await bench.answers(2)
        assert bench.codes == ["timeout", "timeout"]

    play(scene)
    assert ended == ["cleaned up"] * 2


def test_the_loop_goes_on_while_a_plain_function_blocks():
    release = threading.Event()

    def block() -> str:
        release.wait(30)
        return threading.current_thread().name

    async def scene() -> None:
        bench = Bench.of(function_tool(block, "block"), make_tool("quick"))
        bench.dispatcher.submit(message(call("block", {}, "c1"), call("quick", {}, "c2")))
        await bench.answers(1)
        assert bench.results[0]["name"] == "quick"
        release.set()
        await bench.answers(2)
        assert bench.results[1]["content"] == "tool block"

    play(scene)


def test_plain_functions_of_one_file_run_in_order_and_async_ones_side_by_side():
    trace: list[str] = []

    def first() -> None:
        time.sleep(0.02)
        trace.append("first")

    def second() -> None:
        trace.append("second")

    both = asyncio.Event

    async def scene() -> None:
        met = [both(), both()]

        async def meet(mine: int) -> None:
            met[mine].set()
            await met[1 - mine].wait()

        bench = Bench.of(
            *(function_tool(f, f.__name__) for f in (first, second, meet)),
        )
        calls = [call("first", {}), call("second", {})]
        bench.dispatcher.submit(message(*calls, *(call("meet", {"mine": i}) for i in (0, 1))))
        await bench.answers(4)
        assert bench.codes == ["ok"] * 4

    play(scene)
    assert trace == ["first", "second"]


def test_a_process_ends_although_a_tool_hangs(spawn):
    code = (
        "import threading\n"
        "from lerobot_tool_bridge.local import Local\n"
        "def hang() -> None:\n"
        '    """Hangs."""\n'
        "    threading.Event().wait()\n"
        "local = Local([hang], settings={'hang': {'timeout': 0.1}})\n"
        "print(local.call({'name': 'hang', 'arguments': {}}).code)\n"
    )
    process = spawn(sys.executable, "-c", code)
    assert process.wait() == 0, process.output
    assert "cancel_unconfirmed" in process.output


# --- results and errors -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("text", "text"),
        ("", "done"),
        (None, "done"),
        (21.0, "21.0"),
        (True, "true"),
        ({"größe": [1, 2]}, '{"größe": [1, 2]}'),
        ((1, 2), "[1, 2]"),
        (complex(1, 2), "(1+2j)"),
    ],
)
def test_content_is_always_a_text(result: Any, text: str) -> None:
    async def scene() -> None:
        bench = Bench.of(function_tool(lambda: result, "x"))
        bench.dispatcher.submit(message(call("x", {}, "c1")))
        assert (await bench.answers(1))[0] == {
            "role": "tool",
            "tool_call_id": "c1",
            "name": "x",
            "content": text,
        }

    play(scene)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such\n  thing"), "x failed: no such thing."),
        (KeyError("name"), "x failed: KeyError 'name'."),
        (ValueError("1/2/3 km/h at http://host/a/b"), "x failed: 1/2/3 km/h at http://host/a/b."),
        (ZeroDivisionError(), "x failed: ZeroDivisionError."),
        (RuntimeError("/home/me/secret/data.txt is broken."), "x failed: data.txt is broken."),
        (
            FileNotFoundError(2, "No such file or directory", "/home/me/a.txt"),
            "x failed: No such file or directory (a.txt).",
        ),
        (StopIteration("end"), "coroutine raised StopIteration"),
        (ToolFailure("unreachable", "Too far away."), "Error: unreachable: Too far away."),
    ],
)
def test_errors_say_why_without_a_path(error: Exception, text: str) -> None:
    def fail() -> None:
        raise error

    async def scene() -> None:
        bench = Bench.of(function_tool(fail, "x"))
        bench.dispatcher.submit(message(call("x", {}, "c1")))
        (answer,) = await bench.answers(1)
        assert text in answer["content"]
        assert "/home" not in answer["content"]
        assert "Traceback" not in answer["content"]

    play(scene)


def test_what_is_no_tool_is_said():
    class Half:
        name = "half"

    for thing in (Half, 3, "text", int, object()):
        with pytest.raises(LoadError, match="it is no tool"):
            adapt(thing)
    with pytest.raises(LoadError, match="no docstring"):
        adapt(lambda x: x)
    with pytest.raises(LoadError, match="colour is no option"):
        function_tool(lambda: 0, "x", colour="red")


# --- caches -------------------------------------------------------------------------------------


def test_only_pure_tools_are_cached():
    ran: list[Any] = []

    def note(x: Any = 0) -> str:
        ran.append(x)
        if x == "bad":
            raise ValueError("bad")
        return f"{x}"

    async def scene() -> None:
        bench = Bench.of(
            function_tool(note, "pure", pure=True), function_tool(note, "device", pure=False)
        )
        count = 0
        for name in ("pure", "device"):
            for x in (1, 1, 1.0, True, "1", "bad", "bad"):
                bench.dispatcher.submit(message(call(name, {"x": x})))
                count += 1
                await bench.answers(count)
        assert ran == [1, 1.0, True, "1", "bad", "bad", 1, 1, 1.0, True, "1", "bad", "bad"]
        counts = bench.dispatcher.statistics
        assert (counts["pure"].calls, counts["pure"].cached, counts["pure"].ran) == (7, 1, 6)
        assert counts["device"].cached == 0
        assert [r["content"] for r in bench.results[:2]] == ["1", "1"]

    play(scene)


def test_the_cache_is_bounded():
    async def scene() -> None:
        tool = function_tool(lambda x: f"{x}", "pure", pure=True, parameters=NUMBER)
        bench = Bench.of(tool, limits=Limits(max_calls_per_second=0))
        for x in range(300):
            bench.dispatcher.submit(message(call("pure", {"x": x})))
            await bench.answers(x + 1)
        (entry,) = (e for e in bench.dispatcher.registry if e.name == "pure")
        assert entry.cache is not None
        assert len(entry.cache._results) == 128
        assert entry.cache.get({"x": 299}) is not None
        assert entry.cache.get({"x": 0}) is None

    play(scene)


NUMBER = {"type": "object", "properties": {"x": {"type": "integer"}}}


@pytest.mark.parametrize(
    "options", [{"motion": True}, {"resources": ["arm"]}, {"needs": ["camera"]}], ids=str
)
def test_no_cache_before_a_device(options):
    tool = function_tool(lambda: 0, "x", pure=True, **options)
    registry = Registry.load(Ports(), tools=[tool])
    assert len(registry) == 0
    assert "its results can't be kept" in registry.problems[0].message


# --- limits -------------------------------------------------------------------------------------


def test_so_many_at_once_and_the_others_wait():
    running: list[int] = []
    most: list[int] = []

    async def work(x: int) -> str:
        running.append(x)
        most.append(len(running))
        await asyncio.sleep(0.01)
        running.remove(x)
        return f"{x}"

    async def scene() -> None:
        bench = Bench.of(function_tool(work, "work", max_concurrent=3))
        bench.dispatcher.submit(message(*(call("work", {"x": i}, f"c{i}") for i in range(12))))
        bench.dispatcher.cancel("c5")
        await bench.answers(12)
        assert bench.finished("c5")["status"] == "cancelled"
        assert sorted(bench.codes) == ["cancelled"] + ["ok"] * 11
        assert [r["content"] for r in bench.results[1:]] == [f"{i}" for i in range(12) if i != 5]

    play(scene)
    assert max(most) == 3


def test_plain_functions_that_share_nothing_do_not_flood_the_machine_with_threads():
    most: list[int] = []

    def count(x: int) -> int:
        time.sleep(0.002)
        most.append(sum(t.name == "tool count" for t in threading.enumerate()))
        return x

    async def scene() -> None:
        bench = Bench.of(function_tool(count, "count", resources=()), limits=LOTS)
        bench.dispatcher.submit(message(*(call("count", {"x": i}) for i in range(200))))
        await bench.answers(200)
        assert bench.codes == ["ok"] * 200

    play(scene)
    assert 1 < max(most) <= 20  # one that has answered may not be quite gone


LOTS = Limits(max_calls_per_second=0, max_calls_per_message=1000)


@pytest.mark.parametrize("timeout", [0, -1, "10", float("nan"), float("inf"), 1e9])
def test_a_time_limit_that_is_none_is_refused(timeout):
    registry = Registry.load(Ports(), tools=[function_tool(lambda: 0, "x", timeout=timeout)])
    assert len(registry) == 0
    assert "its timeout is" in registry.problems[0].message


def test_the_tools_file_limits_too():
    async def forever() -> None:
        await asyncio.sleep(30)

    tool = function_tool(forever, "x", timeout=0.05)
    registry = Registry.load(Ports(), {"x": {"max_concurrent": 1}}, tools=[tool])

    async def scene() -> None:
        bench = Bench(registry)
        bench.dispatcher.submit(message(call("x", {}, "c1"), call("x", {}, "c2")))
        assert [r.state for r in bench.dispatcher.running] == ["running", "queued"]
        await bench.answers(2)  # the deadline counts from when it begins to run
        assert bench.codes == ["timeout", "timeout"]
        bench.dispatcher.submit(message(call("x", {}, "c3"), call("x", {}, "c4")))
        await bench.dispatcher.shutdown()
        assert len(bench.results) == 4

    play(scene)
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(LoadError, match="whole number above 0"):
            Registry.load(Ports(), {"x": {"max_concurrent": wrong}}, tools=[tool])


# --- statistics ---------------------------------------------------------------------------------


def test_times_and_percentiles():
    counts = Statistics()
    for i in range(1, 101):
        counts.add("succeeded", i / 100)
    counts.add("failed", 2.0)
    counts.add("rejected", None)
    counts.add("timeout", 3.0)
    counts.add("cancelled", None)
    counts.add("succeeded", 0.0, cached=True)
    assert counts.calls == 105
    assert counts.errors == 3
    assert counts.ran == 102
    assert counts.total_s == pytest.approx(50.5 + 5.0)
    assert counts.average_s == pytest.approx(55.5 / 102)
    assert counts.percentile(0.5) == 0.51
    assert counts.percentile(0.95) == 0.97
    assert counts.percentile(1.0) == 3.0
    text = str(counts)
    assert text.startswith("105 calls, 101 succeeded, 3 errors, 1 failed, 1 rejected, 1 timeout")
    assert "total 55.500 s, average 0.544 s, p50 0.510 s, p95 0.970 s" in text
    assert counts.as_dict()["p95_s"] == 0.97


def test_percentiles_are_of_the_latest_calls_and_memory_stays_flat():
    counts = Statistics()
    for _ in range(1000):
        counts.add("succeeded", 9.0)
    for _ in range(1000):
        counts.add("succeeded", 1.0)
    assert counts.percentile(0.95) == 1.0
    assert counts.average_s == 5.0
    assert len(counts._recent) == 1000
    assert Statistics().percentile(0.5) == 0.0
    assert str(Statistics()) == "0 calls, 0 succeeded, 0 errors"
