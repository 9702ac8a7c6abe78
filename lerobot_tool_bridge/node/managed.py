"""The life cycle that all nodes of this package share.

A subclass fills in ``configure``, ``activate``, ``deactivate`` and ``cleanup``. A ``NodeError``
(or any exception) out of ``configure`` or ``activate`` fails the transition with one line in the
log, undoes the half-made parts through ``cleanup`` or ``deactivate``, and can be tried again.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

import rclpy
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.signals import SignalHandlerOptions
from rclpy.timer import Timer

from lerobot_tool_bridge.core.errors import BridgeError
from lerobot_tool_bridge.latch import Latch
from lerobot_tool_bridge.node.diagnostics import Diagnostics
from lerobot_tool_bridge.node.parameters import Param, file_warnings

SHUTDOWN_LIMIT = 5.0
"""Seconds that a node may take to end what it is doing after SIGINT or SIGTERM."""

_ENDS = (signal.SIGINT, signal.SIGTERM)
_RETRY_PERIOD = 0.5
_SUCCESS = TransitionCallbackReturn.SUCCESS
_FAILURE = TransitionCallbackReturn.FAILURE

COMMON = (
    Param(
        "autostart",
        True,
        "Configure and activate at start; false waits for ros2 lifecycle set.",
    ),
    Param(
        "autostart_timeout",
        10.0,
        "Seconds for which autostart tries to configure again where it failed, for devices that "
        "appear late. Activation is tried once.",
        low=0.0,
        high=600.0,
    ),
)


class NodeError(BridgeError):
    """A node can't be configured or activated; one sentence for the log: what, and the cure."""


class ManagedNode(LifecycleNode):
    """A lifecycle node that starts itself, says why it can't, and can be tried again.

    Args:
        name: The node's name.
        parameters: What it declares, beside ``autostart`` and ``autostart_timeout``.
        kwargs: For ``rclpy.node.Node`` (``context``, ``namespace``, ``parameter_overrides``, ...).

    Raises:
        NodeError: A parameter was given with the wrong type or out of its range.
    """

    def __init__(self, name: str, parameters: Sequence[Param], **kwargs: Any) -> None:
        super().__init__(name, **kwargs)
        self._params = {p.name: p for p in (*COMMON, *parameters)}
        for param in self._params.values():
            self._declare(param)
        for warning in file_warnings(
            sys.argv, self.get_name(), self.get_namespace(), list(self._params)
        ):
            self.get_logger().warning(warning)
        self.diagnostics = Diagnostics(self)
        self.steady_timer(1.0, self.diagnostics.publish)
        self._said = ""
        self.exit_status = 0
        self._ask_for_end: Callable[[], None] = lambda: None
        self._autostart_left = self.param("autostart_timeout")
        self._autostart_timer: Timer | None = None
        if self.param("autostart"):
            self._autostart_timer = self.steady_timer(0.0, self._autostart)

    # --- for subclasses -------------------------------------------------------------------

    def configure(self) -> None:
        """Reads parameters, opens devices, makes publishers, servers and timers."""

    def activate(self) -> None:
        """Starts to act."""

    def deactivate(self) -> None:
        """Ends every running goal with a result, and stops acting. Safe to call twice."""

    def cleanup(self) -> None:
        """Undoes ``configure``, also where that one ended half-way. Safe to call twice."""

    def param(self, name: str) -> Any:
        """The value of a declared parameter."""
        value = self.get_parameter(name).value
        return list(value) if isinstance(self._params[name].default, list) else value

    def steady_timer(self, period: float, callback: Callable[[], Any]) -> Timer:
        """A timer that simulated time can't stop."""
        return self.create_timer(period, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def end_process(self, status: int) -> None:
        """Ends the process as SIGINT does, with an exit status; for nodes whose work ends."""
        self.exit_status = status
        self._ask_for_end()

    @property
    def state(self) -> str:
        """``unconfigured``, ``inactive``, ``active`` or ``finalized``."""
        return str(self._state_machine.current_state[1])

    # --- transitions ----------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        return self._try("configure", self.configure, self.cleanup)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        result = self._try("activate", self.activate, self.deactivate)
        return super().on_activate(state) if result is _SUCCESS else result

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._try("deactivate", self.deactivate, None)
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._try("clean up", self.cleanup, None)
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._try("deactivate", self.deactivate, None)
        self._try("clean up", self.cleanup, None)
        return super().on_shutdown(state)

    def finish(self) -> None:
        """Ends the node's life from whatever state it is in."""
        if self.state not in ("finalized", "unconfigured"):
            self.trigger_shutdown()

    def _try(
        self, what: str, action: Callable[[], None], undo: Callable[[], None] | None
    ) -> TransitionCallbackReturn:
        try:
            action()
        except Exception as error:
            line = f"Can't {what}: {error}"
            if isinstance(error, BridgeError):
                if line != self._said:  # while autostart tries again, say it once
                    self.get_logger().error(line)
                self._said = line
            else:
                import traceback

                self.get_logger().error(f"{line}\n{traceback.format_exc()}")
            if undo is not None:
                self._try(f"undo {what}", undo, None)
            return _FAILURE
        return _SUCCESS

    def _autostart(self) -> None:
        assert self._autostart_timer is not None
        self.destroy_timer(self._autostart_timer)
        if self.state == "unconfigured" and self.trigger_configure() is not _SUCCESS:
            if self._autostart_left <= 0:
                self.get_logger().error(
                    f"Not configured: {self._said or 'see above'} When that is mended: "
                    f"ros2 lifecycle set {self.get_fully_qualified_name()} configure"
                )
                return
            self._autostart_left -= _RETRY_PERIOD
            self._autostart_timer = self.steady_timer(_RETRY_PERIOD, self._autostart)
            return
        self._said = ""
        if self.state == "inactive":
            self.trigger_activate()

    def _declare(self, param: Param) -> None:
        try:
            self.declare_parameter(param.name, param.default, param.descriptor())
        except InvalidParameterTypeException:
            kind = type(param.default).__name__
            hint = (
                f" Quote it twice: {param.name}:='\"007\"'."
                if isinstance(param.default, str)
                else " A float needs its point: 1.0."
                if isinstance(param.default, float)
                else ""
            )
            raise NodeError(
                f"Parameter {param.name} of {self.get_name()} should be a {kind}.{hint}"
            ) from None
        except InvalidParameterValueException as error:
            raise NodeError(
                f"Parameter {param.name} of {self.get_name()} should be between {param.low} and "
                f"{param.high}: {error}"
            ) from None
        value = self.get_parameter(param.name).value
        if param.choices and value not in param.choices:
            raise NodeError(
                f"Parameter {param.name} of {self.get_name()} is {value!r}; it should be one of "
                f"{', '.join(param.choices)}."
            )


NodeT = TypeVar("NodeT", bound=ManagedNode)


class Spinning(Generic[NodeT]):
    """rclpy with one node, spun in a thread of its own.

    rclpy's own signal handlers invalidate the context at once, so that nothing could be answered
    any more; here the node is shut down first, while it can still talk.

    Args:
        make: Makes the node.
        args: Arguments for rclpy; None for the process's.
        ended: Called in the node's thread when it ends by itself.

    Raises:
        BridgeError: The node could not be made.
    """

    def __init__(
        self,
        make: Callable[[], NodeT],
        args: Sequence[str] | None = None,
        ended: Callable[[], object] = lambda: None,
    ) -> None:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
        try:
            self.node = make()
        except BaseException:
            rclpy.try_shutdown()
            raise
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)
        self._thread = threading.Thread(target=self._spin, args=(ended,), name="rclpy")
        self._thread.start()

    def close(self) -> None:
        """Ends the node in order, and rclpy. Blocks for a few seconds at most."""
        done = threading.Event()

        def finish() -> None:
            self.node.finish()
            done.set()

        if self._thread.is_alive():
            self._executor.create_task(finish)
            done.wait(SHUTDOWN_LIMIT)
            for _ in range(3):  # ``finish`` wakes a goal's task, and that leaves one to send
                flushed = threading.Event()
                self._executor.create_task(flushed.set)
                flushed.wait(1.0)
        self._executor.shutdown(timeout_sec=1.0)
        self._thread.join(SHUTDOWN_LIMIT)
        self.node.destroy_node()
        rclpy.try_shutdown()

    def _spin(self, ended: Callable[[], object]) -> None:
        try:
            self._executor.spin()
        except ExternalShutdownException:
            pass
        finally:
            ended()


