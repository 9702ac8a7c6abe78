"""Tool calls by hand: a model that is told to answer with JSON, and a dispatcher that reads it.

::

    TOOLS = {"calcular": ("Resolve uma expressão aritmética.", calcular, "expressao")}
    despachar = TextDispatcher(TOOLS)
    despachar('Vou calcular: {"ferramenta": "calcular", "expressao": "28*3/4"}')   # "21.0"

What the model asks for is checked and run as on the robot. An error is a text that begins with
``Error: `` and says what to change: give it to the model, and let it try again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lerobot_tool_bridge.core.adapt import function_tool
from lerobot_tool_bridge.core.errors import LoadError, Rejection
from lerobot_tool_bridge.core.messages import failure_content, new_id, result_message
from lerobot_tool_bridge.core.signature import Docstring, function_parameters
from lerobot_tool_bridge.formats.plain_json import PlainJson
from lerobot_tool_bridge.local import Local

_SAMPLES = {
    "string": "...",
    "number": 1.5,
    "integer": 1,
    "boolean": True,
    "array": [],
    "object": {},
}


class TextDispatcher:
    """Reads one request out of free text, and runs it.

    Args:
        tools: By name: a function; or description and function; or those and the names of its
            arguments, where the signature is not to be asked. Or a list of whatever
            ``core.adapt`` knows.
        name_key: The request's key that names the tool.
        arguments_key: The key that holds the arguments. Empty: they stand beside the name.
        settings: As the tools file has them: time limits and the like, by tool.

    Raises:
        LoadError: A tool can't be used.
    """

    def __init__(
        self,
        tools: Mapping[str, Any] | Iterable[Any],
        *,
        name_key: str = "ferramenta",
        arguments_key: str = "",
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        keys = f"{name_key},{arguments_key}" if arguments_key else name_key
        self._format = PlainJson(keys)
        self._name_key = name_key
        self._arguments_key = arguments_key
        self._local = Local(settings=settings)
        named = tools.items() if isinstance(tools, Mapping) else (("", t) for t in tools)
        for name, tool in named:
            if name and (callable(tool) or isinstance(tool, tuple)):
                tool = _tool(name, tool)
            self._local.add(tool, name)

    def describe(self) -> str:
        """The tools and how to ask for one, for the model's instructions."""
        lines = ["Tools:"]
        for schema in self._local.schemas():
            function = schema["function"]
            lines.append(f"- {function['name']}: {function['description']}".rstrip(": "))
            required = function["parameters"].get("required", ())
            for name, part in function["parameters"]["properties"].items():
                kind = part.get("type", "any value")
                kind = " or ".join(kind) if isinstance(kind, list) else kind
                optional = "" if name in required else ", optional"
                choices = f", one of {json.dumps(part['enum'])}" if "enum" in part else ""
                text = f": {part['description']}" if part.get("description") else ""
                lines.append(f"    {name} ({kind}{optional}{choices}){text}")
        example = self.example()
        if example:
            lines.append(
                "To use a tool, answer with one JSON object, not in a code block, such as:\n"
                f"{example}"
            )
        return "\n".join(lines)

    def example(self) -> str:
        """A request for the first tool."""
        for schema in self._local.schemas():
            function = schema["function"]
            properties = function["parameters"]["properties"]
            arguments = {
                n: _SAMPLES.get(str(properties[n].get("type")), "...")
                for n in function["parameters"].get("required", ())
            }
            if self._arguments_key:
                arguments = {self._arguments_key: arguments}
            return json.dumps({self._name_key: function["name"], **arguments}, ensure_ascii=False)
        return ""

    def read(self, text: str) -> dict[str, Any]:
        """The request in a text as a call: ``name`` and ``arguments``.

        Raises:
            Rejection: There is none, or more than one; the text says what to write.
        """
        parsed = self._format.parse(text, self._local.schemas())
        if parsed.notes and not parsed.calls:
            raise Rejection("bad_call", parsed.notes[0].detail)
        if not parsed.calls:
            raise Rejection(
                "bad_call",
                f"There is no request in the text. Write one JSON object: {self.example()}",
            )
        if len(parsed.calls) > 1 or parsed.notes:
            raise Rejection(
                "bad_call",
                "The text holds more than one request, and none was run. Send one, and wait for "
                "its result.",
            )
        (call,) = parsed.calls
        return {"name": call.name, "arguments": call.arguments}

    def __call__(self, text: str) -> str:
        """Runs the request in a text; what goes wrong is said in the answer, nothing is raised."""
        return self.run(text)["content"]

    def run(self, text: str) -> dict[str, str]:
        """The same as a ``role=tool`` message for a chat history."""
        try:
            call = self.read(text)
        except Rejection as error:
            return result_message(new_id(), "", failure_content(error.code, error.message))
        return self._local.call(call).message

    def statistics(self) -> dict[str, dict[str, Any]]:
        """Counts and times by tool."""
        return self._local.statistics()


def _tool(name: str, value: Any) -> Any:
    description, function, arguments = "", value, None
    if isinstance(value, tuple):
        description, function, *rest = value
        arguments = rest[0] if rest else None
    if arguments is None:
        return function_tool(function, name, description)
    return function_tool(
        _by_position(function, arguments), name, description, _named(function, arguments)
    )


def _by_position(function: Callable[..., Any], arguments: Any) -> Callable[..., Any]:
    """A function that gets the request's keys, which may differ from its parameters' names."""
    names = [arguments] if isinstance(arguments, str) else list(arguments)

    def call(**given: Any) -> Any:
        return function(*(given[n] for n in names))

    call.__module__ = function.__module__
    return call


def _named(function: Callable[..., Any], arguments: Any) -> dict[str, Any]:
    names = [arguments] if isinstance(arguments, str) else list(arguments)
    try:
        known = list(function_parameters(function)["properties"].values())
    except LoadError:  # they are given by position, so it need not have a schema
        known = []
    texts = Docstring.of(function).arguments
    properties = {
        n: {
            **(known[i] if i < len(known) else {}),
            **({"description": texts[n]} if n in texts else {}),
        }
        for i, n in enumerate(names)
    }
    return {"type": "object", "properties": properties, "required": names}
