"""For code that is written for a function registry: ``@register_function(name, description)``.

::

    @FunctionRegistry.register_function("add", "Adds two numbers")
    def add(a: float, b: float = 1.0) -> str:
        ...

Plain and ``async`` functions; the schema comes from signature and docstring. The function itself
stays as it was. A file with such functions in the bridge's folder of tools is all that it takes
to offer them on a robot; ``FunctionRegistry`` runs their calls in this process.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from lerobot_tool_bridge.core.adapt import CONFIG, MARK
from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.core.folder import load_folder
from lerobot_tool_bridge.core.signature import Docstring, function_parameters
from lerobot_tool_bridge.core.toolsfile import ToolSettings, load_tools_file
from lerobot_tool_bridge.local import Answer, Local

F = TypeVar("F", bound=Callable[..., Any])
_CACHED = type(functools.lru_cache(lambda: None))


class FunctionRegistry:
    """The registered functions of this process. Everything belongs to the class itself."""

    _functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    _settings: ClassVar[dict[str, ToolSettings]] = {}
    _local: ClassVar[Local] = Local()
    _new: ClassVar[list[str]] = []
    _lock: ClassVar[threading.Lock] = threading.Lock()
    problems: ClassVar[list[LoadError]] = []
    """What was skipped, and why."""

    @classmethod
    def register_function(
        cls,
        name: str,
        description: str = "",
        *,
        parameters: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        pure: bool | None = None,
        motion: bool = False,
        resources: Iterable[str] | None = None,
        max_concurrent: int = 0,
    ) -> Callable[[F], F]:
        """Registers the decorated function, and leaves it as it is.

        Args:
            name: For the model.
            description: For the model; empty takes the docstring's.
            parameters: JSON schema of the arguments, in place of the signature's.
            timeout: Seconds that a call may take.
            pure: Results are kept and given again for the same arguments. Never for a function
                that has to do with a device. ``functools.lru_cache`` says the same.
            motion: It moves something: refused while the robot is stopped.
            resources: Calls that share one run one after the other. Left out: plain functions of
                one file run one after the other, ``async`` ones side by side.
            max_concurrent: Calls of it at once; the others wait.
        """

        def register(function: F) -> F:
            known = cls._functions.get(name)
            if known is not None and _place(known) != _place(function):
                raise LoadError(
                    "tool_name", f"There is a function {name} already: {_place(known)}"
                )
            options = {
                "name": name,
                "description": description,
                "parameters": parameters,
                "timeout": timeout,
                "pure": isinstance(function, _CACHED) if pure is None else pure,
                "motion": motion,
                "resources": resources,
                "max_concurrent": max_concurrent,
            }
            setattr(function, MARK, options)
            cls._functions[name] = function
            cls._new.append(name)
            return function

        return register

    @classmethod
    def unregister(cls, name: str) -> None:
        """Forgets a function; nothing happens where there is none of that name."""
        cls._functions.pop(name, None)
        cls._local.remove(name)

    @classmethod
    def get_function(cls, name: str) -> Callable[..., Any] | None:
        """The function itself, or None."""
        return cls._functions.get(name)

    @classmethod
    def is_async(cls, name: str) -> bool:
        """Whether the function is ``async``."""
        return inspect.iscoroutinefunction(cls._functions.get(name))

    @classmethod
    def names(cls) -> list[str]:
        """All registered functions."""
        return list(cls._functions)

    # --- settings ---------------------------------------------------------------------------

    @classmethod
    def configure(cls, settings: str | Path | Mapping[str, Any]) -> None:
        """Takes what a site wants: which functions are on, descriptions, timeouts, own values.

        Args:
            settings: A YAML file, or its content, with ``function_calling: tools: <name>: ...``.

        Raises:
            LoadError: ``bad_file``.
        """
        if isinstance(settings, Mapping):
            tools = settings.get("function_calling", settings).get("tools") or {}
            cls._settings = {str(n): ToolSettings.parse(str(n), v) for n, v in tools.items()}
        else:
            cls._settings = load_tools_file(settings)
        cls._local = Local(settings=cls._settings)
        cls._new = list(cls._functions)

    @classmethod
    def get_config(cls, name: str) -> Mapping[str, Any]:
        """The values of its own that the settings give a function (``custom_param``)."""
        function = cls._functions.get(name)
        given: Mapping[str, Any] = getattr(function, CONFIG, {})
        return given or cls._settings.get(name, ToolSettings()).own

    @classmethod
    def load_folder(cls, path: str | Path) -> list[str]:
        """Registers the functions of a folder of Python files; a broken file is skipped.

        Returns:
            Names of the functions that came in. ``problems`` holds what was skipped.

        Raises:
            LoadError: There is no such folder.
        """
        before = set(cls._functions)
        cls.problems += load_folder(path)[1]
        return [n for n in cls._functions if n not in before]

    # --- calls ------------------------------------------------------------------------------

    @classmethod
    def local(cls) -> Local:
        """What runs the calls; a function whose schema can't be made is skipped."""
        with cls._lock:
            while cls._new:
                name = cls._new.pop(0)
                if name in cls._functions:
                    try:
                        cls._local.add(cls._functions[name])
                    except LoadError as error:
                        cls.problems.append(LoadError(error.code, f"{name}: {error.message}"))
            return cls._local

    @classmethod
    def get_enabled_schemas(cls) -> list[dict[str, Any]]:
        """The functions that the settings do not switch off, for ``tools=`` of a model."""
        return cls.local().schemas()

    @classmethod
    async def execute_tool_call(cls, tool_call: Mapping[str, Any]) -> dict[str, Any]:
        """Runs an OpenAI tool call.

        Returns:
            ``name`` and ``tool_call_id``, and either ``result`` or ``error``.
        """
        return _result(await cls.local().acall(tool_call))

    @classmethod
    def call(cls, tool_call: Mapping[str, Any]) -> dict[str, Any]:
        """``execute_tool_call`` for code that is not ``async``."""
        return _result(cls.local().call(tool_call))

    @classmethod
    def get_stats(cls) -> dict[str, dict[str, Any]]:
        """Counts and times by function; ``success_rate`` (0 to 1) and ``avg_time`` among them."""
        return {
            name: {
                **counts,
                "success_rate": counts["succeeded"] / counts["calls"],
                "avg_time": counts["average_s"],
            }
            for name, counts in cls.local().statistics().items()
        }


