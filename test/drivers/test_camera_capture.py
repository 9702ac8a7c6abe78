"""Modes, sources and intrinsics, with captures named as the fakes that they are."""

from __future__ import annotations

import time

import cv2
import numpy as np
import pytest
from harness import wait_for

from lerobot_tool_bridge.drivers.camera import calibration
from lerobot_tool_bridge.drivers.camera.capture import (
    Camera,
    CameraError,
    Mode,
    Source,
    negotiate,
    open_capture,
)

CODECS = {name: cv2.VideoWriter.fourcc(*name) for name in ("YUYV", "MJPG")}


class FakeV4L2:
    """A fake of a UVC camera behind ``cv2.VideoCapture``: sizes and rates hang on the codec.

    As V4L2 does it: an unknown size becomes the nearest one, a new size or codec brings back the
    mode's first rate, and a rate that the mode lacks is refused.
    """

    def __init__(self, modes, frame_time=0.0):
        self.modes = modes  # {codec: {(width, height): rates}}
        self.codec = next(iter(modes))
        self.size = next(iter(modes[self.codec]))
        self.fps = modes[self.codec][self.size][0]
        self.frame_time = frame_time
        self.calls = []
        self.alive = True

    def isOpened(self):
        return self.alive

    def get(self, prop):
        return {
            cv2.CAP_PROP_FOURCC: CODECS[self.codec],
            cv2.CAP_PROP_FRAME_WIDTH: self.size[0],
            cv2.CAP_PROP_FRAME_HEIGHT: self.size[1],
            cv2.CAP_PROP_FPS: self.fps,
        }[prop]

    def set(self, prop, value):
        self.calls.append(prop)
        if prop == cv2.CAP_PROP_FPS:
            if value not in self.modes[self.codec][self.size]:
                return False
            self.fps = value
            return True
        if prop == cv2.CAP_PROP_FOURCC:
            codec = next((c for c, n in CODECS.items() if n == value), None)
            if codec not in self.modes:
                return False
            self.codec = codec
        elif prop == cv2.CAP_PROP_FRAME_WIDTH:
            self._width = value  # as OpenCV: the size is set when its height comes
            return True
        elif prop == cv2.CAP_PROP_FRAME_HEIGHT:
            self._nearest(self._width, value)
        if self.size not in self.modes[self.codec]:
            self._nearest(*self.size)
        self.fps = self.modes[self.codec][self.size][0]
        return True

    def _nearest(self, width, height):
        sizes = self.modes[self.codec]
        self.size = min(sizes, key=lambda s: abs(s[0] * s[1] - width * height))

    def grab(self):
        time.sleep(self.frame_time)
        return self.alive

    def retrieve(self):
        return True, np.zeros((self.size[1], self.size[0], 3), np.uint8)

    def release(self):
        self.alive = False


def fake_of_b09(**more):
    return FakeV4L2(
        {
            "YUYV": {(640, 480): [30.0], (1280, 720): [10.0]},
            "MJPG": {(1280, 720): [30.0]},
        },
        **more,
    )


def test_b09_codec_and_size_come_before_the_rate():
    capture = fake_of_b09()
    real = negotiate(capture, Mode(1280, 720, 30.0))
    assert real == Mode(1280, 720, 30.0, "MJPG")
    last = len(capture.calls) - 1 - capture.calls[::-1].index(cv2.CAP_PROP_FPS)
    assert capture.calls[-4:] == [
        cv2.CAP_PROP_FOURCC,
        cv2.CAP_PROP_FRAME_WIDTH,
        cv2.CAP_PROP_FRAME_HEIGHT,
        cv2.CAP_PROP_FPS,
    ]
    assert last == len(capture.calls) - 1


def test_uncompressed_pictures_are_kept_where_they_do():
    assert negotiate(fake_of_b09(), Mode(640, 480, 30.0)).codec == "YUYV"
    assert negotiate(fake_of_b09(), Mode(1280, 720)).codec == "YUYV"
    assert negotiate(fake_of_b09(), Mode(1280, 720, 10.0, "YUYV")) == Mode(1280, 720, 10.0, "YUYV")


def test_nothing_asked_nothing_set():
    capture = fake_of_b09()
    assert negotiate(capture, Mode()) == Mode(640, 480, 30.0, "YUYV")
    assert capture.calls == []


