"""The README's table of tools says what the tools take."""

from __future__ import annotations

import re
from pathlib import Path

from lerobot_tool_bridge.core.registry import import_tool
from lerobot_tool_bridge.ports import Ports
from lerobot_tool_bridge.tools import BUILTIN

README = Path(__file__).parent.parent / "README.md"


def test_the_table_of_tools() -> None:
    section = (
        README.read_text(encoding="utf-8").partition("## The tools\n")[2].partition("\n##")[0]
    )
    told = {}
    for line in section.splitlines():
        cells = [re.findall(r"`(\w+)`", cell) for cell in line.split("|")[1:3]]
        if len(cells) == 2:
            told.update(dict.fromkeys(cells[0], cells[1]))
    known = {}
    for path in BUILTIN:
        tool = import_tool(path)(Ports())
        known[tool.name] = list(tool.parameters["properties"])
    assert told == known
