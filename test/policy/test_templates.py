"""The kept conversation goes through chat templates as it is, and comes back as the same calls.

The templates are ours, in the styles of the Hermes, Mistral and Llama families: with what those
demand (roles in turns, nine-letter ids, content that is a text, arguments that are an object).
"""

import json

import jinja2
import pytest
from stub_server import call, completion

from lerobot_tool_bridge import formats

HERMES = """
{%- for m in messages %}
{%- if m.role == 'assistant' %}<|im_start|>assistant
{{ m.content + '' }}{% for c in m.tool_calls %}
<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% elif m.role == 'tool' %}<|im_start|>user
<tool_response>
{{ m.content + '' }}
</tool_response><|im_end|>
{% else %}<|im_start|>{{ m.role }}
{{ m.content + '' }}<|im_end|>
{% endif %}
{%- endfor %}"""

MISTRAL = """
{%- set ns = namespace(index=0) %}
{%- for m in messages if m.role != 'system' and m.role != 'tool' and not m.tool_calls %}
{%- if (m.role == 'user') != (ns.index % 2 == 0) %}{{ raise_exception('roles') }}{% endif %}
{%- set ns.index = ns.index + 1 %}
{%- endfor %}
{%- for m in messages %}
{%- if m.role == 'user' %}[INST] {{ m.content + '' }}[/INST]
{%- elif m.tool_calls %}[TOOL_CALLS][
{%- for c in m.tool_calls %}
{%- if c.id is not defined or c.id | length != 9 %}{{ raise_exception('nine letters') }}{% endif %}
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }},
{#- #} "id": "{{ c.id }}"}
{%- if not loop.last %}, {% endif %}{% endfor %}]</s>
{%- elif m.role == 'tool' %}
{%- if m.tool_call_id | length != 9 %}{{ raise_exception('nine letters') }}{% endif %}
[TOOL_RESULTS] {"content": {{ m.content | tojson }}, "call_id": "{{ m.tool_call_id }}"}
{#- #}[/TOOL_RESULTS]
{%- else %} {{ m.content + '' }}</s>{% endif %}
{%- endfor %}"""

LLAMA = """
{%- for m in messages %}
{%- if m.tool_calls %}
{%- if m.tool_calls | length != 1 %}{{ raise_exception('one call at a time') }}{% endif %}
{%- set f = m.tool_calls[0].function %}
{%- if f.arguments is not mapping %}{{ raise_exception('an object') }}{% endif %}
<|start_header_id|>assistant<|end_header_id|>

{"name": "{{ f.name }}", "parameters": {{ f.arguments | tojson }}}<|eot_id|>
{%- elif m.role == 'tool' %}<|start_header_id|>ipython<|end_header_id|>

{{ m.content | tojson }}<|eot_id|>
{%- else %}<|start_header_id|>{{ m.role }}<|end_header_id|>

{{ m.content + '' }}<|eot_id|>{% endif %}
{%- endfor %}"""

TEXT = 'A "quoted" {left, right} </tool_call>-free line\nwith ünïcödé 桌子 \\ and 0.1'
ONE = [call("say", {"text": TEXT}, "call_0")]
TWO = [
    call("gimbal_control", {"pan": 90, "tilt": 60.5}, ""),
    call("record_observation", {"label": "桌子"}, "1697377797897"),
]
STYLES = {
    "hermes": (HERMES, "<|im_start|>assistant\n", "<|im_end|>"),
    "mistral": (MISTRAL, "[TOOL_CALLS]", "</s>"),
    "llama_json": (LLAMA, "assistant<|end_header_id|>\n\n", "<|eot_id|>"),
}


def refuse(message):
    raise ValueError(message)


def render(template, messages):
    env = jinja2.Environment(undefined=jinja2.ChainableUndefined)
    env.filters["tojson"] = lambda v: json.dumps(v, ensure_ascii=False)
    return env.from_string(template).render(messages=messages, raise_exception=refuse)


@pytest.mark.parametrize("style", STYLES)
def test_rendered_and_parsed_gives_the_same_calls(talk, style):
    turns = [ONE] if style == "llama_json" else [ONE, TWO]
    t = talk(
        *[completion(None, calls) for calls in turns],
        completion("Done."),
        completion("", [ONE[0]], reason="malformed_function_call"),
        completion("", ONE),
        completion("Again."),
    )
    t("go", "and again")  # with an answer that had to be asked for twice
    messages = t.conversation.messages()
    template, begin, end = STYLES[style]
    text = render(template, messages)
    for result in (m for m in messages if m["role"] == "tool"):
        assert result["content"] in text
    found = []
    for part in text.split(begin)[1:]:
        part = part.split(end)[0]
        written = f"{begin}{part}" if style == "mistral" else part
        parsed = formats.get(style).parse(written, t.bridge.tools)
        assert not parsed.notes
        found += [(c.name, c.arguments) for c in parsed.calls]
    assert found == t.bridge.executed
    assert len(found) == (2 if style == "llama_json" else 4)
