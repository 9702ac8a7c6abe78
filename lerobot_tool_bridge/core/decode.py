"""Every structured wire form of a tool call, to one: a message's ``ToolCall``s.

Read are OpenAI chat messages, LeRobot's atoms (no id, extra row fields, elements that are JSON
strings), flat ``{"name": ..., "arguments": ...}``, bare lists, OpenAI Responses items, Anthropic
``tool_use`` blocks, Gemini ``functionCall`` parts and Ollama's answers. Nothing is guessed or
repaired: what can't be read is a call with a ``fault``, or an ``UnreadableMessage`` where there is
no call to answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lerobot_tool_bridge.core import show, strict_json
from lerobot_tool_bridge.core.errors import Rejection, UnreadableMessage
from lerobot_tool_bridge.core.messages import Message, ToolCall, new_id

if TYPE_CHECKING:
    from lerobot_tool_bridge.formats import TextReader

MAX_MESSAGE_BYTES = 2 * 1024 * 1024
"""Far more than the arguments of one call may have, so that a call that is too large is answered
under its id; what exceeds this has no answer but the event."""

_MAX_ID = 256

_NOT_CALLS = frozenset(
    ("text", "output_text", "thinking", "redacted_thinking", "reasoning", "refusal", "message")
)
"""Types of content parts and output items that stand beside calls."""


def decode(
    payload: bytes | str | Mapping[str, Any] | list[Any], texts: TextReader | None = None
) -> Message:
    """Finds the calls of one payload.

    Args:
        payload: JSON text, or what was read from it.
        texts: Reads calls out of the content of a message that has no others; None: content is
            never looked at.

    Raises:
        UnreadableMessage: Not UTF-8, not JSON, not an object or list, or a list of calls that is
            none.
    """
    if isinstance(payload, bytes | str):
        try:
            payload = strict_json.read(payload, MAX_MESSAGE_BYTES)
        except Rejection as error:
            raise UnreadableMessage(error.message) from None
    if isinstance(payload, list):
        return Message(tuple(_calls(payload)))
    if not isinstance(payload, Mapping):
        raise UnreadableMessage("The message is no JSON object.")
    message = _message(payload)
    if texts is None or message.calls or message.ignored:
        return message
    inner = payload.get("message")
    if isinstance(inner, Mapping) and "role" not in payload and "tool_calls" not in payload:
        payload = inner
    text = _text(payload.get("content", payload.get("parts")))
    return decode_text(text, texts, payload.get("finish_reason")) if text else message


def decode_text(text: str, texts: TextReader, finish_reason: Any = None) -> Message:
    """Finds the calls of a text that a model wrote.

    The calls get ids of their own: models that write ids repeat them in the next conversation.
    """
    reason = finish_reason if isinstance(finish_reason, str) else None
    parsed = texts.read(text, reason)
    calls = [_call({"name": c.name, "arguments": c.arguments}) for c in parsed.calls]
    return Message(tuple(calls), content=parsed.content, notes=parsed.notes)


def _text(content: Any) -> str:
    """The text of a content, which may be a list of parts."""
    if isinstance(content, list | tuple):
        parts = [p.get("text") for p in content if isinstance(p, Mapping)]
        return "".join(p for p in parts if isinstance(p, str))
    return content if isinstance(content, str) else ""


def _message(message: Mapping[str, Any]) -> Message:
    if isinstance(message, strict_json.Repeated):
        raise UnreadableMessage(f"The message has the key {show.text(message.key)} twice.")
    inner = message.get("message")
    if isinstance(inner, Mapping) and "role" not in message and "tool_calls" not in message:
        return _message(inner)  # Ollama's answer
    role = message.get("role")
    # Gemini calls the assistant "model"; no other form does
    if role not in (None, "assistant") and not (role == "model" and "parts" in message):
        return Message(ignored=True)
    calls = message.get("tool_calls")
    if calls:
        if not isinstance(calls, list | tuple):
            raise UnreadableMessage("tool_calls is no list.")
        # a row of a LeRobot data set; mixing tools pads its arguments with nulls
        row = "style" in message and "camera" in message
        return Message(tuple(_call(c, row) for c in calls))
    for key in ("content", "parts", "output"):
        value = message.get(key)
        if isinstance(value, list | tuple):
            return Message(tuple(_calls(value)))
    if isinstance(message.get("content"), Mapping):  # Gemini's candidate
        return _message(message["content"])
    if _is_call(message):
        return Message((_call(message),))
    return Message()


def _is_call(item: Mapping[str, Any]) -> bool:
    return (
        "functionCall" in item
        or item.get("type") in ("function", "function_call", "tool_use")
        or isinstance(item.get("function"), Mapping)
        or ("name" in item and "arguments" in item)
    )


def _calls(items: list[Any] | tuple[Any, ...]) -> list[ToolCall]:
    """The calls among content parts, output items or plain calls."""
    return [_call(i) for i in items if not _stands_beside(i)]


def _stands_beside(item: Any) -> bool:
    return isinstance(item, Mapping) and (
        item.get("type") in _NOT_CALLS
        or ("text" in item and "name" not in item and not _is_call(item))
    )


def _call(item: Any, padded: bool = False) -> ToolCall:
    if isinstance(item, str):  # LeRobot's elements may come back from parquet as JSON texts
        try:
            item = strict_json.read(item, strict_json.MAX_BYTES)
        except Rejection as error:
            return ToolCall(new_id(), "", None, error)
    if not isinstance(item, Mapping):
        return ToolCall(new_id(), "", None, _bad_call("a call should be a JSON object"))
    kind = item.get("type")
    call_id, body, key = item.get("id"), item, "arguments"
    fault: Rejection | None = None
    if isinstance(item.get("functionCall"), Mapping):
        body, key = item["functionCall"], "args"
        call_id = body.get("id", call_id)
    elif kind == "tool_use":
        key = "input"
    elif kind == "function_call":
        call_id = item.get("call_id") or call_id
    elif kind not in (None, "function"):
        fault = _bad_call(f"its type is {show.value(kind)}, only function calls can be run")
    elif isinstance(item.get("function"), Mapping):
        body = item["function"]
    elif "name" not in item:
        fault = _bad_call('it has no member "function" with a name and arguments')
    for level in (item, body):
        if isinstance(level, strict_json.Repeated):
            twice = show.text(level.key)
            fault = Rejection("duplicate_key", f"The key {twice} stands twice in the call.")
    name = body.get("name")
    if not isinstance(name, str) or not name:
        fault = fault or _bad_call("its name is missing or no text")
        name = ""
    elif not _sendable(name):
        fault, name = _bad_call("its name has half of a surrogate pair"), ""
    if call_id is None or call_id == "":
        call_id = new_id()
    elif not isinstance(call_id, str) or len(call_id) > _MAX_ID or not _sendable(call_id):
        fault = _bad_call(f"its id should be a text of at most {_MAX_ID} characters")
        call_id = new_id()
    if fault is not None:
        return ToolCall(call_id, name[:_MAX_ID], None, fault)
    try:
        arguments = _arguments(body.get(key))
    except Rejection as error:
        return ToolCall(call_id, name[:_MAX_ID], None, error)
    return ToolCall(call_id, name[:_MAX_ID], arguments, None, padded)


def _arguments(value: Any) -> dict[str, Any] | None:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        value = strict_json.loads(value)
        if isinstance(value, str):
            raise _no_object("a JSON text inside a JSON text; encode the object once")
    elif isinstance(value, Mapping):
        strict_json.check(value)
    if not isinstance(value, dict):
        if isinstance(value, Mapping):
            return dict(value)
        raise _no_object(show.value(value))
    return value


def _no_object(got: str) -> Rejection:
    return Rejection(
        "arguments_not_object",
        f'The arguments should be a JSON object such as {{"x": 0.2}}, they are {got}.',
    )


def _bad_call(what: str) -> Rejection:
    return Rejection("bad_call", f"This is no call that can be run: {what}.")


def _sendable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