register_function = FunctionRegistry.register_function
get_enabled_schemas = FunctionRegistry.get_enabled_schemas
execute_tool_call = FunctionRegistry.execute_tool_call


def generate_function_schema(func_name: str, func: Callable[..., Any]) -> dict[str, Any]:
    """Name, description and parameters of a function, from its signature and docstring.

    Raises:
        LoadError: A type is there that no schema can say.
    """
    given: dict[str, Any] = getattr(func, MARK, {})
    return {
        "name": func_name,
        "description": given.get("description") or Docstring.of(func).description,
        "parameters": given.get("parameters") or function_parameters(func),
    }


def integrate_tool_result(
    messages: list[dict[str, Any]], tool_result: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Appends what ``execute_tool_call`` returned to a chat history: a ``role=tool`` message."""
    failed = "error" in tool_result
    content = f"Error: {tool_result['error']}" if failed else tool_result["result"]
    messages.append(
        {
            "role": "tool",
            "tool_call_id": tool_result["tool_call_id"],
            "name": tool_result["name"],
            "content": content,
        }
    )
    return messages


def _place(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _result(answer: Answer) -> dict[str, Any]:
    message = answer.message
    content = message["content"]
    return {
        "name": message["name"],
        "tool_call_id": message["tool_call_id"],
        **({"result": content} if answer.good else {"error": content.removeprefix("Error: ")}),
    }
