"""The camera: a still on request, or the next frame of its topic."""

from __future__ import annotations

import array
import asyncio
import time
from typing import Any

from sensor_msgs.msg import CompressedImage, Image
from std_srvs.srv import Trigger

from lerobot_tool_bridge.core.errors import ToolFailure
from lerobot_tool_bridge.ports import Frame
from lerobot_tool_bridge.robot import Camera
from lerobot_tool_bridge.ros import qos
from lerobot_tool_bridge.ros.link import POLL, Link
from lerobot_tool_bridge.ros.polled import Polled

_FRAME_LIMIT = 5.0
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
        if camera.still_service:
            self._service = node.create_client(Trigger, camera.still_service)
            self._stills = self._subscribe(CompressedImage, camera.still_topic)
        self._observations = node.create_publisher(CompressedImage, "~/observations", qos.LATCHED)

    def close(self) -> None:
        """Ends the connection."""
        if self._stills is not None:
            self._stills.close()
        if self._service is not None:
            self._link.node.destroy_client(self._service)
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
            return await self._next(stills, began, answer)
        finally:
            answer.cancel()

    async def _from_topic(self, kind: type, topic: str) -> Frame:
        began = _Moment(self._link)
        stream = self._subscribe(kind, topic)
        try:
            return await self._next(stream, began)
        finally:
            stream.close()

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
