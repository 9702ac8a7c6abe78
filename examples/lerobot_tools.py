"""A tool as LeRobot's page on tools describes it. Changed for this package: the imports."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from lerobot_tool_bridge.lerobot import TOOL_REGISTRY, get_tools
from lerobot_tool_bridge.local import Local

WAVE_SCHEMA: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "wave_flag",
        "description": "Wave the flag so that the user looks.",
        "parameters": {
            "type": "object",
            "properties": {
                "times": {"type": "integer", "description": "How often.", "minimum": 1},
            },
            "required": ["times"],
        },
    },
}


class WaveFlagTool:
    name = "wave_flag"
    schema = WAVE_SCHEMA

    def __init__(self, schema: dict | None = None, output_dir: str = "."):
        self.log = Path(output_dir) / "waved.txt"

    def call(self, arguments: dict) -> str:
        self.log.write_text("~ " * arguments["times"])
        return f"waved {arguments['times']} times"


TOOL_REGISTRY["wave_flag"] = WaveFlagTool


def data_set(folder: Path) -> Path:
    """A data set whose catalogue has a tool with a class, and one for the chat template only."""
    only_declared = {"type": "function", "function": {"name": "dance", "parameters": {}}}
    info = {"codebase_version": "v3.0", "features": {}, "tools": [WAVE_SCHEMA, only_declared]}
    (folder / "meta").mkdir()
    (folder / "meta" / "info.json").write_text(json.dumps(info))
    return folder


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        tools = get_tools(data_set(Path(folder)), output_dir=folder)
        print(sorted(tools), tools["wave_flag"].call({"times": 2}))

        # the same through the bridge's validator and dispatcher: a row of a data set, no id
        bridge = Local(tools)
        row = {
            "role": "assistant",
            "content": None,
            "style": None,
            "timestamp": 12.4,
            "camera": None,
            "tool_calls": [
                {"type": "function", "function": {"name": "wave_flag", "arguments": {"times": 0}}}
            ],
        }
        for message in bridge.turn(row):
            print(message["role"], message["content"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
