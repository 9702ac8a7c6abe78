"""Which tools this bridge has: built in, from other packages, and as a data set declares them."""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import inspect
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lerobot_tool_bridge.core import show
from lerobot_tool_bridge.core.adapt import adapt
from lerobot_tool_bridge.core.cache import ResultCache
from lerobot_tool_bridge.core.catalog import Catalogue, Declared, check_name
from lerobot_tool_bridge.core.errors import LoadError, Rejection
from lerobot_tool_bridge.core.folder import load_folder
from lerobot_tool_bridge.core.messages import ToolCall, ValidCall
from lerobot_tool_bridge.core.schema import Schema, narrow, resolve
from lerobot_tool_bridge.core.tool import Tool
from lerobot_tool_bridge.core.toolsfile import MAX_TIMEOUT, ToolSettings
from lerobot_tool_bridge.ports import Ports

STOP = "stop"
"""The tool that ends all motion. It can always be called, whatever the catalogue offers."""

ENTRY_POINTS = "lerobot_tool_bridge.tools"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Entry:
    """One tool that can be called.

    Attributes:
        tool: What runs; None for a tool that is only declared.
        timeout: Seconds that a call may run.
        max_per_second: Calls; 0 for no limit of its own.
        max_concurrent: Calls at once; 0 for no limit.
        cache: Of a pure tool.
        missing: Why ``tool`` is None.
    """

    name: str
    description: str
    schema: Schema
    tool: Tool | None
    motion: bool
    resources: frozenset[str]
    timeout: float
    max_per_second: float = 0.0
    max_concurrent: int = 0
    cache: ResultCache | None = None
    missing: str = ""


class Registry:
    """The tools by name.

    Args:
        entries: Offered, in this order.
        hidden: Can be called without being offered.
        offline: Tools that are only declared count as callable (the checker).

    Attributes:
        problems: What was skipped while loading, and why; also in the log.
    """

    def __init__(
        self,
        entries: Iterable[Entry],
        hidden: Iterable[Entry] = (),
        problems: Sequence[LoadError] = (),
        offline: bool = False,
    ) -> None:
        self._offered = {e.name: e for e in entries}
        self._callable = {e.name: e for e in hidden} | self._offered
        self._offline = offline
        self.problems = list(problems)

    @classmethod
    def load(
        cls,
        ports: Ports,
        settings: Mapping[str, Any] | None = None,
        catalogue: Catalogue | None = None,
        *,
        tools: Iterable[Any] | None = None,
        folder: str | Path | None = None,
        offline: bool = False,
    ) -> Registry:
        """Builds the tools that a robot can have.

        Args:
            ports: What the robot offers; tools that need more are left out.
            settings: ``load_tools_file``, or plain mappings of the same keys, by tool.
            catalogue: Which tools to offer; None offers all there are.
            tools: In place of the built-in ones and entry points: whatever ``adapt`` knows, or
                ``module:name`` of such.
            folder: Python files whose tools are added.
            offline: See the class.

        Raises:
            LoadError: The tools file sets something that can't be.
        """
        return _Loader(ports, settings or {}, tools, folder, offline).load(catalogue)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._offered.values())

    def __len__(self) -> int:
        return len(self._offered)

    def knows(self, name: str) -> bool:
        """Whether a tool of this name can be called."""
        return name in self._callable

    def schemas(self) -> list[dict[str, Any]]:
        """The offered tools as ``tools=`` of a chat completion wants them."""
        return [
            {
                "type": "function",
                "function": {
                    "name": e.name,
                    "description": e.description,
                    "parameters": e.schema.parameters,
                },
            }
            for e in self
        ]

    def validate(self, call: ToolCall) -> ValidCall:
        """Finds the tool and checks the arguments: the one way to a call that can be run.

        Raises:
            Rejection: ``bad_call``, ``unknown_tool``, ``not_implemented``, what is wrong with the
                JSON of the arguments, ``invalid_arguments``, or a code of the tool's own.
        """
        if call.fault is not None and (not call.name or call.fault.code == "bad_call"):
            raise call.fault
        entry = self._callable.get(call.name)
        if entry is None:
            raise Rejection("unknown_tool", self._unknown(call.name))
        if entry.name == STOP:  # whatever its arguments are, the robot stops
            return ValidCall(call.id, entry, {})
        if entry.tool is None and not self._offline:
            raise Rejection("not_implemented", entry.missing)
        if call.fault is not None:
            raise call.fault
        arguments = entry.schema.validate(call.arguments, call.padded)
        if entry.tool is not None:
            try:
                entry.tool.check(arguments)
            except Rejection:
                raise
            except Exception:
                _log.exception("%s could not check its arguments", entry.name)
                raise Rejection(
                    "tool_error",
                    "The tool failed while it checked its arguments. The operator finds the "
                    "reason in the log.",
                ) from None
        return ValidCall(call.id, entry, arguments)

    def _unknown(self, name: str) -> str:
        names = list(self._offered)
        text = f"There is no tool {show.text(name)}."
        close = difflib.get_close_matches(name[:64].lower(), names, n=3)
        if close:
            text += f" Did you mean {show.listed(close, 'or')}?"
        return f"{text} Tools: {show.listed(names) or 'none'}."


