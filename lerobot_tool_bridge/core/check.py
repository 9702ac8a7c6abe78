"""What the bridge would do with a message, without doing it: for recorded messages, without ROS.

Decoding, validation and the gate are those of the dispatcher. Each message is judged for itself:
an id that stood in an earlier one, or an earlier ``stop``, does not count against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lerobot_tool_bridge.core.decode import decode, decode_text
from lerobot_tool_bridge.core.errors import UnreadableMessage
from lerobot_tool_bridge.core.gate import Gate, Limits, Verdict
from lerobot_tool_bridge.core.messages import Message
from lerobot_tool_bridge.core.registry import Registry
from lerobot_tool_bridge.formats import TextReader


def check_message(
    payload: bytes | str | Mapping[str, Any],
    registry: Registry,
    limits: Limits | None = None,
    texts: TextReader | None = None,
) -> dict[str, Any]:
    """Judges one message.

    Args:
        payload: JSON text, or what was read from it.
        registry: The tools.
        limits: What the site allows.
        texts: Reads calls out of the content of messages that have no others.

    Returns:
        ``outcome`` (``execute``, ``reject``, ``partial``, ``content`` or ``ignore``) and
        ``calls``; a message that can't be read is rejected and has ``code`` and ``detail`` itself.
        Where a text was read, also ``content`` and ``notes``, what was not run.
    """
    try:
        message = decode(payload, texts)
    except UnreadableMessage as error:
        return {"outcome": "reject", "calls": [], "code": error.code, "detail": str(error)}
    return _judge(message, registry, limits)


def check_text(
    text: str,
    texts: TextReader,
    registry: Registry,
    limits: Limits | None = None,
    finish_reason: str | None = None,
) -> dict[str, Any]:
    """Judges what a model wrote; see ``check_message``."""
    return _judge(decode_text(text, texts, finish_reason), registry, limits)


def _judge(message: Message, registry: Registry, limits: Limits | None) -> dict[str, Any]:
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
    result: dict[str, Any] = {"outcome": outcome, "calls": [_line(v) for v in verdicts]}
    if message.content or message.notes:
        result["content"] = message.content
        result["notes"] = [
            {"code": n.code, "detail": n.detail, "position": n.position} for n in message.notes
        ]
    return result


def _line(verdict: Verdict) -> dict[str, Any]:
    call, valid, refusal = verdict.call, verdict.valid, verdict.refusal
    return {
        "id": call.id,
        "name": call.name,
        "arguments": valid.arguments if valid is not None else call.arguments,
        "code": refusal.code if refusal is not None else "",
        "detail": refusal.message if refusal is not None else "",
    }
