"""``mistral``: ``[TOOL_CALLS]`` with an array, or with a name and ``[ARGS]``."""

from __future__ import annotations

import re

from lerobot_tool_bridge.formats.base import THINK, Scan, Tagged, add_json_calls

_NAME = re.compile(r"\s*([^\s\[\]{}<>\"']{1,256})\s*")
_ID = re.compile(r"\[CALL_ID\]([A-Za-z0-9_-]{1,64})\s*")


class Mistral(Tagged):
    """Both of Mistral's forms; what follows the marker tells them apart."""

    name = "mistral"
    models = "Mistral 7B v0.3 to Large 3, Nemo, Ministral, Devstral, Magistral"
    example = '[TOOL_CALLS]say[ARGS]{"text": "Hello"}'
    signs = ("[TOOL_CALLS]",)
    verbatim = True
    openers = ("[TOOL_CALLS]",)
    reasoning = (("[THINK]", "[/THINK]"), *THINK)
    drop = ("</s>",)

    def read_calls(self, scan: Scan, opener: str, start: int) -> None:
        scan.space()
        if scan.text.startswith("[", scan.pos) and not scan.text.startswith("[ARGS]", scan.pos):
            add_json_calls(scan, scan.json(), start)
            return
        match = scan.match(_NAME)
        if match is None:
            raise scan.unfit("an array or a name expected")
        call_id = scan.match(_ID)
        if not scan.take("[ARGS]"):
            raise scan.unfit("[ARGS] expected", "[ARGS]", "[CALL_ID]")
        arguments = scan.json()
        scan.call(match.group(1), arguments, start, call_id.group(1) if call_id else "")
