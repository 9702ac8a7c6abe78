"""Tools written for other systems, as tools of this one.

Known by their form, so that a file needs no import from here:

- a subclass of ``core.tool.Tool``: as it is;
- LeRobot's: a class or object with ``name``, ``schema`` and ``call(arguments)``;
- Twinkle's: a class or object with ``tool_info()`` and ``__call__(tool_name, arguments)``;
- a function given to ``register_function``;
- any other function with type hints and a Google docstring, as Transformers takes it.

Whatever such a class says with ``motion``, ``timeout``, ``resources``, ``needs``, ``pure`` and
``max_concurrent`` counts as it does in ``Tool``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from lerobot_tool_bridge.core.catalog import Declared, declare
from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.core.plain import Call, Description, PlainTool, plain_tool
from lerobot_tool_bridge.core.signature import (
    Docstring,
    Values,
    function_parameters,
    get_json_schema,
)
from lerobot_tool_bridge.core.tool import Tool

MARK = "__tool_options__"
"""Attribute by which ``register_function`` marks a function."""

CONFIG = "__tool_config__"
"""Attribute in which a function finds what the tools file says of its own."""

_OPEN = {"type": "object", "properties": {}, "additionalProperties": True}
_OPTIONS = ("timeout", "motion", "pure", "resources", "needs", "max_concurrent")


def adapt(thing: Any, name: str = "") -> type[Tool]:
    """The tool class of anything that is a tool in one of the known forms.

    Args:
        thing: See the module.
        name: In place of its own.

    Raises:
        LoadError: It has none of them, or its schema can't be used.
    """
    if is_twinkle(thing):
        return _twinkle_tool(thing() if isinstance(thing, type) else thing, name)
    kind = _adapt(thing)
    return type(name, (kind,), {"name": name}) if name and name != kind.name else kind


def _adapt(thing: Any) -> type[Tool]:
    if isinstance(thing, type) and issubclass(thing, Tool):
        return thing
    if hasattr(thing, MARK):
        return function_tool(thing, **getattr(thing, MARK))
    if is_lerobot(thing):
        return _lerobot_tool(thing)
    if inspect.isroutine(thing):
        schema = get_json_schema(thing)["function"]
        return function_tool(thing, schema["name"], schema["description"])
    raise LoadError(
        "bad_tool",
        "it is no tool: neither a subclass of Tool, nor a class with name, schema and call, nor "
        "one with tool_info, nor a function",
    )


def is_lerobot(thing: Any) -> bool:
    """Whether it has ``name`` and ``call``, as LeRobot's tools have."""
    return isinstance(getattr(thing, "name", None), str) and callable(getattr(thing, "call", None))


def is_twinkle(thing: Any) -> bool:
    """Whether it has ``tool_info`` and can be called, as Twinkle's tools have and can."""
    kind = thing if isinstance(thing, type) else type(thing)
    return callable(getattr(thing, "tool_info", None)) and any(
        "__call__" in vars(c) for c in kind.__mro__
    )


def function_tool(
    function: Callable[..., Any],
    name: str,
    description: str = "",
    parameters: Mapping[str, Any] | None = None,
    **options: Any,
) -> type[Tool]:
    """A function as a tool.

    Args:
        function: Plain or ``async``; called with the arguments by name.
        name: For the model.
        description: For the model; empty takes the docstring's.
        parameters: JSON schema in place of what signature and docstring say.
        options: See ``Description``.

    Raises:
        LoadError: The signature has no schema.
    """
    described = Description(
        name=name,
        description=description or Docstring.of(function).description,
        parameters=parameters or _exact(function_parameters(function)),
        **_checked(options),
    )
    values = Values(function)

    def call(arguments: dict[str, Any]) -> Any:
        return function(**values(arguments))

    async def call_async(arguments: dict[str, Any]) -> Any:
        return await function(**values(arguments))

    is_async = _is_async(function)
    chosen: Call = call_async if is_async else call
    # what was written for a loop that waits for each call may share whatever it likes
    lane = f"functions of {getattr(function, '__module__', name)}"

    def bind(tool: PlainTool) -> Call:
        if tool.settings and not inspect.ismethod(function):  # a method has no attributes
            setattr(function, CONFIG, tool.settings)
        return chosen

    return plain_tool(described, bind, is_async, lane)


def _twinkle_tool(tool: Any, name: str) -> type[Tool]:
    declared = declare(tool.tool_info())
    name = name or declared.name

    def call(arguments: dict[str, Any]) -> Any:
        return tool(name, arguments)

    async def call_async(arguments: dict[str, Any]) -> Any:
        return await tool(name, arguments)

    is_async = _is_async(type(tool).__call__)
    chosen: Call = call_async if is_async else call
    described = _described(tool, Declared(name, declared.description, declared.parameters))
    return plain_tool(described, lambda made: chosen, is_async)


def _lerobot_tool(thing: Any) -> type[Tool]:
    schema = getattr(thing, "schema", None)
    declared = declare(schema) if isinstance(schema, Mapping) else Declared(thing.name, "", _OPEN)
    described = _described(thing, Declared(thing.name, declared.description, declared.parameters))

    def bind(tool: PlainTool) -> Call:
        made = _make(thing, tool) if isinstance(thing, type) else thing
        call: Call = made.call
        return call

    return plain_tool(described, bind, _is_async(thing.call))


def _make(kind: type, tool: PlainTool) -> Any:
    """An instance; its constructor gets those settings of the tools file that it knows."""
    known = inspect.signature(kind).parameters
    settings: dict[str, Any] = {
        "output_dir": str(tool.ports.output_dir),
        "schema": getattr(kind, "schema", None),
        **tool.settings,
    }
    anything = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values())
    names = tool.settings if anything else known
    return kind(**{n: settings[n] for n in (*names, *known) if n in settings})


def _described(thing: Any, declared: Declared) -> Description:
    options = {n: getattr(thing, n) for n in _OPTIONS if getattr(thing, n, None) is not None}
    return Description(
        declared.name, declared.description, declared.parameters, **_checked(options)
    )


def _checked(options: Mapping[str, Any]) -> dict[str, Any]:
    known = {n: v for n, v in options.items() if v is not None}
    unknown = [n for n in known if n not in _OPTIONS]
    if unknown:
        raise LoadError("bad_tool", f"{unknown[0]} is no option of a tool")
    most = known.get("max_concurrent", 0)
    if type(most) is not int or most < 0:
        raise LoadError("bad_tool", "its max_concurrent should be a whole number")
    if "resources" in known:
        given = known["resources"]
        known["resources"] = frozenset((given,) if isinstance(given, str) else given)
    if "needs" in known:
        known["needs"] = tuple(known["needs"])
    return known


def _exact(parameters: dict[str, Any]) -> dict[str, Any]:
    """Tuples have as many values as the hint says; a function relies on it."""
    for part in parameters["properties"].values():
        for schema in (part, *part.get("anyOf", ())):
            if "prefixItems" in schema:
                count = len(schema["prefixItems"])
                schema.update(minItems=count, maxItems=count)
    return parameters


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        type(function).__call__
    )