def test_b09_the_nearest_mode_runs_and_is_reported_once():
    wanted = Mode(800, 600, 30.0)
    said, shots, captures = [], [], []

    def open_():
        captures.append(fake_of_b09(frame_time=0.02))
        negotiate(captures[-1], wanted)
        return captures[-1]

    camera = Camera(
        open_,
        Source.parse("0"),
        wanted,
        0.0,
        lambda taken: True,
        shots.append,
        lambda text, lost: said.append(text),
    )
    camera.start()
    try:
        wait_for(lambda: shots)
        assert shots[0].pixels.shape == (480, 640, 3)
        assert camera.mode == Mode(640, 480, 30.0, "YUYV")
        captures[0].alive = False  # unplugged, and plugged in again
        wait_for(lambda: len(captures) == 2 and not camera.lost)
        count = len(shots)
        wait_for(lambda: len(shots) > count)
    finally:
        camera.stop()
    nearest = [text for text in said if "in place of" in text]
    assert len(nearest) == 1
    assert "640×480 at 30 frames/s" in nearest[0]
    assert "800×600 at 30 frames/s" in nearest[0]
    assert any("lost" in text for text in said)


@pytest.mark.parametrize(
    ("text", "kind", "path"),
    [
        ("0", "device", "/dev/video0"),
        ("/dev/video2", "device", "/dev/video2"),
        ("off", "file", "off"),
        ("clips/a.mp4", "file", "clips/a.mp4"),
        ("http://127.0.0.1:1/stream", "stream", "None"),
        ("rtsp://camera/1", "stream", "None"),
    ],
)
def test_kinds_of_sources(text, kind, path):
    source = Source.parse(text)
    assert (source.kind, str(source.path)) == (kind, path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("77", "There is no camera or file /dev/video77"),
        ("off", "There is no camera or file off"),
        ("http://127.0.0.1:1/stream", "No video comes from http://127.0.0.1:1/stream"),
    ],
)
def test_why_a_camera_does_not_open(text, sentence):
    with pytest.raises(CameraError, match=sentence):
        open_capture(Source.parse(text), Mode())


def test_no_source_and_no_video(tmp_path):
    with pytest.raises(CameraError, match="No camera is named"):
        Source.parse(" ")
    text = tmp_path / "notes.txt"
    text.write_text("no video")
    with pytest.raises(CameraError, match="no video or picture"):
        open_capture(Source.parse(str(text)), Mode())


CALIBRATION = """
image_width: 640
image_height: 480
camera_name: head
camera_matrix: {rows: 3, cols: 3, data: [500, 0, 320, 0, 510, 240, 0, 0, 1]}
distortion_model: plumb_bob
distortion_coefficients: {rows: 1, cols: 5, data: [0.1, -0.2, 0, 0, 0]}
rectification_matrix: {rows: 3, cols: 3, data: [1, 0, 0, 0, 1, 0, 0, 0, 1]}
projection_matrix: {rows: 3, cols: 4, data: [480, 0, 320, 0, 0, 490, 240, 0, 0, 0, 1, 0]}
"""


def test_a_calibration_scales_to_sizes_of_its_shape(tmp_path):
    path = tmp_path / "head.yaml"
    path.write_text(CALIBRATION)
    known = calibration.load(f"file://{path}")
    assert known.d == (0.1, -0.2, 0, 0, 0)
    half = known.scaled(320, 240)
    assert half.k == (250, 0, 160, 0, 255, 120, 0, 0, 1)
    assert half.p == (240, 0, 160, 0, 0, 245, 120, 0, 0, 0, 1, 0)
    assert known.fits(1280, 960)
    assert not known.fits(1280, 720)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("image_width: [", "not a YAML file.*line 1"),
        ("a: 1", "not of the form.*image_width"),
        ("image_width: 1\nimage_height: 1\ncamera_matrix: {data: [1]}", "not of the form"),
    ],
)
def test_a_calibration_that_is_none(tmp_path, text, sentence):
    path = tmp_path / "head.yaml"
    path.write_text(text)
    with pytest.raises(CameraError, match=f"(?s){sentence}"):
        calibration.load(str(path))


def test_intrinsics_from_a_field_of_view():
    ideal = calibration.from_view(640, 480, 90.0)
    assert ideal.k[0] == pytest.approx(320)
    assert ideal.k[2] == pytest.approx(319.5)
    assert calibration.from_view(640, 480, 0.0).k == (0.0,) * 9  # uncalibrated, as ROS says it
