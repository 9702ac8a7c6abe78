"""A policy of rules, in the place of a model: a few dozen everyday commands in four languages.

It is stateless, as a model is: from the messages and the tools of a request it makes the next
assistant message. An instruction becomes steps (``understand``); the steps become calls, each
decided by the results before it (``_Script``). What it knows of the robot it reads in the tools'
descriptions. It guesses no places: a thing is looked for with the camera, or stands where the
person says.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lerobot_tool_bridge.core.messages import new_id
from lerobot_tool_bridge.policy import rules_words as words
from lerobot_tool_bridge.policy.chat import failed

Call = tuple[str, dict[str, Any]]

_FROM_SOFTWARE = "(From the robot's software"
_TABLE_Z = 0.0125  # half of a small cube
_SIDE = {"left": (0.2, 0.15), "right": (0.2, -0.15), "middle": (0.25, 0.0)}
_TURN, _NOD = 45.0, 30.0  # degrees
_BESIDE = 0.07

_FOUND = re.compile(
    r"^\d+\. (?P<name>[^;\n]*); x=(?P<x>-?[\d.]+) y=(?P<y>-?[\d.]+) z=(?P<z>-?[\d.]+)"
    r"(?: yaw_deg=(?P<yaw_deg>-?[\d.]+))?(?: width=(?P<width>[\d.]+))?",
    re.M,
)


# --- from words to steps ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do.

    Attributes:
        kind: An intent: grab, place, look, picture, say, stop, find, compute, state, hello.
        colour: Of the thing; empty for any.
        place: Coordinates that were given, metres.
        word: A direction, a label, what to say, an expression, or how a place relates to
            ``other``.
        other: Colour of the thing beside or on which to place.
    """

    kind: str
    colour: str = ""
    place: tuple[float, ...] = ()
    word: str = ""
    other: str = ""


def language(text: str) -> str:
    """``en``, ``pt``, ``zh`` or ``ja``."""
    if re.search(r"[\u3040-\u30ff]", text):
        return "ja"
    if re.search(r"[\u4e00-\u9fff]", text):
        return "zh"
    return "pt" if words.PORTUGUESE.search(text.lower()) else "en"


def is_stop(text: str) -> bool:
    """Whether an instruction only says that the robot shall stop."""
    steps = understand(text)
    return len(steps) == 1 and steps[0].kind == "stop"


def understand(text: str) -> list[Step]:
    """The steps of an instruction; none where it isn't understood."""
    plain = unicodedata.normalize("NFKC", text).strip()
    quoted = next((a or b for a, b in words.QUOTED.findall(plain)), "")
    plain = words.QUOTED.sub(" § ", plain)
    if language(plain) == "pt" and not re.search(r"\d\.\d", plain):
        plain = re.sub(r"(\d),(\d)", r"\1.\2", plain)
    steps: list[Step] = []
    for kind, clause in _clauses(plain):
        steps += _steps(kind, clause, quoted, any(s.kind == "grab" for s in steps))
    return steps


def _clauses(text: str) -> list[tuple[str, str]]:
    """Intents with their part of the text; what has none belongs to the one before it."""
    ends = [m.end() for m in words.ENDS.finditer(text)]
    found: list[list[Any]] = []
    begin = start = 0
    for end in [*ends, len(text)]:
        kind = _intent(text[begin:end])
        if kind:
            if found:
                found[-1][2] = begin
            found.append([kind, begin if found else start, len(text)])
        begin = end
    return [(kind, text[a:b].strip(" ,;。、")) for kind, a, b in found]


def _intent(text: str) -> str:
    low = text.lower()
    # a name that was given to a picture is no command
    low = low[: m.start()] if (m := words.NAMED.search(low)) else low
    return next((k for k, p in words.INTENTS.items() if re.search(p, low)), "")


def _steps(kind: str, clause: str, quoted: str, holding: bool) -> list[Step]:
    low = clause.lower()
    place = _place(low)
    if kind == "say":
        said = quoted or re.sub(
            rf"^.*?(?:{words.INTENTS['say']})\s*[:,]?\s*|(と言って|と話して).*$",
            "",
            clause,
            flags=re.I,
        )
        return [Step("say", word=said.strip(" .。") or clause)]
    if kind == "picture":
        return [Step("picture", word=_label(clause, quoted))]
    if kind == "compute":
        sums = re.findall(r"[\d(][\d\s.+\-*/()^%]*[\d)]", clause)
        return [Step("compute", word=max(sums, key=len).replace("^", "**"))] if sums else []
    if kind == "look":
        way = next((w for w, p in words.WAYS.items() if re.search(p, low)), "")
        return [Step("look", word=way)] if way else []
    if kind in ("grab", "find"):
        return [Step(kind, _colour(low), place)]
    if kind in ("place", "carry"):
        return _placing(kind, low, place, holding)
    return [Step(kind)]


