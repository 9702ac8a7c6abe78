"""``language_policy`` as a process: instructions, answers, cancel, queue, and a real bridge."""

import json
import signal
import threading

import cv2
import numpy as np
import pytest
from fake_bridge import FakeBridge
from harness import wait_for
from sensor_msgs.msg import CompressedImage
from std_msgs.msg import String
from stub_server import call, completion

from lerobot_tool_bridge.policy.language_policy import data_url
from lerobot_tool_bridge.ros.qos import COMMANDS, LATCHED

MODULE = "lerobot_tool_bridge.policy.language_policy"
MOVE = completion("", [call("move", {"x": 1}, "call_0")])
DONE = completion("Done.")


class Person:
    """Who talks to the policy in a test."""

    def __init__(self, ros, spawn, **parameters):
        self.process = spawn.node(MODULE, **parameters)
        name = "/language_policy"
        self.answers_raw = ros.collect(String, f"{name}/answer", COMMANDS)
        self.said_raw = ros.collect(String, f"{name}/conversation", COMMANDS)
        self._instruct = ros.node.create_publisher(String, f"{name}/instruction", COMMANDS)
        self._cancel = ros.node.create_publisher(String, f"{name}/cancel", COMMANDS)
        self.process.wait_output("Active: instructions are taken.")
        node = ros.node
        wait_for(
            lambda: (
                self._instruct.get_subscription_count()
                and self._cancel.get_subscription_count()
                and node.count_publishers(f"{name}/answer")
                and node.count_publishers(f"{name}/conversation")
            )
        )

    @property
    def answers(self):
        return [json.loads(m.data) for m in self.answers_raw]

    @property
    def said(self):
        return [json.loads(m.data) for m in self.said_raw]

    def say(self, text):
        self._instruct.publish(String(data=text))

    def cancel(self):
        self._cancel.publish(String())

    def ask(self, text, count=1):
        """Says something and returns the next answers."""
        before = len(self.answers_raw)
        self.say(text)
        wait_for(lambda: len(self.answers_raw) >= before + count)
        return self.answers[before:]


