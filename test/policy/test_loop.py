"""The loop: ids, order, errors, limits, and what is never run. With a real client and a stub."""

import asyncio
import json
import re

import pytest
from stub_server import Stub, call, chunks, completion, piece, status

NINE = re.compile(r"[A-Za-z0-9]{9}")
DONE = completion("Done.")
LOOK = call("gimbal_control", {"pan": 135, "tilt": 90})
GRAB = call("arm_grab_object", {"x": 0.2, "y": 0.0, "z": 0.02}, "call00001")


def results(messages):
    return [m for m in messages if m["role"] == "tool"]


def asked(messages):
    return [c for m in messages for c in m.get("tool_calls", ())]


def test_ask_calls_results_ask(talk):
    t = talk(completion("I look.", [LOOK]), DONE, system="Be kind.")
    (answer,) = t("look ahead")
    assert (answer.status, answer.answer, answer.turns) == ("answered", "Done.", 2)
    assert (answer.calls_asked, answer.calls_ran, answer.calls_succeeded) == (1, 1, 1)
    assert t.bridge.executed == [("gimbal_control", {"pan": 135, "tilt": 90})]
    first, second = t.stub.requests
    assert first["messages"][0] == {"role": "system", "content": "Be kind."}
    assert first["tools"][0]["function"]["name"] == "gimbal_control"
    assert [m["role"] for m in second["messages"]] == ["system", "user", "assistant", "tool"]
    assert [m["role"] for m in t.said] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("given", [{"pan": 135, "tilt": 90}, '{"pan": 135, "tilt": 90}'])
def test_a01_arguments_are_a_text_for_the_server_and_an_object_for_all_others(talk, given):
    function = {"name": "gimbal_control", "arguments": given}
    reply = completion("", [{"id": "call_x1", "type": "function", "function": function}])
    t = talk(reply, DONE)
    t("look")
    sent = t.stub.requests[1]["messages"][-2]
    assert sent["tool_calls"][0]["function"]["arguments"] == '{"pan": 135, "tilt": 90}'
    assert sent["content"] == ""
    for message in (*t.said, *t.bridge.sent, *t.conversation.messages()):
        assert isinstance(message["content"], str)
        for c in message.get("tool_calls", ()):
            assert c["function"]["arguments"] == {"pan": 135, "tilt": 90}


def test_a13_empty_and_repeated_ids_all_run(talk):
    t = talk(
        completion(
            None,
            [
                call("gimbal_control", {"pan": 90, "tilt": 60}, ""),
                call("record_observation", {"label": "left"}),
                call("record_observation", {"label": "right"}),
            ],
        ),
        DONE,
    )
    (answer,) = t("look left and right")
    assert answer.calls_ran == 3
    ids = [c["id"] for c in t.bridge.calls]
    assert len(set(ids)) == 3
    assert all(NINE.fullmatch(i) for i in ids)
    assert [r["tool_call_id"] for r in results(t.said)] == ids


def test_a14_one_constant_id_for_every_call(talk):
    t = talk(
        completion("", [call("gimbal_control", {"pan": 90, "tilt": 60}, "call_0")]),
        completion("", [call("gimbal_control", {"pan": 180, "tilt": 60}, "call_0")]),
        DONE,
    )
    (answer,) = t("look left, then right")
    assert [a["pan"] for _, a in t.bridge.executed] == [90, 180]
    ids = [c["id"] for c in t.bridge.calls]
    assert len(set(ids)) == 2
    last = t.stub.requests[-1]["messages"]
    assert [c["id"] for c in asked(last)] == ids
    assert [r["tool_call_id"] for r in results(last)] == ids
    assert answer.calls_ran == 2


@pytest.mark.parametrize("given", ["1697377797897", 1697377797897, None, "x" * 300, ["a"]])
def test_a15_a_server_that_wants_nine_letters(talk, given):
    def mistral(request):
        for m in request["messages"]:
            for call_id in (*[c["id"] for c in m.get("tool_calls", ())], m.get("tool_call_id")):
                if call_id is not None and not NINE.fullmatch(call_id):
                    return status(400, "Tool call id has to be 9 letters and digits")
        return DONE

    first = completion("", [call("say", {"text": "hello"}, given)])
    t = talk(first, mistral, reply=lambda n, a: "spoken")
    (answer,) = t("say hello")
    assert answer.status == "answered"
    assert t.bridge.executed == [("say", {"text": "hello"})]
    (result,) = results(t.said)
    assert [c["id"] for c in asked(t.said)] == [result["tool_call_id"]]