def _placing(kind: str, low: str, place: tuple[float, ...], holding: bool) -> list[Step]:
    """Putting something somewhere; it is grasped first where it was named."""
    word = other = ""
    for relation, pattern in (("on", words.ON), ("next", words.NEXT)):
        match = re.search(pattern.format(c=words.ANY_COLOUR), low)
        if match and not place:
            word = relation
            # the colour stands in the match (Chinese, Japanese) or right behind it
            inside = _colour(match.group())
            other = inside or _colour(low[match.end() :])
            low = low[: match.start()] + (low[match.end() :] if inside else "")
    if not word and not place:
        word = next((w for w in ("left", "right") if re.search(words.WAYS[w], low)), "")
        word = word or ("middle" if re.search(words.WAYS["ahead"], low) else "")
    colour = _colour(low)
    put = Step("place", "", place, word, other)
    if kind == "carry" and not colour and not holding and len(place) == 3:
        return [Step("move", place=place)]
    return [Step("grab", colour), put] if colour and not holding else [put]


def _colour(low: str) -> str:
    found = [(m.start(), c) for c, p in words.COLOURS.items() if (m := re.search(p, low))]
    return min(found)[1] if found else ""


def _place(low: str) -> tuple[float, ...]:
    """Two or three numbers, metres."""
    found = [
        float(number.replace("−", "-")) * words.UNITS.get(unit, 1.0)
        for number, unit in words.NUMBER.findall(low)
    ]
    return tuple(found[:3]) if len(found) >= 2 else ()


def _label(clause: str, quoted: str) -> str:
    after = words.NAMED.search(clause)
    before = words.NAMED_BEFORE.search(clause)
    label = quoted or (clause[after.end() :] if after else before.group(1) if before else "")
    label = re.sub(r'[/\\:*?"<>|%.§]', " ", label).strip(" -~,。的")
    return " ".join(label.split())[:60] or "picture"


# --- from steps to calls ------------------------------------------------------------------------


class _Stuck(Exception):
    """It can't go on; the sentence is the answer."""


