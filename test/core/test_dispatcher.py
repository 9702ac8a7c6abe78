"""The dispatcher: lanes, deadlines, cancel, stop, one answer for each call."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from rig import Bench, call, make_tool, message

from lerobot_tool_bridge.core.audit import AuditLog
from lerobot_tool_bridge.core.errors import Rejection, ToolFailure
from lerobot_tool_bridge.core.gate import Limits
from lerobot_tool_bridge.core.tool import CallContext, Outcome

QUICK = Limits(cancel_limit=0.1, max_calls_per_second=0)


def play(scene: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scene(), 20.0))


class Work:
    """What a test tool does: waits until it is let go, and notes how it ended."""

    def __init__(self, ignore_cancel: bool = False) -> None:
        self.began: list[str] = []
        self.ended: list[str] = []
        self.cancelled: list[str] = []
        self.go = asyncio.Event()
        self._ignore = ignore_cancel

    async def __call__(self, arguments: dict[str, Any], context: CallContext) -> str:
        self.began.append(context.call_id)
        while True:
            try:
                await self.go.wait()
                break
            except asyncio.CancelledError:
                self.cancelled.append(context.call_id)
                if not self._ignore:
                    raise
        self.ended.append(context.call_id)
        return f"did {context.call_id}"


async def until(what: Callable[[], object], limit: float = 5.0) -> None:
    end = time.monotonic() + limit
    while not what():
        assert time.monotonic() < end, "waited in vain"
        await asyncio.sleep(0.001)


def test_result_and_events_have_the_protocol_form():
    async def scene() -> None:
        async def work(arguments: dict[str, Any], context: CallContext) -> Outcome:
            context.feedback("half way")
            return Outcome("saved cup.png", ("cup.png",))

        bench = Bench.of(make_tool("look", work))
        bench.dispatcher.submit(message(call("look", {}, "c1")))
        (result,) = await bench.answers(1)
        assert list(result.items()) == [
            ("role", "tool"),
            ("tool_call_id", "c1"),
            ("name", "look"),
            ("content", "saved cup.png"),
        ]
        assert [e["event"] for e in bench.events] == [
            "received",
            "started",
            "feedback",
            "finished",
        ]
        for event in bench.events:
            assert list(event) == [
                *("stamp", "event", "tool_call_id", "name", "status", "code", "detail"),
                *("duration_s", "artifacts"),
            ]
            json.dumps(event)
        assert bench.events[2]["detail"] == "half way"
        assert bench.events[3]["status"] == "succeeded"
        assert bench.events[3]["artifacts"] == ["cup.png"]

    play(scene)


def test_one_resource_in_order_others_side_by_side():
    async def scene() -> None:
        arm, head = Work(), Work()
        bench = Bench.of(
            make_tool("arm", arm, resources=("arm",)),
            make_tool("head", head, resources=("head",)),
            make_tool("both", arm, resources=("arm", "head")),
        )
        bench.dispatcher.submit(
            message(
                *(call("arm", {}, "a1"), call("arm", {}, "a2"), call("head", {}, "h1")),
                *(call("both", {}, "b1"), call("head", {}, "h2")),
            )
        )
        await until(lambda: arm.began and head.began)
        assert (arm.began, head.began) == (["a1"], ["h1"])
        states = {r.call_id: r.state for r in bench.dispatcher.running}
        assert states == {
            "a1": "running",
            "a2": "queued",
            "h1": "running",
            "b1": "queued",
            "h2": "queued",
        }
        head.go.set()
        await until(lambda: head.ended == ["h1"])
        await asyncio.sleep(0.01)
        assert head.began == ["h1"]  # h2 came after b1, which waits for the arm
        arm.go.set()
        await bench.answers(5)
        assert arm.began == ["a1", "a2", "b1"]
        assert head.began == ["h1", "h2"]
        assert bench.dispatcher.running == ()
        assert bench.dispatcher._lanes._last == {}

    play(scene)


def test_a_queued_call_that_is_cancelled_keeps_the_order_of_the_others():
    async def scene() -> None:
        work = Work()
        bench = Bench.of(make_tool("arm", work, resources=("arm",)))
        bench.dispatcher.submit(
            message(call("arm", {}, "a"), call("arm", {}, "b"), call("arm", {}, "c"))
        )
        await until(lambda: work.began == ["a"])
        assert bench.dispatcher.cancel("b") == 1
        assert bench.finished("b")["status"] == "cancelled"
        await asyncio.sleep(0.01)
        assert work.began == ["a"]
        work.go.set()
        await bench.answers(3)
        assert work.began == ["a", "c"]

    play(scene)


def test_thousands_in_one_lane_are_cancelled_at_once():
    async def scene() -> None:
        work = Work()
        bench = Bench.of(
            make_tool("arm", work, resources=("arm",)), limits=Limits(max_calls_per_second=0)
        )
        for _ in range(3000):
            bench.dispatcher.submit(message(call("arm", {})))
        await until(lambda: work.began)
        assert bench.dispatcher.cancel("*") == 3000
        await bench.answers(3000)
        bench.dispatcher.submit(message(call("arm", {}, "next")))
        work.go.set()
        await bench.answers(3001)
        assert bench.finished("next")["status"] == "succeeded"

    play(scene)


def test_cancel_before_the_first_step():
    async def scene() -> None:
        work = Work()
        bench = Bench.of(make_tool("arm", work, resources=("arm",)))
        bench.dispatcher.submit(message(call("arm", {}, "a"), call("arm", {}, "b")))
        assert bench.dispatcher.cancel("*") == 2
        await bench.answers(2)
        assert work.began == []
        assert bench.codes == ["cancelled", "cancelled"]

    play(scene)


def test_deadline_counts_from_the_start_and_is_answered_once():
    async def scene() -> None:
        work = Work()
        bench = Bench.of(make_tool("arm", work, resources=("arm",), timeout=0.15), limits=QUICK)
        bench.dispatcher.submit(message(call("arm", {}, "a"), call("arm", {}, "b")))
        await bench.answers(2)
        assert work.cancelled == ["a", "b"]
        for call_id in ("a", "b"):
            event = bench.finished(call_id)
            assert (event["status"], event["code"]) == ("timeout", "timeout")
            assert event["duration_s"] >= 0.14
        assert bench.results[0]["content"] == (
            "Error: timeout: arm had not ended after 0.15 s and was cancelled."
        )

    play(scene)


@pytest.mark.parametrize("motion", [True, False])
def test_a_tool_that_ignores_its_cancel(motion: bool):
    async def scene() -> None:
        stubborn = Work(ignore_cancel=True)
        bench = Bench.of(
            make_tool("arm", stubborn, motion=motion, resources=("arm",), timeout=0.05),
            make_tool("next", resources=("arm",)),
            limits=QUICK,
        )
        bench.dispatcher.submit(message(call("arm", {}, "a"), call("next", {}, "b")))
        await bench.answers(2)
        event = bench.finished("a")
        assert event["status"] == "timeout"
        assert event["code"] == ("cancel_unconfirmed" if motion else "timeout")
        assert bench.finished("b")["status"] == "succeeded"
        stubborn.go.set()
        await until(lambda: stubborn.ended == ["a"])
        await asyncio.sleep(0.01)
        assert [r["tool_call_id"] for r in bench.results] == ["a", "b"]
        assert bench.dispatcher._background == set()

    play(scene)


def test_a_late_result_answers_nothing():
    """A replaced goal's result comes only after the next goal's."""

    async def scene() -> None:
        b_done = asyncio.Event()
        began: list[str] = []

        async def move(arguments: dict[str, Any], context: CallContext) -> str:
            began.append(context.call_id)
            if context.call_id == "B":
                b_done.set()
                return "moved B"
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(30)
            await b_done.wait()
            return "moved A"

        bench = Bench.of(make_tool("move", move, motion=True, resources=("arm",)), limits=QUICK)
        bench.dispatcher.submit(message(call("move", {}, "A")))
        await until(lambda: began)
        bench.dispatcher.cancel("A")
        bench.dispatcher.submit(message(call("move", {}, "B")))
        await bench.answers(2)
        assert bench.finished("A")["code"] == "cancel_unconfirmed"
        assert bench.finished("A")["status"] == "cancelled"
        assert [r["content"] for r in bench.results if r["tool_call_id"] == "B"] == ["moved B"]
        await asyncio.sleep(0.05)
        assert len(bench.results) == 2

    play(scene)


def test_what_really_ended_is_told_although_it_was_cancelled():
    async def scene() -> None:
        async def move(arguments: dict[str, Any], context: CallContext) -> str:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(30)
            return "arrived all the same"

        bench = Bench.of(make_tool("move", move, motion=True), limits=QUICK)
        bench.dispatcher.submit(message(call("move", {}, "A")))
        await until(lambda: bench.ran)
        await asyncio.sleep(0)
        bench.dispatcher.cancel("A")
        await bench.answers(1)
        assert bench.results[0]["content"] == "arrived all the same"

    play(scene)


@pytest.mark.parametrize(
    ("error", "status", "code", "words"),
    [
        (
            ToolFailure("nothing_grasped", "Nothing is held."),
            "failed",
            "nothing_grasped",
            "Nothing",
        ),
        (Rejection("unreachable", "Too far."), "rejected", "unreachable", "Too far."),
        (RuntimeError("/home/u/secret.key"), "failed", "tool_error", "arm failed inside"),
        (TimeoutError(), "failed", "tool_error", "arm failed inside"),
        (SystemExit(3), "failed", "tool_error", "arm failed inside"),
        (asyncio.CancelledError(), "failed", "tool_error", "by its own work"),
    ],
    ids=lambda v: v if isinstance(v, str) else type(v).__name__,
)
def test_what_a_tool_raises(error: BaseException, status: str, code: str, words: str):
    async def scene() -> None:
        async def work(arguments: dict[str, Any], context: CallContext) -> str:
            raise error

        bench = Bench.of(make_tool("arm", work), make_tool("other"))
        bench.dispatcher.submit(message(call("arm", {}, "a"), call("other", {}, "b")))
        await bench.answers(2)
        event = bench.finished("a")
        assert (event["status"], event["code"]) == (status, code)
        content = bench.results[0]["content"]
        assert content.startswith(f"Error: {code}: ")
        assert words in content
        assert "/home" not in content
        assert bench.finished("b")["status"] == "succeeded"

    play(scene)


def test_a_port_that_could_not_confirm_its_cancel():
    async def scene() -> None:
        async def work(arguments: dict[str, Any], context: CallContext) -> str:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                raise ToolFailure("cancel_unconfirmed", "The driver said nothing.") from None
            return ""

        bench = Bench.of(make_tool("arm", work, motion=True, timeout=0.05), limits=QUICK)
        bench.dispatcher.submit(message(call("arm", {}, "a")))
        await bench.answers(1)
        event = bench.finished("a")
        assert (event["status"], event["code"]) == ("timeout", "cancel_unconfirmed")

    play(scene)


def test_stop_ends_motion_and_nothing_else():
    async def scene() -> None:
        work, talk = Work(), Work()
        told: list[str] = []

        async def hook() -> None:
            told.append("hook")

        bench = Bench.of(
            make_tool("arm", work, motion=True, resources=("arm",)),
            make_tool("say", talk, resources=("speaker",)),
            limits=QUICK,
        )
        bench.dispatcher.add_stop_hook(hook)
        bench.dispatcher.submit(
            message(call("arm", {}, "a"), call("arm", {}, "b"), call("say", {}, "s"))
        )
        await until(lambda: work.began and talk.began)
        text = await bench.dispatcher.stop()
        assert text.startswith("stopped. 2 motion calls ended")
        assert told == ["hook"]
        assert bench.dispatcher.stopped
        for call_id in ("a", "b"):
            event = bench.finished(call_id)
            assert (event["status"], event["code"]) == ("cancelled", "preempted")
        bench.dispatcher.submit(message(call("arm", {}, "c"), call("say", {}, "t")))
        assert bench.finished("c")["code"] == "stopped"
        talk.go.set()
        await bench.answers(5)
        assert bench.finished("s")["status"] == "succeeded"
        bench.dispatcher.reset()
        work.go.set()
        bench.dispatcher.submit(message(call("arm", {}, "d")))
        await bench.answers(6)
        assert bench.finished("d")["status"] == "succeeded"

    play(scene)


@pytest.mark.parametrize(
    "arguments", [None, "", "{}", "{", "[1]", {"reason": "smoke"}, '{"a": NaN}', 5]
)
def test_the_stop_tool_overtakes_everything(arguments: Any):
    async def scene() -> None:
        work = Work()
        bench = Bench.of(make_tool("arm", work, motion=True, resources=("arm",)), limits=QUICK)
        bench.dispatcher.submit(message(call("arm", {}, "a"), call("arm", {}, "b")))
        await until(lambda: work.began)
        bench.dispatcher.submit(
            message(call("arm", {}, "c"), call("stop", arguments, "s"), call("arm", {}, "d")),
            age_s=100.0,
        )
        await bench.answers(5)
        assert bench.finished("s")["status"] == "succeeded"
        assert {c for c in bench.codes if c != "ok"} == {"preempted", "stale"}
        assert bench.results[-1]["content"].startswith("stopped. 2 motion calls ended")
        assert work.began == ["a"]

    play(scene)


def test_stop_works_while_inactive_and_in_a_message_that_is_refused():
    async def scene() -> None:
        bench = Bench.of(make_tool("arm", motion=True), limits=QUICK)
        bench.dispatcher.set_active(False)
        bench.dispatcher.submit(message(call("stop", {}, "s1")))
        await bench.answers(1)
        assert bench.codes == ["ok"]
        bench.dispatcher.reset()
        bench.dispatcher.submit(message(*(call("stop", {}, f"x{i}") for i in range(17))))
        await bench.answers(18)
        assert bench.codes[1:] == ["too_many_calls"] * 17
        assert bench.dispatcher.stopped
        bench.dispatcher.reset()
        bench.dispatcher.submit(message(call("stop", {}, "s1")))
        assert bench.codes[-1] == "duplicate_id"
        assert bench.dispatcher.stopped
        await bench.dispatcher.shutdown()

    play(scene)


@pytest.mark.parametrize("how", ["refuses", "fails", "hangs"])
def test_a_stop_that_is_not_confirmed_says_so(how: str):
    async def scene() -> None:
        async def hook() -> None:
            if how == "refuses":
                raise ToolFailure("cancel_unconfirmed", "The arm's driver did not answer.")
            if how == "fails":
                raise RuntimeError("/home/u")
            await asyncio.sleep(30)

        bench = Bench.of(make_tool("arm", motion=True), limits=QUICK)
        bench.dispatcher.add_stop_hook(hook)
        bench.dispatcher.submit(message(call("stop", {}, "s")))
        await bench.answers(1)
        event = bench.finished("s")
        assert (event["status"], event["code"]) == ("failed", "cancel_unconfirmed")
        assert "may still be moving" in bench.results[0]["content"]
        assert not (await bench.dispatcher.stop()).startswith("stopped")

    play(scene)


def test_shutdown_answers_everything():
    async def scene() -> None:
        work, stubborn = Work(), Work(ignore_cancel=True)
        bench = Bench.of(
            make_tool("arm", work, motion=True, resources=("arm",)),
            make_tool("head", stubborn, resources=("head",)),
            limits=QUICK,
        )
        bench.dispatcher.submit(
            message(call("arm", {}, "a"), call("arm", {}, "b"), call("head", {}, "h"))
        )
        await until(lambda: work.began and stubborn.began)
        await bench.dispatcher.shutdown()
        assert sorted(r["tool_call_id"] for r in bench.results) == ["a", "b", "h"]
        assert set(bench.codes) == {"inactive"}
        bench.dispatcher.submit(message(call("arm", {}, "late")))
        assert bench.finished("late")["code"] == "inactive"
        stubborn.go.set()
        await until(lambda: stubborn.ended)

    play(scene)


def test_an_output_that_fails_does_not_take_the_others_along():
    async def scene() -> None:
        bench = Bench.of(make_tool("x"))
        good = bench.dispatcher._on_result
        answered: list[Any] = []

        def once_bad(result: Any) -> None:
            answered.append(result)
            if len(answered) == 1:
                raise RuntimeError("publisher gone")
            good(result)

        bench.dispatcher._on_result = once_bad
        bench.dispatcher.submit(message(call("x", {}, "a"), call("x", {}, "b")))
        await bench.answers(1)
        assert [r["tool_call_id"] for r in answered] == ["a", "b"]

    play(scene)


def test_ids():
    async def scene() -> None:
        bench = Bench.of(make_tool("x"), limits=Limits(remembered_ids=3, max_calls_per_second=0))
        for call_id in ("a", "b", "a"):
            bench.dispatcher.submit(message(call("x", {}, call_id)))
        bench.dispatcher.submit(message(call("nothing", {}, "c")))
        bench.dispatcher.submit(message(call("x", {}, "c")))
        await bench.answers(5)
        assert sorted(bench.codes) == ["duplicate_id", "duplicate_id", "ok", "ok", "unknown_tool"]
        content = next(r["content"] for r in bench.results if "duplicate_id" in r["content"])
        assert "Every call needs an id of its own" in content
        assert "accept_repeated_ids" in content
        bench.dispatcher.submit(message(*(call("x", {}, f"n{i}") for i in range(5))))
        assert len(bench.dispatcher._gate._ids) <= 3

        again = Bench.of(make_tool("x"), limits=Limits(accept_repeated_ids=True))
        for _ in range(3):
            again.dispatcher.submit(message(call("x", {}, "call_0")))
        await again.answers(3)
        assert again.codes == ["ok"] * 3

    play(scene)


def test_rates():
    async def scene() -> None:
        from lerobot_tool_bridge.core.registry import Registry
        from lerobot_tool_bridge.ports import Ports

        registry = Registry.load(
            Ports(), {"slow": {"max_per_second": 2}}, tools=[make_tool("slow"), make_tool("x")]
        )
        bench = Bench(registry, Limits(max_calls_per_second=5))
        bench.dispatcher.submit(message(*(call("slow", {}) for _ in range(4))))
        bench.dispatcher.submit(message(*(call("x", {}) for _ in range(6))))
        await bench.answers(10)
        assert [bench.codes.count(c) for c in ("ok", "rate_limited")] == [5, 5]

        busy = Bench.of(make_tool("x", Work()), limits=Limits(max_pending=2))
        busy.dispatcher.submit(message(*(call("x", {}) for _ in range(3))))
        assert busy.codes == ["rate_limited"]
        await busy.dispatcher.shutdown()

    play(scene)


@pytest.mark.parametrize("payload", [b"\xff", "x", "5", '{"tool_calls": 5}'])
def test_an_unreadable_message_is_an_event(payload: Any):
    async def scene() -> None:
        bench = Bench.of(make_tool("x"))
        bench.dispatcher.submit(payload)
        assert bench.results == []
        (event,) = bench.events
        assert (event["code"], event["tool_call_id"]) == ("bad_message", "")
        bench.dispatcher.submit(message(call("x", {})))
        await bench.answers(1)

    play(scene)


def test_two_thousand_calls_as_fast_as_they_come(tmp_path: Path):
    async def scene() -> None:
        audit = AuditLog(tmp_path / "audit.jsonl")
        arm = make_tool("arm", resources=("arm",), motion=True)
        bench = Bench.of(arm, limits=Limits(max_calls_per_second=0), audit=audit)
        dispatcher = bench.dispatcher

        async def burst(first: int, count: int) -> None:
            for i in range(first, first + count):
                dispatcher.submit(json.dumps(message(call("arm", '{"x": 1}', f"id{i}"))))
            await bench.answers(count)

        start = time.monotonic()
        await burst(0, 2000)
        spent = time.monotonic() - start
        assert [r["tool_call_id"] for r in bench.results] == [f"id{i}" for i in range(2000)]
        assert set(bench.codes) == {"ok"}
        assert spent < 20.0  # about 0.3 s on a quiet machine
        audit.close()
        lines = (tmp_path / "audit.jsonl").read_text().splitlines()
        assert len(lines) == 3 * 2000

    play(scene)


def test_memory_stays_flat():
    async def scene() -> None:
        bench = Bench.of(
            make_tool("x", resources=("arm",)),
            limits=Limits(max_calls_per_second=0, remembered_ids=100),
        )

        async def burst() -> None:
            for _ in range(500):
                bench.dispatcher.submit(message(call("x", {})))
            await bench.answers(500)
            bench.results.clear()
            bench.events.clear()

        await burst()
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(4):
            await burst()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert after - before < 300_000

    play(scene)


def test_audit_holds_arguments_and_answers(tmp_path: Path):
    async def scene() -> None:
        file = tmp_path / "new" / "audit.jsonl"
        file.parent.mkdir()
        file.write_text('{"event": "old"}\n')
        audit = AuditLog(file)
        bench = Bench.of(make_tool("x"), audit=audit)
        bench.dispatcher.submit(message(call("x", {"a": "é"}, "c1"), call("y", {}, "c2")))
        await bench.answers(2)
        audit.close()
        records = [json.loads(line) for line in file.read_text().splitlines()]
        assert records[0] == {"event": "old"}
        mine = [r for r in records if r.get("tool_call_id") == "c1"]
        assert [r["event"] for r in mine] == ["received", "started", "finished"]
        assert mine[0]["arguments"] == {"a": "é"}
        assert mine[2]["content"] == "x"
        assert any(r.get("code") == "unknown_tool" for r in records)
        assert threading.active_count() == 1

    play(scene)


def test_a_disk_that_is_full_holds_nothing_up(tmp_path: Path):
    audit = AuditLog("/dev/full")
    for i in range(100):
        audit.write({"n": i})
    audit.close()
    assert audit._lost >= 1


def test_statistics():
    async def scene() -> None:
        bench = Bench.of(make_tool("x"))
        bench.dispatcher.submit(message(call("x", {}), call("x", "{"), call("who", {})))
        await bench.answers(3)
        counts = bench.dispatcher.statistics_dict()
        assert (counts["x"]["calls"], counts["x"]["succeeded"], counts["x"]["rejected"]) == (
            2,
            1,
            1,
        )
        assert counts[""]["rejected"] == 1

    play(scene)
