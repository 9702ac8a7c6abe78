"""The camera: a still on request, or the next frame of its topic."""

from __future__ import annotations

import array
import asyncio
import dataclasses
import time
from typing import Any

from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from std_srvs.srv import Trigger

from lerobot_tool_bridge.core.errors import ToolFailure
from lerobot_tool_bridge.ports import Frame, Intrinsics
from lerobot_tool_bridge.robot import Camera
from lerobot_tool_bridge.ros import qos
from lerobot_tool_bridge.ros.link import POLL, Link
from lerobot_tool_bridge.ros.polled import Polled

_FRAME_LIMIT = 5.0
_INFO_LIMIT = 0.5  # seconds that a picture waits for its camera_info
_SAME_CLOCK = 2.0
"""Stamps that differ by more than this many seconds from our clock are of another one."""


class RosCamera:
    """``CameraPort`` over std_srvs/Trigger and CompressedImage, or an image topic.

    While no call runs there is no subscription to a stream: 30 frames of 1080p a second would
    cost 10 % of a core. The topic of stills is silent then.

    Args:
        link: Node and loop.
        camera: Names of its topics and its service.
    """

    def __init__(self, link: Link, camera: Camera) -> None:
        self._link = link
        self._camera = camera
        node = link.node
        self._service = None
        self._stills: Polled | None = None
        self._infos: Polled | None = None
        self._known: Intrinsics | None = None  # where a still comes without
        if camera.still_service:
            self._service = link.waiter.client(Trigger, camera.still_service)
            self._stills = self._subscribe(CompressedImage, camera.still_topic)
            if camera.still_info:
                self._infos = Polled(node, CameraInfo, camera.still_info, qos.STATES)
        self._observations = node.create_publisher(CompressedImage, "~/observations", qos.LATCHED)

    def close(self) -> None:
        """Ends the connection."""
        for topic in (self._stills, self._infos):
            if topic is not None:
                topic.close()
        if self._service is not None:
            self._link.waiter.destroy_client(self._service)
        self._link.node.destroy_publisher(self._observations)

    async def still(self) -> Frame:
        """See ``CameraPort``."""
        by_service = self._service is not None and self._service.service_is_ready()
        topic = None if by_service else self._published()
        if not by_service and topic is None:
            await self._link.until(self._found, self._link.server_timeout)
            by_service = self._service is not None and self._service.service_is_ready()
            topic = None if by_service else self._published()
        if by_service:
            return await self._from_service()
        if topic is None:
            raise ToolFailure("unavailable", self._missing())
        return await self._from_topic(*topic)

    def publish_observation(self, data: bytes, media: str, frame: Frame) -> None:
        """See ``CameraPort``."""
        message = CompressedImage(format=media)
        message.header.frame_id = frame.frame_id
        message.header.stamp.sec = int(frame.stamp)
        message.header.stamp.nanosec = int(frame.stamp % 1 * 1e9)
        message.data = array.array("B", data)
        self._observations.publish(message)

    # --- where pictures come from -------------------------------------------------------------

    def _found(self) -> bool:
        return self._published() is not None or (
            self._service is not None and bool(self._service.service_is_ready())
        )

    def _published(self) -> tuple[type, str] | None:
        """The stream that is there, the one without loss first."""
        for kind, topic in (
            (Image, self._camera.image),
            (CompressedImage, self._camera.compressed_image),
        ):
            if topic and self._link.node.count_publishers(topic):
                return kind, topic
        return None

    def _missing(self) -> str:
        names = [self._camera.still_service, self._camera.image, self._camera.compressed_image]
        known = ", ".join(n for n in names if n)
        return f"There is no camera: nothing serves {known}. Its driver may not be running."

    def _subscribe(self, kind: type, topic: str) -> Polled:
        node = self._link.node
        return Polled(node, kind, topic, qos.images(node, node.resolve_topic_name(topic)))

    async def _from_service(self) -> Frame:
        assert self._service is not None
        assert self._stills is not None
        wanted = qos.images(self._link.node, self._stills.topic)
        if wanted.reliability is not self._stills.qos.reliability:
            self._stills.close()  # the publisher was not known yet, and offers less
            self._stills = self._subscribe(CompressedImage, self._camera.still_topic)
        stills = self._stills
        if not await self._link.until(lambda: stills.publishers > 0, self._link.server_timeout):
            raise ToolFailure("unavailable", f"Nobody publishes the stills on {stills.topic}.")
        began = _Moment(self._link)
        answer = self._link.request(self._service, Trigger.Request())
        try:
            frame = await self._next(stills, began, answer)
        finally:
            answer.cancel()
        return dataclasses.replace(frame, intrinsics=await self._intrinsics(frame.stamp))

    async def _from_topic(self, kind: type, topic: str) -> Frame:
        began = _Moment(self._link)
        stream, infos = self._subscribe(kind, topic), self._subscribe_info()
        try:
            frame = await self._next(stream, began)
            return dataclasses.replace(frame, intrinsics=await self._one(infos))
        finally:
            for subscription in (stream, infos):
                if subscription is not None:
                    subscription.close()

    # --- the camera's optics ------------------------------------------------------------------

    async def _intrinsics(self, stamp: float) -> Intrinsics | None:
        """Those that came with a still; where none come, those of the stream, asked for once."""
        infos = self._infos
        if infos is not None and infos.publishers:
            return await self._one(infos, stamp)
        if self._known is None:
            topic = self._subscribe_info()
            try:
                self._known = await self._one(topic)
            finally:
                if topic is not None:
                    topic.close()
        return self._known

    def _subscribe_info(self) -> Polled | None:
        topic = self._camera.info
        if not topic or not self._link.node.count_publishers(topic):
            return None
        return Polled(self._link.node, CameraInfo, topic, qos.STATES)

    async def _one(self, topic: Polled | None, stamp: float | None = None) -> Intrinsics | None:
        """The next ones, or those with a stamp; None where none come soon or they say nothing."""
        if topic is None:
            return None
        end = self._link.loop.time() + _INFO_LIMIT
        while True:
            while taken := topic.take():
                message = taken.message
                if stamp is None or abs(_seconds(message.header.stamp) - stamp) < 1e-6:
                    return _optics(message)
            if self._link.loop.time() > end:
                return None
            await asyncio.sleep(POLL)

    async def _next(
        self, topic: Polled, began: _Moment, answer: asyncio.Future[Any] | None = None
    ) -> Frame:
        """The first picture that was taken after a moment.

        Args:
            topic: Where it comes.
            began: The moment.
            answer: To the request for it. It may come after the picture.
        """
        end = self._link.loop.time() + _FRAME_LIMIT
        before: float | None = None
        while self._link.loop.time() < end:
            answered = False
            if answer is not None and answer.done():
                answered = True
                if not answer.result().success:
                    why = answer.result().message
                    raise ToolFailure("unavailable", f"The camera took no picture: {why}")
            while taken := topic.take():
                if taken.arrived < began.steady:
                    continue
                stamp = _seconds(taken.message.header.stamp)
                if abs(stamp - began.ros) < _SAME_CLOCK:
                    new = stamp >= began.ros
                else:
                    # another clock: the first frame may have been on its way; the second is new
                    # if it is not the same again (a camera that died, sent on and on)
                    new = answered or (before is not None and (stamp != before or stamp == 0.0))
                before = stamp
                if new:
                    return _frame(taken.message, topic.topic)
            await asyncio.sleep(POLL)
        raise ToolFailure(
            "unavailable",
            f"No new picture came on {topic.topic} within {_FRAME_LIMIT:g} s"
            + ("." if before is None else ", only old ones: the camera may have stopped."),
        )


class _Moment:
    """Now, by the steady clock and by the node's."""

    def __init__(self, link: Link) -> None:
        self.steady = time.monotonic()
        self.ros = link.node.get_clock().now().nanoseconds * 1e-9


def _seconds(stamp: Any) -> float:
    return float(stamp.sec + stamp.nanosec * 1e-9)


def _optics(message: CameraInfo) -> Intrinsics | None:
    if not message.k[0] > 0:
        return None  # all zero: not calibrated
    return Intrinsics(
        int(message.width),
        int(message.height),
        message.distortion_model or "plumb_bob",
        tuple(float(v) for v in message.d),
        tuple(float(v) for v in message.k),
    )


def _frame(message: Any, source: str) -> Frame:
    compressed = isinstance(message, CompressedImage)
    return Frame(
        encoding=message.format if compressed else message.encoding,
        data=bytes(message.data),
        width=0 if compressed else message.width,
        height=0 if compressed else message.height,
        step=0 if compressed else message.step,
        big_endian=False if compressed else bool(message.is_bigendian),
        compressed=compressed,
        stamp=_seconds(message.header.stamp),
        frame_id=message.header.frame_id,
        source=source,
    )
