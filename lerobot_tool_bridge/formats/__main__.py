"""Lists the formats: ``python -m lerobot_tool_bridge.formats``."""

from lerobot_tool_bridge.formats import FORMATS

for name, kind in FORMATS.items():
    example = kind.example.replace("\n", "⏎")
    print(f"{name:14} {kind.models}\n{'':14} {example}")