def run(make: Callable[[], ManagedNode], args: Sequence[str] | None = None) -> int:
    """Runs one node until SIGINT or SIGTERM, then ends it in order.

    More signals change nothing: a terminal and launch both send one, a service manager one to each
    process, and a second one must not cut off what the first began. The end is bounded anyhow.

    Returns:
        The process's exit status.
    """
    stop = Latch()
    for number in _ENDS:
        signal.signal(number, lambda *_: stop.set())
    try:
        spinning = Spinning(make, args, stop.set)
    except BridgeError as error:
        return failed(error)
    spinning.node._ask_for_end = stop.set
    stop.wait()
    _no_more_signals()
    spinning.close()
    return spinning.node.exit_status


def run_with_loop(
    make: Callable[[asyncio.AbstractEventLoop], NodeT],
    last: Callable[[NodeT], Awaitable[None]],
    args: Sequence[str] | None = None,
) -> int:
    """As ``run``, for a node whose work is done in an asyncio loop: that of the main thread.

    Args:
        make: Makes the node, in rclpy's thread's place but before it runs.
        last: Awaited in the loop before the node ends, while rclpy still works.
        args: Arguments for rclpy; None for the process's.

    Returns:
        The process's exit status.
    """

    async def work() -> int:
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in _ENDS:
            loop.add_signal_handler(number, stop.set)
        try:
            spinning = Spinning(
                lambda: make(loop), args, lambda: loop.call_soon_threadsafe(stop.set)
            )
        except BridgeError as error:
            return failed(error)
        await stop.wait()
        await last(spinning.node)
        await asyncio.to_thread(spinning.close)
        return spinning.node.exit_status

    status = asyncio.run(work())
    _no_more_signals()  # the loop has put the defaults back
    return status


def _no_more_signals() -> None:
    """Until the very end: Python would put its defaults back, and a late signal kill it then."""
    for number in _ENDS:
        signal.signal(number, signal.SIG_IGN)


def failed(error: BridgeError) -> int:
    """Says why a node could not be started; returns the process's exit status."""
    print(f"error: {error}", file=sys.stderr, flush=True)
    return 1
