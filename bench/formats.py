"""Reading text: 64 kB of what is worst for each format, and the whole corpus of canitoolcall."""

from __future__ import annotations

import sys
import time
from typing import Any

from bench.common import ROOT

sys.path.insert(0, str(ROOT / "test" / "formats"))

import corpus
from test_formats import HEADS, SCHEMAS, UNITS

from lerobot_tool_bridge.formats import FORMATS, MAX_BYTES, TextReader


def measure() -> dict[str, Any]:
    """The slowest text in each format, in CPU time: what other processes do does not count."""
    slowest, where = 0.0, ""
    for name in FORMATS:
        for unit in UNITS:
            for head in HEADS:
                text = _filled(head, unit)
                took = _seconds(name, text)
                if took > slowest:
                    took = min(took, _seconds(name, text))
                if took > slowest:
                    slowest, where = took, f"{name}: {head!r} and {unit!r} over and over"
    readers = [(corpus.reader(f), f.raw_output) for f in corpus.fixtures()]
    best = min(_corpus(readers) for _ in range(3))
    passed = sum(corpus.judge(f)[0].value == "pass" for f in corpus.fixtures())
    return {
        "64 kB in any format (ms)": {
            "value": round(1000 * slowest, 1),
            "at_most": 50,
            "slowest": where,
        },
        "canitoolcall read once (s)": {"value": round(best, 3), "at_most": 0.2},
        "canitoolcall passed, whole texts": {"value": passed, "at_least": 455, "of": 469},
    }


def _filled(head: str, unit: str) -> str:
    count = (MAX_BYTES - len(head.encode())) // len(unit.encode())
    return head + unit * count


def _seconds(name: str, text: str) -> float:
    reader = TextReader(name, SCHEMAS)
    start = time.process_time()
    reader.read(text)
    return time.process_time() - start


def _corpus(readers: list[tuple[TextReader, str]]) -> float:
    start = time.process_time()
    for reader, text in readers:
        reader.read(text)
    return time.process_time() - start
