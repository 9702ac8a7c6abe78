"""Chat messages as a policy makes and shows them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any


def assistant_message(
    content: str, calls: Iterable[tuple[str, str, Mapping[str, Any]]]
) -> dict[str, Any]:
    """An assistant message with calls, each given as id, name and arguments."""
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [
            {"id": i, "type": "function", "function": {"name": n, "arguments": dict(a)}}
            for i, n, a in calls
        ],
    }


def failed(content: str) -> bool:
    """Whether the content of a ``role=tool`` message is that of a failed call."""
    return content.startswith("Error: ")


def show_arguments(arguments: Mapping[str, Any]) -> str:
    """Arguments for people: ``x=0.2, label='cup'``."""
    return ", ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in arguments.items())
