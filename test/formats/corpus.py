"""The fixtures of canitoolcall, read with our formats."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable

from canitoolcall.checks import case_status, run_checks
from canitoolcall.fixtures import Fixture, load_families, load_fixtures
from canitoolcall.results import Observation, ParsedToolCall, ParseResult, Status

from lerobot_tool_bridge.formats import Parsed, TextReader

_FORMATS = {
    "deepseek": "deepseek",
    "gemma4": "gemma4",
    "glm": "glm",
    "gpt-oss": "harmony",
    "kimi": "kimi_k2",
    "llama": "llama_json",
    "mistral": "mistral",
    "qwen3-hermes": "hermes",
    "qwen3-xml": "qwen_xml",
}
_PREFIXES = ("<think>", "<|open|>think<|sep|>", "<|open|>response<|sep|>")


@functools.cache
def fixtures() -> tuple[Fixture, ...]:
    return tuple(load_fixtures())


@functools.cache
def _families() -> dict[str, object]:
    return load_families()


def format_name(fixture: Fixture) -> str:
    model = fixture.reference_model
    if "Llama-4" in model:
        return "pythonic"
    return "kimi_k3" if "Kimi-K3" in model else _FORMATS[fixture.family]


def prefix(fixture: Fixture) -> str:
    """What the model's template had begun: reasoning that is open when the model goes on."""
    prompt = fixture.generation_prompt
    if prompt is None:
        family = _families()[fixture.family]
        prompt = family.reference_for(fixture.reference_model).default_generation_prompt or ""
    return next((p for p in _PREFIXES if prompt.rstrip().endswith(p)), "")


def reader(fixture: Fixture) -> TextReader:
    return TextReader(format_name(fixture), fixture.tools, prefix(fixture))


def parse(fixture: Fixture) -> Parsed:
    finish = "length" if fixture.truncated else None
    return reader(fixture).read(fixture.raw_output, finish)


def parse_pieces(fixture: Fixture, pieces: Iterable[str]) -> Parsed:
    stream = reader(fixture).stream()
    for piece in pieces:
        stream.feed(piece)
    return stream.finish("length" if fixture.truncated else None)


def as_result(parsed: Parsed) -> ParseResult:
    return ParseResult(
        content=parsed.content or None,
        reasoning_content=parsed.reasoning or None,
        tool_calls=tuple(
            ParsedToolCall(
                c.name, json.dumps({} if c.arguments is None else c.arguments, ensure_ascii=False)
            )
            for c in parsed.calls
        ),
    )


def judge(
    fixture: Fixture, streams: Callable[[Fixture], dict[str, Parsed]] | None = None
) -> tuple[Status, list[str]]:
    """The corpus' own verdict, and what it found wrong."""
    found = streams(fixture) if streams is not None else {}
    observation = Observation(
        nonstream=as_result(parse(fixture)), streams={k: as_result(v) for k, v in found.items()}
    )
    rows = run_checks(fixture, _families()[fixture.family], observation)
    bad = [f"{r.check}: {r.detail}" for r in rows if r.status is not Status.PASS]
    return case_status(rows), bad
