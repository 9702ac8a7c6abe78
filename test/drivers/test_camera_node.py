"""The camera driver as a process, in front of an emulated network camera."""

from __future__ import annotations

import os
import signal
import sys
import time

import cv2
import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from harness import wait_for
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from std_srvs.srv import Trigger

from lerobot_tool_bridge.sim.devices.mjpeg import MjpegServer

NODE = "lerobot_tool_bridge.drivers.camera.node"
BITS = 16


class Counting:
    """A camera whose pictures carry their number, as black and white blocks."""

    def __init__(self, size=(640, 480), fps=30.0, port=0):
        self.size = size
        self.times = []
        self.server = MjpegServer(port, self._grab, fps=fps)
        self.url, self.port = self.server.url, self.server.port

    def _grab(self):
        width, height = self.size
        number = len(self.times)
        self.times.append(time.monotonic())
        picture = np.full((height, width, 3), 90, np.uint8)
        side = width // BITS
        for bit in range(BITS):
            picture[:side, bit * side : (bit + 1) * side] = 255 * (number >> bit & 1)
        return cv2.imencode(".jpg", picture)[1].tobytes()

    def close(self):
        self.server.close()


def number(pixels):
    side = pixels.shape[1] // BITS
    row = pixels[side // 2, side // 2 :: side]
    return sum(1 << bit for bit in range(BITS) if row[bit].mean() > 128)


def pixels_of(message):
    return cv2.imdecode(np.frombuffer(message.data, np.uint8), cv2.IMREAD_UNCHANGED)


def stamp(message):
    return message.header.stamp.sec + message.header.stamp.nanosec * 1e-9


@pytest.fixture
def camera():
    camera = Counting()
    yield camera
    camera.close()


def level(messages):
    """The newest level and text of the camera in /diagnostics."""
    found = [s for m in messages for s in m.status if s.name == "camera_driver: camera"]
    return (found[-1].level, found[-1].message) if found else (None, "")


def test_stills_are_newer_than_the_request_and_lossless(ros, spawn, camera):
    node = spawn.node(NODE, source=camera.url, latency=0.02)
    stills = ros.collect(CompressedImage, "camera/still/compressed")
    infos = ros.collect(CameraInfo, "camera/still/camera_info")
    client = ros.node.create_client(Trigger, "camera/capture_still")
    assert client.wait_for_service(30)
    wait_for(lambda: camera.times, name="the driver opens the camera")
    for count in range(1, 6):
        asked, clock = time.monotonic(), time.time()
        response = ros.result(client.call_async(Trigger.Request()))
        assert response.success, (response.message, node.output)
        wait_for(lambda n=count: len(stills) == n)
        still = stills[-1]
        pixels = pixels_of(still)
        assert bytes(still.data[:4]) == b"\x89PNG"
        assert "png" in still.format
        assert pixels.shape == (480, 640, 3)
        assert camera.times[number(pixels)] >= asked
        assert clock <= stamp(still) <= time.time()
        sec, nanosec = still.header.stamp.sec, still.header.stamp.nanosec
        assert f"{sec}.{nanosec:09d}" in response.message
        assert still.header.frame_id == "camera_optical_frame"
        wait_for(lambda n=count: len(infos) == n, name="the still's camera_info")
        assert infos[-1].header == still.header
        assert (infos[-1].height, infos[-1].width) == pixels.shape[:2]


def test_streams_only_for_subscribers_and_smaller_than_the_still(ros, spawn, camera):
    spawn.node(NODE, source=camera.url, stream_width=320, fov_deg=60.0)
    wait_for(lambda: len(camera.times) > 5)
    raw = ros.collect(Image, "camera/image_raw")
    jpeg = ros.collect(CompressedImage, "camera/image_raw/compressed")
    info = ros.collect(CameraInfo, "camera/camera_info")
    wait_for(lambda: len(raw) > 3 and len(jpeg) > 3 and len(info) > 3)
    image = raw[-1]
    assert (image.width, image.height, image.step, image.encoding) == (320, 240, 960, "bgr8")
    assert len(image.data) == 320 * 240 * 3
    first, last = (
        number(np.array(m.data).reshape(m.height, m.width, 3)) for m in (raw[0], raw[-1])
    )
    assert last > first
    assert pixels_of(jpeg[-1]).shape == (240, 320, 3)
    assert jpeg[-1].format == "bgr8; jpeg compressed bgr8"
    assert (info[-1].width, info[-1].height) == (320, 240)
    assert info[-1].k[0] == pytest.approx(160 / np.tan(np.radians(30)))
    assert stamp(info[-1]) in {stamp(m) for m in raw[-5:]}
    assert [stamp(m) for m in raw] == sorted({stamp(m) for m in raw})


def test_b07_a_camera_that_goes_away_is_an_error_and_comes_back(ros, spawn):
    camera = Counting(fps=10)
    node = spawn.node(NODE, source=camera.url, fps=10.0)
    images = ros.collect(Image, "camera/image_raw")
    health = ros.collect(DiagnosticArray, "/diagnostics")
    wait_for(lambda: len(images) >= 5 and level(health)[0] == DiagnosticStatus.OK)
    camera.close()
    gone = time.monotonic()
    wait_for(lambda: level(health)[0] == DiagnosticStatus.ERROR)
    assert time.monotonic() - gone < 2.5  # 2 s, and a little for a busy machine
    count = len(images)
    response = ros.call(Trigger, "camera/capture_still")
    assert not response.success
    assert camera.url in response.message
    assert "\n" not in response.message
    assert len(images) == count
    back = Counting(fps=10, port=camera.port)
    wait_for(lambda: level(health)[0] == DiagnosticStatus.OK and len(images) > count)
    assert ros.call(Trigger, "camera/capture_still").success
    assert node.output.count("stream is back.") == 1
    back.close()


def test_a_stream_that_stays_connected_but_silent_is_lost_too(ros, spawn):
    camera = Counting()
    spawn.node(NODE, source=camera.url)
    health = ros.collect(DiagnosticArray, "/diagnostics")
    wait_for(lambda: level(health)[0] == DiagnosticStatus.OK)
    stills = ros.collect(CompressedImage, "camera/still/compressed")
    answered = []
    grab = camera._grab

    def stuck():
        wait_for(lambda: answered)
        return grab()

    camera.server._grab = stuck
    begin = time.monotonic()
    response = ros.call(Trigger, "camera/capture_still")
    assert not response.success
    assert time.monotonic() - begin < 4
    wait_for(lambda: level(health)[0] == DiagnosticStatus.ERROR)
    answered.append(True)
    wait_for(lambda: level(health)[0] == DiagnosticStatus.OK)
    assert ros.call(Trigger, "camera/capture_still").success
    wait_for(lambda: stills)
    camera.close()


def test_after_a_hold_up_no_buffered_frame_passes_for_a_new_one(ros, spawn, camera):
    node = spawn.node(NODE, source=camera.url, latency=0.0)
    client = ros.node.create_client(Trigger, "camera/capture_still")
    stills = ros.collect(CompressedImage, "camera/still/compressed")
    assert client.wait_for_service(30)
    wait_for(lambda: len(camera.times) > 10)
    os.kill(node.popen.pid, signal.SIGSTOP)
    held = len(camera.times)
    wait_for(lambda: len(camera.times) > held + 30)
    future = client.call_async(Trigger.Request())
    asked = time.monotonic()
    os.kill(node.popen.pid, signal.SIGCONT)
    assert ros.result(future).success
    wait_for(lambda: stills)
    # without a latency, the frame that is on its way may be taken, but none of the buffered ones
    assert camera.times[number(pixels_of(stills[0]))] > asked - 0.1


def test_a_source_that_is_not_there_is_one_sentence_and_can_come_later(ros, spawn, tmp_path):
    video = tmp_path / "cubes.avi"
    node = spawn.node(NODE, source=str(video))
    node.wait_output("There is no camera or file")
    writer = cv2.VideoWriter(str(video), cv2.VideoWriter.fourcc(*"MJPG"), 20, (64, 48))
    for shade in (20, 220):
        for _ in range(5):
            writer.write(np.full((48, 64, 3), shade, np.uint8))
    writer.release()
    images = ros.collect(Image, "camera/image_raw")
    wait_for(lambda: len(images) > 25)  # it has ten frames: it begins again
    assert images[0].width == 64
    assert node.output.count("There is no camera or file") == 1
    assert "Traceback" not in node.output
    assert "is lost" not in node.output
    node.signal(signal.SIGINT)
    assert node.wait() == 0


def test_a_number_as_source_is_explained(spawn):
    node = spawn(sys.executable, "-m", NODE, "--ros-args", "-p", "source:=0")
    assert node.wait() == 1
    assert "Quote it twice" in node.output
    assert "Traceback" not in node.output


def test_deactivated_it_says_so_and_a_second_life_works(ros, spawn, camera):
    from lifecycle_msgs.srv import ChangeState

    node = spawn.node(NODE, source=camera.url, autostart=False)

    def change(transition):
        request = ChangeState.Request()
        request.transition.id = transition
        return ros.call(ChangeState, "camera_driver/change_state", request).success

    assert change(1)  # configure
    response = ros.call(Trigger, "camera/capture_still")
    assert not response.success
    assert "activate" in response.message
    assert change(3)  # activate
    assert ros.call(Trigger, "camera/capture_still").success
    assert change(4)  # deactivate
    assert change(2)  # clean up
    wait_for(lambda: camera.server.clients == 0)
    assert change(1)
    assert change(3)
    assert ros.call(Trigger, "camera/capture_still").success
    assert ros.node.count_publishers("/camera/image_raw") == 1
    node.signal(signal.SIGTERM)
    assert node.wait() == 0