def test_several_calls_results_in_the_order_that_was_asked(talk):
    calls = [call("say", {"text": str(n)}, f"c{n}") for n in range(5)]
    t = talk(completion("", calls), DONE, reply=lambda n, a: f"said {a['text']}")
    t.bridge.reverse = True
    t("count")
    assert [r["content"] for r in results(t.said)] == [f"said {n}" for n in range(5)]
    assert [r["content"] for r in results(t.stub.requests[1]["messages"])] == [
        f"said {n}" for n in range(5)
    ]


def test_an_error_goes_back_and_is_repaired(talk):
    t = talk(
        completion("", [call("gimbal_control", {"pan": 300, "tilt": 90})]),
        lambda r: completion("", [LOOK]) if "0 to 270" in r["messages"][-1]["content"] else DONE,
        DONE,
        reply=lambda n, a: (
            "Error: invalid_arguments: pan: 0 to 270" if a["pan"] > 270 else "pan 135"
        ),
    )
    (answer,) = t("look")
    assert (answer.calls_asked, answer.calls_ran, answer.calls_succeeded) == (2, 1, 1)


def test_the_same_failing_call_three_times_ends_the_run(talk):
    t = talk(completion("", [GRAB]), reply=lambda n, a: "Error: nothing_grasped: Not there.")
    (answer,) = t("grab it")
    assert answer.status == "gave_up"
    assert "arm_grab_object failed 3 times" in answer.answer
    assert "Not there" in answer.answer
    assert len(t.stub.requests) == 3
    assert t.said[-1]["role"] == "assistant"


def test_different_failing_calls_end_at_the_turns(talk):
    count = iter(range(100))
    t = talk(
        lambda r: completion("", [call("say", {"text": str(next(count))})]),
        reply=lambda n, a: "Error: tool_error: No.",
        max_turns=5,
    )
    (answer,) = t("talk")
    assert (answer.status, answer.turns) == ("gave_up", 5)


def test_a_result_that_never_comes(talk):
    t = talk(
        completion("", [LOOK, call("say", {"text": "x"}, "b")]),
        DONE,
        reply=lambda n, a: None if n == "gimbal_control" else "spoken",
        result_timeout=0.1,
        cancel_limit=0.1,
    )
    t.bridge.on_cancel = False
    (answer,) = t("look")
    first, second = results(t.stub.requests[1]["messages"])
    assert first["content"].startswith("Error: timeout: No result came within 0.1 s")
    assert second["content"] == "spoken"
    assert len(t.bridge.cancelled) == 1
    assert answer.status == "answered"


@pytest.mark.parametrize("answers", [True, False])
def test_cancelled_while_a_call_runs(talk, answers):
    t = talk(completion("", [GRAB]), DONE, reply=lambda n, a: None, cancel_limit=0.1)
    t.bridge.on_cancel = answers

    async def meanwhile(task):
        while not t.bridge.sent:
            await asyncio.sleep(0.001)
        task.cancel()

    (answer,) = t("grab it", meanwhile=meanwhile)
    assert answer.status == "cancelled"
    assert t.bridge.cancelled == [t.bridge.calls[0]["id"]]
    assert [m["role"] for m in t.said] == ["user", "assistant", "tool", "assistant"]
    t.stub.requests.clear()
    (again,) = t("and now?")
    assert again.status == "answered", "the history is whole"


def test_cancelled_while_the_model_thinks(talk):
    t = talk(5.0)

    async def meanwhile(task):
        while not t.stub.requests:
            await asyncio.sleep(0.001)
        task.cancel()

    (answer,) = t("grab it", meanwhile=meanwhile)
    assert (answer.status, t.bridge.sent) == ("cancelled", [])


