"""The camera driver: OpenCV's cameras on ROS topics, and stills on request.

All images are published reliably with a short queue (keep last 2), which matches subscribers of
either reliability, and only while somebody subscribes.
"""

from __future__ import annotations

import array
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from builtin_interfaces.msg import Time
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.duration import Duration
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.task import Future
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from std_msgs.msg import Header
from std_srvs.srv import Trigger

from lerobot_tool_bridge import images, robot
from lerobot_tool_bridge.drivers.camera import calibration
from lerobot_tool_bridge.drivers.camera.capture import (
    Camera,
    CameraError,
    Mode,
    Shot,
    Source,
    open_capture,
)
from lerobot_tool_bridge.node.diagnostics import ERROR, OK, WARN
from lerobot_tool_bridge.node.managed import ManagedNode, NodeError, run
from lerobot_tool_bridge.node.parameters import Param
from lerobot_tool_bridge.robot import Robot

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Pixels = NDArray[Any]

PARAMETERS = (
    Param("robot", "so101", "Robot: a name in config/robots or the path of a .yaml file."),
    Param(
        "source",
        "0",
        "The camera: a device index (0), a path (/dev/video0), a video file (played again and "
        "again), or a URL (http, rtsp). A text: write '0' in YAML.",
    ),
    Param("width", 0, "Pixels of a row; 0 leaves it to the camera.", low=0, high=16384),
    Param("height", 0, "Rows; 0 leaves it to the camera.", low=0, high=16384),
    Param("fps", 0.0, "Frames a second; 0 leaves it to the camera.", low=0.0, high=1000.0),
    Param(
        "codec",
        "",
        "Four letters (MJPG, YUYV); empty keeps the camera's own where that does size and rate, "
        "else MJPG.",
    ),
    Param(
        "latency",
        0.05,
        "Seconds from the exposure until a frame arrives; stamps are set back by it, and a still "
        "is a frame that was exposed after the request.",
        low=0.0,
        high=10.0,
    ),
    Param(
        "stream_width",
        0,
        "Width of image_raw, smaller than the stills; 0 is the camera's own.",
        low=0,
        high=16384,
    ),
    Param("jpeg_quality", 80, "Of image_raw/compressed.", low=1, high=100),
    Param("still_timeout", 2.0, "Seconds that a still may take.", low=0.1, high=60.0),
    Param("frame_id", "", "Optical frame of the pictures' headers; empty takes the robot's."),
    Param("camera_name", "", "For logs and diagnostics; empty takes the robot's."),
    Param(
        "calibration",
        "",
        "Calibration file as camera_calibration writes it; a path or a file:// URL.",
    ),
    Param(
        "fov_deg",
        0.0,
        "Horizontal field of view in degrees, for camera_info without a calibration; 0 leaves "
        "it uncalibrated.",
        low=0.0,
        high=175.0,
    ),
)

_WATCH = 0.2


@dataclass(slots=True)
class _Still:
    """A still that somebody waits for; ``answer`` gets success and a sentence."""

    asked: float
    answer: Future


