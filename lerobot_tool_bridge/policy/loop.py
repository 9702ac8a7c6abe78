"""Ask the model, send its calls, give it the results, ask again: until it answers without a call.

Plain asyncio, no rclpy. What moves is decided by the bridge; this only carries. Nothing is ever
inferred: a call that the server calls malformed, that was cut off or that stands in reasoning is
not sent, and the model is told so.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lerobot_tool_bridge import formats
from lerobot_tool_bridge.core.decode import decode
from lerobot_tool_bridge.core.errors import UnreadableMessage
from lerobot_tool_bridge.core.messages import (
    ToolCall,
    failure_content,
    new_id,
    result_message,
)
from lerobot_tool_bridge.policy.chat import assistant_message, failed
from lerobot_tool_bridge.policy.conversation import Conversation, Entry
from lerobot_tool_bridge.policy.endpoint import EndpointError, Reply
from lerobot_tool_bridge.policy.prompts import tools_prompt

ANSWERED, CANCELLED, GAVE_UP, FAILED, REFUSED = (
    "answered",
    "cancelled",
    "gave_up",
    "failed",
    "refused",
)
"""How an instruction ends."""

FINISH_REASONS = ("stop", "tool_calls", "function_call")
"""The reasons with which an answer is whole. Any other never counts as success."""

_CUT = "length"
_UNREADABLE = "unreadable"  # under this key the history keeps arguments that are no object
_PICTURE_TOOL = "record_observation"


class Model(Protocol):
    """Who is asked."""

    async def ask(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> Reply: ...


class Bridge(Protocol):
    """What the loop needs of the bridge; results and events come by ``Loop.on_…``."""

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]: ...

    def send(self, message: dict[str, Any]) -> None: ...

    def cancel(self, call_id: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Settings:
    """How long, how often, and in which form.

    Attributes:
        max_turns: Answers of the model to one instruction.
        result_timeout: Seconds without a sign of life after which a call counts as lost.
        cancel_limit: Seconds that cancelled calls have for their results.
        same_failures: So often the same call may fail.
        ask_once_more: Ask again where an instruction ends without any call.
        system: The system prompt.
        tools_text: How the tools are described where the request does not carry them.
        text_format: Calls are read out of the answer's text; empty: never.
        text_prefix: What the chat template begins the answer with.
        tools_in_request: The request carries the tools; else the system prompt does.
        finish_reasons: With which an answer is whole.
        pictures: One of ``conversation.PICTURES``.
        max_pictures: In one request.
    """

    max_turns: int = 12
    result_timeout: float = 120.0
    cancel_limit: float = 3.0
    same_failures: int = 3
    ask_once_more: bool = False
    system: str = ""
    tools_text: str = ""
    text_format: str = ""
    text_prefix: str = ""
    tools_in_request: bool = True
    finish_reasons: tuple[str, ...] = FINISH_REASONS
    pictures: str = "off"
    max_pictures: int = 2


@dataclass(slots=True)
class Answer:
    """What became of an instruction. The counts are the witness of what ran, not the sentence.

    Attributes:
        calls_asked: Calls that the model made.
        calls_ran: Of those, the ones that the robot began.
        calls_succeeded: Of those, the ones that did what they should.
        turns: Answers of the model.
    """

    instruction: str
    answer: str = ""
    status: str = ANSWERED
    calls_asked: int = 0
    calls_ran: int = 0
    calls_succeeded: int = 0
    turns: int = 0
    duration_s: float = 0.0


@dataclass(slots=True)
class _Call:
    """One call on its way: as it is sent, as it is remembered, and its result."""

    id: str
    name: str
    sent: Any
    kept: dict[str, Any]
    fault: str
    result: asyncio.Future[str]


class _GaveUp(Exception):
    """The instruction ends here; one sentence for the person."""


class Loop:
    """One conversation with one robot.

    Args:
        model: Who is asked.
        bridge: Who does it.
        settings: See there.
        conversation: What is remembered.
        hint: Told what a person should know and the model should not.
        picture: Gives the still of a call that succeeded, as a data URL, or an empty text.
    """

    def __init__(
        self,
        model: Model,
        bridge: Bridge,
        settings: Settings,
        conversation: Conversation,
        hint: Callable[[str], None] = lambda text: None,
        picture: Callable[[], Awaitable[str]] | None = None,
    ) -> None:
        self._model = model
        self._bridge = bridge
        self._set = settings
        self.conversation = conversation
        self._hint = hint
        self._picture = picture
        self._hinted = False
        self._pending: dict[str, _Call] = {}
        self._heard = 0.0  # when the bridge last told of a call of ours
        self._sent: set[str] = set()
        self._started: set[str] = set()
        self._answer = Answer("")
        self._same: Counter[str] = Counter()

    # --- from the bridge ----------------------------------------------------------------------

    def on_result(self, result: Mapping[str, Any]) -> None:
        """Takes one message of ``~/tool_results``; others' are left alone."""
        call = self._pending.get(str(result.get("tool_call_id")))
        if call is not None and not call.result.done():
            call.result.set_result(str(result.get("content", "")))
            self._heard = time.monotonic()

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Takes one message of ``~/tool_events``."""
        call_id = str(event.get("tool_call_id"))
        if event.get("event") == "started" and call_id in self._sent:
            self._started.add(call_id)
        if call_id in self._pending:
            self._heard = time.monotonic()

    # --- one instruction ----------------------------------------------------------------------

    async def run(self, instruction: str) -> Answer:
        """Carries out one instruction. Cancelling it ends what runs, and still returns."""
        begin = time.monotonic()
        answer = self._answer = Answer(instruction)
        self._sent, self._started = set(), set()
        self._same.clear()
        self.conversation.begin(instruction)
        try:
            answer.answer = await self._converse()
        except asyncio.CancelledError:
            answer.status, answer.answer = CANCELLED, "Cancelled."
        except _GaveUp as why:
            answer.status, answer.answer = GAVE_UP, str(why)
        except EndpointError as error:
            answer.status, answer.answer = FAILED, str(error)
        # every turn ends with an answer: templates want the roles to take turns
        self.conversation.add(Entry({"role": "assistant", "content": answer.answer}))
        answer.calls_ran = len(self._started)
        answer.duration_s = round(time.monotonic() - begin, 3)
        return answer

    async def _converse(self) -> str:
        trouble = ""
        asked_again = False
        for _ in range(self._set.max_turns):
            reply = await self._ask()
            self._answer.turns += 1
            calls, content, written, wrong, note = self._judge(reply)
            if wrong and not calls:
                self.conversation.add(
                    Entry({"role": "assistant", "content": content or "(no answer)"})
                )
                if trouble:
                    raise EndpointError(f"The model gave no usable answer, twice. {wrong}")
                trouble = wrong
                self.conversation.note(f"{wrong} Nothing of it was run. Answer again.")
                continue
            trouble = ""
            if calls:
                await self._perform(calls, content, written, note)
            elif self._set.ask_once_more and not self._answer.calls_asked and not asked_again:
                asked_again = True
                self.conversation.add(Entry({"role": "assistant", "content": content}))
                self.conversation.note(
                    "You called no tool, so the robot did nothing. If the user wants it to do "
                    "something, call the tool now; if not, repeat your answer."
                )
            else:
                return content
        raise _GaveUp(f"I stop here: {self._set.max_turns} turns were not enough.")

    async def _ask(self) -> Reply:
        settings, tools = self._set, list(self._bridge.tools)
        system = settings.system
        if not settings.tools_in_request:
            described = tools_prompt(settings.tools_text, tools, settings.text_format)
            system = f"{system}\n\n{described}".strip()
        messages = self.conversation.request(
            system,
            text=not settings.tools_in_request,
            pictures=settings.pictures,
            max_pictures=settings.max_pictures,
        )
        return await self._model.ask(messages, tools if settings.tools_in_request else [])

    # --- judging an answer --------------------------------------------------------------------

    def _judge(self, reply: Reply) -> tuple[list[_Call], str, str, str, str]:
        """What an answer holds.

        Returns:
            The calls; the text beside them; the text as written; what is wrong with an answer
            that holds no call to run; what to tell the model beside the results.
        """
        reason = reply.finish_reason.lower()
        if reason == _CUT and (reply.calls or not self._set.text_format):
            wrong = "The answer was cut off at the server's length limit."
            return [], reply.content, "", wrong, ""
        if reason != _CUT and reason not in self._set.finish_reasons:
            shown = repr(reply.finish_reason[:64]) if reason else "nothing"
            wrong = (
                f"The model server gave {shown} as the reason for the answer's end, which is "
                "none of a whole answer."
            )
            return [], reply.content, "", wrong, ""
        if reply.calls:
            try:
                # without ids: they get new ones, so it does not matter what is wrong with theirs
                plain = [
                    {k: v for k, v in c.items() if k != "id"} if type(c) is dict else c
                    for c in reply.calls
                ]
                message = decode({"role": "assistant", "tool_calls": plain})
            except UnreadableMessage as error:
                return [], reply.content, "", str(error), ""
            calls = [self._call(c, raw) for c, raw in zip(message.calls, reply.calls, strict=True)]
            return calls, reply.content, reply.content, "", ""
        if self._set.text_format:
            return self._judge_text(reply.content, reason)
        self._hint_format(reply.content)
        empty = "" if reply.content.strip() else "The answer was empty."
        return [], reply.content, "", empty, ""

    def _judge_text(self, text: str, reason: str) -> tuple[list[_Call], str, str, str, str]:
        reader = formats.TextReader(
            self._set.text_format, self._bridge.tools, self._set.text_prefix
        )
        parsed = reader.read(text, reason)
        told = [n.detail for n in parsed.notes if n.code in (formats.TRUNCATED, formats.MALFORMED,
                                                             formats.TOO_LARGE)]  # fmt: skip
        drafts = [n.detail for n in parsed.notes if n.code in (formats.REASONING, formats.QUOTED)]
        for note in parsed.notes:
            if note.code == formats.OTHER_FORMAT and not self._hinted:
                self._hinted = True
                self._hint(note.detail)
        if parsed.calls:
            items = [{"name": c.name, "arguments": c.arguments} for c in parsed.calls]
            decoded = decode(items).calls
            calls = [self._call(c, raw) for c, raw in zip(decoded, items, strict=True)]
            return calls, parsed.content, text, "", " ".join(told)
        wrong = " ".join(told)
        if not wrong and reason == _CUT:
            wrong = "The answer was cut off at the server's length limit."
        if not wrong and drafts and (not parsed.content.strip() or "`" in parsed.content):
            wrong = drafts[0]
        if not wrong and not parsed.content.strip():
            wrong = "The answer was empty."
        return [], parsed.content, "", wrong, ""

    def _hint_format(self, text: str) -> None:
        """Says once that a text looks like calls which nobody reads."""
        if self._hinted or not text:
            return
        other = formats.other_format(text, "")
        if other:
            self._hinted = True
            self._hint(
                f"The model's answer looks like a call in the format {other}, and text is not "
                f"read. Have the server read it, or set the parameter text_format to {other}."
            )

    def _call(self, call: ToolCall, raw: Any) -> _Call:
        """One call under an id of its own: servers repeat theirs, or give what others refuse."""
        future = asyncio.get_running_loop().create_future()
        call_id = new_id()
        if call.fault is None:
            arguments = dict(call.arguments or {})
            return _Call(call_id, call.name, arguments, arguments, "", future)
        inner = raw.get("function") if isinstance(raw, dict) else None
        given = (inner if isinstance(inner, dict) else raw if isinstance(raw, dict) else {}).get(
            "arguments"
        )
        if isinstance(given, str):  # the bridge reads it as it came, and says what is wrong
            return _Call(call_id, call.name, given, {_UNREADABLE: given[:500]}, "", future)
        content = failure_content(call.fault.code, call.fault.message)
        return _Call(call_id, call.name, None, {}, content, future)

    # --- doing it -----------------------------------------------------------------------------

    async def _perform(self, calls: list[_Call], content: str, written: str, note: str) -> None:
        """Sends the calls of one answer and remembers it with all its results, in order."""
        self._answer.calls_asked += len(calls)
        kept = assistant_message(content, [(c.id, c.name or "unknown", c.kept) for c in calls])
        self.conversation.add(Entry(kept, written))
        sent = [c for c in calls if not c.fault]
        if sent:
            self._pending = {c.id: c for c in sent}
            self._sent |= self._pending.keys()
            message = assistant_message(content, [])
            message["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.sent}}
                for c in sent
            ]
            self._bridge.send(message)
        pictures: dict[str, str] = {}
        try:
            await self._results(sent)
            pictures = {c.id: await self._still(c) for c in calls}
        except asyncio.CancelledError:
            await self._end(sent, "cancelled", "The user cancelled this.")
            raise
        finally:  # awaits nothing: the history gets all results, whatever happens
            self._pending = {}
            for call in calls:
                result = call.fault or (
                    call.result.result()
                    if call.result.done()
                    else failure_content("cancelled", "The user cancelled this.")
                )
                if note and call is calls[-1]:
                    result = f"{result}\n\nNote: {note}"
                self._answer.calls_succeeded += not failed(result)
                message = result_message(call.id, call.name, result)
                self.conversation.add(Entry(message, picture=pictures.get(call.id, "")))
        for call in calls:
            self._count(call)

    async def _results(self, calls: list[_Call]) -> None:
        """Waits for all results; a call of which nothing is heard for long is given up."""
        self._heard = time.monotonic()
        while waiting := [c for c in calls if not c.result.done()]:
            left = self._heard + self._set.result_timeout - time.monotonic()
            if left <= 0:
                seconds = f"{self._set.result_timeout:g} s"
                await self._end(
                    waiting,
                    "timeout",
                    f"No result came within {seconds}; the robot's software may have ended. "
                    "Whether it was done is not known.",
                )
                return
            await asyncio.wait(
                [c.result for c in waiting],
                timeout=left,
                return_when=asyncio.FIRST_COMPLETED,
            )

    async def _end(self, calls: list[_Call], code: str, why: str) -> None:
        """Cancels calls, and fills in the results that don't come in time."""
        waiting = [c for c in calls if not c.result.done()]
        for call in waiting:
            self._bridge.cancel(call.id)
        try:
            if waiting:
                await asyncio.wait([c.result for c in waiting], timeout=self._set.cancel_limit)
        finally:
            for call in waiting:
                if not call.result.done():
                    call.result.set_result(failure_content(code, why))

    async def _still(self, call: _Call) -> str:
        if (
            self._picture is None
            or call.name != _PICTURE_TOOL
            or not call.result.done()
            or failed(call.result.result())
        ):
            return ""
        return await self._picture()

    def _count(self, call: _Call) -> None:
        """Ends the run where the same call has failed too often."""
        content = call.fault or call.result.result()
        if not failed(content):
            return
        key = json.dumps([call.name, call.kept], sort_keys=True)
        self._same[key] += 1
        if self._same[key] >= self._set.same_failures:
            raise _GaveUp(
                f"I stop here: {call.name or 'a call without a name'} failed {self._same[key]} "
                f"times in the same way. {content}"
            )
