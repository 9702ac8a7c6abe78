"""``say_tag``: LeRobot's training targets write speech as ``<say>text</say>``."""

from __future__ import annotations

from lerobot_tool_bridge.formats.base import Scan, Tagged, Unfit


class SayTag(Tagged):
    """Every tag in the text is a call of ``say``."""

    name = "say_tag"
    models = "policies trained with LeRobot's language columns"
    example = "<say>Hello</say>"
    signs = ("<say>",)
    openers = ("<say>",)

    def read_calls(self, scan: Scan, opener: str, start: int) -> None:
        begin = scan.pos
        text = scan.until("</say>")
        inner = text.find("<say>")
        if inner >= 0:
            raise Unfit(begin + inner, "</say> is missing before this <say>")
        scan.call("say", {"text": text}, start)
