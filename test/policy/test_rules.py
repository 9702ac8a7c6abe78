"""The policy of rules: what it understands, and what it does step by step."""

import pytest

from lerobot_tool_bridge.policy.rules import Step, is_stop, language, reply, understand

GRAB_PUT = [Step("grab", "blue"), Step("place", place=(0.2, -0.1))]
STACK = [Step("grab", "red"), Step("place", word="on", other="green")]
PHOTO = [Step("look", word="table"), Step("picture", word="photo")]
SEEN = (
    "In table.png, taken 0 s ago: 2 things. x, y, z: centre in metres, for arm_grab_object.\n"
    "1. blue object; x=0.169 y=0.140 z=0.013 yaw_deg=45 width=0.025; sure.\n"
    "2. red object; x=0.219 y=0.050 z=0.012 width=0.025; unsure: hidden in part."
)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("grab the red cube", [Step("grab", "red")]),
        ("pick up the blue cube and put it at 0.2, -0.1", GRAB_PUT),
        ("Take the blue one, then place it at 20 cm, -10 cm!", GRAB_PUT),
        ("put the blue cube at (0.2, -0.1)", GRAB_PUT),
        ("pick up the cube at 0.22, 0.05", [Step("grab", place=(0.22, 0.05))]),
        ("put the red cube on the green cube", STACK),
        ("drop it on the left", [Step("place", word="left")]),
        ("move the red cube to the right", [Step("grab", "red"), Step("place", word="right")]),
        ("move to 0.2, 0.0, 0.1", [Step("move", place=(0.2, 0.0, 0.1))]),
        ("look left", [Step("look", word="left")]),
        ("Look at the table and take a picture called photo.", PHOTO),
        ("take a photo named my desk", [Step("picture", word="my desk")]),
        ('say "stop now" and look up', [Step("say", word="stop now"), Step("look", word="up")]),
        ("what is 17 * 23?", [Step("compute", word="17 * 23")]),
        ("where is the green cube?", [Step("find", "green")]),
        ("Stop!", [Step("stop")]),
        ("pegue o cubo azul e coloque em 0,2 e -0,1", GRAB_PUT),
        ("olhe para a esquerda", [Step("look", word="left")]),
        ("tire uma foto chamada mesa", [Step("picture", word="mesa")]),
        ("coloque o cubo vermelho em cima do cubo verde", STACK),
        ("diga olá", [Step("say", word="olá")]),
        ("onde está o cubo verde?", [Step("find", "green")]),
        ("Pare!", [Step("stop")]),
        ("抓住蓝色方块，放到 0.2，-0.1", GRAB_PUT),
        ("把蓝色方块放到0.2, -0.1", GRAB_PUT),
        ("把红色方块放在绿色方块上面", STACK),
        ("向左看", [Step("look", word="left")]),
        ("看桌子，然后拍一张照片，叫photo", PHOTO),
        ("红色的方块在哪里？", [Step("find", "red")]),
        ("停下", [Step("stop")]),
        ("青いキューブをつかんで、0.2, -0.1に置いて", GRAB_PUT),
        ("青いキューブを取って0.2、-0.1に置いて", GRAB_PUT),
        ("赤いキューブを緑のキューブの上に置いて", STACK),
        ("左を見て", [Step("look", word="left")]),
        ("「机」という名前の写真を撮って", [Step("picture", word="机")]),
        ("「こんにちは」と言って", [Step("say", word="こんにちは")]),
        ("止まれ", [Step("stop")]),
        ("tell me a joke", []),
        ("", []),
    ],
)  # fmt: skip
def test_what_is_understood(text, steps):
    assert understand(text) == steps


def test_languages_and_stops():
    texts = ("look left", "olhe para cima", "向左看", "左を見て")
    assert [language(t) for t in texts] == ["en", "pt", "zh", "ja"]
    assert all(is_stop(t) for t in ("stop", "STOP!", "please stop", "pare", "停", "止まれ"))
    assert not any(is_stop(t) for t in ("say stop", "look left", "stop, then look left", ""))


def schema(name, description="", **properties):
    parameters = {"type": "object", "properties": properties}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


ANGLE = {"minimum": 0, "maximum": 270, "description": "0 to 270; 135 is ahead."}
TOOLS = [
    schema("gimbal_control", "Turns. Views: table = pan 135, tilt 78.", pan=ANGLE, tilt=ANGLE),
    *map(schema, ("record_observation", "vlm_detect_objects", "arm_grab_object",
                  "arm_place_object", "say", "stop")),
]  # fmt: skip


def play(text, results, tools=TOOLS):
    """The calls that it makes while these results come, and its answer."""
    messages = [{"role": "system", "content": "x"}, {"role": "user", "content": text}]
    calls = []
    for result in [*results, None]:
        message = reply(messages, tools)
        if not message.get("tool_calls"):
            return calls, message["content"]
        (call,) = message["tool_calls"]
        calls.append((call["function"]["name"], call["function"]["arguments"]))
        messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": result}]
    return calls, ""


def test_see_grab_place():
    calls, answer = play(
        "pick up the blue cube and put it at 0.2, -0.1",
        ["ok", "saved table.png", SEEN, "Grasped.", "Let go."],
    )
    assert calls == [
        ("gimbal_control", {"pan": 135.0, "tilt": 78.0}),
        ("record_observation", {"label": "table"}),
        ("vlm_detect_objects", {"image_path": "latest"}),
        (
            "arm_grab_object",
            {"x": 0.169, "y": 0.14, "z": 0.013, "yaw_deg": 45.0, "width": 0.025},
        ),
        ("arm_place_object", {"x": 0.2, "y": -0.1, "z": 0.013}),
    ]
    assert answer == "Done. Let go."


def test_one_on_the_other():
    calls, _ = play("put the blue cube on the red cube", ["", "", SEEN, "", ""])
    assert calls[-1] == ("arm_place_object", {"x": 0.219, "y": 0.05, "z": 0.037})


def test_what_it_cannot_do_it_says_in_the_language():
    assert "I don't see green. I see: blue object at 0.169, 0.140" in play(
        "grab the green cube", ["", "", SEEN]
    )[1]  # fmt: skip
    assert "Which one?" in play("grab the cube", ["", "", SEEN])[1]
    assert play("抓住红色方块", [], tools=TOOLS[3:])[1].startswith("它在哪里")
    assert "Error" not in play("grab the red cube", ["", "", SEEN, "Error: x: no"])[1]
    assert play("左を見て", [], tools=[])[1].startswith("このロボット")
    assert "take a picture called" in play("tell me a joke", [])[1]


def test_directions_come_from_the_descriptions():
    assert play("look left", ["ok"])[0] == [("gimbal_control", {"pan": 180.0, "tilt": 135.0})]
    assert [c[1]["pan"] for c in play("look around", ["", "", ""])[0]] == [180.0, 90.0, 135.0]
