"""Tools from a folder of Python files."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.core.messages import ToolCall
from lerobot_tool_bridge.core.registry import Registry
from lerobot_tool_bridge.ports import Ports

FILES = {
    "_helper.py": "WORD = 'helped'\n",
    "a_function.py": """
        from lerobot_tool_bridge.functions import register_function
        from ._helper import WORD

        @register_function("shout", "Shouts.")
        def shout(text: str) -> str:
            return f"{WORD} {text}"

        def not_a_tool(x: int) -> int:
            return x
        """,
    "b_lerobot.py": """
        class Wave:
            name = "wave"
            schema = {"type": "function", "function": {"name": "wave", "description": "Waves.",
                      "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}}
            motion = True

            def __init__(self, schema=None, output_dir=".", flag="white"):
                self.output_dir, self.flag = output_dir, flag

            def call(self, arguments):
                return self.flag
        """,
    "c_twinkle.py": """
        from lerobot_tool_bridge.twinkle import Tool

        class Search(Tool):
            def __call__(self, tool_name, arguments):
                return tool_name

            def tool_info(self):
                return {"type": "function", "function": {"name": "search", "parameters": {}}}
        """,
    "d_own.py": """
        from lerobot_tool_bridge.core.tool import Tool

        class Own(Tool):
            name = "own"
            description = "Own."
            parameters = {"type": "object"}

            async def run(self, arguments, context):
                return "own"
        """,
    "e_listed.py": '''
        def add(a: float, b: float) -> float:
            """Adds.

            Args:
                a: a number
                b: another
            """
            return a + b

        tools = [add]
        ''',
}
BROKEN = {
    "f_syntax.py": "def broken(:\n",
    "g_import.py": "\nimport no_such_module\n",
    "h_exit.py": "import sys\nsys.exit(3)\n",
    "i_nothing.py": "x = 1\n",
    "j_double.py": """
        from lerobot_tool_bridge.functions import register_function
        @register_function("shout", "Shouts too.")
        def other(text: str) -> str:
            return text
        """,
    "k_signature.py": """
        from lerobot_tool_bridge.functions import register_function
        @register_function("many", "Takes what it likes.")
        def many(*args: str) -> str:
            return "x"
        """,
    "l_constructor.py": """
        class Needy:
            name = "needy"
            def __init__(self, port):
                pass
            def call(self, arguments):
                return ""
        """,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (FILES | BROKEN).items():
        (tmp_path / name).write_text(textwrap.dedent(text))
    (tmp_path / "notes.txt").write_text("no Python")
    return tmp_path


def test_every_form_is_found_and_what_is_broken_is_skipped(folder, caplog):
    settings = {"wave": {"flag": "red"}, "add": {"enabled": False}}
    registry = Registry.load(Ports(), settings, tools=(), folder=folder)
    assert [e.name for e in registry] == ["shout", "wave", "search", "own"]
    messages = "\n".join(p.message for p in registry.problems)
    for words in (
        "f_syntax.py is skipped: line 1: SyntaxError",
        "g_import.py is skipped: line 2: ModuleNotFoundError: No module named 'no_such_module'",
        "h_exit.py is skipped: line 2: SystemExit: 3",
        "i_nothing.py has no tool in it",
        "LoadError: There is a function shout already",
        "k_signature.py is skipped: many takes *args: str, which can't be given by name",
        "needy can't be made",
    ):
        assert words in messages, messages
    assert len(registry.problems) == len(BROKEN)
    assert all(p.message in caplog.text for p in registry.problems)


def test_settings_and_options_reach_the_tools(folder):
    ports = Ports(output_dir=folder)
    settings = {"wave": {"flag": "red", "n": {"maximum": 2}}}
    registry = Registry.load(ports, settings, tools=(), folder=folder)
    wave = next(e for e in registry if e.name == "wave")
    assert wave.motion
    tool = wave.tool
    assert tool is not None
    assert tool.bind()({}) == "red"
    registry.validate(ToolCall("id", "wave", {"n": 2}))
    with pytest.raises(Exception, match="at most 2"):
        registry.validate(ToolCall("id", "wave", {"n": 3}))


def test_a_folder_can_be_loaded_again(folder):
    first = Registry.load(Ports(), tools=(), folder=folder)
    (folder / "d_own.py").unlink()
    (folder / "_helper.py").write_text("WORD = 'changed'\n")
    again = Registry.load(Ports(), tools=(), folder=folder)
    assert {e.name for e in first} - {e.name for e in again} == {"own"}


def test_the_built_in_tools_stay(tmp_path):
    (tmp_path / "say.py").write_text(
        "class Say:\n    name = 'say'\n    def call(self, arguments):\n        return ''\n"
    )
    registry = Registry.load(Ports(), folder=tmp_path)
    assert "there is a tool say already" in registry.problems[0].message
    say = next(e for e in registry if e.name == "say")
    assert type(say.tool).__module__ == "lerobot_tool_bridge.tools.say"


def test_no_folder_is_an_error():
    with pytest.raises(LoadError, match="does not exist"):
        Registry.load(Ports(), folder="/no/such/folder")
