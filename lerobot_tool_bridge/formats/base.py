"""What every format has: the result of reading a text, and how a text is walked through.

A format reads one whole text. It never runs anything, never repairs anything, and never looks for
another format's calls. Its rules, the same for all:

- A call counts when it is complete and readable. At the first that is not, reading ends: calls
  before it stand, it and all after it do not.
- What stands in reasoning, in a code fence or right after a backtick is no call; a note says so
  where a call was drafted there.
- A JSON value is read as a value before its end marker is looked for, so that a marker inside a
  string neither ends the call nor begins another.
- Each character is looked at a bounded number of times.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from lerobot_tool_bridge.core import strict_json

MAX_BYTES = 64 * 1024
"""A longer text is refused: no call in it runs."""

MAX_NAME = 256
MAX_CALLS = 1000
"""One more is read, so that the limit on calls in a message is seen to be exceeded."""

_MAX_DRAFTS = 4
_LAST = 64  # characters: where a text was cut, what is wrong so near to its end is the cut

TRUNCATED, MALFORMED, REASONING, QUOTED, OTHER_FORMAT, TOO_LARGE = (
    "truncated",
    "malformed",
    "reasoning",
    "quoted",
    "other_format",
    "too_large",
)
"""Codes of notes."""

_ENDS = (TRUNCATED, MALFORMED)
THINK = (("<think>", "</think>"),)


@dataclass(frozen=True, slots=True)
class TextCall:
    """One complete call.

    Attributes:
        name: As it stands in the text.
        arguments: What was read, mostly a dict; None where they were left out.
        id: What the model itself called the call (Kimi, Mistral, Cohere); empty for most.
        position: Where it begins in the text.
    """

    name: str
    arguments: Any
    id: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True)
class Note:
    """Something in a text that was not run, for the log and for the model.

    Attributes:
        code: ``truncated``, ``malformed``, ``reasoning``, ``quoted``, ``other_format`` or
            ``too_large``.
        detail: A sentence that says what and where.
        position: Of what it is about, in characters.
    """

    code: str
    detail: str
    position: int = 0


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a text holds.

    Attributes:
        calls: In the order in which they stand.
        content: The text without calls, reasoning and what was cut off.
        reasoning: What the model thought aloud.
        notes: What was not run, and why.
    """

    calls: tuple[TextCall, ...] = ()
    content: str = ""
    reasoning: str = ""
    notes: tuple[Note, ...] = ()


class Unfit(Exception):
    """A call that can't be read.

    Args:
        position: Where it went wrong.
        why: What was expected, without a full stop.
        cut: The text ended inside of it.
    """

    def __init__(self, position: int, why: str, cut: bool = False) -> None:
        super().__init__(why)
        self.position = position
        self.why = why
        self.cut = cut


