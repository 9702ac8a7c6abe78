"""Runs calls: each in its lane, under its deadline, and each answered exactly once.

All of it happens in one asyncio loop. A call's deadline counts from when it begins to run, not
from when it came: calls that wait behind others on a resource are held up by those alone, and each
of those has a deadline. A call that is to end (deadline, cancel, stop, shutdown) is cancelled and
has ``Limits.cancel_limit`` seconds to confirm; then it is answered without it and its lane is
free. What such a tool still says later is only logged.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lerobot_tool_bridge.core import show
from lerobot_tool_bridge.core.audit import AuditLog
from lerobot_tool_bridge.core.decode import decode
from lerobot_tool_bridge.core.errors import CallError, Rejection, ToolFailure, UnreadableMessage
from lerobot_tool_bridge.core.gate import Gate, Judgement, Limits, Verdict
from lerobot_tool_bridge.core.lanes import Lanes, Slots, Ticket
from lerobot_tool_bridge.core.messages import (
    CANCELLED,
    FAILED,
    REJECTED,
    SUCCEEDED,
    TIMEOUT,
    ToolCall,
    ValidCall,
    clean,
    failure_content,
    result_message,
)
from lerobot_tool_bridge.core.registry import STOP, Registry
from lerobot_tool_bridge.core.statistics import Statistics
from lerobot_tool_bridge.core.tool import CallContext, Outcome

if TYPE_CHECKING:
    from lerobot_tool_bridge.formats import TextReader

MAX_CONTENT = 64 * 1024
_log = logging.getLogger(__name__)
StopHook = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Running:
    """A call that waits or runs, for displays.

    Attributes:
        state: ``queued``, ``running`` or ``ending``.
        since: Monotonic seconds at which it came.
    """

    call_id: str
    name: str
    arguments: Mapping[str, Any]
    state: str
    since: float


@dataclass(frozen=True, slots=True)
class _Ending:
    """Why a call is being ended: what its answer will be."""

    status: str
    code: str
    text: str


@dataclass(eq=False, slots=True)
class _Job:
    call: ValidCall
    came: float
    ticket: Ticket | None = None
    slots: Slots | None = None
    task: asyncio.Task[None] | None = None
    entered: bool = False
    began: float = 0.0
    deadline: asyncio.TimerHandle | None = None
    grace: asyncio.TimerHandle | None = None
    ending: _Ending | None = None
    answered: bool = False
    unconfirmed: bool = False
    waiters: list[asyncio.Future[None]] = field(default_factory=list)

    @property
    def state(self) -> str:
        return "ending" if self.ending else "running" if self.began else "queued"


class Dispatcher:
    """Takes assistant messages, runs their calls, answers each one once.

    Args:
        registry: The tools.
        on_result: Gets each ``role=tool`` message; called in the loop.
        on_event: Gets each event (see ``docs/protocol.md``); called in the loop.
        limits: What the site allows.
        audit: Gets every event, with arguments and contents; the owner closes it.
        clock: Seconds since the epoch, for stamps; never for deadlines.
        texts: Reads calls out of the content of messages that have no ``tool_calls``.
    """

    def __init__(
        self,
        registry: Registry,
        on_result: Callable[[dict[str, str]], None],
        on_event: Callable[[dict[str, Any]], None],
        *,
        limits: Limits | None = None,
        audit: AuditLog | None = None,
        clock: Callable[[], float] = time.time,
        texts: TextReader | None = None,
    ) -> None:
        self.registry = registry
        self.limits = limits or Limits()
        self._gate = Gate(self.limits)
        self._on_result = on_result
        self._on_event = on_event
        self._audit = audit
        self._clock = clock
        self._texts = texts
        self._lanes = Lanes()
        self._slots: dict[str, Slots] = {}
        self._jobs: dict[_Job, None] = {}
        self._hooks: list[StopHook] = []
        self._background: set[asyncio.Task[Any]] = set()
        self._statistics: dict[str, Statistics] = {}

    # --- what others see ------------------------------------------------------------------

    @property
    def stopped(self) -> bool:
        """Motion is refused until ``reset``."""
        return self._gate.stopped

    @property
    def active(self) -> bool:
        """False: every call is refused."""
        return self._gate.active

    @property
    def running(self) -> tuple[Running, ...]:
        """Calls that wait or run, in the order in which they came."""
        return tuple(
            Running(j.call.id, j.call.entry.name, j.call.arguments, j.state, j.came)
            for j in self._jobs
        )

    @property
    def pending(self) -> int:
        """How many calls wait or run. May be asked in any thread."""
        return len(self._jobs)

    @property
    def statistics(self) -> Mapping[str, Statistics]:
        """Counts by tool; refused calls without a known tool stand under an empty name."""
        return self._statistics

    def statistics_dict(self) -> dict[str, dict[str, Any]]:
        """The same as plain values."""
        return {name: s.as_dict() for name, s in self._statistics.items()}

    def add_stop_hook(self, hook: StopHook) -> None:
        """Adds what ``stop`` does beside ending calls: ports end all motion, whoever began it.

        A hook raises ``ToolFailure`` where a driver did not confirm.
        """
        self._hooks.append(hook)

    # --- input ----------------------------------------------------------------------------

    def submit(
        self, payload: bytes | str | Mapping[str, Any] | list[Any], age_s: float = 0.0
    ) -> None:
        """Takes one message; called in the loop, returns at once.

        Args:
            payload: JSON text, or what was read from it.
            age_s: Seconds since it was sent.
        """
        try:
            message = decode(payload, self._texts)
        except UnreadableMessage as error:
            _log.warning("A message could not be read: %s", error)
            self._event("finished", "", "", status=REJECTED, code=error.code, detail=str(error))
            return
        for note in message.notes:
            _log.warning("%s", note.detail)
            self._event("note", "", "", code=note.code, detail=note.detail)
        if message.calls:
            self.run(message.calls, age_s)

    def run(self, calls: tuple[ToolCall, ...], age_s: float = 0.0) -> None:
        """Takes the calls of one message, already decoded; called in the loop, returns at once."""
        judgement = self._gate.judge(calls, self.registry, age_s, len(self._jobs))
        for verdict in judgement.verdicts:
            call = verdict.call
            self._event("received", call.id, call.name, extra={"arguments": call.arguments})
        self._schedule(judgement)

    def cancel(self, call_id: str) -> int:
        """Cancels the call with an id, or all calls for ``*``.

        Returns:
            How many calls that concerns.
        """
        jobs = [j for j in self._jobs if call_id in ("*", j.call.id) and not _is_stop(j)]
        for job in jobs:
            self._end(job, _Ending(CANCELLED, "cancelled", "The call was cancelled on request."))
        return len(jobs)

    async def stop(self) -> str:
        """Ends all motion and refuses further motion until ``reset``.

        Returns:
            A sentence; it begins with ``stopped`` where everything confirmed that it stopped.
        """
        return await self._halt()

    def reset(self) -> None:
        """Allows motion again."""
        self._gate.stopped = False

    def set_active(self, active: bool) -> None:
        """Refuses all calls while not active; what runs is ended."""
        self._gate.active = active
        if not active:
            self._end_all("The bridge was deactivated before the call had ended.")

    async def shutdown(self) -> None:
        """Answers everything that waits or runs; nothing is accepted until ``set_active``."""
        self._gate.active = False
        jobs = list(self._jobs)
        self._end_all("The bridge shut down before the call had ended.")
        await self._answered(jobs)
        for task in list(self._background):
            task.cancel()
        if self._background:
            await asyncio.wait(list(self._background), timeout=0.2)

    # --- the way of a call ----------------------------------------------------------------

    def _schedule(self, judgement: Judgement) -> None:
        halt = self._halt() if judgement.stops else None
        rest = judgement.verdicts
        if halt is not None:
            rest = []
            for verdict in judgement.verdicts:
                if verdict.valid is not None and verdict.valid.entry.name == STOP:
                    self._run_job(_Job(verdict.valid, time.monotonic()), self._run_stop, halt)
                else:
                    rest.append(verdict)
        for verdict in rest:
            if verdict.valid is None:
                self._refuse(verdict)
            else:
                self._queue(verdict.valid)

    def _queue(self, call: ValidCall) -> None:
        job = _Job(call, time.monotonic())
        self._jobs[job] = None
        job.ticket = self._lanes.ticket(call.entry.resources, lambda: self._enter(job))
        job.ticket.enter()

    def _enter(self, job: _Job) -> None:
        """Begins a call whose turn it is, or lets it wait for those of the same tool."""
        entry = job.call.entry
        if not entry.max_concurrent:
            self._run_job(job, self._run)
            return
        slots = self._slots.setdefault(entry.name, Slots(entry.max_concurrent))

        def begin() -> bool:
            if job.answered:
                return False
            job.slots = slots
            self._run_job(job, self._run)
            return True

        slots.enter(begin)

    def _run_job(self, job: _Job, run: Callable[..., Any], *arguments: Any) -> None:
        loop = asyncio.get_running_loop()
        self._jobs[job] = None
        job.began = time.monotonic()
        self._event("started", job.call.id, job.call.entry.name)
        job.deadline = loop.call_later(job.call.entry.timeout, self._expire, job)
        job.task = loop.create_task(run(job, *arguments))

    async def _run(self, job: _Job) -> None:
        job.entered = True
        call = job.call
        tool = call.entry.tool
        assert tool is not None
        cache = call.entry.cache
        if cache is not None and (known := cache.get(call.arguments)) is not None:
            self._answer(job, SUCCEEDED, "", known.content, known.artifacts, cached=True)
            return

        def feedback(detail: str) -> None:
            if not job.answered:
                self._event("feedback", call.id, tool.name, detail=clean(detail, 1000))

        try:
            outcome = await tool.run(dict(call.arguments), CallContext(call.id, feedback))
        except asyncio.CancelledError:
            if job.ending is not None:
                self._answer_ending(job)
            else:
                self._fail(job, "tool_error", "The tool was cancelled by its own work.")
        except CallError as error:
            if job.ending is None or error.code == "cancel_unconfirmed":
                self._fail(job, error.code, error.message, isinstance(error, Rejection))
            else:
                self._answer_ending(job, error.message)
        except (Exception, SystemExit) as error:
            _log.error("%s (%s) failed", tool.name, call.id, exc_info=error)
            self._fail(
                job,
                "tool_error",
                f"{tool.name} failed inside. What it did until then is not known; the operator "
                "finds the reason in the log.",
            )
        else:
            content, artifacts = _content(outcome)
            if cache is not None:
                cache.put(call.arguments, Outcome(content, artifacts))
            self._answer(job, SUCCEEDED, "", content, artifacts)

    async def _run_stop(self, job: _Job, halt: asyncio.Future[str]) -> None:
        job.entered = True
        tool = job.call.entry.tool
        try:
            text = await asyncio.shield(halt)
        except asyncio.CancelledError:
            self._answer_ending(job)
            return
        if not text.startswith("stopped"):
            self._fail(job, "cancel_unconfirmed", text)
            return
        try:
            if tool is not None:
                await tool.run({}, CallContext(job.call.id))
        except Exception as error:
            _log.error("stop (%s) failed after all motion had ended", job.call.id, exc_info=error)
        self._answer(job, SUCCEEDED, "", text)

    def _expire(self, job: _Job) -> None:
        seconds = show.value(job.call.entry.timeout)
        text = f"{job.call.entry.name} had not ended after {seconds} s and was cancelled."
        self._end(job, _Ending(TIMEOUT, "timeout", text))

    def _end_all(self, text: str) -> None:
        for job in list(self._jobs):
            self._end(job, _Ending(CANCELLED, "inactive", text))

    def _end(self, job: _Job, ending: _Ending) -> None:
        """Begins to end a call; the first reason counts."""
        if job.answered or job.ending is not None:
            return
        job.ending = ending
        if job.deadline is not None:
            job.deadline.cancel()
        if job.task is None:
            assert job.ticket is not None
            job.ticket.skip()
            self._answer_ending(job)
        elif not job.entered:  # a task that is cancelled before its first step never runs
            job.task.cancel()
            self._answer_ending(job)
        else:
            job.task.cancel()
            loop = asyncio.get_running_loop()
            job.grace = loop.call_later(self.limits.cancel_limit, self._abandon, job)

    def _abandon(self, job: _Job) -> None:
        """Answers for a tool that did not end in time, and lets the next one go."""
        if job.answered or job.ending is None or job.task is None:
            return
        self._keep(job.task)
        name = job.call.entry.name
        _log.warning("%s (%s) did not end when it was cancelled", name, job.call.id)
        if job.call.entry.motion:
            text = (
                f"{job.ending.text} Nothing confirmed that the motion ended, so the robot may "
                "still be moving. Stop it, and tell the operator."
            )
            self._answer_failure(job, job.ending.status, "cancel_unconfirmed", text)
        else:
            self._answer_ending(job)

    def _answer_ending(self, job: _Job, more: str = "") -> None:
        ending = job.ending
        assert ending is not None
        text = f"{ending.text} {more}".rstrip()
        self._answer_failure(job, ending.status, ending.code, text)

    def _fail(self, job: _Job, code: str, text: str, rejected: bool = False) -> None:
        status = job.ending.status if job.ending else REJECTED if rejected else FAILED
        self._answer_failure(job, status, code, text)

    def _answer_failure(self, job: _Job, status: str, code: str, text: str) -> None:
        self._answer(job, status, code, failure_content(code, text), detail=text)

    def _answer(
        self,
        job: _Job,
        status: str,
        code: str,
        content: str,
        artifacts: tuple[str, ...] = (),
        detail: str = "",
        cached: bool = False,
    ) -> None:
        call = job.call
        if job.answered:
            _log.info("%s (%s) came late: %s", call.entry.name, call.id, content)
            return
        job.answered = True
        job.unconfirmed = code == "cancel_unconfirmed"
        del self._jobs[job]
        for timer in (job.deadline, job.grace):
            if timer is not None:
                timer.cancel()
        duration = time.monotonic() - job.began if job.began else None
        self._count(call.entry.name, status, duration, cached)
        self._finish(call.id, call.entry.name, status, code, content, detail, duration, artifacts)
        for waiter in job.waiters:
            if not waiter.done():
                waiter.set_result(None)
        # what refers to each other is taken apart, so that no garbage collection is needed
        ticket, job.ticket, job.task, job.deadline, job.grace = job.ticket, None, None, None, None
        slots, job.slots = job.slots, None
        if slots is not None:
            slots.leave()
        if ticket is not None and job.began:
            ticket.release()

    def _refuse(self, verdict: Verdict) -> None:
        refusal, call = verdict.refusal, verdict.call
        assert refusal is not None
        status = CANCELLED if refusal.code == "preempted" else REJECTED
        content = failure_content(refusal.code, refusal.message)
        self._count(call.name, status, None)
        self._finish(call.id, call.name, status, refusal.code, content, refusal.message)

    def _count(self, name: str, status: str, seconds: float | None, cached: bool = False) -> None:
        known = name if self.registry.knows(name) else ""
        self._statistics.setdefault(known, Statistics()).add(status, seconds, cached)

    def _finish(
        self,
        call_id: str,
        name: str,
        status: str,
        code: str,
        content: str,
        detail: str,
        duration: float | None = None,
        artifacts: tuple[str, ...] = (),
    ) -> None:
        content = clean(content, MAX_CONTENT)
        self._call_out(self._on_result, result_message(call_id, name, content))
        self._event(
            "finished",
            call_id,
            name,
            status=status,
            code=code,
            detail=clean(detail, 2000),
            duration_s=round(duration or 0.0, 4),
            artifacts=artifacts,
            extra={"content": content},
        )

    # --- stopping -------------------------------------------------------------------------

    def _halt(self) -> asyncio.Future[str]:
        """Latches and ends motion at once; what it returns waits for the confirmations."""
        self._gate.stopped = True
        jobs = [j for j in self._jobs if j.call.entry.motion]
        for job in jobs:
            text = "A stop ended it. Motion is refused until a person resets the robot."
            self._end(job, _Ending(CANCELLED, "preempted", text))
        hooks = [asyncio.ensure_future(_guarded(h)) for h in self._hooks]
        task = asyncio.get_running_loop().create_task(self._confirm(jobs, hooks))
        self._keep(task)
        return task

    async def _confirm(self, jobs: list[_Job], hooks: Sequence[asyncio.Future[str]]) -> str:
        problems = []
        if hooks:
            done, late = await asyncio.wait(hooks, timeout=self.limits.cancel_limit)
            problems = [h.result() for h in done if h.result()]
            if late:
                problems.append("a driver did not answer")
            for hook in late:
                hook.cancel()
        problems += await self._answered(jobs)
        if problems:
            return (
                f"The stop was sent, but not everything confirmed it: {'; '.join(problems)}. "
                "The robot may still be moving. Cut its power if it does."
            )
        ended = f" {len(jobs)} motion call{'s' if len(jobs) > 1 else ''} ended." if jobs else ""
        return f"stopped.{ended} Motion is refused until a person resets the robot."

    async def _answered(self, jobs: list[_Job]) -> list[str]:
        """Waits until calls that are being ended are answered; says which did not confirm."""
        loop = asyncio.get_running_loop()
        waiters = []
        for job in jobs:
            if not job.answered:
                waiter: asyncio.Future[None] = loop.create_future()
                job.waiters.append(waiter)
                waiters.append(waiter)
        if waiters:
            await asyncio.wait(waiters, timeout=self.limits.cancel_limit + 1.0)
        return [f"{j.call.entry.name} did not confirm its end" for j in jobs if j.unconfirmed]

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # --- output ---------------------------------------------------------------------------

    def _event(
        self,
        event: str,
        call_id: str,
        name: str,
        *,
        status: str = "",
        code: str = "",
        detail: str = "",
        duration_s: float = 0.0,
        artifacts: tuple[str, ...] = (),
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        record = {
            "stamp": self._clock(),
            "event": event,
            "tool_call_id": call_id,
            "name": name,
            "status": status,
            "code": code,
            "detail": detail,
            "duration_s": duration_s,
            "artifacts": list(artifacts),
        }
        if self._audit is not None:
            self._audit.write({**record, **(extra or {})})
        self._call_out(self._on_event, record)

    @staticmethod
    def _call_out(callback: Callable[[Any], None], message: Any) -> None:
        try:
            callback(message)
        except Exception:  # an answer that can't be sent must not take the others along
            _log.exception("A message could not be handed on")


def _is_stop(job: _Job) -> bool:
    return job.call.entry.name == STOP


async def _guarded(hook: StopHook) -> str:
    """Runs one stop hook; says what went wrong, or nothing."""
    try:
        await hook()
    except ToolFailure as error:
        return error.message.rstrip(".")
    except Exception:
        _log.exception("A stop hook failed")
        return "a driver could not be told to stop"
    return ""


def _content(outcome: Outcome | str) -> tuple[str, tuple[str, ...]]:
    if isinstance(outcome, Outcome):
        return outcome.content or "done", outcome.artifacts
    return str(outcome) if outcome is not None and outcome != "" else "done", ()
