"""``json``: JSON objects in free text, with keys of one's own choice."""

from __future__ import annotations

import re
from typing import Any

from lerobot_tool_bridge.core import strict_json
from lerobot_tool_bridge.formats.base import Scan, Tagged, Unfit, add_json_calls

_MAX_FAILURES = 16
_MAX_OTHERS = 1000


class PlainJson(Tagged):
    """Every JSON object that names a tool is a call; other JSON is text.

    Args:
        keys: The name's key and the arguments' key, such as ``action,parameters``. With the first
            alone, the object's other keys are the arguments.
    """

    name = "json"
    models = "any model that was told to answer with JSON"
    example = '{"name": "say", "arguments": {"text": "Hello"}}'
    openers = ("{",)
    patterns = (r"\[\s*\{",)

    def __init__(self, keys: str = "name,arguments") -> None:
        self._name, _, self._arguments = (k.strip() for k in keys.partition(","))
        if not self._name or self._name == self._arguments or "," in self._arguments:
            raise ValueError("json takes NAME_KEY,ARGUMENTS_KEY or NAME_KEY")
        key = re.escape(self._name)
        self._looks = re.compile(rf'\[?\s*\{{[^{{}}]{{0,200}}"{key}"\s*:')

    def begins(self, scan: Scan, start: int, opener: str) -> bool:
        begins = super().begins(scan, start, opener)
        if not begins:
            self._count(scan, start, 1)
        return begins

    def read_calls(self, scan: Scan, opener: str, start: int) -> None:
        looks = self._looks.match(scan.text, start) is not None
        scan.pos = start
        try:
            value = scan.json()
        except Unfit:
            self._count(scan, start, _MAX_OTHERS // _MAX_FAILURES)
            if looks:
                raise
            scan.content.append(opener)
            scan.pos = start + len(opener)
            return
        items = value if isinstance(value, list) else [value]
        if not any(isinstance(i, dict) and isinstance(i.get(self._name), str) for i in items):
            self._count(scan, start, 1)
            scan.content.append(scan.text[start : scan.pos])
        elif self._arguments:
            add_json_calls(scan, value, start, (self._name,), (self._arguments,))
        else:
            self._add_flat(scan, items, start)

    @staticmethod
    def _count(scan: Scan, start: int, weight: int) -> None:
        scan.count += weight
        if scan.count > _MAX_OTHERS:
            raise Unfit(start, "too many brackets open no call")

    def _add_flat(self, scan: Scan, items: list[Any], start: int) -> None:
        for item in items:
            if not isinstance(item, dict) or not isinstance(item.get(self._name), str):
                raise Unfit(start, f'an object with "{self._name}" expected')
            if isinstance(item, strict_json.Repeated):
                raise Unfit(start, f"the key {item.key!r} stands twice")
        for item in items:
            arguments = {k: v for k, v in item.items() if k != self._name}
            scan.call(item[self._name], arguments, start)
