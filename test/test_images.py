"""Pictures of every form become PNG files that hold the same values."""

import base64
import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from lerobot_tool_bridge.core.errors import ToolFailure
from lerobot_tool_bridge.images import exact_floats, to_png
from lerobot_tool_bridge.ports import Frame

CASES = {
    case["id"]: case
    for line in (Path(__file__).parent / "cases" / "field_cases.jsonl").read_text().splitlines()
    if (case := json.loads(line))["class"] == "b-image"
}


def frame(encoding, data, width=0, height=0, step=0, big_endian=False, compressed=False):
    return Frame(
        encoding=encoding,
        data=data,
        width=width,
        height=height,
        step=step,
        big_endian=big_endian,
        compressed=compressed,
        stamp=1.5,
        frame_id="camera_optical_frame",
        source="/camera/still/compressed",
    )


def raw(encoding, array, **more):
    return frame(encoding, array.tobytes(), array.shape[1], array.shape[0], **more)


def decoded(picture):
    """The pixels as another reader sees them; colours as RGB."""
    pixels = cv2.imdecode(np.frombuffer(picture.png, np.uint8), cv2.IMREAD_UNCHANGED)
    assert pixels.shape[:2] == (picture.height, picture.width)
    assert pixels.dtype.itemsize * 8 == picture.bits
    assert (pixels.shape[2] if pixels.ndim == 3 else 1) == picture.channels
    if pixels.ndim == 2:
        return pixels
    order = [2, 1, 0, 3][: pixels.shape[2]]
    return pixels[..., order]


def variants(case):
    """The frames of a field case: its image, and the image with each variant's keys changed."""
    base = CASES[case]["input"]["image"]
    for change in [{}, *CASES[case]["input"].get("variants", [])]:
        image = {**base, **change}
        if "data_hex" in change:
            image.pop("data_base64", None)
        data = (
            bytes.fromhex(image["data_hex"])
            if "data_hex" in image
            else base64.b64decode(image["data_base64"])
        )
        yield frame(
            image.get("encoding", image.get("format", "")),
            data,
            image.get("width", 0),
            image.get("height", 0),
            image.get("step", 0),
            bool(image.get("is_bigendian", 0)),
            image["type"].endswith("CompressedImage"),
        )


def test_b01_sixteen_bits_stay_sixteen_bits():
    pictures = [to_png(f) for f in variants("B01")]
    assert len(pictures) == 3
    for picture in pictures:
        assert picture.bits == 16
        assert decoded(picture).tolist() == [[0, 255, 4660, 65535]]


def test_b03_row_padding_is_left_out():
    (padded,) = variants("B03")
    picture = to_png(padded)
    assert decoded(picture).tolist() == [
        [[255, 0, 0], [0, 255, 0], [0, 0, 255]],
        [[255, 255, 255], [0, 0, 0], [128, 128, 128]],
    ]


def test_b05_the_bytes_say_what_the_codec_is():
    *good, jpeg, garbage = variants("B05")
    assert len(good) == 4
    for f in good:
        picture = to_png(f)
        assert picture.png == f.data  # kept as it is
        assert decoded(picture)[0, 0].tolist() == [255, 0, 0]
    picture = to_png(jpeg)
    assert decoded(picture).tolist() == [[128] * 8] * 8
    with pytest.raises(ToolFailure) as caught:
        to_png(garbage)
    assert "/camera/still/compressed" in caught.value.message
    assert "rgb8; jpeg compressed bgr8" in caught.value.message


@pytest.mark.parametrize(
    ("encoding", "order"),
    [
        ("rgb8", [0, 1, 2]),
        ("bgr8", [2, 1, 0]),
        ("8UC3", [2, 1, 0]),
        ("rgba8", [0, 1, 2, 3]),
        ("bgra8", [2, 1, 0, 3]),
    ],
)
def test_colours(encoding, order):
    rgba = np.random.default_rng(1).integers(0, 256, (5, 7, 4), dtype=np.uint8)
    picture = to_png(raw(encoding, rgba[..., order]))
    assert np.array_equal(decoded(picture), rgba[..., : len(order)])


@pytest.mark.parametrize("encoding", ["mono8", "8UC1"])
def test_grey(encoding):
    grey = np.arange(12, dtype=np.uint8).reshape(3, 4)
    assert np.array_equal(decoded(to_png(raw(encoding, grey))), grey)


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("padding", [0, 6])
@pytest.mark.parametrize("encoding", ["mono16", "16UC1", "32FC1", "bgr16"])
def test_byte_order_and_padding_together(encoding, padding, big):
    kind = "f4" if encoding == "32FC1" else "u2"
    channels = 3 if encoding == "bgr16" else 1
    values = np.arange(3 * 4 * channels).reshape(3, 4, channels).astype(kind) + 300
    stored = values.astype(np.dtype(kind).newbyteorder(">" if big else "<"))
    rows = b"".join(row.tobytes() + b"\xaa" * padding for row in stored)
    step = 4 * channels * stored.itemsize + padding
    picture = to_png(frame(encoding, rows[: len(rows) - padding], 4, 3, step, big))
    if encoding == "32FC1":
        assert np.array_equal(exact_floats(picture.png), values[..., 0])
    else:
        expected = values[..., 0] if channels == 1 else values[..., ::-1]
        assert np.array_equal(decoded(picture), expected)