def test_an_instruction_and_its_answer(ros, spawn, stub, tmp_path):
    bridge = FakeBridge(ros, lambda n, a: ("succeeded", "moved"))
    server = stub(MOVE, DONE)
    person = Person(
        ros, spawn, url=server.url, model="m", conversation=str(tmp_path / "chat.jsonl")
    )
    (answer,) = person.ask("beweg dich, größer! 移动")
    assert answer.pop("duration_s") >= 0
    assert answer == {
        "instruction": "beweg dich, größer! 移动",
        "answer": "Done.",
        "status": "answered",
        "calls_asked": 1,
        "calls_ran": 1,
        "calls_succeeded": 1,
        "turns": 2,
    }
    assert bridge.calls() == [("move", {"x": 1})]
    wait_for(lambda: len(person.said) == 4)
    published = bridge.messages[0]["tool_calls"][0]["id"]
    assert person.said[2]["tool_call_id"] == published != "call_0"
    assert person.said[1]["tool_calls"][0]["function"]["arguments"] == {"x": 1}
    lines = (tmp_path / "chat.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == person.said
    assert server.requests[0]["tools"][0]["function"]["name"] == "move"
    assert "key" not in person.process.output


def test_replace_and_cancel_end_what_runs(ros, spawn, stub):
    bridge = FakeBridge(ros, lambda n, a: None)
    server = stub(lambda r: MOVE if r["messages"][-1]["content"] == "move" else DONE)
    person = Person(ros, spawn, url=server.url)
    person.say("move")
    wait_for(lambda: bridge.messages)
    first, second = person.ask("never mind", 2)
    assert (first["instruction"], first["status"]) == ("move", "cancelled")
    assert (second["instruction"], second["status"]) == ("never mind", "answered")
    assert bridge.cancelled == [bridge.messages[0]["tool_calls"][0]["id"]]
    person.say("move")
    wait_for(lambda: len(bridge.messages) == 2)
    person.cancel()
    wait_for(lambda: len(person.answers) == 3)
    assert person.answers[2]["status"] == "cancelled"


@pytest.mark.parametrize("mode", ["queue", "refuse"])
def test_queue_and_refuse(ros, spawn, stub, mode):
    release = threading.Event()

    def wait(request):
        release.wait(20.0)
        return DONE

    FakeBridge(ros, lambda n, a: ("succeeded", "moved"))
    server = stub(wait)
    person = Person(ros, spawn, url=server.url, on_new_instruction=mode)
    person.say("one")
    wait_for(lambda: server.requests)
    if mode == "refuse":
        (answer,) = person.ask("two")
        assert (answer["instruction"], answer["status"]) == ("two", "refused")
        release.set()
        wait_for(lambda: len(person.answers) == 2)
        return
    person.say("two")
    person.say("three")
    release.set()
    wait_for(lambda: len(person.answers) == 3)
    assert [a["instruction"] for a in person.answers] == ["one", "two", "three"]
    assert [a["status"] for a in person.answers] == ["answered"] * 3


def test_stop_does_not_wait_in_the_queue(ros, spawn, stub):
    bridge = FakeBridge(ros, lambda n, a: None)
    server = stub(lambda r: DONE if r["messages"][-1]["content"] == "stop" else MOVE)
    person = Person(ros, spawn, url=server.url, on_new_instruction="queue")
    person.say("one")
    wait_for(lambda: bridge.messages)
    person.say("two")
    first, second, third = person.ask("stop", 3)
    assert {first["status"], second["status"]} == {"cancelled", "refused"}
    assert third["instruction"] == "stop"


def test_the_still_goes_to_the_model(ros, spawn, stub):
    def answer(name, arguments):
        image = cv2.imencode(".png", np.full((1000, 2000, 3), 200, np.uint8))[1].tobytes()
        observations.publish(CompressedImage(format="png", data=image))
        return "succeeded", "saved desk.png"

    observations = ros.node.create_publisher(CompressedImage, "/tool_bridge/observations", LATCHED)
    FakeBridge(ros, answer)
    server = stub(completion("", [call("record_observation", {"label": "desk"})]), DONE)
    person = Person(ros, spawn, url=server.url, pictures="user", picture_side=400)
    wait_for(lambda: observations.get_subscription_count())
    person.ask("what do you see?")
    parts = server.requests[1]["messages"][-1]["content"]
    assert parts[1]["image_url"]["url"].startswith("data:image/jpeg;base64,")
    assert len(json.dumps(parts)) < 20_000


def test_pictures_get_small_enough():
    noise = np.random.default_rng(1).integers(0, 256, (600, 800, 3), np.uint8)
    url = data_url(cv2.imencode(".png", noise)[1].tobytes(), 800, 20_000)
    assert len(url) < 20_000 * 1.4
    assert data_url(b"no picture", 800, 20_000) == data_url(b"", 800, 20_000) == ""


def test_no_bridge(ros, spawn, stub):
    person = Person(ros, spawn, url=stub(DONE).url, bridge_timeout=0.2)
    (answer,) = person.ask("hello")
    assert answer["status"] == "failed"
    assert "No bridge answers as tool_bridge" in answer["answer"]


def test_ends_in_order_while_a_call_runs(ros, spawn, stub):
    bridge = FakeBridge(ros, lambda n, a: None)
    person = Person(ros, spawn, url=stub(MOVE).url)
    person.say("move")
    wait_for(lambda: bridge.messages)
    person.process.signal(signal.SIGINT)
    assert person.process.wait() == 0, person.process.output
    wait_for(lambda: bridge.cancelled)
    wait_for(lambda: person.answers)
    assert person.answers[0]["status"] == "cancelled"


@pytest.mark.parametrize(
    ("parameters", "hint"),
    [
        ({"url": "localhost:8080"}, "no address of an OpenAI-compatible server"),
        ({"text_format": "hermez"}, "Did you mean hermes"),
        ({"tools_in": "prompt"}, "text_format should say"),
        ({"extra_body": "{"}, "extra_body is no JSON"),
        ({"on_new_instruction": "ignore"}, "should be one of queue, replace, refuse"),
    ],
)
def test_parameters_that_cannot_be_right(spawn, parameters, hint):
    process = spawn.node(MODULE, autostart_timeout=0.0, **parameters)
    process.wait_output(hint)


def test_with_the_rules_and_a_real_bridge(ros, spawn):
    spawn.node("lerobot_tool_bridge.ros.bridge", robot="", speech="log")
    person = Person(ros, spawn)
    (answer,) = person.ask("what is 17 * 23? Then say hello")
    assert (answer["status"], answer["calls_ran"], answer["calls_succeeded"]) == ("answered", 2, 2)
    wait_for(lambda: len(person.said) == 6)
    assert person.said[2]["content"] == "391"
    (answer,) = person.ask("grab the red cube")
    assert (answer["calls_ran"], answer["status"]) == (0, "answered")


def test_a13_a14_a03_with_a_real_bridge(ros, spawn, stub):
    """Repeated ids run, broken arguments are answered by the bridge: nothing gets lost."""
    spawn.node("lerobot_tool_bridge.ros.bridge", robot="")
    sums = [call("calculator", {"expression": e}, "call_0") for e in ("1+1", "2+2")]
    broken = call("calculator", '{"expression": "1\\d1"}', "call_0")
    person = Person(
        ros,
        spawn,
        url=stub(completion("", sums), completion("", [broken, sums[0]]), DONE).url,
    )
    (answer,) = person.ask("compute")
    assert (answer["calls_asked"], answer["calls_ran"], answer["calls_succeeded"]) == (4, 3, 3)
    wait_for(lambda: len(person.said) == 8)
    contents = [m["content"] for m in person.said if m["role"] == "tool"]
    assert contents[:2] + contents[3:] == ["2", "4", "2"]
    assert contents[2].startswith("Error: bad_json: ")
    assert "invalid escape" in contents[2].lower() or "\\d" in contents[2]
