"""For code that is written for LeRobot's tools: ``Tool``, ``TOOL_REGISTRY``, ``get_tools(meta)``.

LeRobot documents this layer and does not ship it. A class of that form is also a tool of the
bridge as it is: in a folder of tools, as an entry point, or in ``Local(get_tools(meta))``.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from lerobot_tool_bridge.core.catalog import DEFAULT_TOOLS, SAY_SCHEMA, Catalogue, declare
from lerobot_tool_bridge.core.errors import LoadError, ToolFailure
from lerobot_tool_bridge.local import Local
from lerobot_tool_bridge.ports import CameraPort, Ports
from lerobot_tool_bridge.speech import make_speaker

__all__ = [
    "DEFAULT_TOOLS",
    "SAY_TOOL_SCHEMA",
    "TOOL_REGISTRY",
    "RecordObservationTool",
    "SayTool",
    "Tool",
    "get_tools",
]

SAY_TOOL_SCHEMA = SAY_SCHEMA
_log = logging.getLogger(__name__)


@runtime_checkable
class Tool(Protocol):
    """What every tool has.

    Attributes:
        name: By which the policy calls it.
        schema: The OpenAI function schema, as the data set declares it.
    """

    name: str
    schema: dict[str, Any]

    def call(self, arguments: dict[str, Any]) -> Any:
        """Does the work; returns what the policy is told."""


class _BuiltIn:
    """A tool of the bridge in LeRobot's form."""

    name: str
    _path: str

    def __init__(
        self, schema: dict[str, Any] | None, ports: Ports, settings: Mapping[str, Any]
    ) -> None:
        self._local = Local([self._path], ports=ports, settings={self.name: settings})
        self.schema = schema or self._local.schemas()[0]

    def call(self, arguments: dict[str, Any]) -> str:
        """Runs it.

        Raises:
            ToolFailure: It was refused or failed; the text says why.
        """
        answer = self._local.call({"name": self.name, "arguments": arguments})
        if not answer.good:
            raise ToolFailure(answer.code, answer.detail)
        return answer.message["content"]


class SayTool(_BuiltIn):
    """Speaks, and answers with what was heard.

    Args:
        schema: As the data set declares it.
        voice: A voice of the speech backend; empty for its default.
        output_dir: Not needed: what is spoken is not kept.
        speech: The backend, as the bridge's parameter of that name.
    """

    name = "say"
    _path = "lerobot_tool_bridge.tools.say:Say"

    def __init__(
        self,
        schema: dict[str, Any] | None = None,
        voice: str = "",
        output_dir: str | None = None,
        speech: str = "auto",
    ) -> None:
        super().__init__(schema, Ports(speaker=make_speaker(speech, voice)), {})


class RecordObservationTool(_BuiltIn):
    """Saves a picture of the camera, and answers ``saved <label>.png``.

    Args:
        schema: As the data set declares it.
        output_dir: Folder for the pictures.
        camera: Where pictures come from; without one, calls fail and say so.
    """

    name = "record_observation"
    _path = "lerobot_tool_bridge.tools.record_observation:RecordObservation"

    def __init__(
        self,
        schema: dict[str, Any] | None = None,
        output_dir: str = ".",
        camera: CameraPort | None = None,
    ) -> None:
        ports = Ports(camera=camera, output_dir=Path(output_dir))
        super().__init__(schema, ports, {})


TOOL_REGISTRY: dict[str, type] = {
    SayTool.name: SayTool,
    RecordObservationTool.name: RecordObservationTool,
}
"""Classes by the name under which a data set declares them; add your own."""


def get_tools(meta: Any, **kwargs: Any) -> dict[str, Tool]:
    """The tools that a data set declares, as far as ``TOOL_REGISTRY`` has them.

    Args:
        meta: ``LeRobotDatasetMetadata`` or anything else with ``tools``; a data set's folder or
            its ``info.json``; or the content of that file.
        kwargs: For the constructors: ``say={"voice": "alba"}`` for one tool, or an argument for
            all those that take it (``output_dir="out"``).

    Returns:
        Instances by name, in the order of the declaration. Tools without a class here are left
        out: they are for the chat template only.

    Raises:
        LoadError: The declaration can't be read.
    """
    tools: dict[str, Tool] = {}
    for schema in _declared(meta):
        name = declare(schema).name
        kind = TOOL_REGISTRY.get(name)
        if kind is None:
            _log.info("%s is declared, but no class is registered for it", name)
            continue
        options = {k: v for k, v in kwargs.items() if k not in TOOL_REGISTRY}
        own = kwargs.get(name, {})
        known = inspect.signature(kind).parameters
        given = {"schema": schema, **options, **own}
        tools[name] = kind(**{k: v for k, v in given.items() if k in known or k in own})
    return tools


def _declared(meta: Any) -> list[dict[str, Any]]:
    if isinstance(meta, str | PathLike):
        catalogue = Catalogue.load(Path(meta))
    elif isinstance(meta, Mapping | list):
        catalogue = Catalogue.parse(meta)
    elif hasattr(meta, "tools"):
        catalogue = Catalogue.parse(None if meta.tools is None else [*meta.tools])
    else:
        raise LoadError(
            "bad_file",
            "meta should have tools, as LeRobotDatasetMetadata has, or be a data set's folder.",
        )
    for problem in catalogue.problems:
        _log.warning("%s", problem.message)
    return [
        {
            "type": "function",
            "function": {
                "name": d.name,
                "description": d.description,
                "parameters": dict(d.parameters),
            },
        }
        for d in catalogue.tools
    ]
