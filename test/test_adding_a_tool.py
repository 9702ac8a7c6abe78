"""What docs/adding_a_tool.md shows is what examples/my_tool holds, and it works."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "my_tool"


def shown(name: str) -> str:
    """The block of the document that follows a mark."""
    text = (ROOT / "docs" / "adding_a_tool.md").read_text(encoding="utf-8")
    blocks = re.findall(rf"<!-- example: {re.escape(name)} -->\n```\w+\n(.*?)```", text, re.S)
    assert len(blocks) == 1, name
    return str(blocks[0])


@pytest.mark.parametrize("name", ["my_tool.py", "pyproject.toml"])
def test_document_shows_the_files(name: str) -> None:
    assert shown(name) == (EXAMPLE / name).read_text(encoding="utf-8")


def test_the_test_in_the_document_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    space: dict[str, object] = {}
    exec(compile(shown("test"), "adding_a_tool.md", "exec"), space)
    tests = [value for name, value in space.items() if name.startswith("test_")]
    assert len(tests) == 1
    for test in tests:
        assert callable(test)
        test()


@pytest.mark.skipif(
    importlib.util.find_spec("setuptools") is None, reason="setuptools is not installed"
)
def test_installed_package_is_found(tmp_path: Path) -> None:
    """Its metadata as an installation leaves it; pip itself would want the network."""
    site = shutil.copytree(EXAMPLE, tmp_path / "site")
    build = [sys.executable, "-c", "import setuptools; setuptools.setup()", "-q", "egg_info"]
    subprocess.run(build, cwd=site, check=True, capture_output=True)
    code = (
        f"import sys; sys.path.insert(0, {str(site)!r})\n"
        "from lerobot_tool_bridge.core.registry import Registry\n"
        "from lerobot_tool_bridge.core.toolsfile import load_tools_file\n"
        "from lerobot_tool_bridge.ports import Ports\n"
        "registry = Registry.load(Ports(), load_tools_file(sys.argv[1]))\n"
        "names = [entry.name for entry in registry]\n"
        "(nod,) = (entry for entry in registry if entry.name == 'nod')\n"
        "print('say' in names, nod.timeout, nod.tool.settings['angle_deg'],"
        " nod.schema.parameters['properties']['times']['maximum'])"
    )
    text = (ROOT / "docs" / "adding_a_tool.md").read_text(encoding="utf-8")
    (settings,) = re.findall(r"```yaml\n(.*?)```", text, re.S)
    tools_file = tmp_path / "tools.yaml"
    tools_file.write_text(settings)
    run = [sys.executable, "-c", code, str(tools_file)]
    out = subprocess.run(run, capture_output=True, text=True)
    assert out.stdout == "False 10.0 10.0 2\n", out.stderr
    assert "angle_deg" not in out.stderr  # a setting that the tool knows
