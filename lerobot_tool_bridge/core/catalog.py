"""The catalogue of a data set: which tools its policy was taught (``meta/info.json``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lerobot_tool_bridge.core import show, strict_json
from lerobot_tool_bridge.core.errors import LoadError, Rejection

SAY_SCHEMA: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "say",
        "description": "Speak a short utterance to the user via the TTS executor.",
        "parameters": {
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "The verbatim text to speak."}
            },
            "required": ["text"],
        },
    },
}
DEFAULT_TOOLS = [SAY_SCHEMA]
"""What LeRobot takes where a data set declares no tools."""

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MAX_TOOLS = 512
_MAX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Declared:
    """One tool as a catalogue declares it."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The tools that a data set declares.

    Attributes:
        tools: In the order of the file.
        problems: Tools that can't be used, and why.
        note: One line for the log where the file declares none.
    """

    tools: tuple[Declared, ...]
    problems: tuple[LoadError, ...] = field(default=())
    note: str = ""

    @classmethod
    def load(cls, path: str | Path) -> Catalogue:
        """Reads a data set's folder, its ``meta/info.json``, or a JSON file with tools.

        Raises:
            LoadError: ``bad_file``; the text names the file and what is expected.
        """
        file = Path(path).expanduser()
        if file.is_dir():
            inside = [p for p in (file / "meta" / "info.json", file / "info.json") if p.is_file()]
            if not inside:
                raise LoadError("bad_file", f"{file} is no data set: it has no meta/info.json.")
            file = inside[0]
        try:
            with file.open("rb") as stream:
                data = stream.read(_MAX_BYTES + 1)
        except OSError as error:
            raise LoadError("bad_file", f"{file} can't be read: {error.strerror}.") from None
        try:
            content = strict_json.read(data, _MAX_BYTES)
        except Rejection as error:
            raise LoadError("bad_file", f"{file}: {error.message}") from None
        return cls.parse(content, str(file))

    @classmethod
    def parse(cls, content: Any, source: str = "the catalogue") -> Catalogue:
        """Takes the content of ``info.json`` (an object with ``tools``), or the list itself.

        Raises:
            LoadError: ``bad_file``: ``tools`` is no list.
        """
        tools = content.get("tools") if isinstance(content, Mapping) else content
        if tools is None or tools == []:
            return cls(
                (declare(SAY_SCHEMA),),
                note=f"{source} declares no tools, so only LeRobot's default, say, is offered. "
                "To offer the robot's tools as well, add their schemas to its list 'tools', or "
                "start the bridge without a catalogue.",
            )
        if not isinstance(tools, list):
            raise LoadError(
                "bad_file",
                f"{source}: 'tools' should be a list of function schemas, it is "
                f'{show.value(tools)}. Write [{{"type": "function", "function": '
                f'{{"name": ...}}}}].',
            )
        if len(tools) > _MAX_TOOLS:
            raise LoadError("bad_file", f"{source} declares more than {_MAX_TOOLS} tools.")
        declared: dict[str, Declared] = {}
        problems: list[LoadError] = []
        for index, item in enumerate(tools):
            try:
                tool = declare(item)
                if tool.name in declared:
                    raise LoadError("tool_name", f"{tool.name} is declared twice.")
                declared[tool.name] = tool
            except LoadError as error:
                problems.append(
                    LoadError(error.code, f"{source}, tool {index + 1}: {error.message}")
                )
        return cls(tuple(declared.values()), tuple(problems))


def declare(item: Any) -> Declared:
    """Takes one function schema, with or without the inner ``function``.

    Raises:
        LoadError: ``tool_name`` or ``bad_schema``.
    """
    if not isinstance(item, Mapping) or item.get("type", "function") != "function":
        raise LoadError("bad_schema", "this is no function schema (type: function).")
    body = item.get("function", item)
    if not isinstance(body, Mapping):
        raise LoadError("bad_schema", "its member 'function' should be an object.")
    name = body.get("name")
    check_name(name)
    assert isinstance(name, str)
    description = body.get("description") or ""
    parameters = body.get("parameters") or {"type": "object", "properties": {}}
    try:
        strict_json.check(dict(body))
    except Rejection as error:
        raise LoadError("bad_schema", f"{name}: {error.message}") from None
    if not isinstance(description, str) or not isinstance(parameters, Mapping):
        raise LoadError(
            "bad_schema", f"{name}: its description should be a text, its parameters an object."
        )
    return Declared(name, description, parameters)


def check_name(name: Any) -> None:
    """Refuses what could not be a function's name at every model server.

    Raises:
        LoadError: ``tool_name``.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise LoadError(
            "tool_name",
            f"{show.value(name)} is no name for a tool: letters, digits, _ and -, at most 64.",
        )
