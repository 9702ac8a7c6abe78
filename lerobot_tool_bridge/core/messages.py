"""What goes through the core: a call as it came, a call that may run, and what is said of it."""

from __future__ import annotations

import secrets
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lerobot_tool_bridge.core.errors import Rejection

if TYPE_CHECKING:
    from lerobot_tool_bridge.core.registry import Entry
    from lerobot_tool_bridge.formats import Note

_LETTERS = string.ascii_letters + string.digits

SUCCEEDED, FAILED, REJECTED, CANCELLED, TIMEOUT = (
    "succeeded",
    "failed",
    "rejected",
    "cancelled",
    "timeout",
)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as it came, in the one stored form: arguments are an object.

    Attributes:
        id: Under which it is answered; made up where the message had none.
        name: As it came; empty where there was none that could be read.
        arguments: None where they were left out (absent, null or an empty string).
        fault: Why it can't be used; its arguments are None then.
        padded: It comes from a row of a data set, where a null may only fill a column.
    """

    id: str
    name: str
    arguments: dict[str, Any] | None
    fault: Rejection | None = None
    padded: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """What one payload asks for.

    Attributes:
        calls: In the order in which they stand in the message.
        ignored: The message's role can't call, so nothing in it was looked at.
        content: The text without its calls, where a text was read.
        notes: What stood in a text and is not run.
    """

    calls: tuple[ToolCall, ...] = ()
    ignored: bool = False
    content: str = ""
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class ValidCall:
    """A call of a known tool, its arguments checked: made by ``Registry.validate`` alone.

    Only this can be run.
    """

    id: str
    entry: Entry
    arguments: dict[str, Any]


def new_id() -> str:
    """Nine letters and digits, which every chat template accepts."""
    return "".join(secrets.choice(_LETTERS) for _ in range(9))


def result_message(call_id: str, name: str, content: str) -> dict[str, str]:
    """The answer of one call, ready to be appended to the chat history."""
    return {"role": "tool", "tool_call_id": call_id, "name": name or "unknown", "content": content}


def failure_content(code: str, message: str) -> str:
    """The content of every answer that is not a success."""
    return f"Error: {code}: {message}"


def clean(text: str, limit: int) -> str:
    """A text that can be sent as UTF-8, cut to ``limit`` characters."""
    if len(text) > limit:
        text = f"{text[: limit - 1]}…"
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")
