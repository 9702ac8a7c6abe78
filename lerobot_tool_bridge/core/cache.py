"""Results of tools that say of themselves that they are pure."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from lerobot_tool_bridge.core.tool import Outcome

_MOST = 128


class ResultCache:
    """The latest results of one tool, by the arguments that gave them.

    Only what succeeded is kept. ``1``, ``1.0`` and ``true`` are different arguments.
    """

    def __init__(self) -> None:
        self._results: OrderedDict[str, Outcome] = OrderedDict()

    def get(self, arguments: Mapping[str, Any]) -> Outcome | None:
        """The result that these arguments gave before."""
        key = _key(arguments)
        if key not in self._results:
            return None
        self._results.move_to_end(key)
        return self._results[key]

    def put(self, arguments: Mapping[str, Any], outcome: Outcome) -> None:
        """Keeps a result, and forgets the one that was not asked for longest."""
        self._results[_key(arguments)] = outcome
        if len(self._results) > _MOST:
            self._results.popitem(last=False)


def _key(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, sort_keys=True)
