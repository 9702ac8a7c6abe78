"""Model text to calls: one family of formats a file. See ``docs/formats.md``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from lerobot_tool_bridge.formats.arrays import Cohere, Granite, Phi4, Xlam
from lerobot_tool_bridge.formats.base import (
    MALFORMED,
    MAX_BYTES,
    OTHER_FORMAT,
    QUOTED,
    REASONING,
    TOO_LARGE,
    TRUNCATED,
    Format,
    Note,
    Parsed,
    TextCall,
)
from lerobot_tool_bridge.formats.deepseek import DeepSeek
from lerobot_tool_bridge.formats.gemma import FunctionGemma, Gemma4
from lerobot_tool_bridge.formats.glm import Glm
from lerobot_tool_bridge.formats.harmony import Harmony
from lerobot_tool_bridge.formats.hermes import Hermes
from lerobot_tool_bridge.formats.kimi import KimiK2, KimiK3
from lerobot_tool_bridge.formats.llama import LlamaJson
from lerobot_tool_bridge.formats.minimax import MinimaxM2
from lerobot_tool_bridge.formats.mistral import Mistral
from lerobot_tool_bridge.formats.plain_json import PlainJson
from lerobot_tool_bridge.formats.pythonic import Pythonic
from lerobot_tool_bridge.formats.qwen_xml import QwenXml
from lerobot_tool_bridge.formats.say_tag import SayTag

__all__ = [
    "FORMATS",
    "MALFORMED",
    "MAX_BYTES",
    "OTHER_FORMAT",
    "QUOTED",
    "REASONING",
    "TOO_LARGE",
    "TRUNCATED",
    "Format",
    "Note",
    "Parsed",
    "TextCall",
    "TextReader",
    "TextStream",
    "get",
    "other_format",
]

# In the order in which their signs are looked for: the more telling one first.
_ALL: tuple[type[Format], ...] = (
    QwenXml,
    Glm,
    Hermes,
    Mistral,
    LlamaJson,
    Pythonic,
    Gemma4,
    FunctionGemma,
    Harmony,
    DeepSeek,
    KimiK2,
    KimiK3,
    MinimaxM2,
    Granite,
    Phi4,
    Cohere,
    Xlam,
    SayTag,
    PlainJson,
)

FORMATS: dict[str, type[Format]] = {f.name: f for f in sorted(_ALL, key=lambda f: f.name)}
"""The formats by name."""

_SIGNS = tuple((sign, f.name) for f in _ALL for sign in f.signs)
_JSON_CALL = re.compile(r'\s*(```\w*\s*)?(\[\s*)?\{[^{}]{0,300}"name"\s*:')
_JSON_ARGUMENTS = re.compile(r'"(arguments|parameters)"\s*:')
_PYTHON_CALLS = re.compile(r"\s*\[\s*[A-Za-z_]\w{0,100}\(")


def get(name: str) -> Format:
    """The format of a name; ``json:action,parameters`` names the keys of ``json`` as well.

    Raises:
        ValueError: There is none; the sentence names those that there are.
    """
    base, _, keys = name.partition(":")
    kind = FORMATS.get(base)
    if kind is PlainJson and keys:
        return PlainJson(keys)
    if kind is None or keys:
        close = difflib.get_close_matches(base, FORMATS, n=1)
        hint = f" Did you mean {close[0]}?" if close else f" Formats: {', '.join(FORMATS)}."
        raise ValueError(f"There is no text format {name[:64]!r}.{hint}")
    return kind()


def other_format(text: str, name: str) -> str:
    """The format that a text without calls looks like, if it is another one; else empty."""
    base = name.partition(":")[0]
    match = _JSON_CALL.match(text)
    if match is not None and _JSON_ARGUMENTS.search(text) is not None:
        # bare JSON, which two formats take
        return "" if base in ("json", "llama_json") and not match.group(1) else "json"
    if _PYTHON_CALLS.match(text) is not None:
        return "" if base == "pythonic" else "pythonic"
    for sign, other in _SIGNS:
        if sign in text:
            return "" if other == base else other
    return ""


class TextReader:
    """One format with its settings, for all texts of a session.

    Args:
        name: See ``get``.
        schemas: The offered tools.
        prefix: See ``Format.parse``.

    Raises:
        ValueError: As ``get``.
    """

    def __init__(
        self, name: str, schemas: Iterable[Mapping[str, Any]] = (), prefix: str = ""
    ) -> None:
        self.name = name
        self._format = get(name)
        self._schemas = tuple(schemas)
        self._prefix = prefix
        self._hinted = False

    def read(self, text: str, finish_reason: str | None = None) -> Parsed:
        """Reads a whole text. Once in a session, a note hints at another format."""
        parsed = self._format.parse(text, self._schemas, finish_reason, self._prefix)
        if parsed.calls or self._hinted or not parsed.content:
            return parsed
        other = other_format(parsed.content, self.name)
        if not other:
            return parsed
        self._hinted = True
        fenced = " outside of a code block" if parsed.content.lstrip().startswith("```") else ""
        detail = (
            f"The text looks like a call in the format {other}, but {self.name} is set. If the "
            f"model writes so, set the parameter text_format to {other}"
            f"{' and have the model write it' + fenced if fenced else ''}; nothing is guessed."
        )
        note = Note(OTHER_FORMAT, detail)
        return Parsed(parsed.calls, parsed.content, parsed.reasoning, (*parsed.notes, note))

    def stream(self) -> TextStream:
        """A reader for one text that arrives in pieces."""
        return TextStream(self)


class TextStream:
    """A text that arrives in pieces.

    The calls come when the text is over, all at once: only then is it known that no reasoning
    ends behind them and that none of them was cut. So pieces give the calls of the whole text.
    """

    def __init__(self, reader: TextReader) -> None:
        self._reader = reader
        self._pieces: list[str] = []
        self._size = 0

    def feed(self, piece: str) -> None:
        """Takes the next piece; what exceeds the limit is not kept."""
        if self._size <= MAX_BYTES:
            self._pieces.append(piece)
        self._size += len(piece)

    def finish(self, finish_reason: str | None = None) -> Parsed:
        """The text is over: what it holds."""
        return self._reader.read("".join(self._pieces), finish_reason)
