"""Plain Python callables as tools: functions, ``async`` functions, and objects of other systems.

An ``async`` function runs in the loop and is cancelled like any tool. A plain one runs in a thread
of its own, and no thread can be ended from outside: when its time is over the call is answered
with ``cancel_unconfirmed``, which says that it still runs, and calls that share its resources are
refused until it has ended. Nothing is ever reported as ended that still runs.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from lerobot_tool_bridge.core import show
from lerobot_tool_bridge.core.errors import BridgeError, Rejection, ToolFailure
from lerobot_tool_bridge.core.tool import CallContext, Outcome, Tool
from lerobot_tool_bridge.ports import Ports

Call = Callable[[dict[str, Any]], Any]
"""Takes the arguments; may be ``async``."""

_PATH = re.compile(r"(?<![\w./:\\])(?:[A-Za-z]:)?(?:[/\\][^\s/\\'\":,;]+)+[/\\]([^\s/\\'\":,;]+)")
_MOST_THREADS = 16
"""Calls of one plain tool at once that share nothing, unless it says otherwise."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Description:
    """What is said of a callable when it becomes a tool.

    Attributes:
        parameters: JSON schema of its arguments.
        resources: See ``Tool``. None: side by side if it is ``async`` or pure; plain functions of
            one file run one after the other, and so do calls of one object.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    timeout: float = Tool.timeout
    motion: bool = False
    pure: bool = False
    resources: frozenset[str] | None = None
    needs: tuple[str, ...] = ()
    max_concurrent: int = 0


class PlainTool(Tool):
    """Base of the tools that ``plain_tool`` makes."""

    any_settings = True  # what the tools file says of its own is the function's business
    described: ClassVar[Description]

    def __init__(self, ports: Ports, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(ports, settings)
        self._call = self.bind()

    def bind(self) -> Call:
        """What is to be called, made once for each tool."""
        raise NotImplementedError

    @property
    def description(self) -> str:
        return self.described.description

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.described.parameters)

    async def run(self, arguments: dict[str, Any], context: CallContext) -> Outcome | str:
        try:
            if inspect.iscoroutinefunction(self._call):
                result = await self._call(arguments)
            else:
                result = await in_thread(self.name, self.resources, self._call, arguments)
                if inspect.isawaitable(result):
                    result = await result
        except (BridgeError, asyncio.CancelledError):
            raise
        except Exception as error:
            _log.error("%s (%s) failed", self.name, context.call_id, exc_info=error)
            raise ToolFailure("tool_error", f"{self.name} failed: {reason(error)}") from None
        return result if isinstance(result, Outcome) else content(result)


def plain_tool(
    described: Description, bind: Callable[[PlainTool], Call], is_async: bool, lane: str = ""
) -> type[Tool]:
    """A tool of this package around a callable.

    Args:
        described: What is said of it.
        bind: Makes the callable for one instance, which has ``settings`` and ``ports``.
        is_async: Whether what ``bind`` returns is ``async``.
        lane: Resource of plain callables whose description names none; empty for one of its own.
    """
    resources = described.resources
    if resources is None:
        side_by_side = is_async or described.pure
        resources = frozenset(() if side_by_side else (lane or f"tool {described.name}",))
    return type(
        described.name,
        (PlainTool,),
        {
            "__doc__": described.description,
            "name": described.name,
            "described": described,
            "needs": described.needs,
            "resources": resources,
            "motion": described.motion,
            "timeout": described.timeout,
            "max_concurrent": described.max_concurrent or (0 if is_async else _MOST_THREADS),
            "pure": described.pure,
            "bind": bind,
        },
    )


def content(result: Any) -> str:
    """A result as the text of a ``role=tool`` message: text as it is, all else as JSON."""
    if isinstance(result, str):
        return result
    if result is None:
        return "done"
    try:
        return json.dumps(result, ensure_ascii=False)
    except (TypeError, ValueError):
        return str(result)


def reason(error: BaseException) -> str:
    """What went wrong, for the model: one line without a path of this machine."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror + (f" ({error.filename})" if error.filename else "")
    elif isinstance(error, KeyError) or not text:
        text = f"{type(error).__name__} {text}".rstrip()
    text = _PATH.sub(r"\1", " ".join(text[:2000].split()))
    return f"{show.plain(text, 300).rstrip('.')}."


# --- threads --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Left:
    """A thread that was given up and still runs."""

    name: str
    resources: frozenset[str]
    thread: threading.Thread
    since: float


_left: list[_Left] = []


async def in_thread(name: str, resources: frozenset[str], call: Call, arguments: Any) -> Any:
    """Runs a plain callable in a thread of its own.

    Raises:
        Rejection: ``unavailable``: a call that was given up still runs on one of the resources.
        ToolFailure: ``cancel_unconfirmed``: it was to be cancelled, and still runs.
    """
    _refuse_beside(name, resources)
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()
    ended = threading.Event()

    def work() -> None:
        result, error = None, None
        try:
            result = context.run(call, arguments)
        except BaseException as raised:
            error = raised
        ended.set()
        try:
            loop.call_soon_threadsafe(_settle, done, result, error)
        except RuntimeError:
            _log.info("%s ended after everything else had", name)

    # not of a pool: a pool's threads would be waited for when the process ends
    thread = threading.Thread(target=work, name=f"tool {name}", daemon=True)
    thread.start()
    try:
        result, error = await done
    except asyncio.CancelledError:
        if ended.is_set():
            raise ToolFailure("late", "It ended at that very moment, so it was done.") from None
        _left.append(_Left(name, resources or frozenset({f"tool {name}"}), thread, time.time()))
        raise ToolFailure(
            "cancel_unconfirmed",
            f"{name} was given up, but it is plain Python that can't be interrupted, and it still "
            "runs. What it does is not known. It is refused until it has ended.",
        ) from None
    if error is None:
        return result
    if isinstance(error, Exception | SystemExit):
        raise error
    raise RuntimeError(f"{type(error).__name__} was raised") from error


def _settle(
    done: asyncio.Future[tuple[Any, BaseException | None]], result: Any, error: Any
) -> None:
    if not done.done():
        done.set_result((result, error))


def _refuse_beside(name: str, resources: frozenset[str]) -> None:
    for left in [*_left]:
        if not left.thread.is_alive():
            _left.remove(left)
            _log.info("%s, given up before, has ended", left.name)
        elif left.resources & (resources or {f"tool {name}"}):
            seconds = time.time() - left.since
            raise Rejection(
                "unavailable",
                f"A call of {left.name} that was given up {seconds:.0f} s ago still runs, so "
                f"{name} can't begin. Wait, and tell the operator if it stays so.",
            )
