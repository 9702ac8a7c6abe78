"""What the bridge would do with a message, without doing it: for recorded messages, without ROS.

Decoding, validation and the gate are those of the dispatcher. Each message is judged for itself:
an id that stood in an earlier one, or an earlier ``stop``, does not count against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lerobot_tool_bridge.core.decode import decode
from lerobot_tool_bridge.core.errors import UnreadableMessage
from lerobot_tool_bridge.core.gate import Gate, Limits, Verdict
from lerobot_tool_bridge.core.registry import Registry


def check_message(
    payload: bytes | str | Mapping[str, Any], registry: Registry, limits: Limits | None = None
) -> dict[str, Any]:
    """Judges one message.

    Returns:
        ``outcome`` (``execute``, ``reject``, ``partial``, ``content`` or ``ignore``) and
        ``calls``; a message that can't be read is rejected and has ``code`` and ``detail`` itself.
    """
    try:
        message = decode(payload)
    except UnreadableMessage as error:
        return {"outcome": "reject", "calls": [], "code": error.code, "detail": str(error)}
    if message.ignored:
        return {"outcome": "ignore", "calls": []}
    verdicts = Gate(limits or Limits()).judge(message.calls, registry).verdicts
    good = sum(1 for v in verdicts if v.valid is not None)
    if not verdicts:
        outcome = "content"
    elif good == len(verdicts):
        outcome = "execute"
    else:
        outcome = "partial" if good else "reject"
    return {"outcome": outcome, "calls": [_line(v) for v in verdicts]}


def _line(verdict: Verdict) -> dict[str, Any]:
    call, valid, refusal = verdict.call, verdict.valid, verdict.refusal
    return {
        "id": call.id,
        "name": call.name,
        "arguments": valid.arguments if valid is not None else call.arguments,
        "code": refusal.code if refusal is not None else "",
        "detail": refusal.message if refusal is not None else "",
    }