class Scan:
    """One text while it is read: where we are, and what was found.

    Attributes:
        text: The prefix and the text.
        pos: The next character.
        cut: The server said that the text was cut.
        tools: The parameters' schemas by tool, for formats whose values have no types.
    """

    def __init__(
        self, text: str, tools: Mapping[str, Mapping[str, Any]], cut: bool = False
    ) -> None:
        self.text = text
        self.pos = 0
        self.done = 0  # where the last call that was added ends
        self.cut = cut
        self.tools = tools
        self.calls: list[TextCall] = []
        self.content: list[str] = []
        self.reasoning: list[str] = []
        self.notes: list[Note] = []
        self.count = 0  # of what costs time, where a format limits that

    def note(self, code: str, position: int, detail: str) -> None:
        self.notes.append(Note(code, detail, position))

    def call(self, name: Any, arguments: Any, position: int, call_id: Any = "") -> None:
        """Adds a complete call.

        Raises:
            Unfit: The name is none.
        """
        if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME:
            raise Unfit(position, "the call has no usable name")
        if len(self.calls) > MAX_CALLS:
            raise Unfit(position, f"a text has at most {MAX_CALLS} calls")
        given = call_id if isinstance(call_id, str) else ""
        self.calls.append(TextCall(name.strip(), arguments, given, position))
        self.done = self.pos

    # --- small steps ------------------------------------------------------------------------

    def space(self) -> None:
        """Steps over white space."""
        self.pos = after_space(self.text, self.pos)

    @property
    def ended(self) -> bool:
        return self.pos >= len(self.text)

    def take(self, *literals: str) -> bool:
        """Steps over the first of some literals that stands here."""
        for literal in literals:
            if self.text.startswith(literal, self.pos):
                self.pos += len(literal)
                return True
        return False

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Steps over a pattern that stands here."""
        match = pattern.match(self.text, self.pos)
        if match is not None:
            self.pos = match.end()
        return match

    def expect(self, *literals: str) -> None:
        """Steps over white space and one of some literals.

        Raises:
            Unfit: Something else stands here.
        """
        self.space()
        if not self.take(*literals):
            raise self.unfit(f"{literals[0]} expected", *literals)

    def unfit(self, why: str, *literals: str) -> Unfit:
        """The error that something else was expected here; cut off where the text ends."""
        rest = self.text[self.pos : self.pos + 64]
        cut = self.pos + len(rest) >= len(self.text) and (
            not rest.strip() or any(x.startswith(rest.rstrip()) for x in literals)
        )
        return Unfit(min(self.pos, len(self.text)), why, cut)

    def until(self, literal: str) -> str:
        """The text up to a literal, and steps over both.

        Raises:
            Unfit: It does not come any more.
        """
        end = self.text.find(literal, self.pos)
        if end < 0:
            raise Unfit(self.pos, f"{literal} is missing", cut=True)
        value = self.text[self.pos : end]
        self.pos = end + len(literal)
        return value

    def json(self) -> Any:
        """The JSON value that stands here.

        Raises:
            Unfit: It is none, or not all of it is there.
        """
        self.space()
        try:
            value, self.pos = strict_json.read_at(self.text, self.pos)
        except strict_json.NotJson as error:
            raise Unfit(error.position, f"this is no JSON ({error.what})", error.cut) from None
        return value


class Format(ABC):
    """One way in which models write calls into their text.

    Attributes:
        name: For the parameter.
        models: Which models write so.
        example: One call.
        signs: Markers by which a text in this format can be told where another one was named.
        verbatim: Content keeps its white space: the models' template puts none around calls.
    """

    name: ClassVar[str]
    models: ClassVar[str]
    example: ClassVar[str]
    signs: ClassVar[tuple[str, ...]] = ()
    verbatim: ClassVar[bool] = False

    def parse(
        self,
        text: str,
        schemas: Iterable[Mapping[str, Any]] = (),
        finish_reason: str | None = None,
        prefix: str = "",
    ) -> Parsed:
        """Reads a text.

        Args:
            text: All that the model wrote.
            schemas: The offered tools as OpenAI function schemas. In formats whose values have no
                types they decide them.
            finish_reason: As the server gave it; ``length`` says that the text was cut.
            prefix: What the chat template had written of the answer before the model went on,
                such as ``<think>``. It is read as if it were part of the text.
        """
        if len(text) > MAX_BYTES or (not text.isascii() and _bytes(text) > MAX_BYTES):
            size = f"{MAX_BYTES // 1024} kB"
            note = Note(TOO_LARGE, f"The text has more than {size}, so no call in it is run.")
            return Parsed((), text, "", (note,))
        scan = Scan(prefix + text, _tools(schemas), finish_reason == "length")
        self.read(scan)
        return self._parsed(scan, len(prefix))

    @abstractmethod
    def read(self, scan: Scan) -> None:
        """Fills ``scan`` with what its text holds."""

    def _parsed(self, scan: Scan, offset: int) -> Parsed:
        content = "".join(scan.content)
        if not self.verbatim or not content.strip():
            content = content.strip()
        if scan.cut and scan.calls and not any(n.code in _ENDS for n in scan.notes):
            end = len(scan.text)
            scan.note(TRUNCATED, end, "The text was cut after its last complete call.")
        return Parsed(
            tuple(
                TextCall(c.name, c.arguments, c.id, max(0, c.position - offset))
                for c in scan.calls
            ),
            content,
            "".join(scan.reasoning).strip("\n"),
            tuple(Note(n.code, n.detail, max(0, n.position - offset)) for n in scan.notes),
        )

    # --- for subclasses ---------------------------------------------------------------------

    def fail(self, scan: Scan, start: int, error: Unfit) -> None:
        """Ends reading at a call that can't be read.

        What was cut off is dropped, what is malformed stays as text, with all after it.
        """
        start = max(start, scan.done)
        cut = error.cut or (scan.cut and len(scan.text) - error.position <= _LAST)
        line = scan.text.count("\n", 0, error.position) + 1
        column = error.position - scan.text.rfind("\n", 0, error.position)
        where = f"at line {line}, column {column}"
        after = "Calls before it are run, it and all after it are not."
        if cut:
            detail = f"A call is cut off: {error.why}, {where}. {after}"
            scan.note(TRUNCATED, start, detail)
        else:
            detail = f"A call can't be read: {error.why}, {where}. {after}"
            scan.note(MALFORMED, start, detail)
            scan.content.append(scan.text[start:])
        scan.pos = len(scan.text)


class Tagged(Format):
    """Formats in which marked calls stand among plain text.

    Attributes:
        openers: What begins a call, or a block of calls.
        patterns: Openers that are regular expressions.
        reasoning: Pairs of markers around what is thought aloud.
        drop: Markers that are no text.
    """

    openers: ClassVar[tuple[str, ...]]
    patterns: ClassVar[tuple[str, ...]] = ()
    drop: ClassVar[tuple[str, ...]] = ()
    reasoning: ClassVar[tuple[tuple[str, str], ...]] = THINK

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "openers" in cls.__dict__:
            plain = [m for pair in cls.reasoning for m in pair]
            words = sorted({*plain, *cls.openers, *cls.drop}, key=len, reverse=True)
            ours = [*cls.patterns, *map(re.escape, words)]
            cls._marks = re.compile("|".join(["`{3,}", "~{3,}", *ours]))
            cls._begin = re.compile("|".join([*cls.patterns, *map(re.escape, cls.openers)]))
            cls._close_of = dict(cls.reasoning)
            cls._closers = frozenset(cls._close_of.values())

    _marks: ClassVar[re.Pattern[str]]
    _begin: ClassVar[re.Pattern[str]]
    _close_of: ClassVar[dict[str, str]]
    _closers: ClassVar[frozenset[str]]

    @abstractmethod
    def read_calls(self, scan: Scan, opener: str, start: int) -> None:
        """Reads what follows an opener; ``scan.pos`` is after it, and after all of it then.

        Raises:
            Unfit: See there. Calls that were added before stand.
        """

    def read_bare(self, scan: Scan) -> bool:
        """Reads an answer that is nothing but calls, without markers, where a format has such.

        Called where the answer begins. False: it is none, and ``scan`` is as it was.

        Raises:
            Unfit: It is one, and can't be read.
        """
        return False

    def begins(self, scan: Scan, start: int, opener: str) -> bool:
        """Whether the opener at ``start`` is meant as one.

        Raises:
            Unfit: Reading should end here.
        """
        return not scan.text.startswith("`", start - 1) if start else True

    def read(self, scan: Scan) -> None:
        text = scan.text
        if self._bare(scan):
            return
        while match := self._marks.search(text, scan.pos):
            mark, start = match.group(), match.start()
            scan.content.append(text[scan.pos : start])
            if mark in self._close_of:
                scan.pos = match.end()
                self._think(scan, self._close_of[mark])
                if self._bare(scan):
                    return
            elif mark in self._closers:
                self._was_reasoning(scan)
                scan.pos = match.end()
                if self._bare(scan):
                    return
            elif mark[0] in "`~" and mark[0] * 3 == mark[:3]:
                scan.pos = _fence_end(text, mark, match.end())
                scan.content.append(text[start : scan.pos])
                self._drafts(scan, match.end(), scan.pos, QUOTED)
            elif mark in self.drop:
                scan.pos = match.end()
            else:
                scan.pos = match.end()
                try:
                    if self.begins(scan, start, mark):
                        self.read_calls(scan, mark, start)
                    else:
                        scan.content.append(mark)
                except Unfit as error:
                    self.fail(scan, start, error)
                    return
        scan.content.append(text[scan.pos :])
        scan.pos = len(text)

    def _bare(self, scan: Scan) -> bool:
        """Whether all the rest was read by ``read_bare``."""
        if scan.calls or any(c.strip() for c in scan.content):
            return False
        scan.space()
        start = scan.pos
        try:
            return self.read_bare(scan)
        except Unfit as error:
            self.fail(scan, start, error)
            return True

    def _think(self, scan: Scan, close: str) -> None:
        end = scan.text.find(close, scan.pos)
        inner = end if end >= 0 else len(scan.text)
        self._drafts(scan, scan.pos, inner, REASONING)
        scan.reasoning.append(scan.text[scan.pos : inner])
        scan.pos = inner + len(close) if end >= 0 else inner

    def _was_reasoning(self, scan: Scan) -> None:
        """An end of reasoning without a beginning: all before it was reasoning."""
        for call in scan.calls:
            scan.note(REASONING, call.position, _drafted(call.name, REASONING))
        scan.calls.clear()
        scan.reasoning.extend(scan.content)
        scan.content.clear()

    def _drafts(self, scan: Scan, start: int, end: int, code: str) -> None:
        """Notes calls that stand complete where none is run."""
        inner: Scan | None = None
        for _ in range(_MAX_DRAFTS):
            match = self._begin.search(scan.text, start, end)
            if match is None:
                return
            if inner is None:
                inner = Scan(scan.text[:end], scan.tools)
            inner.pos = start = match.end()
            try:
                self.read_calls(inner, match.group(), match.start())
            except Unfit:
                continue
            finally:
                for call in inner.calls:
                    scan.note(code, call.position, _drafted(call.name, code))
                inner.calls.clear()
            start = inner.pos


def _drafted(name: str, code: str) -> str:
    where = "in reasoning" if code == REASONING else "in a code block"
    return f"A call of {name[:64]!r} stands {where}, so it is not run. Write calls outside of it."


def add_json_calls(
    scan: Scan,
    value: Any,
    position: int,
    names: Sequence[str] = ("name",),
    arguments: Sequence[str] = ("arguments",),
    others: Sequence[str] = ("id", "type"),
    ids: Sequence[str] = ("id",),
) -> None:
    """Adds the call that a JSON object is, or the calls of an array.

    Raises:
        Unfit: It is neither; nothing of an array is added then.
    """
    items = value if isinstance(value, list) else [value]
    found = [_json_call(i, position, names, arguments, others, ids) for i in items]
    for call in found:
        scan.call(call.name, call.arguments, position, call.id)


def _json_call(
    item: Any,
    position: int,
    names: Sequence[str],
    arguments: Sequence[str],
    others: Sequence[str],
    ids: Sequence[str],
) -> TextCall:
    want = f'an object with "{names[0]}" and "{arguments[0]}" expected'
    if not isinstance(item, dict) or isinstance(item, strict_json.Repeated):
        raise Unfit(position, want)
    keys = [k for k in names if k in item], [k for k in arguments if k in item]
    known = {*names, *arguments, *others}
    if len(keys[0]) != 1 or len(keys[1]) > 1 or any(k not in known for k in item):
        raise Unfit(position, want)
    name = item[keys[0][0]]
    if not isinstance(name, str) or not name.strip():
        raise Unfit(position, "the call has no usable name")
    call_id = next((item[k] for k in ids if isinstance(item.get(k), str)), "")
    return TextCall(name, item[keys[1][0]] if keys[1] else None, call_id, position)


_SPACE = re.compile(r"\s*")


def after_space(text: str, position: int) -> int:
    """Where the white space ends that may stand at a position."""
    match = _SPACE.match(text, position)
    return match.end() if match is not None else position


def _fence_end(text: str, mark: str, pos: int) -> int:
    """Where the code block ends that a fence opened: after a fence as long as it, or never."""
    end = text.find(mark, pos)
    if end < 0:
        return len(text)
    end += len(mark)
    while text.startswith(mark[0], end):
        end += 1
    return end


def _tools(schemas: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    tools: dict[str, Mapping[str, Any]] = {}
    for schema in schemas:
        function = schema.get("function", schema)
        if isinstance(function, Mapping) and isinstance(function.get("name"), str):
            parameters = function.get("parameters")
            tools[function["name"]] = parameters if isinstance(parameters, Mapping) else {}
    return tools


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
