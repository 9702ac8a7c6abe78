"""The site's tools file: which tools are on, and their limits.

::

    function_calling:
      tools:
        arm_grab_object:
          enabled: true
          description: Pick up a small object from the table.   # in place of the tool's own
          timeout: 40.0          # seconds
          max_per_second: 2.0    # calls of this tool
          max_concurrent: 1      # calls of this tool at once; the others wait
          z: {minimum: 0.02}     # an argument's name: JSON-schema keywords that narrow it
          custom: value          # anything else is a setting of the tool itself
        music:                   # a family of tools: enabled and settings hold for all of them
          music_dir: ~/Music
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lerobot_tool_bridge.core import show
from lerobot_tool_bridge.core.errors import LoadError

MAX_TIMEOUT = 3600.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """What the tools file says about one tool.

    Attributes:
        enabled: False takes the tool away.
        description: In place of the tool's own; empty keeps it.
        timeout: Seconds; None keeps the tool's own.
        max_per_second: Calls; None sets no limit for this tool alone.
        max_concurrent: Calls at once; None keeps the tool's own.
        own: Everything else: limits of arguments and settings of the tool.
    """

    enabled: bool = True
    description: str = ""
    timeout: float | None = None
    max_per_second: float | None = None
    max_concurrent: int | None = None
    own: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, name: str, values: Any) -> ToolSettings:
        """Checks one entry.

        Raises:
            LoadError: ``bad_file``.
        """
        if values is None:
            return cls()
        if not isinstance(values, Mapping):
            raise LoadError("bad_file", f"the entry {name} should be a mapping.")
        own = dict(values)
        enabled = own.pop("enabled", True)
        description = own.pop("description", "")
        if not isinstance(enabled, bool):
            raise LoadError("bad_file", f"{name}.enabled should be true or false.")
        if not isinstance(description, str):
            raise LoadError("bad_file", f"{name}.description should be a text.")
        return cls(
            enabled,
            description,
            _positive(name, "timeout", own.pop("timeout", None), MAX_TIMEOUT),
            _positive(name, "max_per_second", own.pop("max_per_second", None), 1e6),
            _whole(name, "max_concurrent", own.pop("max_concurrent", None)),
            {str(k): v for k, v in own.items()},
        )


def load_tools_file(path: str | Path) -> dict[str, ToolSettings]:
    """Reads a tools file.

    Returns:
        Settings by the tool's name.

    Raises:
        LoadError: ``bad_file``; the text names the file, the key and what is expected.
    """
    import yaml

    file = Path(path).expanduser()
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise LoadError("bad_file", f"{file} can't be read: {error.strerror}.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise LoadError("bad_file", f"{file} is not a YAML file: {error}") from None
    section = content.get("function_calling") if isinstance(content, dict) else None
    tools = section.get("tools") if isinstance(section, dict) else None
    if not isinstance(section, dict) or not (tools is None or isinstance(tools, dict)):
        raise LoadError(
            "bad_file", f"{file} should have the layout function_calling: tools: <name>: {{...}}."
        )
    unknown = [
        str(k)
        for k in (
            *(k for k in content if k != "function_calling"),
            *(k for k in section if k != "tools"),
        )
    ]
    if unknown:
        _log.warning("%s: unknown keys are ignored: %s", file, ", ".join(unknown))
    try:
        return {str(n): ToolSettings.parse(str(n), v) for n, v in (tools or {}).items()}
    except LoadError as error:
        raise LoadError("bad_file", f"{file}: {error.message}") from None


def _whole(name: str, key: str, value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise LoadError(
        "bad_file", f"{name}.{key} is {show.value(value)}; it should be a whole number above 0."
    )


def _positive(name: str, key: str, value: Any, highest: float) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= highest:
        raise LoadError(
            "bad_file",
            f"{name}.{key} is {show.value(value)}; it should be a number above 0, at most "
            f"{highest:g}.",
        )
    return float(value)
