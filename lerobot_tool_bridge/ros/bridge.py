"""``tool_bridge``: the node that takes tool calls and publishes one result for each.

The asyncio loop with core and tools runs in the main thread, rclpy in another one, and what
has to be quick in a third (``waiter.py``). A call enters the loop through
``call_soon_threadsafe``; results are published from the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.duration import Duration
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.task import Future
from std_msgs.msg import String
from std_srvs.srv import Trigger

from lerobot_tool_bridge.core.audit import AuditLog
from lerobot_tool_bridge.core.catalog import Catalogue
from lerobot_tool_bridge.core.dispatcher import Dispatcher
from lerobot_tool_bridge.core.errors import ToolFailure
from lerobot_tool_bridge.core.gate import Limits
from lerobot_tool_bridge.core.registry import Registry
from lerobot_tool_bridge.core.toolsfile import load_tools_file
from lerobot_tool_bridge.music import MusicPlayer
from lerobot_tool_bridge.node.diagnostics import ERROR, OK, WARN
from lerobot_tool_bridge.node.managed import ManagedNode, NodeError, run_with_loop
from lerobot_tool_bridge.ports import Ports
from lerobot_tool_bridge.robot import Robot
from lerobot_tool_bridge.ros import qos
from lerobot_tool_bridge.ros.action import Action
from lerobot_tool_bridge.ros.arm import RosArm
from lerobot_tool_bridge.ros.camera import RosCamera
from lerobot_tool_bridge.ros.cdr import publish_json
from lerobot_tool_bridge.ros.gimbal import RosGimbal
from lerobot_tool_bridge.ros.joints import JointStates
from lerobot_tool_bridge.ros.link import Link
from lerobot_tool_bridge.ros.logs import RosHandler
from lerobot_tool_bridge.ros.markers import Markers
from lerobot_tool_bridge.ros.parameters import PARAMETERS
from lerobot_tool_bridge.ros.waiter import Batch, Waiter
from lerobot_tool_bridge.speech import make_speaker

if TYPE_CHECKING:
    from lerobot_tool_bridge.formats import TextReader

_ACK_LIMIT = 0.2
_LOOP_LIMIT = 15.0
_PORT_SPEAKS_FIRST = 0.5
_NO_ROBOT = Robot("none", "no robot", Path())


class ToolBridge(ManagedNode):
    """The bridge's node.

    Args:
        loop: Where the core runs; it has to be running when the node is configured.
        kwargs: For the node.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, **kwargs: Any) -> None:
        super().__init__("tool_bridge", PARAMETERS, **kwargs)
        self._loop = loop
        self._link: Link | None = None
        self._made = contextlib.ExitStack()
        self._dispatcher: Dispatcher | None = None
        self._actions: list[Action] = []
        self._results: Publisher | None = None
        self._events: Publisher | None = None
        self._markers: Markers | None = None
        handler = RosHandler(self.get_logger())
        logger = logging.getLogger("lerobot_tool_bridge")
        logger.setLevel(logging.INFO)
        logger.addHandler(handler)
        logger.propagate = False

    # --- life cycle, in rclpy's thread --------------------------------------------------------

    def configure(self) -> None:
        made = self._made
        waiter = Waiter(self)
        made.callback(waiter.close)
        link = Link(
            self, self._loop, waiter, self.param("server_timeout"), self.param("cancel_limit")
        )
        self._link = link
        robot = Robot.load(self.param("robot")) if self.param("robot") else _NO_ROBOT
        robot = robot.without(p.strip() for p in self.param("without").split(",") if p.strip())
        ports = self._make_ports(link, robot)
        settings = load_tools_file(self.param("tools_file")) if self.param("tools_file") else None
        catalogue = Catalogue.load(self.param("catalogue")) if self.param("catalogue") else None
        folder = self.param("tools_dir") or None
        registry = Registry.load(ports, settings, catalogue, folder=folder)
        self._results = self._publisher("~/tool_results", qos.COMMANDS)
        self._events = self._publisher("~/tool_events", qos.COMMANDS)
        dispatcher = Dispatcher(
            registry,
            self._on_result,
            self._on_event,
            limits=self._limits(),
            audit=self._audit(),
            texts=self._texts(registry),
        )
        dispatcher.set_active(False)
        dispatcher.add_stop_hook(self._halt)
        self._dispatcher = dispatcher
        self._markers = Markers(link, robot, lambda: dispatcher.running)
        made.callback(self._markers.close)
        waiter.subscribe("~/tool_calls", self._on_calls, qos.COMMANDS)
        waiter.subscribe("~/cancel", self._on_cancel, qos.COMMANDS)
        # in groups of their own: one that waits for its answer must not hold up what brings it
        for name, answer in (("~/stop", self._on_stop), ("~/reset", self._on_reset)):
            group = ReentrantCallbackGroup()
            service = self.create_service(Trigger, name, answer, callback_group=group)
            made.callback(self.destroy_service, service)
        publish_json(self._publisher("~/tools", qos.LATCHED), registry.schemas())
        self.diagnostics.add("calls", self._check_calls)
        self.diagnostics.add("drivers", self._check_drivers)
        made.callback(self.diagnostics.clear)
        self._announce(robot, registry)

    def activate(self) -> None:
        dispatcher = self._dispatcher
        assert dispatcher is not None
        self._in_loop(_soon(dispatcher.set_active, True))
        self.get_logger().info("Active: calls are taken.")

    def deactivate(self) -> None:
        if self._dispatcher is not None:
            self._in_loop(_rest(self._dispatcher))

    def cleanup(self) -> None:
        self.deactivate()
        self._made.close()
        self._dispatcher = self._results = self._events = self._markers = None
        self._actions = []

    async def answer_all(self) -> None:
        """Ends what runs, answers it, and gives the answers time to go out."""
        if self._dispatcher is None:
            return
        await self._dispatcher.shutdown()
        for publisher in (self._results, self._events):
            if publisher is not None:
                # readers may confirm only at the writer's next heartbeat, seconds later
                publisher.wait_for_all_acked(Duration(seconds=_ACK_LIMIT))

    def _in_loop(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs a coroutine in the loop, and waits. It must not need rclpy's thread."""
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_LOOP_LIMIT)

    def _publisher(self, topic: str, profile: QoSProfile) -> Publisher:
        publisher = self.create_publisher(String, topic, profile)
        self._made.callback(self.destroy_publisher, publisher)
        return publisher

    def _make_ports(self, link: Link, robot: Robot) -> Ports:
        speaker = make_speaker(self.param("speech"), self.param("voice"))
        close = getattr(speaker, "close", None)
        if close is not None:
            self._made.callback(lambda: self._in_loop(close()))
        arm = gimbal = camera = None
        states: dict[str, JointStates] = {}

        def measured(topic: str) -> JointStates:
            if topic not in states:
                states[topic] = JointStates(link, topic)
                self._made.callback(states[topic].close)
            return states[topic]

        if robot.arm is not None:
            arm = RosArm(link, robot, measured(robot.arm.joint_states))
            self._add_actions(arm.actions)
        if robot.gimbal is not None:
            gimbal = RosGimbal(link, robot.gimbal, measured(robot.gimbal.joint_states))
            self._add_actions(gimbal.actions)
        if robot.camera is not None:
            camera = RosCamera(link, robot.camera)
            self._made.callback(camera.close)
        output = Path(self.param("output_dir")).expanduser()
        music = MusicPlayer()
        self._made.callback(music.close)
        return Ports(robot, arm, gimbal, camera, speaker, output, music=music)

    def _add_actions(self, actions: Sequence[Action]) -> None:
        for action in actions:
            self._actions.append(action)
            self._made.callback(action.close)

    def _limits(self) -> Limits:
        return Limits(
            max_calls_per_message=self.param("max_calls_per_message"),
            max_age=self.param("max_age"),
            max_calls_per_second=self.param("rate_limit"),
            max_pending=self.param("max_pending"),
            # the port speaks first: it knows whether its driver confirmed
            cancel_limit=self.param("cancel_limit") + _PORT_SPEAKS_FIRST,
            accept_repeated_ids=self.param("accept_repeated_ids"),
        )

    def _texts(self, registry: Registry) -> TextReader | None:
        if not self.param("text_format"):
            return None
        from lerobot_tool_bridge.formats import TextReader

        try:
            return TextReader(
                self.param("text_format"), registry.schemas(), self.param("text_prefix")
            )
        except ValueError as error:
            raise NodeError(f"text_format: {error}") from None

    def _audit(self) -> AuditLog | None:
        if not self.param("audit_file"):
            return None
        try:
            audit = AuditLog(self.param("audit_file"))
        except OSError as error:
            raise NodeError(
                f"The audit file {self.param('audit_file')} can't be written: {error.strerror}."
            ) from None
        self._made.callback(audit.close)
        return audit

    def _announce(self, robot: Robot, registry: Registry) -> None:
        """The limits in force and the tools, for whoever reads the log after a surprise."""
        log = self.get_logger()
        if robot.arm is not None:
            arm, work = robot.arm, robot.arm.workspace
            log.info(
                f"{robot.name}: workspace r {_range(work.radius)} m, z {_range(work.height)} m, "
                f"azimuth {_range(work.azimuth_deg)}°; tool point at most "
                f"{arm.max_tool_speed:g} m/s, joints {arm.max_joint_speed:g} rad/s"
            )
        names = []
        for entry in registry:
            limits = [
                f"{name} {_range((p['minimum'], p['maximum']))}"
                for name, p in entry.schema.parameters.get("properties", {}).items()
                if "minimum" in p and "maximum" in p
            ]
            note = ", ".join(limits) if entry.tool is not None else "not implemented"
            names.append(f"{entry.name} ({note})" if note else entry.name)
        log.info(f"{len(names)} tools: {', '.join(names) or 'none'}")

    # --- in the waiter's thread ---------------------------------------------------------------

    def _on_calls(self, batch: Batch) -> None:
        self._loop.call_soon_threadsafe(self._submit, batch)

    def _on_cancel(self, batch: Batch) -> None:
        for text, _ in batch:
            call_id = text.decode(errors="replace").strip()
            self._loop.call_soon_threadsafe(self._cancel, call_id)

    # --- in rclpy's thread --------------------------------------------------------------------

    async def _on_stop(
        self, request: Trigger.Request, response: Trigger.Response
    ) -> Trigger.Response:
        dispatcher = self._dispatcher
        assert dispatcher is not None
        # in this order: the loop has to know of the stop before it hears how the goals ended, and
        # the drivers must not wait for the loop
        ended = self._for_ros(dispatcher.stop)
        for action in self._actions:
            action.cancel_all()
        self.get_logger().warning("Stop: motion is refused until ~/reset.")
        response.message = await ended
        response.success = response.message.startswith("stopped")
        if not response.success:
            self.get_logger().error(response.message)
        return response

    async def _on_reset(
        self, request: Trigger.Request, response: Trigger.Response
    ) -> Trigger.Response:
        dispatcher = self._dispatcher
        assert dispatcher is not None
        await self._for_ros(lambda: _soon(dispatcher.reset))
        self.get_logger().info("Reset: motion is allowed again.")
        response.success, response.message = True, "motion is allowed again"
        return response

    def _for_ros(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Future:
        """Runs a coroutine in the loop, for a coroutine of rclpy's thread to await."""
        done = Future()

        def finish(task: asyncio.Task[Any]) -> None:
            if task.cancelled():
                done.set_exception(RuntimeError("the bridge ended"))
            elif task.exception() is not None:
                done.set_exception(task.exception())
            else:
                done.set_result(task.result())
            if self.executor is not None:
                self.executor.wake()  # rclpy looks at its coroutines only when it wakes

        self._loop.call_soon_threadsafe(
            lambda: self._loop.create_task(work()).add_done_callback(finish)
        )
        return done

    def _check_calls(self) -> tuple[bytes, str, dict[str, Any]]:
        dispatcher = self._dispatcher
        if dispatcher is None:
            return ERROR, "not configured", {}
        values: dict[str, Any] = {"waiting or running": dispatcher.pending}
        for name, counts in sorted(dict(dispatcher.statistics).items()):
            values[name or "unknown tools"] = str(counts)
        if not dispatcher.active:
            return WARN, "inactive: calls are refused", values
        if dispatcher.stopped:
            return WARN, "stopped: motion is refused until ~/reset", values
        return OK, "calls are taken", values

    def _check_drivers(self) -> tuple[bytes, str, dict[str, Any]]:
        values = {
            a.what: "there" if a.ready else f"nothing serves {a.name}" for a in self._actions
        }
        missing = [what for what, state in values.items() if state != "there"]
        if missing:
            return WARN, f"no driver for {', '.join(missing)}", values
        return OK, "all there", values

    # --- in the loop --------------------------------------------------------------------------

    def _submit(self, batch: Batch) -> None:
        for payload, sent in batch:
            if self._dispatcher is not None:
                self._dispatcher.submit(payload, max(0.0, (time.time_ns() - sent) * 1e-9))

    def _cancel(self, call_id: str) -> None:
        if self._dispatcher is not None and not self._dispatcher.cancel(call_id):
            self.get_logger().info(f"Nothing to cancel: no call {call_id!r} waits or runs.")

    def _on_result(self, message: dict[str, str]) -> None:
        if self._results is not None:
            publish_json(self._results, message)
        if self._markers is not None:
            self._markers.result(message["name"], message["content"])

    def _on_event(self, event: dict[str, Any]) -> None:
        if self._markers is not None:
            self._markers.event(event)
        # volatile: without a subscriber there is nobody to write it for
        if self._events is not None and self._events.get_subscription_count():
            publish_json(self._events, event)

    async def _halt(self) -> None:
        """Stops all motion, whoever began it.

        Raises:
            ToolFailure: Not everything confirmed it.
        """
        stopped = await asyncio.gather(*(a.stop() for a in self._actions))
        silent = [a.what for a, s in zip(self._actions, stopped, strict=True) if s is False]
        if silent:
            raise ToolFailure("cancel_unconfirmed", f"{' and '.join(silent)} did not confirm")


async def _soon(work: Callable[..., None], *arguments: Any) -> None:
    work(*arguments)


async def _rest(dispatcher: Dispatcher) -> None:
    dispatcher.set_active(False)
    await dispatcher.shutdown()


def _range(limits: Sequence[float]) -> str:
    return f"{limits[0]:g} to {limits[1]:g}"


def main(args: Sequence[str] | None = None) -> int:
    """Runs the bridge until SIGINT or SIGTERM."""
    return run_with_loop(ToolBridge, ToolBridge.answer_all, args)


if __name__ == "__main__":
    sys.exit(main())
