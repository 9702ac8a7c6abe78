"""What the offline detector sees in drawn pictures."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest

from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.vision.detector import check_dictionary, color_name, scan

TABLE = (184, 198, 204)  # as the virtual one, BGR
COLORS = {
    "red": (25, 25, 217),
    "orange": (20, 110, 230),
    "yellow": (25, 204, 242),
    "green": (38, 153, 26),
    "turquoise": (180, 190, 20),
    "blue": (204, 51, 26),
    "purple": (180, 40, 130),
    "pink": (170, 60, 230),
    "brown": (25, 60, 105),
}


def table(width: int = 640, height: int = 480, color: Any = TABLE) -> np.ndarray:
    noise = np.random.default_rng(1).normal(0, 3, (height, width, 3))
    return np.clip(np.array(color) + noise, 0, 255).astype(np.uint8)


def test_colors_have_their_english_names() -> None:
    picture = table()
    for i, color in enumerate(COLORS.values()):
        x, y = 30 + i % 3 * 200, 30 + i // 3 * 150
        cv2.rectangle(picture, (x, y), (x + 39, y + 29), color, -1)
    things = scan(picture).things
    assert [t.name for t in sorted(things, key=lambda t: (t.center[1] // 100, t.center[0]))] == [
        f"{name} object" for name in COLORS
    ]
    for thing in things:
        low, high = thing.outline.min(axis=0), thing.outline.max(axis=0)
        assert high - low == pytest.approx((40, 30), abs=0.7)  # pixels, whole ones
        assert (thing.cut, thing.touched, thing.ragged) == (False, False, False)


def test_white_grey_and_black_robots_are_no_things() -> None:
    picture = table()
    for i, grey in enumerate(((214, 214, 209), (33, 30, 30), (128, 120, 115), (255, 255, 255))):
        cv2.rectangle(picture, (20 + 150 * i, 100), (120 + 150 * i, 300), grey, -1)
    assert scan(cv2.imdecode(cv2.imencode(".jpg", picture)[1], 1)).things == ()


def test_a_thing_between_two_names_is_one_thing() -> None:
    picture = table()
    shades = np.linspace(0, 1, 60)[None, :, None]
    mixed = (1 - shades) * np.array(COLORS["red"]) + shades * np.array((20, 75, 225))
    picture[100:140, 200:260] = mixed
    (thing,) = scan(picture).things
    assert thing.outline.max(axis=0)[0] - thing.outline.min(axis=0)[0] == pytest.approx(60, abs=1)


def test_neighbours_of_other_colors_are_two_and_say_that_they_touch() -> None:
    picture = table()
    picture[100:140, 200:240] = COLORS["red"]
    picture[100:140, 240:280] = COLORS["blue"]
    picture[300:330, 500:530] = COLORS["blue"]
    things = scan(picture).things
    assert sorted((t.name, t.touched) for t in things) == [
        ("blue object", False),
        ("blue object", True),
        ("red object", True),
    ]


def test_what_leaves_the_picture_and_what_is_ragged_is_marked() -> None:
    picture = table()
    picture[0:30, 100:130] = COLORS["red"]
    picture[200:300, 300:320] = COLORS["green"]
    picture[280:300, 300:400] = COLORS["green"]
    by_name = {t.name: t for t in scan(picture).things}
    assert by_name["red object"].cut
    assert not by_name["red object"].ragged
    assert by_name["green object"].ragged


def test_a_table_with_a_color_is_background_and_is_named() -> None:
    picture = table(color=(40, 110, 190))  # wood
    picture[100:130, 100:130] = COLORS["blue"]
    picture[200:230, 100:130] = COLORS["green"]
    result = scan(picture)
    assert sorted(t.name for t in result.things) == ["blue object", "green object"]
    assert result.background == "orange"


def test_jpeg_and_small_things() -> None:
    picture = table()
    picture[100:119, 100:120] = COLORS["red"]
    picture[300:304, 100:103] = COLORS["blue"]  # dirt
    (thing,) = scan(cv2.imdecode(cv2.imencode(".jpg", picture)[1], 1)).things
    assert thing.name == "red object"
    assert thing.center == pytest.approx((109.5, 109), abs=0.5)


def marker(number: int, size: int = 80) -> np.ndarray:
    aruco = cv2.aruco
    dictionary = aruco.getPredefinedDictionary(aruco.DICT_4X4_50)
    plain = aruco.generateImageMarker(dictionary, number, size)
    return cv2.cvtColor(cv2.copyMakeBorder(plain, *[10] * 4, 0, value=255), cv2.COLOR_GRAY2BGR)


def code(text: str, scale: int = 5) -> np.ndarray:
    plain = cv2.QRCodeEncoder.create().encode(text)
    large = cv2.resize(plain, None, fx=scale, fy=scale, interpolation=cv2.INTER_NEAREST)
    return cv2.cvtColor(cv2.copyMakeBorder(large, *[20] * 4, 0, value=255), cv2.COLOR_GRAY2BGR)


def put(picture: np.ndarray, part: np.ndarray, x: int, y: int) -> None:
    picture[y : y + part.shape[0], x : x + part.shape[1]] = part


def test_markers_and_codes() -> None:
    picture = table()
    put(picture, marker(7), 50, 50)
    put(picture, code("shelf 3"), 300, 100)
    seven, shelf = scan(picture).things
    assert (seven.kind, seven.name) == ("aruco", "ArUco marker 7")
    assert seven.center == pytest.approx((99.5, 99.5), abs=1)
    assert (shelf.kind, shelf.text) == ("qr", "shelf 3")
    assert scan(picture, "DICT_5X5_50").things[0].kind == "qr"


def test_an_unknown_dictionary_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LoadError, match="DICT_4X4_50"):
        check_dictionary("DICT_9X9")


@pytest.mark.parametrize(
    ("hsv", "name"),
    [
        ((0, 220, 200), "red"),
        ((179, 220, 200), "red"),
        ((0, 100, 220), "pink"),
        ((14, 200, 230), "orange"),
        ((12, 190, 100), "brown"),
        ((110, 200, 60), "blue"),
    ],
)
def test_color_name(hsv: tuple[float, float, float], name: str) -> None:
    assert color_name(*hsv) == name


@pytest.mark.parametrize("shape", [(1, 1), (2, 640), (480, 3)])
def test_odd_sizes(shape: tuple[int, int]) -> None:
    assert scan(np.zeros((*shape, 3), np.uint8)).things == ()
