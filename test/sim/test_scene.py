"""Scene files: what they say, and what is said about their faults."""

from pathlib import Path

import pytest

from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.sim.scene import Scene


def test_cubes_are_there_and_lie_on_the_table() -> None:
    scene = Scene.load("cubes")
    assert {o.name for o in scene.objects} >= {"red_cube", "green_cube", "blue_cube"}
    assert all(o.position[2] == pytest.approx(o.size[2] / 2) for o in scene.objects)


def test_an_empty_file_is_an_empty_table(tmp_path: Path) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text("")
    assert Scene.load(str(path)).objects == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("objects: {a: {size: [0.1], position: [0, 0]}}", "objects.a.size should be 3 number"),
        ("objects: {a: {size: [0.1, 0.1, .nan], position: [0, 0]}}", "objects.a.size"),
        ("objects: {a: {size: [0.1, 0.1, -1], position: [0, 0]}}", "above 0"),
        ("objects: {a: {size: [0.1, 0.1, 0.1]}}", "objects.a.position should be 3 number"),
        ("objects: {a: {shape: cone, size: [1], position: [0, 0]}}", "box, cylinder, sphere"),
        ("objects: {a: {shape: sphere, size: [0.1], position: [0, 0], color: [2, 0, 0]}}", "0 to"),
        ("objects: {a: {colour: red}}", "unknown keys: colour"),
        ("objects: [a]", "objects should be a mapping"),
        ("chairs: 3", "unknown keys: chairs"),
        ("[", "can't be read"),
    ],
)
def test_faults_are_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "scene.yaml"
    path.write_text(text)
    with pytest.raises(LoadError) as caught:
        Scene.load(str(path))
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_an_unknown_scene_names_those_that_exist() -> None:
    with pytest.raises(LoadError, match=r"Known scenes: .*cubes"):
        Scene.load("moon")
