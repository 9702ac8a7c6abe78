"""``hermes``: a JSON object between ``<tool_call>`` tags."""

from __future__ import annotations

from lerobot_tool_bridge.formats.base import Scan, Tagged, add_json_calls


class Hermes(Tagged):
    """Also an array of calls in one tag, which xLAM and Granite 3.1 write."""

    name = "hermes"
    models = "Hermes 2/3, Qwen 2.5, QwQ, Qwen 3, SmolLM3, Granite 4, MiMo, Bielik, Reka"
    example = '<tool_call>\n{"name": "say", "arguments": {"text": "Hello"}}\n</tool_call>'
    signs = ("<tool_call>",)
    openers = ("<tool_call>",)

    def read_calls(self, scan: Scan, opener: str, start: int) -> None:
        value = scan.json()
        scan.expect("</tool_call>")
        add_json_calls(scan, value, start)
