"""Writes docs/parameters.md from what the nodes declare; a test holds the two together."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from lerobot_tool_bridge.node.managed import COMMON
from lerobot_tool_bridge.node.parameters import Param

FILE = Path(__file__).resolve().parent.parent / "docs" / "parameters.md"

NODES = {
    "tool_bridge": "ros.parameters",
    "arm_driver": "drivers.arm.node",
    "gimbal_driver": "drivers.gimbal.node",
    "camera_driver": "drivers.camera.node",
    "language_policy": "policy.language_policy",
    "scripted_policy": "policy.scripted",
    "virtual_robot": "sim.virtual_robot",
}

HEAD = """\
# Parameters

What `ros2 param describe` says of every node, made by `scripts/document_parameters.py`
from the code. They are read when a node is configured, but for those marked *live*. A robot's
own numbers stand in its file ([robots](robots.md)); a tool's limits in the tools file
([config/tools.yaml](../config/tools.yaml)).
"""


def text() -> str:
    """The whole document."""
    parts = [HEAD, section("every node", COMMON)]
    for node, module in NODES.items():
        declared = importlib.import_module(f"lerobot_tool_bridge.{module}").PARAMETERS
        parts.append(section(f"`{node}`", declared))
    return "\n".join(parts)


def section(title: str, parameters: tuple[Param, ...]) -> str:
    rows = [
        f"| `{p.name}` | {kind(p.default)} | {default(p.default)} | {bounds(p)} | "
        f"{escape(p.description)}{'' if p.read_only else ' *live*'} |"
        for p in parameters
    ]
    head = "| name | type | default | allowed | what |\n|---|---|---|---|---|\n"
    return f"## {title[0].upper() + title[1:]}\n\n{head}" + "\n".join(rows) + "\n"


def escape(description: str) -> str:
    return description.replace("|", "\\|").replace("<", "&lt;")


def kind(value: Any) -> str:
    if isinstance(value, list):
        return f"{kind(value[0])}[]" if value else "list"
    return {bool: "bool", int: "int", float: "float", str: "string"}[type(value)]


def default(value: Any) -> str:
    if value == "":
        return "empty"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def bounds(p: Param) -> str:
    if p.choices:
        return ", ".join(f"`{c}`" if c else "empty" for c in p.choices)
    return f"{p.low:g} to {p.high:g}" if p.low is not None and p.high is not None else ""


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
