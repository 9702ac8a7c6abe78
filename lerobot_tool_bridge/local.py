"""The registry, the validator and the dispatcher of the bridge in a process of one's own.

``Local`` runs tool calls without ROS and without a robot: in a rollout, a notebook, a test. It is
what the modules for other systems (``lerobot``, ``twinkle``, ``functions``, ``free_text``) stand
on, so a call is checked, limited, timed and answered there exactly as on the robot.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lerobot_tool_bridge.core.adapt import adapt
from lerobot_tool_bridge.core.catalog import Catalogue
from lerobot_tool_bridge.core.decode import decode
from lerobot_tool_bridge.core.dispatcher import Dispatcher
from lerobot_tool_bridge.core.errors import UnreadableMessage
from lerobot_tool_bridge.core.gate import Limits
from lerobot_tool_bridge.core.messages import (
    REJECTED,
    SUCCEEDED,
    ToolCall,
    failure_content,
    new_id,
    result_message,
)
from lerobot_tool_bridge.core.registry import Entry, Registry, import_tool
from lerobot_tool_bridge.ports import Ports

LIMITS = Limits(
    max_calls_per_message=512,
    max_age=0.0,
    max_calls_per_second=0.0,
    cancel_limit=0.5,
)
"""No rates and ages: who calls here waits for the answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one call.

    Attributes:
        message: The ``role=tool`` message.
        status: ``succeeded``, ``failed``, ``rejected``, ``cancelled`` or ``timeout``.
        code: Why it did not succeed; empty where it did.
        detail: The same as a sentence.
    """

    message: dict[str, str]
    status: str
    code: str = ""
    detail: str = ""

    @property
    def good(self) -> bool:
        """Whether the call did what it should."""
        return self.status == SUCCEEDED


class Local:
    """Runs tool calls in this process.

    ``call`` and ``turn`` block, ``acall`` and ``aturn`` are for ``async`` code; all may be used
    from any thread and any event loop. The tools run in a thread that all ``Local`` share.

    Args:
        tools: Whatever ``core.adapt`` knows: classes, objects, functions, and ``module:name`` of
            such; a mapping gives each
            the name under which it is called. Schemas alone (``{"type": "function", ...}``) are
            offered, and their calls are answered with ``not_implemented``.
        settings: ``load_tools_file``, or plain mappings of the same keys, by tool.
        ports: What the tools reach of a robot.
        limits: See there.

    Raises:
        LoadError: A tool can't be used.
    """

    def __init__(
        self,
        tools: Iterable[Any] | Mapping[str, Any] = (),
        *,
        settings: Mapping[str, Any] | None = None,
        ports: Ports | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        self._ports = ports or Ports()
        self._settings = settings or {}
        self._limits = limits
        self._entries: dict[str, Entry] = {}
        self._messages: dict[str, dict[str, str]] = {}
        self._waiting: dict[str, asyncio.Future[Answer]] = {}
        self._dispatcher = Dispatcher(Registry(()), self._on_result, self._on_event, limits=limits)
        named = tools.items() if isinstance(tools, Mapping) else (("", t) for t in tools)
        for name, tool in named:
            self.add(tool, name)

    # --- the tools --------------------------------------------------------------------------

    def add(self, tool: Any, name: str = "") -> str:
        """Adds a tool, in place of one of the same name.

        Returns:
            Its name; empty where the settings switch it off, or where it needs what there isn't.

        Raises:
            LoadError: It can't be used.
        """
        registry = self._load(tool, name)
        if registry.problems:
            raise registry.problems[0]
        for entry in registry:
            self._entries[entry.name] = entry
            self._changed()
            return entry.name
        return ""

    def _load(self, tool: Any, name: str) -> Registry:
        if isinstance(tool, Mapping):
            catalogue = Catalogue.parse([tool])
            if catalogue.problems:
                raise catalogue.problems[0]
            return Registry.load(self._ports, None, catalogue, tools=())
        if isinstance(tool, str):
            tool = import_tool(tool)
        kind = adapt(tool, name)
        settings = {n: s for n, s in self._settings.items() if n in (kind.name, kind.family)}
        return Registry.load(self._ports, settings, tools=(kind,))

    def remove(self, name: str) -> bool:
        """Takes a tool away; False where there is none of that name."""
        gone = self._entries.pop(name, None)
        self._changed()
        return gone is not None

    def copy(self) -> Local:
        """Another one with the same tools; what is added to one is not added to the other."""
        made = Local(settings=self._settings, ports=self._ports, limits=self._limits)
        made._entries = dict(self._entries)
        made._changed()
        return made

    @property
    def names(self) -> list[str]:
        """The tools, in the order in which they were added."""
        return list(self._entries)

    @property
    def registry(self) -> Registry:
        """The tools as the core has them."""
        return self._dispatcher.registry

    def schemas(self) -> list[dict[str, Any]]:
        """The tools as ``tools=`` of a chat template or completion wants them."""
        return self.registry.schemas()

    def statistics(self) -> dict[str, dict[str, Any]]:
        """Counts and times by tool; refused calls of no known tool under an empty name."""
        return self._dispatcher.statistics_dict()

    # --- calls ------------------------------------------------------------------------------

    def call(self, call: Any) -> Answer:
        """Runs one call, in any form that ``core.decode`` reads, and waits.

        Returns:
            Its answer. What goes wrong stands in it; nothing is raised.
        """
        answer: Answer = _wait(self._call(call))
        return answer

    async def acall(self, call: Any) -> Answer:
        """``call`` for ``async`` code."""
        return await asyncio.wrap_future(
            asyncio.run_coroutine_threadsafe(self._call(call), _loop())
        )

    def turn(self, message: Any) -> list[dict[str, Any]]:
        """Runs all calls of an assistant message, and waits.

        Returns:
            What is to be appended to the chat history: the message in the one form that all chat
            templates take (``content`` a text, arguments objects, every call with an id), and a
            ``role=tool`` message for each call in its order.
        """
        messages: list[dict[str, Any]] = _wait(self._turn(message))
        return messages

    async def aturn(self, message: Any) -> list[dict[str, Any]]:
        """``turn`` for ``async`` code."""
        return await asyncio.wrap_future(
            asyncio.run_coroutine_threadsafe(self._turn(message), _loop())
        )

    # --- in the loop ------------------------------------------------------------------------

    async def _call(self, call: Any) -> Answer:
        try:
            calls = decode(call if isinstance(call, str | bytes) else [call]).calls
        except UnreadableMessage as error:
            return _refused(error.code, str(error))
        if len(calls) != 1:
            return _refused("bad_call", f"This is {'more than one' if calls else 'no'} tool call.")
        return (await self._run(calls))[0]

    async def _turn(self, message: Any) -> list[dict[str, Any]]:
        try:
            decoded = decode(message)
        except UnreadableMessage as error:
            answer = _refused(error.code, str(error))
            return [{"role": "assistant", "content": ""}, answer.message]
        text = message.get("content") if isinstance(message, Mapping) else ""
        history: dict[str, Any] = {
            "role": "assistant",
            "content": text if isinstance(text, str) else "",
        }
        if not decoded.calls:
            return [history]
        history["tool_calls"] = [_stored(c) for c in decoded.calls]
        return [history, *(a.message for a in await self._run(decoded.calls))]

    async def _run(self, calls: Sequence[ToolCall]) -> list[Answer]:
        # ids of different callers may be the same, so each call runs under one of its own
        own = {new_id(): call for call in calls}
        loop = asyncio.get_running_loop()
        futures = {i: loop.create_future() for i in own}
        self._waiting.update(futures)
        self._dispatcher.run(tuple(replace(call, id=i) for i, call in own.items()))
        answers = await asyncio.gather(*futures.values())
        return [
            replace(answer, message={**answer.message, "tool_call_id": call.id})
            for answer, call in zip(answers, calls, strict=True)
        ]

    def _on_result(self, message: dict[str, str]) -> None:
        self._messages[message["tool_call_id"]] = message

    def _on_event(self, event: dict[str, Any]) -> None:
        if event["event"] != "finished":
            return
        message = self._messages.pop(event["tool_call_id"])
        future = self._waiting.pop(event["tool_call_id"])
        if not future.done():
            future.set_result(Answer(message, event["status"], event["code"], event["detail"]))

    def _changed(self) -> None:
        self._dispatcher.registry = Registry(list(self._entries.values()))


def _stored(call: ToolCall) -> dict[str, Any]:
    arguments: Mapping[str, Any] = call.arguments or {}
    if call.fault is not None:  # what could not be read is not made up
        arguments = {"unreadable": call.fault.message}
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name or "unknown", "arguments": dict(arguments)},
    }


def _refused(code: str, text: str) -> Answer:
    message = result_message(new_id(), "", failure_content(code, text))
    return Answer(message, REJECTED, code, text)


def _wait(work: Coroutine[Any, Any, Any]) -> Any:
    loop = _loop()
    if loop is _current_loop():
        work.close()
        raise RuntimeError("An async tool should await acall or aturn: call and turn block.")
    return asyncio.run_coroutine_threadsafe(work, loop).result()


def _current_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


_lock = threading.Lock()
_running: list[asyncio.AbstractEventLoop] = []


def _loop() -> asyncio.AbstractEventLoop:
    """The loop in which all ``Local`` work, in a daemon thread."""
    with _lock:
        if not _running:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="tool calls", daemon=True).start()
            _running.append(loop)
        return _running[0]