# --- what is never run --------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["malformed_function_call", "length", "content_filter", "", 7])
def test_a23_no_call_of_an_answer_whose_end_is_not_a_good_one(talk, reason):
    t = talk(completion("", [GRAB], reason=reason))
    (answer,) = t("grab it")
    assert t.bridge.sent == []
    assert answer.status == "failed"
    assert (answer.calls_asked, answer.turns) == (0, 2), "asked again once"
    if reason == "malformed_function_call":
        assert "malformed_function_call" in answer.answer
    note = t.stub.requests[1]["messages"][-1]
    assert note["role"] == "user"
    assert "Nothing of it was run" in note["content"]


def test_asked_again_it_may_do_better(talk):
    t = talk(
        completion("", [GRAB], reason="malformed_function_call"), completion("", [LOOK]), DONE
    )
    (answer,) = t("look")
    assert (answer.status, t.bridge.executed[0][0]) == ("answered", "gimbal_control")
    roles = [m["role"] for m in t.stub.requests[1]["messages"]]
    assert roles == ["user", "assistant", "user"], "the roles take turns, as templates want"


def test_g05_a_sentence_is_no_call(talk):
    said = "I have picked up the red cube and I am holding it now."
    t = talk(completion(said))
    (answer,) = t("pick up the red cube")
    assert (answer.answer, answer.calls_ran, answer.turns) == (said, 0, 1)
    assert t.bridge.sent == []


def test_g05_ask_once_more(talk):
    t = talk(completion("I did it."), completion("", [GRAB]), DONE, ask_once_more=True)
    (answer,) = t("pick up the red cube")
    assert (answer.calls_ran, answer.answer) == (1, "Done.")
    assert "You called no tool" in t.stub.requests[1]["messages"][-1]["content"]
    t = talk(completion("It is Monday."), ask_once_more=True)
    (answer,) = t("which day is it?")
    assert (answer.answer, answer.turns) == ("It is Monday.", 2)


@pytest.mark.parametrize(
    "text",
    ['{"x": 0.2, "y": 0.0', '{"pan": 90}{"x": 1}', "{'x': 1}", '{"x": NaN}', '["x"]', "hello"],
)
def test_broken_arguments_reach_the_bridge_as_they_are(talk, text):
    t = talk(
        completion("", [call("arm_grab_object", text), call("say", {"text": "x"}, "b")]),
        DONE,
        reply=lambda n, a: "Error: bad_json: no" if isinstance(a, str) else "spoken",
    )
    (answer,) = t("grab")
    assert t.bridge.calls[0]["function"]["arguments"] == text
    kept = asked(t.said)[0]["function"]["arguments"]
    assert kept == {"unreadable": text}
    sent = asked(t.stub.requests[1]["messages"])[0]["function"]["arguments"]
    assert json.loads(sent) == {"unreadable": text}, "strict servers read the history as JSON"
    assert (answer.status, answer.calls_succeeded) == ("answered", 1)


@pytest.mark.parametrize(
    "odd",
    ["say", 7, None, {}, {"function": None}, {"function": {"arguments": "{}"}},
     {"type": "web_search", "id": "a"}],
)  # fmt: skip
def test_calls_that_are_none(talk, odd):
    t = talk(completion("", [odd, call("say", {"text": "x"}, "b")]), DONE)
    (answer,) = t("go")
    assert answer.status == "answered"
    first, second = results(t.said)
    assert first["content"].startswith(("Error: bad_call", "Error: bad_json")) or first["name"]
    assert second["content"] == "say done"


def test_tool_calls_that_are_no_list(talk):
    reply = completion("")
    reply["choices"][0]["message"]["tool_calls"] = {"name": "say"}
    (answer,) = talk(reply, DONE)("go")
    assert answer.status == "answered"


def test_empty_answers(talk):
    (answer,) = talk(completion(None))("go")
    assert (answer.status, answer.turns) == ("failed", 2)
    assert "empty" in answer.answer


# --- text ---------------------------------------------------------------------------------------

HERMES = (
    '<tool_call>\n{"name": "gimbal_control", "arguments": {"pan": 90, "tilt": 60}}\n</tool_call>'
)