class _Loader:
    def __init__(
        self,
        ports: Ports,
        settings: Mapping[str, Any],
        tools: Iterable[Any] | None,
        folder: str | Path | None,
        offline: bool,
    ) -> None:
        self._ports = ports
        self._settings = {
            n: s if isinstance(s, ToolSettings) else ToolSettings.parse(n, s)
            for n, s in settings.items()
        }
        self._offline = offline
        self._problems: list[LoadError] = []
        self._classes = self._find(tools, folder)

    def load(self, catalogue: Catalogue | None) -> Registry:
        self._report_unknown(catalogue)
        hidden = []
        if catalogue is None:
            entries = [e for name in self._classes if (e := self._entry(name, None)) is not None]
        else:
            for problem in catalogue.problems:
                self._skip(problem)
            if catalogue.note:
                _log.warning("%s", catalogue.note)
            entries = [e for d in catalogue.tools if (e := self._entry(d.name, d)) is not None]
            if STOP in self._classes and not any(e.name == STOP for e in entries):
                stop = self._entry(STOP, None)
                hidden = [stop] if stop is not None else []
        return Registry(entries, hidden, self._problems, self._offline)

    def _entry(self, name: str, declared: Declared | None) -> Entry | None:
        kind = self._classes.get(name)
        settings = self._settings_for(name, kind)
        if not settings.enabled:
            return None
        tool, missing = self._make(kind, settings) if kind is not None else (None, "")
        if tool is None and declared is None:
            if missing:
                _log.info("%s is not offered: %s", name, missing)
            return None
        try:
            return self._combine(name, tool, declared, settings, missing)
        except LoadError as error:
            self._skip(LoadError(error.code, f"{name}: {error.message}"))
        except Exception as error:  # a tool of another package may raise anything
            self._skip(LoadError("tool_error", f"{name} has no usable schema: {error!r}"))
        return None

    def _settings_for(self, name: str, kind: type[Tool] | None) -> ToolSettings:
        """The tool's settings over those of its family."""
        own = self._settings.get(name, ToolSettings())
        family = self._settings.get(kind.family) if kind is not None and kind.family else None
        if family is None:
            return own
        enabled = own.enabled and family.enabled
        return replace(own, enabled=enabled, own={**family.own, **own.own})

    def _combine(
        self,
        name: str,
        tool: Tool | None,
        declared: Declared | None,
        settings: ToolSettings,
        missing: str,
    ) -> Entry:
        description = settings.description or (declared.description if declared else "")
        parameters = dict(tool.parameters if tool is not None else {})
        if declared is not None and tool is not None:
            own = resolve(parameters)
            theirs = resolve(declared.parameters)
            unknown = [
                n for n in theirs.get("properties", ()) if n not in own.get("properties", ())
            ]
            if unknown and own.get("additionalProperties") is False:
                _log.warning(
                    "%s: the catalogue declares %s, which the tool here does not take",
                    name,
                    show.listed(unknown),
                )
            parameters = narrow(theirs, own)
        elif declared is not None:
            parameters = dict(declared.parameters)
        names = parameters.get("properties", {})
        limits = {k: v for k, v in settings.own.items() if k in names and isinstance(v, Mapping)}
        if limits:
            parameters = narrow(parameters, {"properties": limits})
        if tool is not None:
            self._report_settings(name, tool, [k for k in settings.own if k not in limits])
        timeout = settings.timeout or (tool.timeout if tool is not None else Tool.timeout)
        if not isinstance(timeout, int | float) or not 0 < timeout <= MAX_TIMEOUT:
            raise LoadError(
                "bad_tool",
                f"its timeout is {show.value(timeout)}; it should be seconds above 0, at most "
                f"{MAX_TIMEOUT:g}",
            )
        pure = tool is not None and tool.pure
        if tool is not None and pure and (tool.motion or tool.needs or tool.resources):
            raise LoadError(
                "bad_tool",
                "it says that it is pure, but it moves something or uses a part of the robot; "
                "its results can't be kept",
            )
        return Entry(
            name=name,
            description=description or (tool.description if tool is not None else ""),
            schema=Schema(parameters),
            tool=tool,
            # a tool that is not known here may well move something
            motion=tool.motion if tool is not None else name != STOP,
            resources=tool.resources if tool is not None else frozenset(),
            timeout=float(timeout),
            max_per_second=settings.max_per_second or 0.0,
            max_concurrent=settings.max_concurrent or (tool.max_concurrent if tool else 0),
            cache=ResultCache() if pure else None,
            missing=missing
            or f"{name} is declared by the catalogue, but nothing on this robot implements it. "
            "Do without it.",
        )

    def _make(self, kind: type[Tool], settings: ToolSettings) -> tuple[Tool | None, str]:
        robot = self._ports.robot
        lacks = [n for n in kind.needs if robot is not None and not robot.has(n)]
        if lacks:
            return None, f"This robot has no {show.listed(lacks, 'or')}. Do without it."
        try:
            tool = kind(self._ports, settings.own)
            missing = tool.missing()
            return (None, missing) if missing else (tool, "")
        except Exception as error:
            _log.exception("the tool %s can't be made", kind.name)
            self._skip(LoadError("tool_error", f"{kind.name} can't be made: {error}"))
            return None, "This tool is out of order on this robot. Do without it."

    def _find(
        self, tools: Iterable[Any] | None, folder: str | Path | None
    ) -> dict[str, type[Tool]]:
        """The classes by tool name; a broken one is reported and skipped."""
        found: dict[str, type[Tool]] = {}
        for source, get in self._sources(tools, folder):
            try:
                kind = adapt(get())
                check_name(kind.name)
                if kind.name in found:
                    raise LoadError("tool_name", f"there is a tool {kind.name} already")
                found[kind.name] = kind
            except LoadError as error:
                self._skip(LoadError(error.code, f"{source} is skipped: {error.message}"))
            except (Exception, SystemExit) as error:
                _log.debug("%s", source, exc_info=True)
                self._skip(LoadError("bad_tool", f"{source} can't be loaded: {error!r}"))
        return found

    def _sources(
        self, tools: Iterable[Any] | None, folder: str | Path | None
    ) -> Iterator[tuple[str, Any]]:
        if tools is None:
            from lerobot_tool_bridge.tools import BUILTIN

            tools = BUILTIN
            points = importlib.metadata.entry_points(group=ENTRY_POINTS)
        else:
            points = ()  # type: ignore[assignment]
        for tool in tools:
            if isinstance(tool, str):
                yield tool, lambda path=tool: import_tool(path)
            else:
                yield getattr(tool, "__qualname__", repr(tool)), lambda kind=tool: kind
        for point in points:
            yield f"the plugin {point.value}", point.load
        if folder is not None:
            found, problems = load_folder(folder)
            for problem in problems:
                self._skip(problem)
            for source, thing in found:
                yield source, lambda kind=thing: kind

    def _report_unknown(self, catalogue: Catalogue | None) -> None:
        declared = catalogue.tools if catalogue is not None else ()
        families = {kind.family for kind in self._classes.values() if kind.family}
        known = [*self._classes, *families, *(d.name for d in declared)]
        for name in self._settings:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                hint = f" Did you mean {close[0]}?" if close else ""
                _log.warning("The tools file sets %s, which is no tool here.%s", name, hint)

    def _report_settings(self, name: str, tool: Tool, keys: Sequence[str]) -> None:
        if tool.any_settings:
            return
        known = setting_names(type(tool))
        for key in keys:
            if key not in known:
                _log.warning(
                    "The tools file sets %s.%s, which is neither an argument nor a setting of "
                    "the tool (%s). It is ignored.",
                    name,
                    key,
                    show.listed(known) or "it has none",
                )

    def _skip(self, problem: LoadError) -> None:
        self._problems.append(problem)
        _log.error("%s (%s)", problem.message, problem.code)


def setting_names(kind: type[Tool]) -> list[str]:
    """The settings that a tool's docstring lists under ``Settings:``."""
    section = re.search(r"^Settings:\n((?:[ \t]+.*\n?|\n)*)", inspect.getdoc(kind) or "", re.M)
    return re.findall(r"^ {4}(\w+):", section.group(1), re.M) if section else []


def import_tool(path: str) -> Any:
    """What ``module:name`` names."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