def reply(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The next assistant message of a conversation, as a chat server gives it."""
    instruction = ""
    contents: list[str] = []
    for message in messages:
        content = message.get("content")
        if message.get("role") == "tool":
            contents.append(content if isinstance(content, str) else "")
        elif (
            message.get("role") == "user"
            and isinstance(content, str)  # a list shows a picture
            and not content.startswith(_FROM_SOFTWARE)
        ):
            instruction, contents = content, []
    script = _Script(instruction, tools).run()
    try:
        call = next(script)
        for result in contents:
            call = script.send(result)
    except StopIteration as end:
        return {"role": "assistant", "content": end.value}
    name, arguments = call
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {
                "id": new_id(),
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
        ],
    }


Steps = Generator[Call, str, Any]


class _Script:
    """The calls for one instruction: a generator that gets each call's result."""

    def __init__(self, text: str, tools: Sequence[Mapping[str, Any]]) -> None:
        self._steps = understand(text)
        self._texts = words.TEXTS[language(text)]
        functions = [t.get("function", t) for t in tools]
        self._tools = {f["name"]: f for f in functions if isinstance(f.get("name"), str)}
        self._height = _TABLE_Z
        self._seen: list[dict[str, Any]] | None = None
        self._last = ""

    def run(self) -> Generator[Call, str, str]:
        """The calls; its value is the answer."""
        try:
            if not self._steps:
                return self._texts["help"]
            for step in self._steps:
                yield from getattr(self, f"_{step.kind}")(step)
        except _Stuck as why:
            return str(why)
        return " ".join(t for t in (self._texts["done"], self._last) if t)

    def _say_it(self, text: str, *values: str) -> str:
        return self._texts[text].format(*values)

    def _call(self, name: str, **arguments: Any) -> Generator[Call, str, str]:
        """One call; ends the script where it can't be made or fails."""
        if name not in self._tools:
            raise _Stuck(self._say_it("cannot", name))
        self._last = yield name, arguments
        if failed(self._last):
            raise _Stuck(self._say_it("failed", self._last.removeprefix("Error: ")))
        return self._last

    # one method for each kind of step

    def _hello(self, step: Step) -> Steps:
        raise _Stuck(self._texts["hello"])
        yield

    def _stop(self, step: Step) -> Steps:
        yield from self._call("stop")

    def _say(self, step: Step) -> Steps:
        yield from self._call("say", text=step.word[:500])

    def _picture(self, step: Step) -> Steps:
        yield from self._call("record_observation", label=step.word)

    def _compute(self, step: Step) -> Steps:
        yield from self._call("calculator", expression=step.word)

    def _state(self, step: Step) -> Steps:
        yield from self._call("arm_get_state")

    def _move(self, step: Step) -> Steps:
        x, y, z = step.place
        yield from self._call("arm_move_to_position", x=x, y=y, z=z)

    def _look(self, step: Step) -> Steps:
        ways = ("left", "right", "ahead") if step.word == "around" else (step.word,)
        for way in ways:
            pan, tilt = self._angles(way)
            yield from self._call("gimbal_control", pan=pan, tilt=tilt)

    def _find(self, step: Step) -> Steps:
        yield from self._see()
        things = [t for t in self._seen or () if step.colour in t["name"]]
        if not things:
            raise self._unseen(step.colour)
        self._last = self._say_it("see", self._listed(things))
        raise _Stuck(self._last)

    def _grab(self, step: Step) -> Steps:
        if step.place:
            where = dict(zip("xyz", (*step.place, _TABLE_Z)[:3], strict=True))
        else:
            thing = yield from self._thing(step.colour)
            where = {k: v for k, v in thing.items() if k != "name"}
        self._height = where["z"]
        yield from self._call("arm_grab_object", **where)

    def _place(self, step: Step) -> Steps:
        z = self._height
        if step.place:
            x, y, z = (*step.place, z)[:3]
        elif step.other:
            other = yield from self._thing(step.other)
            x, y = other["x"], other["y"]
            if step.word == "on":
                z = round(2 * other["z"] + self._height, 4)
            else:
                y = round(y - _BESIDE if y > 0 else y + _BESIDE, 4)
        elif step.word in _SIDE:
            x, y = _SIDE[step.word]
        else:
            raise _Stuck(self._texts["goal"])
        yield from self._call("arm_place_object", x=x, y=y, z=z)

    # what it sees

    def _thing(self, colour: str) -> Generator[Call, str, dict[str, Any]]:
        """The one thing of a colour, by the camera."""
        if "vlm_detect_objects" not in self._tools or "record_observation" not in self._tools:
            raise _Stuck(self._texts["where"])
        yield from self._see()
        seen = self._seen or []
        things = [t for t in seen if colour in t["name"]]
        if not things:
            raise self._unseen(colour)
        if not colour and len(things) > 1:
            raise _Stuck(self._say_it("which", self._listed(things)))
        return things[0]

    def _see(self) -> Steps:
        """A picture of the table, once an instruction, and before anything has been moved."""
        if self._seen is not None:
            return
        if "gimbal_control" in self._tools:
            pan, tilt = self._angles("table")
            yield from self._call("gimbal_control", pan=pan, tilt=tilt)
        yield from self._call("record_observation", label="table")
        text = yield from self._call("vlm_detect_objects", image_path="latest")
        self._seen = [
            {k: v if k == "name" else float(v) for k, v in m.groupdict().items() if v is not None}
            for m in _FOUND.finditer(text)
        ]

    def _unseen(self, colour: str) -> _Stuck:
        listed = self._listed(self._seen or ()) or self._texts["nothing"]
        return _Stuck(self._say_it("unseen", colour or self._texts["thing"], listed))

    def _listed(self, things: Sequence[Mapping[str, Any]]) -> str:
        return ", ".join(
            self._say_it("at", t["name"], f"{t['x']:.3f}, {t['y']:.3f}") for t in things
        )

    # what the tools' descriptions say

    def _angles(self, way: str) -> tuple[float, float]:
        """Pan and tilt for a direction, from the description of ``gimbal_control``."""
        function = self._tools.get("gimbal_control", {})
        view = re.search(
            rf"\b{way} = pan (-?[\d.]+), tilt (-?\d+(?:\.\d+)?)", function.get("description", "")
        )
        if view:
            return float(view[1]), float(view[2])
        properties = function.get("parameters", {}).get("properties", {})
        pan, tilt = (dict(properties.get(k) or {}) for k in ("pan", "tilt"))
        dp = {"left": _TURN, "right": -_TURN}.get(way, 0.0)
        dt = {"up": _NOD, "down": -_NOD, "table": -_NOD}.get(way, 0.0)
        return _within(pan, _middle(pan) + dp), _within(tilt, _middle(tilt) + dt)


def _middle(schema: Mapping[str, Any]) -> float:
    match = re.search(r"(-?\d+(?:\.\d+)?) is (?:ahead|level)", str(schema.get("description", "")))
    if match:
        return float(match[1])
    return (float(schema.get("minimum", 0)) + float(schema.get("maximum", 180))) / 2


def _within(schema: Mapping[str, Any], value: float) -> float:
    return min(
        max(value, float(schema.get("minimum", value))), float(schema.get("maximum", value))
    )
