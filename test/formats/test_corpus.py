"""canitoolcall's fixtures: whole, in pieces, and those that hold no valid call.

The corpus asks for what some of our rules forbid. Each fixture that does not pass is listed here
with its rule, so that a change in either direction shows.
"""

from __future__ import annotations

import collections
import time

import corpus
import pytest
from canitoolcall.chunking import ChunkStrategy, split_text
from canitoolcall.fixtures import Fixture
from canitoolcall.results import Status

from lerobot_tool_bridge.formats import Parsed

_REFUSED = {
    "gpt-oss/vllm-call-on-analysis-channel": "reasoning",
    "gpt-oss/llamacpp-recipient-in-channel-analysis": "reasoning",
    "gpt-oss/llamacpp-recipient-in-role-constrain": "reasoning",
    "qwen3-xml/llamacpp-q35-call-inside-think": "reasoning",
    "qwen3-xml/vllm-coder-missing-close-parameter": "malformed",
    "qwen3-xml/bug-missing-close-parameter-before-function": "malformed",
    "glm/glm47-missing-last-close-arg-value": "malformed",
    "kimi/k2i-vllm-noise-between-markers": "malformed",
}
"""The note that says why the call in it is not run."""

FIXTURES = corpus.fixtures()


def test_the_corpus_is_the_one_that_the_numbers_are_of():
    assert len(FIXTURES) == 469
    assert sum(f.expected_error is not None for f in FIXTURES) == 35


def test_whole_texts(capsys: pytest.CaptureFixture[str]):
    verdicts = {f.id: corpus.judge(f) for f in FIXTURES}
    counts = collections.Counter(status.value for status, _ in verdicts.values())
    silent = [f for f in FIXTURES if f.expected_error is not None]
    called = [f.id for f in silent if corpus.parse(f).calls]
    with capsys.disabled():
        print(
            f"\ncanitoolcall, whole texts: {counts['pass']} pass, {counts['soft_pass']} differ in "
            f"white space, {counts['fail']} fail, of {len(FIXTURES)}; of the {len(silent)} "
            f"without a valid call, {len(called)} yield one"
        )
    assert called == []
    assert counts["pass"] >= 455
    failed = {i: bad for i, (status, bad) in verdicts.items() if status is Status.FAIL}
    assert set(failed) == set(_REFUSED), failed


def test_what_is_refused_is_said():
    for fixture in FIXTURES:
        if fixture.id in _REFUSED:
            parsed = corpus.parse(fixture)
            assert parsed.calls == ()
            assert [n.code for n in parsed.notes] == [_REFUSED[fixture.id]]


def _streams(fixture: Fixture) -> dict[str, Parsed]:
    ids = ("one", *(f"rand:{seed}:8" for seed in range(1, 6)), "char:0", "char:1")
    strategies = [ChunkStrategy.parse(i) for i in ids]
    return {
        s.id: corpus.parse_pieces(fixture, split_text(fixture.raw_output, s)) for s in strategies
    }


def test_streaming_checks(capsys: pytest.CaptureFixture[str]):
    """The corpus' streams, cut at characters: without tokenizers there are no tokens to cut at."""
    counts = collections.Counter(corpus.judge(f, _streams)[0].value for f in FIXTURES)
    with capsys.disabled():
        print(
            f"\ncanitoolcall, whole and streamed: {counts['pass']} pass, {counts['soft_pass']} "
            f"differ in white space, {counts['fail']} fail"
        )
    assert counts["pass"] >= 455


def test_every_split_gives_the_same():
    """Each text character by character, and in two pieces at every position."""
    for fixture in FIXTURES:
        text = fixture.raw_output
        whole = corpus.parse(fixture)
        assert corpus.parse_pieces(fixture, text) == whole, fixture.id
        for place in range(len(text) + 1):
            pieces = (text[:place], text[place:])
            assert corpus.parse_pieces(fixture, pieces) == whole, (fixture.id, place)


def test_a_cut_text_never_has_more_calls_than_the_whole_one():
    """Whatever a server cuts off: what runs is the beginning of what the model asked for."""
    for fixture in FIXTURES:
        text = fixture.raw_output
        if len(text) > 700:
            continue
        whole = corpus.parse(fixture).calls
        reader = corpus.reader(fixture)
        for place in range(len(text)):
            calls = reader.read(text[:place]).calls
            if calls != whole[: len(calls)]:
                # the end of the reasoning is what tells a draft from a call
                assert "think" in text[place:], (fixture.id, place)


def test_the_corpus_is_read_quickly():
    readers = [(corpus.reader(f), f.raw_output) for f in FIXTURES]
    best = 10.0
    for _ in range(3):
        start = time.process_time()
        for reader, text in readers:
            reader.read(text)
        best = min(best, time.process_time() - start)
    assert best < 0.2