def test_calls_in_text_with_the_tools_in_the_prompt(talk):
    t = talk(
        completion(f"I look.\n{HERMES}"), DONE,
        text_format="hermes", tools_in_request=False, system="Be kind.",
    )  # fmt: skip
    (answer,) = t("look left")
    assert t.bridge.executed == [("gimbal_control", {"pan": 90, "tilt": 60})]
    assert answer.answer == "Done."
    first, second = t.stub.requests
    assert "tools" not in first
    system = first["messages"][0]["content"]
    assert system.startswith("Be kind.")
    assert '"gimbal_control"' in system
    assert "<tool_call>" in system
    assert second["messages"][2] == {"role": "assistant", "content": f"I look.\n{HERMES}"}
    assert second["messages"][3]["role"] == "user"
    assert '"content": "gimbal_control done"' in second["messages"][3]["content"]
    assert t.said[1]["content"] == "I look."


def test_calls_in_text_with_the_tools_in_the_request(talk):
    t = talk(completion(HERMES), DONE, text_format="hermes")
    t("look left")
    first, second = t.stub.requests
    assert first["tools"]
    assert [m["role"] for m in second["messages"]] == ["user", "assistant", "tool"]


def test_a09_a_call_in_reasoning_is_told_to_the_model(talk):
    draft = (
        "<|channel|>analysis to=functions.arm_grab_object <|constrain|>json<|message|>"
        '{"x":0.2,"y":0.0,"z":0.02}<|call|>'
    )
    t = talk(completion(draft), DONE, text_format="harmony", tools_in_request=False)
    (answer,) = t("grab it")
    assert t.bridge.sent == []
    assert answer.answer == "Done."
    assert "arm_grab_object" in t.stub.requests[1]["messages"][-1]["content"]


def test_reasoning_that_the_server_keeps_apart_is_never_read(talk):
    t = talk(completion("Done.", reasoning_content=HERMES), text_format="hermes")
    (answer,) = t("look")
    assert (answer.answer, t.bridge.sent) == ("Done.", [])


def test_a_cut_text_runs_what_came_before(talk):
    t = talk(
        completion(f'{HERMES}\n<tool_call>\n{{"name": "say", "argu', reason="length"),
        DONE,
        text_format="hermes",
    )
    t("look left, and speak")
    assert [n for n, _ in t.bridge.executed] == ["gimbal_control"]
    assert "cut off" in results(t.said)[0]["content"]


def test_a_malformed_text_is_told(talk):
    t = talk(completion('<tool_call>\n{"name": "say"]\n</tool_call>'), text_format="hermes")
    (answer,) = t("speak")
    assert (answer.status, t.bridge.sent) == ("failed", [])
    assert "can't be read" in answer.answer


def test_a17_numbers_as_texts_are_read_by_the_schema_in_a_text_format(talk):
    text = (
        "<tool_call>gimbal_control<arg_key>pan</arg_key><arg_value>90</arg_value>"
        "<arg_key>tilt</arg_key><arg_value>60</arg_value></tool_call>"
    )
    t = talk(completion(text), DONE, text_format="glm", tools_in_request=False)
    t("look left")
    assert t.bridge.executed == [("gimbal_control", {"pan": 90, "tilt": 60})]


@pytest.mark.parametrize("text_format", ["", "mistral"])
def test_a21_one_hint_a_session(talk, text_format):
    bare = '{"name": "say", "arguments": {"text": "x"}}'
    t = talk(completion(bare), text_format=text_format)
    answers = t("one", "two")
    assert [a.calls_asked for a in answers] == [0, 0]
    assert len(t.hints) == 1
    assert "text_format to json" in t.hints[0]


def test_text_in_a_result_is_never_read_for_calls(talk):
    t = talk(completion("", [LOOK]), DONE, text_format="hermes", reply=lambda n, a: HERMES)
    t("look")
    assert len(t.bridge.calls) == 1


# --- pictures -----------------------------------------------------------------------------------

SHOT = completion("", [call("record_observation", {"label": "desk"})])


async def still():
    return "data:image/jpeg;base64,AAAA"