class CameraDriver(ManagedNode):
    """See the module."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("camera_driver", PARAMETERS, **kwargs)
        self._camera: Camera | None = None
        self._active = False
        self._lock = threading.Lock()
        self._stills: list[_Still] = []
        self._taken = 0
        self._level = OK
        self._parts: list[Callable[[], object]] = []  # what undoes configure
        self._frame_id = ""
        self._name = ""
        self._intrinsics: calibration.Intrinsics | None = None
        self._infos: dict[tuple[int, int], CameraInfo] = {}  # by width and height

    # --- life cycle ---------------------------------------------------------------------------

    def configure(self) -> None:
        described = Robot.load(self.param("robot")).camera or robot.Camera()
        self._frame_id = self.param("frame_id") or described.frame
        self._name = self.param("camera_name") or described.name
        try:
            source = Source.parse(self.param("source"))
            name = self.param("calibration")
            self._intrinsics = calibration.load(name) if name else None
            wanted = Mode(*(self.param(p) for p in ("width", "height", "fps", "codec")))
            if wanted.codec and len(wanted.codec) != 4:
                raise CameraError(f"codec is {wanted.codec!r}; it should be four letters: MJPG.")
            self._infos = {}
            self._make_parts()
            self._camera = Camera(
                lambda: open_capture(source, wanted),
                source,
                wanted,
                self.param("latency"),
                self._want,
                self._take,
                self._say,
            )
            self._camera.start()
        except CameraError as error:
            raise NodeError(str(error)) from None
        self.get_logger().info(f"{self._name}: {source.text}, {self._camera.mode}")
        self.diagnostics.hardware_id = source.text
        self.diagnostics.add("camera", self._check)

    def activate(self) -> None:
        self._active = True

    def deactivate(self) -> None:
        self._active = False
        self._fail_stills(f"{self.get_name()} was deactivated.")

    def cleanup(self) -> None:
        self._active = False
        self.diagnostics.clear()
        if self._camera is not None:
            self._camera.stop()
            self._camera = None
        while self._parts:
            self._parts.pop()()

    def _make_parts(self) -> None:
        self._raw = self._topic(Image, "camera/image_raw")
        self._jpeg = self._topic(CompressedImage, "camera/image_raw/compressed")
        self._info_topic = self._topic(CameraInfo, "camera/camera_info")
        self._still = self._topic(CompressedImage, "camera/still/compressed")
        self._still_info = self._topic(CameraInfo, "camera/still/camera_info")
        service = self.create_service(
            Trigger,
            "camera/capture_still",
            self._capture_still,
            callback_group=ReentrantCallbackGroup(),  # others run while it waits for its frame
        )
        timer = self.steady_timer(_WATCH, self._watch)
        self._parts += [
            lambda: self.destroy_service(service),
            lambda: self.destroy_timer(timer),
        ]

    def _topic(self, kind: type, name: str) -> Publisher[Any]:
        topic = self.create_publisher(kind, name, QoSProfile(depth=2))  # reliable, volatile
        self._parts.append(lambda: self.destroy_publisher(topic))
        return topic

    # --- in the camera's thread ---------------------------------------------------------------

    def _want(self, taken: float) -> bool:
        if not self._active:
            return False
        with self._lock:
            if any(still.asked <= taken for still in self._stills):
                return True
        topics = (self._raw, self._jpeg, self._info_topic)
        return any(topic.get_subscription_count() for topic in topics)

    def _take(self, shot: Shot) -> None:
        stamp = (self.get_clock().now() - Duration(seconds=shot.age)).to_msg()
        header = Header(stamp=stamp, frame_id=self._frame_id)
        self._serve_stills(shot, header)
        raw, jpeg, info = (
            topic.get_subscription_count() for topic in (self._raw, self._jpeg, self._info_topic)
        )
        if not (self._active and (raw or jpeg or info)):
            return
        pixels = self._small(shot.pixels)
        if info:
            height, width = pixels.shape[:2]
            self._info_topic.publish(self._camera_info(width, height, header))
        if raw:
            self._raw.publish(_image(pixels, header))
        if jpeg:
            self._jpeg.publish(self._compressed(pixels, header))

    def _serve_stills(self, shot: Shot, header: Header) -> None:
        with self._lock:
            due = [still for still in self._stills if still.asked <= shot.taken]
            self._stills = [still for still in self._stills if still.asked > shot.taken]
        if not due:
            return
        height, width = shot.pixels.shape[:2]
        kind = "mono8" if shot.pixels.ndim == 2 else "bgr8"
        message = CompressedImage(header=header, format=f"{kind}; png compressed {kind}")
        message.data = array.array("B", images.encode(shot.pixels))
        # before its picture, so that whoever has the picture has it too
        self._still_info.publish(self._camera_info(width, height, header))
        self._still.publish(message)
        self._taken += 1
        text = f"stamp {_seconds(header.stamp)}, {width}x{height} png on {self._still.topic_name}"
        for still in due:
            still.answer.set_result((True, text))

    def _small(self, pixels: Pixels) -> Pixels:
        width: int = self.param("stream_width")
        if not width or width >= pixels.shape[1]:
            return pixels
        import cv2

        height = max(1, round(pixels.shape[0] * width / pixels.shape[1]))
        small: Pixels = cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA)
        return small

    def _compressed(self, pixels: Pixels, header: Header) -> CompressedImage:
        import cv2

        quality = [cv2.IMWRITE_JPEG_QUALITY, self.param("jpeg_quality")]
        _, data = cv2.imencode(".jpg", pixels, quality)
        kind = "mono8" if pixels.ndim == 2 else "bgr8"
        message = CompressedImage(header=header, format=f"{kind}; jpeg compressed {kind}")
        message.data = array.array("B", bytes(data))
        return message

    def _camera_info(self, width: int, height: int, header: Header) -> CameraInfo:
        info = self._infos.get((width, height))
        if info is None:
            known = self._intrinsics
            if known is not None and not known.fits(width, height):
                self.get_logger().warning(
                    f"The calibration is for {known.width}×{known.height}, which has another "
                    f"shape than {width}×{height}; it is not used. Calibrate in this mode, or "
                    "set width and height to the calibration's."
                )
                known = None
            if known is not None:
                known = known.scaled(width, height)
            else:
                known = calibration.from_view(width, height, self.param("fov_deg"))
            info = CameraInfo(
                width=width,
                height=height,
                distortion_model=known.model,
                d=list(known.d),
                k=list(known.k),
                r=list(known.r),
                p=list(known.p),
            )
            self._infos[width, height] = info
        info.header = header
        return info

    def _say(self, text: str, lost: bool) -> None:
        if lost:
            self.get_logger().error(text)
            self._fail_stills(text)
        else:
            self.get_logger().warning(text)

    # --- in the executor's thread -------------------------------------------------------------

    async def _capture_still(
        self, request: Trigger.Request, response: Trigger.Response
    ) -> Trigger.Response:
        camera = self._camera
        if camera is None or not self._active:
            response.message = f"{self.get_name()} is {self.state}; activate it first."
            return response
        if camera.lost:
            response.message = camera.lost
            return response
        still = _Still(time.monotonic(), Future(executor=self.executor))
        still.answer.add_done_callback(lambda _: None)  # without one, nothing wakes the executor
        with self._lock:
            self._stills.append(still)
        response.success, response.message = await still.answer
        return response

    def _fail_stills(self, why: str, older_than: float = 0.0) -> None:
        limit = time.monotonic() - older_than
        with self._lock:
            due = [still for still in self._stills if still.asked <= limit]
            self._stills = [still for still in self._stills if still.asked > limit]
        for still in due:
            still.answer.set_result((False, why))

    def _why_dead(self, camera: Camera) -> str:
        if camera.lost:
            return camera.lost
        if camera.silence > camera.silence_limit:
            return f"No frame from {self.param('source')} for {camera.silence:.1f} s."
        return ""

    def _watch(self) -> None:
        level = self._check()[0]
        if level != self._level:
            self._level = level
            self.diagnostics.publish()
        limit = self.param("still_timeout")
        self._fail_stills(f"No new frame from {self.param('source')} within {limit:g} s.", limit)

    def _check(self) -> tuple[bytes, str, dict[str, Any]]:
        camera = self._camera
        if camera is None:
            return ERROR, "not configured", {}
        values = {
            "source": self.param("source"),
            "camera": self._name,
            "mode": camera.mode,
            "rate": f"{camera.rate:.1f} frames/s",
            "last frame": f"{camera.silence:.2f} s ago",
            "frames": camera.frames,
            "stills": self._taken,
        }
        dead = self._why_dead(camera)
        if dead:
            return ERROR, dead, values
        asked = self.param("fps")
        if asked and camera.frames > 30 and camera.rate < 0.5 * asked:
            return WARN, f"{camera.rate:.1f} frames/s in place of {asked:g}", values
        return OK, f"{camera.mode.width}×{camera.mode.height}, {camera.rate:.1f} frames/s", values


def _seconds(stamp: Time) -> str:
    return f"{stamp.sec}.{stamp.nanosec:09d}"


def _image(pixels: Pixels, header: Header) -> Image:
    height, width = pixels.shape[:2]
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    message = Image(header=header, width=width, height=height, step=width * channels)
    message.encoding = "bgr8" if channels == 3 else "mono8"
    data = array.array("B")
    data.frombytes(pixels.data if pixels.flags.c_contiguous else pixels.tobytes())
    message.data = data
    return message


def main() -> int:
    """Runs the node."""
    return run(CameraDriver)


if __name__ == "__main__":
    sys.exit(main())
