"""Each family's forms, and the rules that hold for all of them."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from typing import Any

import pytest

from lerobot_tool_bridge.formats import FORMATS, MAX_BYTES, Parsed, TextReader, get

SCHEMAS = [
    {
        "type": "function",
        "function": {
            "name": "move",
            "parameters": {
                "type": "object",
                "properties": {
                    "joint": {"type": "string"},
                    "angle": {"type": "number"},
                    "steps": {"type": "integer"},
                    "wait": {"type": "boolean"},
                    "via": {"type": "array", "items": {"type": "number"}},
                    "note": {"type": ["string", "null"]},
                },
            },
        },
    }
]
CALL = ("move", {"joint": "elbow", "angle": 0.5, "wait": True})
JSON = '{"joint": "elbow", "angle": 0.5, "wait": true}'
NAMED = f'{{"name": "move", "arguments": {JSON}}}'

# formats, and the one call CALL as models write it
FORMS: list[tuple[str, str]] = [
    ("hermes", f"<tool_call>\n{NAMED}\n</tool_call>"),
    ("hermes", f"<tool_call>[{NAMED}]</tool_call>"),
    (
        "qwen_xml",
        "<tool_call>\n<function=move>\n<parameter=joint>\nelbow\n</parameter>\n<parameter=angle>\n"
        "0.5\n</parameter>\n<parameter=wait>\nTrue\n</parameter>\n</function>\n</tool_call>",
    ),
    ("mistral", f"[TOOL_CALLS][{NAMED}]"),
    ("mistral", f"[TOOL_CALLS]move[ARGS]{JSON}"),
    ("mistral", f"[TOOL_CALLS]move[CALL_ID]abcdefghi[ARGS]{JSON}"),
    ("llama_json", f'{{"name": "move", "parameters": {JSON}}}'),
    ("llama_json", f'<|python_tag|>{{"name": "move", "parameters": {JSON}}}<|eom_id|>'),
    ("llama_json", "<|python_tag|>move.call(joint='elbow', angle=0.5, wait=True)"),
    ("pythonic", "[move(joint='elbow', angle=0.5, wait=True)]"),
    ("pythonic", '<|python_start|>[move(joint="elbow", angle=0.5, wait=True)]<|python_end|>'),
    (
        "pythonic",
        "<|tool_call_start|>[move(joint='elbow', angle=+0.5, wait=True)]<|tool_call_end|>",
    ),
    (
        "pythonic",
        "<function_calls>\nmove(joint='elbow', angle=0.5, wait=true)\n</function_calls>",
    ),
    ("gemma4", '<|tool_call>call:move{angle:0.5,joint:<|"|>elbow<|"|>,wait:true}<tool_call|>'),
    (
        "functiongemma",
        "<start_function_call>call:move{joint:<escape>elbow<escape>,angle:0.5,wait:true}"
        "<end_function_call>",
    ),
    (
        "glm",
        "<tool_call>move\n<arg_key>joint</arg_key>\n<arg_value>elbow</arg_value>\n"
        "<arg_key>angle</arg_key>\n<arg_value>0.5</arg_value>\n<arg_key>wait</arg_key>\n"
        "<arg_value>true</arg_value>\n</tool_call>",
    ),
    (
        "harmony",
        f"<|channel|>commentary to=functions.move <|constrain|>json<|message|>{JSON}<|call|>",
    ),
    (
        "harmony",
        f"<|start|>assistant to=functions.move<|channel|>commentary json<|message|>{JSON}<|call|>",
    ),
    (
        "deepseek",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>move\n```json\n"
        f"{JSON}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    (
        "deepseek",
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>move<｜tool▁sep｜>{JSON}<｜tool▁call▁end｜>"
        "<｜tool▁calls▁end｜>",
    ),
    (
        "deepseek",
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="move">\n<｜DSML｜parameter name="joint" '
        'string="true">elbow</｜DSML｜parameter>\n<｜DSML｜parameter name="angle" string="false">'
        '0.5</｜DSML｜parameter>\n<｜DSML｜parameter name="wait">True</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    ),
    (
        "kimi_k2",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.move:0"
        f"<|tool_call_argument_begin|>{JSON}<|tool_call_end|><|tool_calls_section_end|>",
    ),
    (
        "kimi_k3",
        '<|open|>tools<|sep|><|open|>call tool="move" index="1"<|sep|><|open|>argument '
        'key="joint" type="string"<|sep|>elbow<|close|>argument<|sep|><|open|>argument '
        'key="angle" type="number"<|sep|>0.5<|close|>argument<|sep|><|open|>argument key="wait" '
        'type="boolean"<|sep|>true<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>',
    ),
    (
        "minimax_m2",
        '<minimax:tool_call>\n<invoke name="move">\n<parameter name="joint">elbow</parameter>\n'
        '<parameter name="angle">0.5</parameter>\n<parameter name="wait">true</parameter>\n'
        "</invoke>\n</minimax:tool_call>",
    ),
    ("granite", f"<|tool_call|>[{NAMED}]"),
    ("granite", f"<tool_call>[{NAMED}]"),
    ("granite", f"<function_call> {NAMED}"),
    ("phi4", f"functools[{NAMED}]"),
    ("phi4", f'<|tool_call|>[{{"type": "function", "function": {NAMED}}}]<|/tool_call|>'),
    (
        "cohere",
        f'<|START_ACTION|>[\n{{"tool_call_id": "0", "tool_name": "move", "parameters": {JSON}}}\n]'
        "<|END_ACTION|>",
    ),
    ("cohere", f'Action: ```json\n[{{"tool_name": "move", "parameters": {JSON}}}]\n```'),
    ("xlam", f"[{NAMED}]"),
    ("xlam", f"<tool_call>[{NAMED}]</tool_call>"),
    ("xlam", f"[TOOL_CALLS][{NAMED}]"),
    ("json", NAMED),
    ("json", f"I will do this: {NAMED} and then wait."),
    ("json:action,params", f'{{"action": "move", "params": {JSON}}}'),
    ("json:action", '{"action": "move", "joint": "elbow", "angle": 0.5, "wait": true}'),
]
IDS = [f"{name}-{i}" for i, (name, _) in enumerate(FORMS)]
MIXES = {"llama_json", "pythonic", "xlam"}
"""A call without a marker is the whole answer."""

each_form = pytest.mark.parametrize(("name", "text"), FORMS, ids=IDS)


def read(name: str, text: str, finish: str | None = None, prefix: str = "") -> Parsed:
    return get(name).parse(text, SCHEMAS, finish, prefix)


def calls(parsed: Parsed) -> list[tuple[str, Any]]:
    return [(c.name, c.arguments) for c in parsed.calls]


def codes(parsed: Parsed) -> list[str]:
    return [n.code for n in parsed.notes]


@each_form
def test_one_call(name: str, text: str):
    parsed = read(name, text)
    assert calls(parsed) == [CALL]
    assert parsed.notes == ()
    if name != "json":
        assert parsed.content == ""


def test_every_format_is_tried():
    assert {n.partition(":")[0] for n, _ in FORMS} | {"say_tag"} == set(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_the_example_is_one_call_of_say(name: str):
    assert calls(read(name, FORMATS[name].example)) == [("say", {"text": "Hello"})]


@each_form
def test_a_cut_call_never_runs(name: str, text: str):
    last = max(text.rfind("}"), text.rfind(")"), text.rfind("</arg_value>"))
    for place in range(last):
        for finish in ("length", "stop", None):
            assert calls(read(name, text[:place], finish)) == [], text[:place]


@each_form
def test_no_call_in_a_code_block(name: str, text: str):
    for fence in ("```", "~~~", "````"):
        quoted = f"For example:\n{fence}\n{text}\n{fence}\nThat is all."
        if "```" in text and fence == "```":
            continue  # its own fence would end ours
        parsed = read(name, quoted)
        assert calls(parsed) == []
        assert name == "kimi_k3" or "move" in parsed.content
    assert calls(read(name, f"Unclosed:\n```\n{text}" if "```" not in text else "")) == []


@each_form
def test_no_call_in_reasoning(name: str, text: str):
    if name == "harmony":
        return
    opened, closed = {
        "mistral": ("[THINK]", "[/THINK]"),
        "gemma4": ("<|channel>thought\n", "<channel|>"),
        "cohere": ("<|START_THINKING|>", "<|END_THINKING|>"),
        "kimi_k3": ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    }.get(name, ("<think>", "</think>"))
    drafted = f"Maybe {text} or not."
    for whole, prefix in (
        (f"{opened}{drafted}{closed}No.", ""),
        (f"{drafted}{closed}No.", opened),
        (f"{drafted}{closed}No.", ""),  # the prompt had opened it, and nobody said so
        (f"{opened}{drafted}", ""),
        (drafted, opened),
    ):
        parsed = read(name, whole, None, prefix)
        assert calls(parsed) == []
        if name == "llama_json" and not (prefix or whole.startswith(opened)):
            continue  # the draft is malformed: text follows it
        assert "Maybe" in parsed.reasoning
        assert parsed.content == ("No." if closed in whole else "")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hermes", f"<think>{FORMS[0][1]}</think>No."),
        ("qwen_xml", f"<think>{FORMS[2][1]}</think>No."),
        ("hermes", f"{FORMS[0][1]}</think>No."),
        ("glm", f"<think>{FORMS[15][1]}"),
    ],
)
def test_a_draft_in_reasoning_is_noted(name: str, text: str):
    assert codes(read(name, text)) == ["reasoning"]


def test_talk_of_markers_in_reasoning_is_no_draft():
    assert read("hermes", "<think>I could write <tool_call> here.</think>No.").notes == ()


def test_a_quoted_call_is_noted():
    assert codes(read("hermes", f"```\n{FORMS[0][1]}\n```")) == ["quoted"]
    assert codes(read("hermes", f"Write `{FORMS[0][1]}` for that.")) == []
    assert calls(read("hermes", f"Write `{FORMS[0][1]}` for that.")) == []


@each_form
def test_calls_before_a_malformed_one_run_and_none_after(name: str, text: str):
    if name == "llama_json" or (name in MIXES and text.startswith(("[{", "[move"))):
        return
    if name in ("json", "json:action", "json:action,params"):
        bad = text.replace('"elbow"', "elbow")
    else:
        bad = text.replace("move", "mo\nve {<", 1)
    parsed = read(name, f"{text}\n{bad}\n{text}")
    assert calls(parsed) == [CALL]
    assert codes(parsed) in (["malformed"], ["truncated"])
    assert parsed.notes[0].position >= len(text)


def test_no_format_takes_the_calls_of_another():
    shared = {
        ("hermes", "xlam"),
        ("hermes", "granite"),
        ("granite", "phi4"),
        ("mistral", "xlam"),
        ("granite", "xlam"),
        ("llama_json", "json"),
        ("xlam", "json"),
    }  # the same text is a call in both
    for name, text in FORMS:
        base = name.partition(":")[0]
        for other in FORMATS:
            if other == base or {(base, other), (other, base)} & shared:
                continue
            found = calls(read(other, text))
            if other == "json":  # takes any JSON object that names a tool
                continue
            assert found == [], (text, other)


def test_a_name_that_there_is_not():
    with pytest.raises(ValueError, match="Did you mean hermes"):
        get("herms")
    with pytest.raises(ValueError, match="Formats: cohere"):
        get("")
    with pytest.raises(ValueError, match="NAME_KEY"):
        get("json:a,a")
    with pytest.raises(ValueError, match="no text format"):
        get("hermes:x")


def test_say_tags_are_all_read():
    parsed = read("say_tag", "<say>Hello</say> I pick it. <say>There: a < b</say>")
    assert calls(parsed) == [("say", {"text": "Hello"}), ("say", {"text": "There: a < b"})]
    assert parsed.content == "I pick it."
    assert codes(read("say_tag", "<say>Hel")) == ["truncated"]
    assert codes(read("say_tag", "<say>a<say>b</say>")) == ["malformed"]


def test_several_calls_keep_their_order():
    two = [("move", {"joint": "a"}), ("move", {"joint": "b"})]
    assert calls(read("pythonic", "[move(joint='a'), move(joint='b')]")) == two
    text = '{"name": "move", "parameters": {"joint": "a"}}; {"name": "move", "parameters": '
    assert calls(read("llama_json", text + '{"joint": "b"}}')) == two
    lines = "<function_calls>\nmove(joint='a')\nmove(joint='b')\n</function_calls>"
    assert calls(read("pythonic", lines)) == two


def test_the_models_own_ids_are_kept_beside():
    assert read("kimi_k2", dict(FORMS)["kimi_k2"]).calls[0].id == "functions.move:0"
    assert read("mistral", FORMS[5][1]).calls[0].id == "abcdefghi"


@pytest.mark.parametrize(
    ("name", "text", "want"),
    [
        ("joint", "0042", "0042"),
        ("joint", "true", "true"),
        ("joint", '{"a": 1}', '{"a": 1}'),
        ("joint", "  two  ", "  two  "),
        ("angle", "90", 90),
        ("angle", " -1.5e2 ", -150.0),
        ("angle", "0042", "0042"),
        ("angle", "NaN", "NaN"),
        ("angle", "1_000", "1_000"),
        ("angle", "0x10", "0x10"),
        ("angle", "０", "０"),
        ("angle", "True", "True"),
        ("wait", "True", True),
        ("wait", "false", False),
        ("wait", "1", "1"),
        ("via", "[1, 2.5]", [1, 2.5]),
        ("via", "[1, 2.5", "[1, 2.5"),
        ("via", "[1] [2]", "[1] [2]"),
        ("note", "null", None),
        ("note", "None", None),
        ("note", "7", "7"),
        ("unknown", "7", "7"),
    ],
)
def test_the_schema_decides_the_type(name: str, text: str, want: Any):
    whole = f"<tool_call>move<arg_key>{name}</arg_key><arg_value>{text}</arg_value></tool_call>"
    ((_, arguments),) = calls(read("glm", whole))
    assert arguments == {name: want}
    assert type(arguments[name]) is type(want)


def test_an_argument_that_stands_twice_is_malformed():
    for name, text in (
        ("pythonic", "[move(joint='a', joint='b')]"),
        ("gemma4", "<|tool_call>call:move{a:1,a:2}<tool_call|>"),
        (
            "qwen_xml",
            "<tool_call><function=move><parameter=a>1</parameter><parameter=a>2</parameter>"
            "</function></tool_call>",
        ),
    ):
        assert calls(read(name, text)) == []
        assert codes(read(name, text)) == ["malformed"]


def test_a_left_out_end_marker_swallows_nothing():
    text = (
        "<tool_call>\n<function=move>\n<parameter=joint>\nelbow\n<parameter=angle>\n1\n"
        "</parameter>\n</function>\n</tool_call>"
    )
    assert codes(read("qwen_xml", text)) == ["malformed"]
    text = "<tool_call>move<arg_key>joint</arg_key><arg_value>elbow</tool_call>\n" + FORMS[15][1]
    assert codes(read("glm", text)) == ["malformed"]


@pytest.mark.parametrize(
    "text",
    [
        "[move(joint=f'{1}')]",
        "[move(joint=open('x'))]",
        "[move(joint='a' + 'b')]",
        "[move('elbow')]",
        "[move(*['a'])]",
        "[move(**{'a': 1})]",
        "[move(via=[x for x in y])]",
        "[move(joint=b'a')]",
        "[move(angle=1j)]",
        "[move(angle=...)]",
        "[move(a={1: 2})]",
        "[move(a={**b})]",
        "[(lambda: 1)(a=1)]",
        "[move()()]",
        "[move(a=1)] or [move(a=2)]",
        "[move(a=1), 7]",
        "[move(a=" + "9" * 5000 + ")]",
        "[move(a=" + "(" * 300 + ")" * 300 + ")]",
        "[move(a='\x00')]",
        "[move(a='\ud800')]",
    ],
)
def test_python_that_is_no_list_of_literal_calls(text: str):
    assert calls(read("pythonic", text)) == []


def test_repeated_keys_in_a_call_are_malformed():
    text = '<tool_call>{"name": "move", "name": "stop", "arguments": {}}</tool_call>'
    assert codes(read("hermes", text)) == ["malformed"]


def test_bad_values_are_left_for_the_answer():
    """The call is readable, so it is answered under its id and says what is wrong."""
    ((_, arguments),) = calls(
        read("hermes", '<tool_call>{"name": "move", "arguments": {"angle": 1e999}}</tool_call>')
    )
    assert arguments["angle"] == float("inf")


def test_more_than_64_kb_is_refused():
    text = FORMS[0][1]
    long = text + " " * (MAX_BYTES - len(text))
    assert calls(read("hermes", long)) == [CALL]
    assert codes(read("hermes", long + " ")) == ["too_large"]
    assert read("hermes", long + " ").calls == ()
    assert read("hermes", "é" * (MAX_BYTES // 2 + 1)).content.startswith("é")
    stream = TextReader("hermes").stream()
    for _ in range(MAX_BYTES // 1000 + 2):
        stream.feed("x" * 1000)
    assert [n.code for n in stream.finish().notes] == ["too_large"]


# Repeated to 64 kB: what makes a pattern that goes back over text, or a search that begins again
# and again, take seconds.
UNITS = (
    *(
        "<tool_call>",
        "</tool_call>",
        "<think>",
        "</think>",
        "```",
        "`{",
        "<",
        "{",
        "[{",
        "[[",
        "{}",
    ),
    *('{"name":', '{"a":1,', '{"a', '"', "\\", "(", "[f(a=", "-", "a=1,", "'", "\n", " ", "1,"),
    *("<function=f>", "\n<function=f>\n", "</parameter>", "</parameter> ", "</arg_value>"),
    *("[TOOL_CALLS]", "[TOOL_CALLS]f[ARGS]{}", "<|channel|>", "<|end|> ", "<|message|>"),
    *("<|tool_call>call:f{a:", "<|tool_call>call:f{}<tool_call|>", "a:[", "<|channel>"),
    *("<｜tool▁calls▁begin｜>", '<｜DSML｜invoke name="f">', "<|open|>", "<say>a</say>", "<say>"),
    *("<|open|>tools<|sep|>", '<parameter name="a">', "functools[", "Action:", "f(a=1)\n", "~~~"),
    *('{"name":"f","arguments":{}}\n', '{"name":"f","parameters":{}};', "[say(text='a'), "),
)
HEADS = (
    *("", "<tool_call>", "<think>", "[f(a=", "[f(", "[TOOL_CALLS]", "<function_calls>"),
    '<tool_call>{"name":"f","arguments":{"a":"',
    "<tool_call>\n<function=f>\n<parameter=a>\n",
    "<tool_call>f<arg_key>a</arg_key><arg_value>",
    "<|tool_call>call:f{a:",
    "<|tool_calls_section_begin|>",
    '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="a" string="true">',
    '<minimax:tool_call><invoke name="f"><parameter name="a">',
    '<|open|>tools<|sep|><|open|>call tool="f"<|sep|><|open|>argument key="a"<|sep|>',
    "<|channel|>final<|message|>",
)


@pytest.mark.parametrize("name", FORMATS)
def test_64_kb_of_anything_are_read_in_no_time(name: str):
    """The limit here is generous; ``bench/formats.py`` measures."""
    reader = TextReader(name, SCHEMAS)
    for unit in UNITS:
        for head in HEADS if unit in ("\n", "<", "</parameter> ", "[[") else HEADS[:1]:
            text = (head + unit * MAX_BYTES)[: MAX_BYTES // (3 if unit.isascii() is False else 1)]
            start = time.process_time()
            reader.read(text)
            assert time.process_time() - start < 0.5, (head, unit)


@pytest.mark.parametrize("name", FORMATS)
def test_noise_never_raises(name: str):
    chance = random.Random(name)
    pieces = [
        *UNITS,
        *HEADS,
        *(t for _, t in FORMS),
        "move",
        "elbow",
        "0.5",
        "\ud800",
        "\x00",
        "é",
    ]
    format_ = get(name)
    for _ in range(150):
        text = "".join(chance.choices(pieces, k=chance.randint(1, 12)))
        parsed = format_.parse(text, SCHEMAS, chance.choice((None, "stop", "length")))
        assert all(0 <= c.position <= len(text) for c in parsed.calls)


def test_the_list_of_formats():
    done = subprocess.run(
        [sys.executable, "-m", "lerobot_tool_bridge.formats"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(f"{name} " in done.stdout for name in FORMATS)


def test_check_reads_texts(tmp_path: Any):
    file = tmp_path / "texts.jsonl"
    say = '{"name": "say", "arguments": {"text": "Hi"}}'
    lines = [
        {"text": f"<tool_call>{say}</tool_call>", "format": "hermes"},
        {"text": f"[{say}]", "format": "xlam"},
        {"role": "assistant", "content": f"Yes. <tool_call>{say}</tool_call>"},
        {"text": f"<tool_call>{say}", "finish_reason": "length"},
    ]
    file.write_text("".join(json.dumps(x) + "\n" for x in lines))
    command = [sys.executable, "-m", "lerobot_tool_bridge", "check", "--format", "hermes", file]
    done = subprocess.run(command, capture_output=True, text=True)
    results = [json.loads(x) for x in done.stdout.splitlines()]
    assert [r["outcome"] for r in results] == ["execute", "execute", "execute", "content"]
    assert results[2]["content"] == "Yes."
    assert [n["code"] for n in results[3]["notes"]] == ["truncated"]
    assert done.returncode == 0
    done = subprocess.run([*command[:-2], "hermse", file], capture_output=True, text=True)
    assert (done.returncode, "hermes" in done.stderr) == (2, True)
