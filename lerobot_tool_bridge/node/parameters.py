"""Declared parameters, and parameter files that don't reach their node."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of a node.

    Attributes:
        name: Dots make groups.
        default: Also fixes the type: bool, int, float, str, or a list of one of them.
        description: For ``ros2 param describe`` and the documents; says the unit.
        low, high: Bounds of a number; both or none.
        choices: The values that a text may take.
        read_only: Most are: they count when the node is configured.
    """

    name: str
    default: Any
    description: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    read_only: bool = True

    def descriptor(self) -> ParameterDescriptor:
        """The same for rclpy."""
        descriptor = ParameterDescriptor(
            name=self.name, description=self.description, read_only=self.read_only
        )
        if self.choices:
            descriptor.additional_constraints = f"one of: {', '.join(self.choices)}"
        if self.low is not None and self.high is not None:
            if isinstance(self.default, int):
                bounds = IntegerRange(from_value=int(self.low), to_value=int(self.high), step=1)
                descriptor.integer_range = [bounds]
            else:
                bounds = FloatingPointRange(from_value=float(self.low), to_value=float(self.high))
                descriptor.floating_point_range = [bounds]
        return descriptor


def file_warnings(
    arguments: Sequence[str], node: str, namespace: str, known: Sequence[str]
) -> list[str]:
    """What is wrong with the ``--params-file`` arguments of this process, for one node.

    rclpy reads the files and stays silent about entries that match no node and keys that no
    parameter has; limits that were meant to hold would not.

    Args:
        arguments: The process's arguments.
        node: The node's name.
        namespace: Its namespace, with a leading slash.
        known: Names of the declared parameters.
    """
    warnings = []
    for path in _params_files(arguments):
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, yaml.YAMLError, UnicodeDecodeError):
            continue  # rclpy refuses such a file by itself
        entries = list(_entries(content)) if isinstance(content, dict) else []
        full = f"{namespace.rstrip('/')}/{node}"
        mine = [values for name, values in entries if _matches(name, full, node)]
        if not mine:
            found = ", ".join(sorted({name for name, _ in entries})) or "none"
            warnings.append(
                f"{path} has no entry for {full} (found: {found}); the defaults are in force. "
                f"Name its entry {node} or /**."
            )
        unknown = sorted({k for values in mine for k in _flatten(values)} - set(known))
        if unknown:
            warnings.append(
                f"{path} sets parameters that {full} does not have: {', '.join(unknown)}. "
                "They are ignored."
            )
    return warnings


def _params_files(arguments: Sequence[str]) -> Iterator[Path]:
    ros = False
    for before, word in zip(["", *arguments], arguments, strict=False):
        if word == "--ros-args":
            ros = True
        elif word == "--":
            ros = False
        elif ros and before == "--params-file":
            yield Path(word)


def _entries(
    content: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Node names (namespaces may be nested) and their ``ros__parameters``."""
    for key, value in content.items():
        name = f"{prefix}/{key}".replace("//", "/") if prefix else str(key)
        if not isinstance(value, dict):
            continue
        if "ros__parameters" in value:
            parameters = value["ros__parameters"]
            yield name, parameters if isinstance(parameters, dict) else {}
        nested = {k: v for k, v in value.items() if k != "ros__parameters"}
        yield from _entries(nested, name)


def _matches(entry: str, full: str, node: str) -> bool:
    """Whether an entry of a parameter file counts for a node; ``*`` is one name, ``**`` many."""
    if "*" in entry:
        return fnmatch.fnmatchcase(full, entry.replace("**", "*"))
    return entry in (node, full) or f"/{entry}" == full


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"
