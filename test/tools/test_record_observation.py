"""``record_observation``: the path cases, the side file, two calls at once."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from lerobot_tool_bridge.core.errors import Rejection, ToolFailure
from lerobot_tool_bridge.core.schema import Schema
from lerobot_tool_bridge.core.tool import CallContext, Outcome
from lerobot_tool_bridge.ports import Frame, Ports
from lerobot_tool_bridge.tools.record_observation import RecordObservation

CASES = [
    case
    for line in (Path(__file__).parents[1] / "cases" / "adversarial.jsonl").open()
    if (case := json.loads(line))["class"] == "path"
]
RED_BLUE = bytes([255, 0, 0, 0, 0, 255, 9, 9])  # one row, padded by two bytes


class FakeCamera:
    def __init__(self, error: ToolFailure | None = None) -> None:
        self.error = error
        self.published: list[tuple[bytes, str, Frame]] = []
        self.stills = 0

    async def still(self) -> Frame:
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        self.stills += 1
        return Frame(
            encoding="rgb8",
            data=RED_BLUE,
            width=2,
            height=1,
            step=8,
            big_endian=False,
            compressed=False,
            stamp=1234.5,
            frame_id="camera_optical_frame",
            source="camera/image_raw",
        )

    def publish_observation(self, data: bytes, media: str, frame: Frame) -> None:
        self.published.append((data, media, frame))


def make(folder: Path, camera: FakeCamera | None = None, **settings: Any) -> RecordObservation:
    return RecordObservation(Ports(camera=camera or FakeCamera(), output_dir=folder), settings)


def call(tool: RecordObservation, label: str, call_id: str = "call00001") -> Outcome:
    arguments = Schema(tool.parameters).validate({"label": label})
    tool.check(arguments)
    return asyncio.run(tool.run(arguments, CallContext(call_id)))


@pytest.mark.parametrize("case", CASES, ids=[c["id"] for c in CASES])
def test_path_case(case: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    victim = tmp_path / "victim.png"
    victim.write_bytes(b"precious")
    state = case["input"].get("state", {})
    for name in state.get("existing", []):
        (folder / name).write_bytes(b"old")
    for name, target in state.get("symlink", {}).items():
        (folder / name).symlink_to(target)
    before = sorted(os.listdir(folder))
    (function,) = (c["function"] for c in case["input"]["message"]["tool_calls"])
    label = function["arguments"]["label"]
    camera = FakeCamera()
    if case["expect"]["outcome"] == "reject":
        with pytest.raises(Rejection) as error:
            call(make(folder, camera), label)
        assert error.value.code == case["expect"]["code"]
        assert camera.stills == 0
        assert sorted(os.listdir(folder)) == before
    else:
        name = f"{label}_2" if before else label
        assert call(make(folder, camera), label).content == f"saved {name}.png"
        assert sorted(os.listdir(folder)) == sorted([*before, f"{name}.json", f"{name}.png"])
        for old in state.get("existing", []):
            assert (folder / old).read_bytes() == b"old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "victim.png"]
    assert victim.read_bytes() == b"precious"


def test_refusal_says_what_a_label_is(tmp_path: Path) -> None:
    with pytest.raises(Rejection) as error:
        call(make(tmp_path), "../x")
    assert error.value.message == (
        'label: "../x" given, which does not fit: Any language, spaces inside; none of '
        '/ \\ : * ? " < > | % and no . - ~ to begin with.'
    )


def test_picture_side_file_and_topic(tmp_path: Path) -> None:
    camera = FakeCamera()
    outcome = call(make(tmp_path, camera), "red cup", "abc123xyz")
    assert outcome.content == "saved red cup.png"
    assert outcome.artifacts == ("red cup.png", "red cup.json")
    saved = (tmp_path / "red cup.png").read_bytes()
    pixels = cv2.imdecode(np.frombuffer(saved, np.uint8), cv2.IMREAD_UNCHANGED)
    assert pixels.tolist() == [[[0, 0, 255], [255, 0, 0]]]
    side = json.loads((tmp_path / "red cup.json").read_text())
    assert side == {
        "label": "red cup",
        "call_id": "abc123xyz",
        "camera": "camera",
        "stamp": 1234.5,
        "frame_id": "camera_optical_frame",
        "source": "camera/image_raw",
        "encoding": "rgb8",
        "width": 2,
        "height": 1,
        "channels": 3,
        "bits": 8,
        "note": "",
        "intrinsics": None,
        "joints": {},
        "gripper_effort": None,
        "moving": [],
        "file": "red cup.png",
    }
    ((data, media, frame),) = camera.published
    assert (data, media, frame.stamp) == (saved, "png", 1234.5)


def test_two_calls_with_one_label_at_once(tmp_path: Path) -> None:
    tools = [make(tmp_path), make(tmp_path)]  # two bridges, one folder

    async def both() -> list[Outcome]:
        calls = (t.run({"label": "cup"}, CallContext(f"call{i}")) for i, t in enumerate(tools))
        return list(await asyncio.gather(*calls))

    contents = sorted(outcome.content for outcome in asyncio.run(both()))
    assert contents == ["saved cup.png", "saved cup_2.png"]
    assert len(os.listdir(tmp_path)) == 4


def test_folder_of_the_tools_file(tmp_path: Path) -> None:
    call(make(tmp_path / "a", output_dir=str(tmp_path / "b")), "cup")
    assert os.listdir(tmp_path) == ["b"]


def test_making_the_tool_makes_no_folder(tmp_path: Path) -> None:
    make(tmp_path / "a").parameters  # noqa: B018 - the schema must not need the folder
    assert not (tmp_path / "a").exists()


def test_dead_camera_leaves_no_file(tmp_path: Path) -> None:
    dead = FakeCamera(ToolFailure("unavailable", "No picture came."))
    with pytest.raises(ToolFailure, match="No picture came"):
        call(make(tmp_path, dead), "after")
    assert os.listdir(tmp_path) == []
    assert dead.published == []


def test_robot_without_camera(tmp_path: Path) -> None:
    tool = RecordObservation(Ports(output_dir=tmp_path))
    with pytest.raises(ToolFailure, match="no camera"):
        call(tool, "cup")


def test_loop_is_free_while_a_picture_is_saved(tmp_path: Path) -> None:
    """Encoding and disk run in a thread: the loop turns meanwhile."""

    async def run() -> int:
        task = asyncio.create_task(make(tmp_path).run({"label": "cup"}, CallContext("a")))
        turns = 0
        while not task.done():
            turns += 1
            await asyncio.sleep(0)
        return turns

    assert asyncio.run(run()) > 10
