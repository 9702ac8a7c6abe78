"""``harmony``: gpt-oss's messages with a header that names channel and recipient."""

from __future__ import annotations

import re

from lerobot_tool_bridge.formats.base import MALFORMED, REASONING, Format, Scan, Unfit

_FIRST = re.compile(r"\s*(?:<\|start\|>|<\|channel\|>|to=)")
_HEADER_END = re.compile(r"<\|(?:message|start|end|call|return)\|>")
_ROLE = re.compile(r"\s*(?:assistant)?(?:\s*to=([^\s<>|]{1,300}))?\s*")
_CHANNEL = re.compile(
    r"\s*(analysis|commentary|final)(?:\s+to=([^\s<>|]{1,300}))?(?:\s+[\w.+/-]{1,64})?\s*"
)
_BODY_END = re.compile(r"<\|(?:end|return|call)\|>(?=\s*(?:<\|start\|>|\Z))")
_MAX_HEADER = 1000


class Harmony(Format):
    """A call is a message on ``commentary`` to ``functions.NAME``.

    Its JSON is read before any marker is looked for, so that a message in a string of it stays
    one. A call on ``analysis`` is reasoning: a note says so, nothing runs.
    """

    name = "harmony"
    models = "gpt-oss"
    example = (
        "<|channel|>commentary to=functions.say <|constrain|>json<|message|>"
        '{"text": "Hello"}<|call|>'
    )
    signs = ("<|channel|>", "<|message|>")
    verbatim = True

    def read(self, scan: Scan) -> None:
        if _FIRST.match(scan.text) is None:
            if "<|message|>" in scan.text:
                self.fail(scan, 0, Unfit(0, "the header of a message expected"))
            else:  # a server took the headers away
                scan.content.append(scan.text)
            return
        while not scan.ended:
            start = scan.pos
            try:
                self._message(scan)
            except Unfit as error:
                self.fail(scan, start, error)

    def _message(self, scan: Scan) -> None:
        start = scan.pos
        scan.space()
        if scan.ended:
            return
        scan.take("<|start|>")
        end = _HEADER_END.search(scan.text, scan.pos)
        if end is None or end.group() != "<|message|>" or end.start() - scan.pos > _MAX_HEADER:
            raise Unfit(start, "a header that ends in <|message|> expected", end is None)
        header = scan.text[scan.pos : end.start()]
        role, _, rest = header.partition("<|channel|>")
        part, _, _ = rest.partition("<|constrain|>")
        named = _ROLE.fullmatch(role)
        channel = _CHANNEL.fullmatch(part)
        if named is None or channel is None:
            raise Unfit(scan.pos, "a channel (analysis, commentary or final) expected")
        scan.pos = end.end()
        recipient = named.group(1) or channel.group(2) or ""
        if recipient.startswith("functions."):
            self._call(scan, start, recipient[10:], channel.group(1))
            return
        body = self._body(scan)
        if recipient and recipient != "assistant":
            detail = f"A message to {recipient[:64]!r} is no call of a function; it is not run."
            scan.note(MALFORMED, start, detail)
        elif channel.group(1) == "analysis":
            scan.reasoning.append(body)
        else:
            if scan.content and scan.content[-1]:
                scan.content.append("\n")
            scan.content.append(body)

    def _call(self, scan: Scan, start: int, name: str, channel: str) -> None:
        if channel == "final":
            raise Unfit(start, "a call on the channel commentary expected")
        arguments = scan.json()
        scan.space()
        if not scan.take("<|call|>", "<|end|>", "<|return|>") and not scan.ended:
            raise scan.unfit("<|call|> expected", "<|call|>", "<|end|>", "<|return|>")
        if channel == "analysis":
            detail = (
                f"A call of {name[:64]!r} stands on the analysis channel, which is reasoning, so "
                "it is not run. Write it on the commentary channel."
            )
            scan.note(REASONING, start, detail)
            return
        scan.call(name, arguments, start)

    @staticmethod
    def _body(scan: Scan) -> str:
        match = _BODY_END.search(scan.text, scan.pos)
        end = match.start() if match is not None else len(scan.text)
        body = scan.text[scan.pos : end]
        scan.pos = match.end() if match is not None else end
        return body
