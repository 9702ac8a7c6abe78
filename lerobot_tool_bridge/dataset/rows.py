"""The rows of ``language_events``: what a message looks like in a data set.

A row has ``role``, ``content``, ``style``, ``camera`` and ``tool_calls``; its time is that of the
frame in which it stands. Calls have no id there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lerobot_tool_bridge.core import strict_json
from lerobot_tool_bridge.core.decode import decode
from lerobot_tool_bridge.core.errors import Rejection, UnreadableMessage
from lerobot_tool_bridge.core.messages import ToolCall, new_id

EVENTS = "language_events"
FIELDS = ("role", "content", "style", "camera", "tool_calls")


def call_rows(cell: Any) -> list[dict[str, Any]]:
    """The rows of one frame that call tools.

    Args:
        cell: A list of rows or None; a row may be a JSON text.
    """
    rows = []
    for item in cell or ():
        if isinstance(item, str):
            try:
                item = strict_json.read(item, 10 * strict_json.MAX_BYTES)
            except Rejection:
                continue  # text, and no row
        if not isinstance(item, Mapping) or item.get("role") not in (None, "assistant"):
            continue
        calls = [c for c in item.get("tool_calls") or () if c is not None]
        if calls:
            rows.append({**{f: item.get(f) for f in FIELDS}, "tool_calls": calls})
    return rows


def row_message(row: Mapping[str, Any]) -> tuple[dict[str, Any], list[ToolCall]]:
    """One row as a message for the bridge, each call under an id of its own.

    ``style`` and ``camera`` stay, so that the bridge knows of the nulls that fill columns.

    Returns:
        The message, with the calls that can be read; and all calls.
    """
    try:
        calls = list(decode({**row, "role": "assistant"}).calls)
    except UnreadableMessage as error:
        fault = Rejection("bad_call", str(error))
        return {}, [ToolCall(new_id(), "", None, fault)]
    sent = []
    for i, call in enumerate(calls):
        calls[i] = call = ToolCall(new_id(), call.name, call.arguments, call.fault, call.padded)
        if call.fault is None:
            function = {"name": call.name, "arguments": call.arguments}
            sent.append({"id": call.id, "type": "function", "function": function})
    message = {
        "role": "assistant",
        "content": row.get("content") or "",
        "style": row.get("style"),
        "camera": row.get("camera"),
        "tool_calls": sent,
    }
    return message, calls
