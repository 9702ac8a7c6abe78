"""Whether a valid call may run now."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from lerobot_tool_bridge.core import show
from lerobot_tool_bridge.core.errors import Rejection
from lerobot_tool_bridge.core.messages import ToolCall, ValidCall
from lerobot_tool_bridge.core.registry import STOP, Registry

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the site allows.

    Attributes:
        max_calls_per_message: A longer message is refused as a whole, so that no half plan runs.
        max_age: Seconds after which a message is too old to be acted on; 0 for never.
        max_calls_per_second: Of all tools together; 0 for no limit.
        max_pending: Calls that may wait or run at a time.
        cancel_limit: Seconds that a cancelled tool has to end.
        accept_repeated_ids: For model servers that give every call the same id.
        remembered_ids: How many ids are remembered to recognise a repeated one.
    """

    max_calls_per_message: int = 16
    max_age: float = 10.0
    max_calls_per_second: float = 100.0
    max_pending: int = 4096
    cancel_limit: float = 2.0
    accept_repeated_ids: bool = False
    remembered_ids: int = 10_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to become of one call: it runs, or it is refused."""

    call: ToolCall
    valid: ValidCall | None = None
    refusal: Rejection | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is to become of the calls of one message.

    Attributes:
        stops: One of them is ``stop``, which comes before all others.
    """

    verdicts: list[Verdict] = field(default_factory=list)
    stops: bool = False


class Gate:
    """The bridge's state as far as it decides about calls.

    Args:
        limits: What the site allows.
        clock: Monotonic seconds.

    Attributes:
        stopped: Motion is refused until somebody resets it.
        active: False refuses everything but ``stop``.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.stopped = False
        self.active = True
        self._clock = clock
        self._ids: OrderedDict[str, None] = OrderedDict()
        self._session: deque[float] = deque()
        self._tools: dict[str, deque[float]] = {}

    def judge(
        self, calls: tuple[ToolCall, ...], registry: Registry, age: float = 0.0, pending: int = 0
    ) -> Judgement:
        """Decides about the calls of one message; remembers their ids and counts those that run.

        Args:
            calls: As they were decoded.
            registry: The tools.
            age: Seconds since the message was sent.
            pending: Calls that wait or run already.
        """
        stops = any(c.name == STOP for c in calls)
        judgement = Judgement([], stops)
        too_many = len(calls) > self.limits.max_calls_per_message
        for call in calls:
            try:
                if too_many:
                    raise self._too_many(len(calls))
                valid = registry.validate(call)
                self._admit(valid, age, stops, pending)
                pending += 1
                judgement.verdicts.append(Verdict(call, valid))
            except Rejection as refusal:
                judgement.verdicts.append(Verdict(call, refusal=refusal))
            self._remember(call.id)
        return judgement

    def _admit(self, call: ValidCall, age: float, stops: bool, pending: int) -> None:
        limits = self.limits
        if call.id in self._ids and not limits.accept_repeated_ids:
            raise Rejection(
                "duplicate_id",
                f"A call with the id {show.text(call.id)} came before, so this one is not run. "
                "Every call needs an id of its own. (The parameter accept_repeated_ids is for "
                "model servers that reuse one.)",
            )
        if call.entry.name == STOP:
            return
        if limits.max_age and age > limits.max_age:
            _log.warning(
                "%s (%s) is refused: its message is %.1f s old. If it was sent just now, the "
                "clocks of the two machines differ.",
                call.entry.name,
                call.id,
                age,
            )
            raise Rejection(
                "stale",
                f"The message is {age:.1f} s old, only {show.value(limits.max_age)} s are "
                "allowed. Look at the scene again and decide anew.",
            )
        if not self.active:
            raise Rejection(
                "inactive", "The bridge is not active. Wait until the operator has activated it."
            )
        if call.entry.motion and stops:
            raise Rejection(
                "preempted", "A stop in the same message goes first, so this motion is not run."
            )
        if call.entry.motion and self.stopped:
            raise Rejection(
                "stopped",
                "All motion is stopped until a person resets the robot. Tools that move nothing "
                "still work; say what is the matter.",
            )
        if pending >= limits.max_pending:
            raise Rejection(
                "rate_limited",
                f"{pending} calls are waiting already. Wait for their results first.",
            )
        self._count(call)

    def _count(self, call: ValidCall) -> None:
        now = self._clock()
        most = self.limits.max_calls_per_second
        name = call.entry.name
        if most and _in_last_second(self._session, now) >= most:
            raise Rejection(
                "rate_limited",
                f"More than {show.value(most)} calls in one second. Wait for the results, then "
                "go on more slowly.",
            )
        own = call.entry.max_per_second
        if own:
            window = self._tools.setdefault(name, deque())
            period = max(1.0, 1.0 / own)
            if _in_last_second(window, now, period) >= own * period:
                raise Rejection(
                    "rate_limited",
                    f"{name} can be called {show.value(own)} times a second. Wait before the "
                    "next call.",
                )
            window.append(now)
        if most:
            self._session.append(now)

    def _remember(self, call_id: str) -> None:
        self._ids[call_id] = None
        if len(self._ids) > self.limits.remembered_ids:
            self._ids.popitem(last=False)

    def _too_many(self, count: int) -> Rejection:
        return Rejection(
            "too_many_calls",
            f"{count} calls in one message, at most {self.limits.max_calls_per_message} are "
            "allowed; none was run. Send fewer, and wait for their results.",
        )


def _in_last_second(window: deque[float], now: float, period: float = 1.0) -> int:
    while window and window[0] <= now - period:
        window.popleft()
    return len(window)