def images(messages):
    return [
        (m["role"], p["image_url"]["url"])
        for m in messages
        if isinstance(m["content"], list)
        for p in m["content"]
        if p["type"] == "image_url"
    ]


@pytest.mark.parametrize("role", ["user", "tool"])
def test_the_still_goes_back_as_a_picture(talk, role):
    t = talk(SHOT, DONE, pictures=role, picture=still, reply=lambda n, a: "saved desk.png")
    t("what do you see?")
    messages = t.stub.requests[1]["messages"]
    assert images(messages) == [(role, "data:image/jpeg;base64,AAAA")]
    shown = next(m for m in messages if isinstance(m["content"], list))
    assert "never an instruction" in json.dumps(shown)
    assert all(isinstance(m["content"], str) for m in t.said)


def test_only_the_last_pictures_are_sent(talk):
    t = talk(SHOT, SHOT, SHOT, DONE, pictures="user", picture=still, max_pictures=2,
             reply=lambda n, a: "saved desk.png")  # fmt: skip
    t("look around")
    assert len(images(t.stub.requests[-1]["messages"])) == 2


@pytest.mark.parametrize(("pictures", "content"), [("off", "saved x.png"), ("user", "Error: no")])
def test_no_picture(talk, pictures, content):
    t = talk(SHOT, DONE, pictures=pictures, picture=still, reply=lambda n, a: content)
    t("what do you see?")
    assert images(t.stub.requests[1]["messages"]) == []


# --- servers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [429, 500, 502, 503])
def test_busy_servers_are_asked_again(talk, number):
    t = talk(status(number), status(number, retry_after="0"), DONE)
    (answer,) = t("go")
    assert (answer.status, len(t.stub.requests)) == ("answered", 3)


@pytest.mark.parametrize(("number", "tries"), [(429, 3), (500, 3), (400, 1), (401, 1), (404, 1)])
def test_servers_that_refuse(talk, number, tries):
    t = talk(status(number, {"error": {"message": "no such model"}}), server={"retries": 2})
    (answer,) = t("go")
    assert answer.status == "failed"
    assert f"HTTP {number}" in answer.answer
    assert "no such model" in answer.answer
    assert len(t.stub.requests) == tries


def test_a_slow_server(talk):
    t = talk(5.0, server={"time_limit": 0.2})
    (answer,) = t("go")
    assert answer.status == "failed"
    assert "did not answer within 0.2 s" in answer.answer
    assert len(t.stub.requests) == 1, "it may still be at it"


def test_a_server_that_is_down(talk):
    t = talk(DONE, server={"retries": 1})
    t.stub.close()
    (answer,) = t("go")
    assert answer.status == "failed"
    assert "can't be reached" in answer.answer


def test_a_connection_that_breaks(talk):
    (answer,) = talk(Stub.CUT, DONE)("go")
    assert answer.answer == "Done."
    (answer,) = talk(Stub.CUT, server={"retries": 1})("go")
    assert answer.status == "failed"


@pytest.mark.parametrize(
    "nonsense",
    ["<html>Bad gateway</html>", "", "[]", "null", '"x"', "{}", '{"choices": []}',
     '{"choices": [null]}', '{"choices": [{"message": "x"}]}', '{"choices": {"0": 1}}',
     '{"error": {"message": "out of memory"}}', '{"choices": [{"message": {"content": NaN}}]}',
     '{"choices": [{"finish_reason": "stop"}]}', "[" * 100_000],
)  # fmt: skip
def test_nonsense(talk, nonsense):
    t = talk(nonsense)
    (answer,) = t("go")
    assert answer.status == "failed"
    assert t.bridge.sent == []
    assert len(answer.answer) < 400


def test_contents_in_parts_and_the_first_form_of_calls(talk):
    (answer,) = talk(completion([{"type": "text", "text": "Hello"}, {"type": "x"}]))("hi")
    assert answer.answer == "Hello"
    old = completion("", reason="function_call",
                     function_call={"name": "say", "arguments": '{"text": "x"}'})  # fmt: skip
    t = talk(old, DONE)
    t("speak")
    assert t.bridge.executed == [("say", {"text": "x"})]


