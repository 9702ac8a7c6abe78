"""Pictures: by service, or the next frame of a topic, whatever its QoS; always a new one."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bridge_client import BridgeProcess, World
from harness import Ros, wait_for
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CompressedImage, Image
from std_srvs.srv import Trigger

from lerobot_tool_bridge.ros.qos import LATCHED

RELIABLE = QoSProfile(depth=2, reliability=ReliabilityPolicy.RELIABLE)
BEST_EFFORT = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
KEPT = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Stream:
    """A camera driver of somebody else: an image topic at 50 Hz, and no service.

    Args:
        ros: The test's node.
        qos: Of the topic.
        compressed: Whether it publishes only the compressed topic.
        stamp: Seconds for the header; None for an unset stamp.
    """

    def __init__(
        self,
        ros: Ros,
        qos: QoSProfile,
        compressed: bool = False,
        stamp: Callable[[], float] | None = time.time,
    ) -> None:
        self._ros, self._stamp, self.count = ros, stamp, 0
        self._kind = CompressedImage if compressed else Image
        topic = "camera/image_raw/compressed" if compressed else "camera/image_raw"
        self.publisher = ros.node.create_publisher(self._kind, topic, qos)
        self._timer = ros.node.create_timer(0.02, self.publish)
        ros.executor.wake()

    def publish(self) -> None:
        self.count += 1
        message = self._kind()
        message.header.frame_id = "lens"
        if self._stamp is not None:
            stamp = self._stamp()
            message.header.stamp.sec = int(stamp)
            message.header.stamp.nanosec = int(stamp % 1 * 1e9)
        if self._kind is Image:
            message.height, message.width, message.step = 2, 2, 2
            message.encoding = "mono8"
            message.data = bytes([self.count % 256, 1, 2, 3])
        else:
            message.format = "png"
            message.data = png()
        self.publisher.publish(message)

    def close(self) -> None:
        self._ros.node.destroy_timer(self._timer)
        self._ros.node.destroy_publisher(self.publisher)


def png() -> bytes:
    import cv2
    import numpy as np

    return bytes(cv2.imencode(".png", np.full((2, 2), 7, np.uint8))[1])


@pytest.fixture
def ros(world: World, bridge: BridgeProcess) -> Iterator[Ros]:
    """The file's node, when the camera of the test before is forgotten."""
    yield world.ros
    gone = ("/camera/image_raw", "/camera/image_raw/compressed")
    wait_for(lambda: not any(world.ros.node.count_publishers(t) for t in gone))


def side_file(world: World, content: str) -> dict[str, Any]:
    """What stands beside a picture that ``saved x.png`` names."""
    assert content.startswith("saved "), content
    arguments = world.bridge.process.popen.args
    assert isinstance(arguments, list)
    folder = next(a for a in arguments if a.startswith("output_dir:=")).split(":=")[1].strip('"')
    name = content.removeprefix("saved ").replace(".png", ".json")
    facts: dict[str, Any] = json.loads((Path(folder) / name).read_text())
    return facts


@pytest.mark.parametrize("qos", [RELIABLE, BEST_EFFORT, KEPT], ids=["reliable", "best", "kept"])
@pytest.mark.parametrize("compressed", [False, True], ids=["raw", "compressed"])
def test_the_next_frame_of_a_topic(
    world: World, bridge: BridgeProcess, ros: Ros, qos: QoSProfile, compressed: bool
) -> None:
    stream = Stream(ros, qos, compressed)
    begin = time.time()
    facts = side_file(world, bridge.call("record_observation", label="frame"))
    assert facts["stamp"] >= begin
    assert facts["frame_id"] == "lens"
    assert facts["source"].startswith("/camera/image_raw")
    # nothing is subscribed while no call runs
    wait_for(lambda: stream.publisher.get_subscription_count() == 0)
    stream.close()


@pytest.mark.parametrize(
    "stamp", [None, lambda: time.time() - 3600.0], ids=["unset", "another clock"]
)
def test_stamps_of_another_clock(
    world: World, bridge: BridgeProcess, ros: Ros, stamp: Callable[[], float] | None
) -> None:
    stream = Stream(ros, RELIABLE, stamp=stamp)
    assert bridge.call("record_observation", label="clock").startswith("saved clock")
    stream.close()


def test_a_camera_that_sends_its_last_frame_for_ever(
    world: World, bridge: BridgeProcess, ros: Ros
) -> None:
    """A picture of ten minutes ago is no observation."""
    stream = Stream(ros, RELIABLE, stamp=lambda: 1000.0)
    call = bridge.send("record_observation", label="frozen")
    assert "only old ones" in bridge.answer(call)
    assert bridge.code(call) == "failed unavailable"
    stream.close()


def test_no_camera(world: World, bridge: BridgeProcess, ros: Ros) -> None:
    call = bridge.send("record_observation", label="none")
    assert "There is no camera" in bridge.answer(call)
    assert bridge.code(call) == "failed unavailable"


def test_a_still_by_service(world: World, bridge: BridgeProcess, ros: Ros) -> None:
    """The service is asked even where there is a stream, and its picture is published."""
    observations = ros.collect(CompressedImage, "tool_bridge/observations", LATCHED)
    stills = ros.node.create_publisher(CompressedImage, "camera/still/compressed", RELIABLE)
    stream = Stream(ros, RELIABLE)
    answers: list[bool] = []

    def capture(request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = not answers
        answers.append(response.success)
        response.message = "" if response.success else "The lens cap is on."
        if response.success:
            message = CompressedImage(format="bgr8; png compressed bgr8", data=png())
            message.header.frame_id = "still"
            now = time.time()
            message.header.stamp.sec, message.header.stamp.nanosec = int(now), int(now % 1 * 1e9)
            stills.publish(message)
        return response

    service = ros.node.create_service(Trigger, "camera/capture_still", capture)
    ros.executor.wake()
    wait_for(lambda: ros.node.count_clients("camera/capture_still"))
    wait_for(lambda: stills.get_subscription_count())
    content, facts = "", {}
    while facts.get("frame_id") != "still":  # until the bridge has found the service
        answers.clear()
        content = bridge.call("record_observation", label="still")
        facts = side_file(world, content)
    assert facts["source"] == "/camera/still/compressed"
    wait_for(lambda: observations and observations[-1].header.frame_id == "still")
    assert bytes(observations[-1].data).startswith(b"\x89PNG")

    call = bridge.send("record_observation", label="capped")
    assert "The lens cap is on" in bridge.answer(call)
    assert bridge.code(call) == "failed unavailable"
    stream.close()
    ros.node.destroy_service(service)
    ros.node.destroy_publisher(stills)


def test_pictures_load_nothing_before_they_are_taken() -> None:
    """The bridge stays small until it sees."""
    import subprocess

    code = (
        "import sys, lerobot_tool_bridge.ros.bridge;"
        "print([m for m in ('cv2', 'scipy', 'mujoco', 'onnxruntime') if m in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert output.stdout.strip() == "[]", output.stderr
