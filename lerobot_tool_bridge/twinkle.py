"""For code that is written for Twinkle's tools: ``Tool`` and ``ToolManager``.

A ``Tool`` of that form is also a tool of the bridge as it is, and a ``ToolManager`` stands on the
bridge's own validator and dispatcher: arguments are checked against the tool's schema before it
runs, and a call that does not end is answered after its time limit (``timeout`` of the class).
"""

from __future__ import annotations

import copy
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.core.messages import failure_content
from lerobot_tool_bridge.local import Local

_log = logging.getLogger(__name__)

ToolInfo = dict[str, Any]
"""An OpenAI function schema."""


class Tool(ABC):
    """What every tool has."""

    @abstractmethod
    def __call__(self, tool_name: str, arguments: dict[str, Any]) -> str:
        """Does the work; returns the text for the model."""

    @abstractmethod
    def tool_info(self) -> ToolInfo:
        """The OpenAI function schema."""


class ToolManager:
    """Tools by name; calling it runs an OpenAI tool call.

    Args:
        tools: A list, or a mapping from the name under which each is called.

    Raises:
        LoadError: The schema of a tool can't be used.
    """

    def __init__(self, tools: Iterable[Any] | Mapping[str, Any] | None = None) -> None:
        self._local = Local()
        self._tools: dict[str, Any] = {}
        named = tools.items() if isinstance(tools, Mapping) else (("", t) for t in tools or ())
        for name, tool in named:
            self._add(tool, name)

    def register(self, tool: Any) -> None:
        """Adds a tool under the name of its ``tool_info``, in place of one of that name.

        Raises:
            LoadError: Its schema can't be used.
        """
        self._add(tool, "")

    def unregister(self, name: str) -> None:
        """Removes a tool; nothing happens where there is none of that name."""
        self._local.remove(name)
        self._tools.pop(name, None)

    def names(self) -> list[str]:
        """The tools' names, in the order in which they were added."""
        return list(self._tools)

    def copy(self) -> ToolManager:
        """Another manager of the same tools: what is added to one is not added to the other."""
        made = ToolManager()
        made._local = self._local.copy()
        made._tools = dict(self._tools)
        return made

    def tool_infos(self) -> list[ToolInfo]:
        """The schemas, as the tools give them, for a request to a model."""
        return [_info(tool, name) for name, tool in self._tools.items()]

    def statistics(self) -> dict[str, dict[str, Any]]:
        """Counts and times by tool."""
        return self._local.statistics()

    def __call__(self, tool_call: Mapping[str, Any]) -> str:
        """Runs an OpenAI tool call; what goes wrong is said in the text, nothing is raised."""
        try:
            return self._local.call(tool_call).message["content"]
        except Exception as error:  # a rollout has to go on
            _log.exception("A tool call could not be run")
            return failure_content("tool_error", f"The call could not be run: {error}")

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def _add(self, tool: Any, name: str) -> None:
        if not hasattr(tool, "tool_info"):
            raise LoadError("bad_tool", f"{tool!r} has no tool_info, so it is no Tool.")
        added = self._local.add(tool, name)
        self._tools[added] = tool


def _info(tool: Any, name: str) -> ToolInfo:
    info: ToolInfo = copy.deepcopy(tool.tool_info())
    body = info.get("function", info)
    body["name"] = name
    return info
