"""What the documents say of the code is so."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from lerobot_tool_bridge.core.registry import import_tool
from lerobot_tool_bridge.ports import Ports
from lerobot_tool_bridge.tools import BUILTIN

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


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


def test_the_parameters() -> None:
    spec = importlib.util.spec_from_file_location(
        "document_parameters", ROOT / "scripts" / "document_parameters.py"
    )
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.FILE.read_text(encoding="utf-8") == script.text(), f"run {spec.origin}"


@pytest.mark.parametrize(
    "document", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]), ids=lambda p: p.name
)
def test_links_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (document.parent / target).exists(), target