def test_depth_in_metres_is_millimetres_to_look_at_and_exact_to_read():
    metres = np.array([[0.0, 0.0004, 0.1234567, 1.0], [65.535, 100.0, -1.0, 2.5]], np.float32)
    metres = np.vstack([metres, np.array([[np.nan, np.inf, -np.inf, 0.5]], np.float32)])
    picture = to_png(raw("32FC1", metres))
    assert decoded(picture).tolist() == [
        [0, 0, 123, 1000],
        [65535, 65535, 0, 2500],
        [0, 0, 0, 500],
    ]
    assert exact_floats(picture.png).tobytes() == metres.tobytes()
    assert "millimetres" in picture.note
    # it stays a PNG that is taken as it is
    again = to_png(frame("png", picture.png, compressed=True))
    assert again.png == picture.png
    assert again.bits == 16


PATTERNS = {
    "rggb": [[0, 1], [1, 2]],
    "bggr": [[2, 1], [1, 0]],
    "gbrg": [[1, 2], [0, 1]],
    "grbg": [[1, 0], [2, 1]],
}


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_bayer_has_the_right_colours_and_keeps_every_sample(pattern, bits):
    kind = np.dtype(f"u{bits // 8}")
    height, width = 6, 8
    channel = np.tile(PATTERNS[pattern], (height // 2, width // 2))
    orange = np.array([200, 120, 20], kind)
    picture = to_png(raw(f"bayer_{pattern}{bits}", orange[channel]))
    assert picture.bits == bits
    assert np.array_equal(decoded(picture), np.broadcast_to(orange, (height, width, 3)))
    noise = np.random.default_rng(2).integers(0, 2**bits, (height, width)).astype(kind)
    rgb = decoded(to_png(raw(f"bayer_{pattern}{bits}", noise)))
    kept = np.take_along_axis(rgb, channel[..., None], axis=2)[..., 0]
    assert np.array_equal(kept, noise)


@pytest.mark.parametrize(
    ("encoding", "order"),
    [("yuv422", "uyvy"), ("uyvy", "uyvy"), ("yuv422_yuy2", "yuyv"), ("yuyv", "yuyv")],
)
def test_yuv422(encoding, order):
    red = {"y": 82, "u": 90, "v": 240}  # BT.601, limited range
    pair = bytes(red[c] for c in order)
    rgb = decoded(to_png(frame(encoding, pair * 2, 2, 2)))
    assert np.abs(rgb.astype(int) - [255, 0, 0]).max() <= 3
    with pytest.raises(ToolFailure, match="odd"):
        to_png(frame(encoding, pair * 2, 1, 2))


def test_depth_compressed_by_image_transport():
    depth = np.array([[0, 1000, 65535]], np.uint16)
    _, png = cv2.imencode(".png", depth)
    data = bytes(12) + bytes(png)
    picture = to_png(frame("16UC1; compressedDepth png", data, compressed=True))
    assert np.array_equal(decoded(picture), depth)
    with pytest.raises(ToolFailure, match="compressedDepth"):
        to_png(frame("32FC1; compressedDepth png", data, compressed=True))


def test_what_cannot_be_right_is_refused_with_a_sentence():
    _, png = cv2.imencode(".png", np.zeros((4, 4, 3), np.uint8))
    png = bytes(png)
    _, jpeg = cv2.imencode(".jpg", np.full((64, 64, 3), 77, np.uint8))
    broken = bytearray(png)
    broken[60] ^= 1
    bad = [
        frame("rgb8", bytes(11), 2, 2),
        frame("rgb8", bytes(12), 2, 2, step=5),
        frame("rgb8", b"", 0, 0),
        frame("jpeg2k?", bytes(12), 2, 2),
        frame("png", png[:-20], compressed=True),
        frame("png", bytes(broken), compressed=True),
        frame("jpeg", bytes(jpeg)[:-30], compressed=True),
        frame("jpeg", b"", compressed=True),
    ]
    for f in bad:
        with pytest.raises(ToolFailure, match="/camera/still/compressed") as caught:
            to_png(f)
        assert caught.value.code == "bad_image"
        assert repr(f.encoding) in caught.value.message


def test_a_step_of_zero_means_packed_rows():
    grey = np.arange(6, dtype=np.uint8).reshape(2, 3)
    assert np.array_equal(decoded(to_png(raw("mono8", grey, step=0))), grey)
