"""``call``: how its words become a call, and what it makes of the answers."""

import signal
import sys

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from fake_bridge import FakeBridge
from harness import wait_for

from lerobot_tool_bridge.cli.call import UsageError, read_words, typed

SCHEMA = {
    "properties": {
        "x": {"type": "number"},
        "steps": {"type": "integer"},
        "label": {"type": "string"},
        "wait": {"type": "boolean"},
        "pose": {"type": "array"},
        "size": {"type": ["number", "null"]},
    }
}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("x", "0.2", 0.2),
        ("x", "-1e-2", -0.01),
        ("x", "far", "far"),
        ("x", "nan", "nan"),
        ("x", "NaN", "NaN"),
        ("x", '"1"', '"1"'),
        ("x", "0x10", "0x10"),
        ("steps", "3", 3),
        ("label", "42", "42"),
        ("label", "true", "true"),
        ("label", "007", "007"),
        ("label", "", ""),
        ("wait", "true", True),
        ("wait", "off", "off"),
        ("pose", "[1, 2]", [1, 2]),
        ("size", "null", None),
        ("unknown", "1", 1),
        ("unknown", "cup", "cup"),
    ],
)
def test_schema_decides_what_a_text_is(name, text, value):
    assert typed({name: text}, SCHEMA) == {name: value}
    assert type(typed({name: text}, SCHEMA)[name]) is type(value)


def test_ways_to_write_a_call():
    assert read_words("move", ["x:=0.2", "label:=a:=b"]) == (
        "move",
        {},
        {"x": "0.2", "label": "a:=b"},
    )
    assert read_words("move", ['{"x": 1}']) == ("move", {"x": 1}, {})
    flat = '{"name": "move", "arguments": {"x": 1}}'
    chat = '{"type": "function", "function": {"name": "move", "arguments": "{\\"x\\": 1}"}}'
    for text in (flat, chat):
        assert read_words(text, []) == ("move", {"x": 1}, {})


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["move", "x=0.2"], "x:=0.2"),
        (["move", "0.2"], "name:=value"),
        (["move", "x:=1", "x:=2"], "twice"),
        (["move", '{"x": NaN}'], "NaN"),
        (["move", '{"x": 1'], "no JSON"),
        (['{"x": 1}'], '"name"'),
        (['{"name": "move"}', "x:=1"], "one object"),
    ],
)
def test_what_is_wrong_is_said(words, hint):
    with pytest.raises(UsageError, match=hint):
        read_words(words[0], words[1:])


def run_call(spawn, *words):
    return spawn(
        sys.executable,
        "-c",
        "import sys; from lerobot_tool_bridge.cli.call import main; sys.exit(main())",
        *words,
    )


def test_result_and_status(ros, spawn):
    bridge = FakeBridge(
        ros,
        lambda name, a: (
            ("succeeded", "Error: is only a word here.")
            if a["x"] > 0
            else ("rejected", "Error: invalid_arguments: x is -1.")
        ),
    )
    good = run_call(spawn, "move", "x:=1", "label:=table", "--timeout", "30")
    bad = run_call(spawn, "move", "x:=-1")
    assert good.wait() == 0, good.output
    assert "Error: is only a word here." in good.output
    assert bad.wait() == 1, bad.output
    assert "invalid_arguments" in bad.output
    assert "rejected" in bad.output
    assert sorted(bridge.calls(), key=str) == [
        ("move", {"x": -1}),
        ("move", {"x": 1, "label": "table"}),
    ]
    ids = {m["tool_calls"][0]["id"] for m in bridge.messages}
    assert len(ids) == 2


def test_interrupt_cancels_and_waits_for_the_result(ros, spawn):
    bridge = FakeBridge(ros, lambda name, a: None)
    process = run_call(spawn, "move", "x:=1")
    process.wait_output("started")
    process.signal(signal.SIGINT)
    assert process.wait() == 1, process.output
    assert "Error: cancelled." in process.output
    assert bridge.cancelled == [bridge.messages[0]["tool_calls"][0]["id"]]


def test_timeout_cancels(ros, spawn):
    bridge = FakeBridge(ros, lambda name, a: None)
    process = run_call(spawn, "move", "x:=1", "--timeout", "0.2")
    assert process.wait() == 1, process.output
    assert len(bridge.cancelled) == 1


def test_list_in_a_namespace(ros, spawn):
    FakeBridge(ros, lambda name, a: None, name="/lab/tool_bridge")
    process = run_call(spawn, "--list", "--namespace", "lab")
    assert process.wait() == 0, process.output
    assert "move x:=number [steps:=integer] [label:=string] [wait:=boolean]" in process.output
    assert "Moves. Slowly." in process.output


def test_no_bridge_is_said_with_a_cure(spawn):
    process = run_call(spawn, "move", "x:=1")
    assert process.wait() == 3
    assert "no bridge answers as tool_bridge" in process.output
    assert "lerobot_tool_bridge up" in process.output


def test_bridge_that_dies_is_noticed(ros, spawn):
    bridge = FakeBridge(ros, lambda name, a: None)
    process = run_call(spawn, "move", "x:=1")
    process.wait_output("started")
    wait_for(lambda: bridge.messages)
    for publisher in list(ros.node.publishers):
        if publisher.topic_name.startswith("/tool_bridge/"):
            ros.node.destroy_publisher(publisher)
    assert process.wait() == 1
    assert "did not answer" in process.output


def test_statistics_of_the_bridge_in_a_namespace(ros, spawn):
    FakeBridge(ros, lambda name, a: None, name="/lab/tool_bridge")
    publisher = ros.node.create_publisher(DiagnosticArray, "/diagnostics", 10)
    array = DiagnosticArray()
    for name, text in (("tool_bridge", "another robot's"), ("lab/tool_bridge", "2 calls")):
        value = KeyValue(key="move", value=text)
        status = DiagnosticStatus(name=f"{name}: calls", message="calls are taken")
        status.values.append(value)
        array.status.append(status)
    timer = ros.node.create_timer(0.1, lambda: publisher.publish(array))
    process = run_call(spawn, "--stats", "--namespace", "lab")
    assert process.wait() == 0, process.output
    assert "move  2 calls" in process.output
    assert "another" not in process.output
    ros.node.destroy_timer(timer)