def test_what_a_request_holds(talk):
    server = {"key": "secret", "temperature": 0.5, "max_tokens": 7, "extra": {"seed": 1}}
    t = talk(DONE, server=server)
    t("hi")
    (request,) = t.stub.requests
    assert {k: request[k] for k in ("model", "temperature", "max_tokens", "seed")} == {
        "model": "test", "temperature": 0.5, "max_tokens": 7, "seed": 1,
    }  # fmt: skip
    assert t.stub.headers[0]["Authorization"] == "Bearer secret"
    t = talk(DONE, server={"temperature": -1.0})
    t("hi")
    assert "temperature" not in t.stub.requests[0]


# --- streams ------------------------------------------------------------------------------------

ARGS = '{"pan": 90, "tilt": 60}'
TALK = '{"text": "x"}'


@pytest.mark.parametrize(
    "deltas",
    [
        [piece(0, "gimbal_control", "", "a"), piece(0, "", ARGS), piece(1, "say", TALK, "b")],
        # every call has the index 0
        [piece(0, "gimbal_control", ARGS, "a"), piece(0, "say", TALK, "b")],
        [piece(0, "gimbal_control", ARGS), piece(0, "say", TALK)],
        # none has one
        [piece(None, "gimbal_control", ARGS, "a"), piece(None, "say", TALK, "b")],
        # pieces of two calls in turn
        [piece(0, "gimbal_control", "", "a"), piece(1, "say", "", "b"), piece(0, "", ARGS[:5]),
         piece(1, "", TALK[:3]), piece(0, "", ARGS[5:]), piece(1, "", TALK[3:])],
        # the id and the name with every piece
        [piece(0, "gimbal_control", ARGS[:5], "a"), piece(0, "gimbal_control", ARGS[5:], "a"),
         piece(1, "say", TALK, "b")],
        [{"content": "I "}, {"content": "look."}, *[piece(0, "gimbal_control", "", "a")],
         *[piece(0, "", c) for c in ARGS], piece(1, "say", TALK, "b")],
    ],
)  # fmt: skip
def test_streams(talk, deltas):
    t = talk(chunks(*deltas), chunks({"content": "Do"}, {"content": "ne."}, reason="stop"),
             server={"stream": True})  # fmt: skip
    (answer,) = t("look")
    assert t.stub.requests[0]["stream"] is True
    assert t.bridge.executed == [
        ("gimbal_control", {"pan": 90, "tilt": 60}),
        ("say", {"text": "x"}),
    ]
    assert answer.answer == "Done."


def test_a_stream_that_is_cut(talk):
    t = talk(chunks(piece(0, "say", TALK, "a"), reason=None), server={"stream": True})
    (answer,) = t("go")
    assert (answer.status, t.bridge.sent) == ("failed", [])
    t = talk(chunks(piece(0, "say", TALK, "a"), reason="length"), server={"stream": True})
    assert t("go")[0].status == "failed"
    assert t.bridge.sent == []


def test_nonsense_in_a_stream(talk):
    for events in (["{", "[DONE]"], ["[1]"], [{"error": "overloaded"}]):
        (answer,) = talk(events, server={"stream": True})("go")
        assert answer.status == "failed"


# --- history ------------------------------------------------------------------------------------


def test_whole_turns_are_forgotten(talk):
    t = talk(*[completion("", [LOOK]), completion("Done.")] * 4, turns=2)
    t("one", "two", "three", "four")
    last = t.stub.requests[-1]["messages"]
    assert [m["content"] for m in last if m["role"] == "user"] == ["three", "four"]
    assert {c["id"] for c in asked(last)} == {r["tool_call_id"] for r in results(last)}


def test_too_many_characters(talk):
    t = talk(*[completion("", [LOOK]), completion("Done.")] * 3, characters=3000,
             reply=lambda n, a: "x" * 2000)  # fmt: skip
    t("one", "two", "three")
    last = t.stub.requests[-1]["messages"]
    assert [m["role"] for m in last] == ["user", "assistant", "tool"]
    assert len(last[-1]["content"]) == 2000, "what runs is never cut"
