"""Whatever comes, every call gets one answer and the next good call works."""

from __future__ import annotations

import asyncio
import json
import random

import cases
import pytest
from rig import Bench, call, make_tool, message

from lerobot_tool_bridge.core.decode import decode
from lerobot_tool_bridge.core.errors import UnreadableMessage
from lerobot_tool_bridge.core.gate import Limits

_SEEDS = [
    text
    for c in cases.load("adversarial.jsonl")
    if "message" in c["input"] and len(text := json.dumps(c["input"]["message"])) < 3000
]
_JUNK = [
    *("null", "1e999", "NaN", "{}", "[]", '"x"', "-1", "true", "\\u0000", "\ud800", "é"),
    *('"', "{", "}", "[", "]", ",", ":", "\\", '"tool_calls"', '"name"', '"id"', '"stop"'),
]


def mangled(chance: random.Random) -> str | bytes:
    text = chance.choice(_SEEDS)
    for _ in range(chance.randint(0, 3)):
        start = chance.randrange(len(text))
        end = start + chance.choice((0, 0, 1, 3, 20))
        text = text[:start] + chance.choice(_JUNK) + text[end:]
    return text if chance.random() < 0.5 else text.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("seed", [1, 2])
def test_every_call_gets_one_answer(seed: int):
    async def scene() -> None:
        limits = Limits(max_calls_per_second=0, accept_repeated_ids=True)
        bench = Bench.of(make_tool("move_joint", motion=True), make_tool("say"), limits=limits)
        chance = random.Random(seed)
        expected = unreadable = 0
        for _ in range(1500):
            payload = mangled(chance)
            try:
                expected += len(decode(payload).calls)
            except UnreadableMessage:
                unreadable += 1
            bench.dispatcher.submit(payload)
        await bench.answers(expected)
        assert expected > 300
        assert len(bench.results) == expected
        finished = [e for e in bench.events if e["event"] == "finished"]
        assert len(finished) == expected + unreadable
        for result in bench.results:
            json.dumps(result, ensure_ascii=False).encode()
            assert len(result["content"]) < 2000
        bench.dispatcher.reset()
        bench.dispatcher.submit(message(call("move_joint", {}, "last")))
        await bench.answers(expected + 1)
        assert bench.finished("last")["status"] == "succeeded"
        assert bench.dispatcher.pending == 0

    asyncio.run(asyncio.wait_for(scene(), 60.0))
