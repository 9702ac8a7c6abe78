"""A scripted conversation as a YAML file: the messages, and how the calls should end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from lerobot_tool_bridge.core.errors import LoadError


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """One call of a turn.

    Attributes:
        fails: Whether the call is meant to fail.
    """

    name: str
    arguments: Mapping[str, Any]
    fails: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """One message: of the user, or of the assistant with its calls."""

    role: str
    content: str
    calls: tuple[ScriptedCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """Where a thing of the virtual robot's scene should be in the end; metres, base frame."""

    object: str
    position: tuple[float, float, float]
    within: float


@dataclass(frozen=True, slots=True)
class Script:
    """The whole file."""

    turns: tuple[Turn, ...]
    checks: tuple[Check, ...] = field(default=())

    @classmethod
    def load(cls, path: Path) -> Script:
        """Reads a script.

        Raises:
            LoadError: ``bad_file``; the text names the file, the place and what is expected.
        """
        try:
            data = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise LoadError("bad_file", f"{path} can't be read: {error}") from None
        try:
            _known(data, "messages", "check")
            return cls(
                tuple(_turn(entry) for entry in data["messages"]),
                tuple(_check(entry) for entry in data.get("check") or ()),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise LoadError(
                "bad_file",
                f"{path}: {error!r}; it should have messages, a list of role, content and "
                "tool_calls (name, arguments, fails), and may have check, a list of object, "
                "position and within.",
            ) from None


def _known(entry: Any, *keys: str) -> None:
    if not isinstance(entry, dict):
        raise TypeError(f"{entry!r} should be a mapping")
    if unknown := [k for k in entry if k not in keys]:
        raise ValueError(f"unknown key {unknown[0]!r} in {entry!r}")


def _turn(entry: Any) -> Turn:
    _known(entry, "role", "content", "tool_calls")
    if entry["role"] not in ("user", "assistant"):
        raise ValueError(f"role is {entry['role']!r}, not user or assistant")
    calls = entry.get("tool_calls") or ()
    return Turn(entry["role"], str(entry.get("content", "")), tuple(_call(c) for c in calls))


def _call(entry: Any) -> ScriptedCall:
    _known(entry, "name", "arguments", "fails")
    return ScriptedCall(
        str(entry["name"]), dict(entry.get("arguments") or {}), bool(entry.get("fails"))
    )


def _check(entry: Any) -> Check:
    _known(entry, "object", "position", "within")
    x, y, z = (float(v) for v in entry["position"])
    return Check(str(entry["object"]), (x, y, z), float(entry["within"]))
