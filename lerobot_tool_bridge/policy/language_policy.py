"""``language_policy``: a chat model that drives the robot.

Takes what a person wants on ``~/instruction``, asks a model at any OpenAI-compatible server,
sends its calls to the bridge, gives it the results, and goes on until it answers without a call.
The work is done in an asyncio loop in the main thread (``loop``); rclpy spins in another one, and
hands over through ``call_soon_threadsafe``.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from rclpy.duration import Duration
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from sensor_msgs.msg import CompressedImage
from std_msgs.msg import String

from lerobot_tool_bridge import formats
from lerobot_tool_bridge.core.within import within
from lerobot_tool_bridge.node.diagnostics import OK, WARN
from lerobot_tool_bridge.node.managed import ManagedNode, NodeError, run_with_loop
from lerobot_tool_bridge.node.parameters import Param
from lerobot_tool_bridge.policy import prompts, rules
from lerobot_tool_bridge.policy.conversation import PICTURES, Conversation, Message
from lerobot_tool_bridge.policy.endpoint import Endpoint, EndpointError, Server
from lerobot_tool_bridge.policy.files import open_new
from lerobot_tool_bridge.policy.loop import (
    FAILED,
    FINISH_REASONS,
    REFUSED,
    Answer,
    Loop,
    Settings,
)
from lerobot_tool_bridge.policy.rules_server import MODEL, RulesServer
from lerobot_tool_bridge.ros import qos
from lerobot_tool_bridge.ros.cdr import decode_string, publish_json

QUEUE, REPLACE, REFUSE = "queue", "replace", "refuse"
AUTO, IN_REQUEST, IN_PROMPT = "auto", "request", "prompt"
_LOOP_LIMIT = 15.0
_ACK_LIMIT = 1.0
_PICTURE_LIMIT = 1.0  # seconds that a still may come after the result that tells of it
_MAX_INSTRUCTION = 8000
_MAX_WAITING = 10
_QUALITY = 85

PARAMETERS = (
    Param(
        "url",
        "",
        "Address of an OpenAI-compatible server, up to /v1. Empty: the built-in policy of rules, "
        "served on a port of this machine.",
    ),
    Param("model", "", "The model's name there."),
    Param(
        "key_variable",
        "LLM_API_KEY",
        "Name of the environment variable that holds the server's key; it is never a parameter.",
    ),
    Param(
        "temperature",
        0.0,
        "Of the model's answers; -1: the server's own.",
        low=-1.0,
        high=2.0,
    ),
    Param("max_tokens", 0, "Of one answer; 0: the server's own.", low=0, high=1_000_000),
    Param("request_timeout", 60.0, "Seconds for one answer.", low=0.1, high=3600.0),
    Param(
        "retries",
        3,
        "More tries after HTTP 429, 5xx and broken connections, with growing pauses.",
        low=0,
        high=20,
    ),
    Param("retry_delay", 0.5, "Seconds before the first of them.", low=0.0, high=30.0),
    Param("stream", False, "Ask for answers in pieces, for servers that give no others."),
    Param("extra_body", "", "JSON object with more members of each request, for one's server."),
    Param("bridge", "tool_bridge", "Name of the bridge's node, relative to this one's namespace."),
    Param("bridge_timeout", 10.0, "Seconds to wait for the bridge.", low=0.1, high=600.0),
    Param(
        "on_new_instruction",
        REPLACE,
        "What an instruction does that comes while another one runs: replace ends that one, queue "
        "waits for it, refuse is answered at once. One that only says stop always replaces.",
        choices=(QUEUE, REPLACE, REFUSE),
    ),
    Param("max_turns", 12, "Answers of the model to one instruction.", low=1, high=1000),
    Param(
        "result_timeout",
        120.0,
        "Seconds without a sign of life after which a call counts as lost.",
        low=0.1,
        high=3600.0,
    ),
    Param("same_failures", 3, "So often the same call may fail.", low=1, high=100),
    Param(
        "ask_once_more",
        False,
        "Ask the model once more where an instruction would end without any call.",
    ),
    Param("system_prompt", prompts.SYSTEM, "What the model is told first. Empty: nothing."),
    Param(
        "text_format",
        "",
        "Read calls out of the answers' text: a format that python -m lerobot_tool_bridge.formats "
        "lists, such as hermes. Empty: only calls that the server gives as calls.",
    ),
    Param(
        "text_prefix",
        "",
        "What the model's chat template begins an answer with, such as <think>, where the server "
        "leaves it out of the text.",
    ),
    Param(
        "tools_in",
        AUTO,
        "Where the tools are described: in the request, as servers with tool calls want it, or in "
        "the system prompt. auto: in the prompt where text_format is set.",
        choices=(AUTO, IN_REQUEST, IN_PROMPT),
    ),
    Param(
        "tools_prompt",
        prompts.TOOLS,
        "How the system prompt describes them; {tools} and {example} are filled in.",
    ),
    Param(
        "finish_reasons",
        list(FINISH_REASONS),
        "The finish_reason of whole answers. No call of an answer with another one is run.",
    ),
    Param("history_turns", 20, "Instructions that are remembered.", low=1, high=10_000),
    Param(
        "history_characters",
        60_000,
        "Characters that are remembered; older instructions go, each with all its calls.",
        low=1000,
        high=100_000_000,
    ),
    Param(
        "pictures",
        "off",
        "How the still of record_observation goes to a model that sees: in a user message after "
        "the results, in the tool message, or not at all.",
        choices=PICTURES,
    ),
    Param("max_pictures", 2, "In one request; the last ones.", low=1, high=100),
    Param("picture_side", 768, "Pixels to which their longer side is scaled.", low=64, high=8192),
    Param(
        "picture_bytes",
        500_000,
        "Bytes that one may have as JPEG; it is made smaller until it fits.",
        low=5_000,
        high=20_000_000,
    ),
    Param(
        "conversation",
        "",
        "JSONL file for the conversation, one message a line; empty for none. An existing file "
        "is kept: the new one gets a number.",
    ),
)


class LanguagePolicy(ManagedNode):
    """The node.

    Args:
        loop: Where the conversation is led; it has to be running when the node is configured.
        kwargs: For the node.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, **kwargs: Any) -> None:
        super().__init__("language_policy", PARAMETERS, **kwargs)
        self._loop = loop
        self._made = contextlib.ExitStack()
        self.tools: list[Mapping[str, Any]] = []
        self._catalogue = asyncio.Event()
        self._waiting: deque[str] = deque()
        self._wake = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None
        self._running: asyncio.Task[Answer] | None = None
        self._pictures: asyncio.Queue[bytes] = asyncio.Queue()
        self._file: IO[str] | None = None
        self._last: Answer | None = None
        self._talk: Loop | None = None

    # --- life cycle, in rclpy's thread --------------------------------------------------------

    def configure(self) -> None:
        made, bridge = self._made, self.param("bridge")
        settings = self._settings()
        url, model = self.param("url"), self.param("model")
        if not url:
            server = RulesServer()
            made.callback(server.close)
            url, model = server.url, MODEL
        try:
            endpoint = Endpoint(self._server(url, model))
        except EndpointError as error:
            raise NodeError(str(error)) from None
        made.callback(lambda: self._in_loop(endpoint.close()))
        if self.param("conversation"):
            self._file = open_new(Path(self.param("conversation")).expanduser())
            made.callback(self._file.close)
        conversation = Conversation(
            self.param("history_turns"), self.param("history_characters"), self._told
        )
        see = self._still if settings.pictures != "off" else None
        self._talk = Loop(endpoint, self, settings, conversation, self._hint, see)
        self._calls = self._publisher(f"{bridge}/tool_calls", qos.COMMANDS)
        self._cancels = self._publisher(f"{bridge}/cancel", qos.COMMANDS)
        self._answers = self._publisher("~/answer", qos.COMMANDS)
        self._messages = self._publisher("~/conversation", qos.COMMANDS)
        self._subscription("~/instruction", self._on_instruction)
        self._subscription("~/cancel", self._on_cancel)
        talk = self._talk
        self._subscription(f"{bridge}/tool_results", lambda data: _json(data, talk.on_result))
        self._subscription(f"{bridge}/tool_events", lambda data: _json(data, talk.on_event))
        if see is not None:
            profile = QoSProfile(depth=10, reliability=qos.LATCHED.reliability)
            subscription = self.create_subscription(
                CompressedImage, f"{bridge}/observations", self._on_picture, profile
            )
            made.callback(self.destroy_subscription, subscription)
        # The catalogue's subscription comes last: when it has its message, the bridge knows of
        # the others too, and no result can get lost.
        self._subscription(f"{bridge}/tools", self._on_tools, qos.LATCHED)
        self.diagnostics.add("policy", self._check)
        made.callback(self.diagnostics.clear)
        self.get_logger().info(f"The model is {model or 'the one'} at {url}.")

    def activate(self) -> None:
        async def start() -> None:
            self._worker = asyncio.create_task(self._work())

        self._in_loop(start())
        self.get_logger().info("Active: instructions are taken.")

    def deactivate(self) -> None:
        self._in_loop(self.rest())

    def cleanup(self) -> None:
        self.deactivate()
        self._made.close()
        self._file = self._talk = None
        self._catalogue.clear()

    async def rest(self) -> None:
        """Ends what runs, and its answer goes out."""
        worker, self._worker = self._worker, None
        self._waiting.clear()
        if worker is None:
            return
        worker.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await worker

    async def last(self) -> None:
        """Ends what runs, and waits until its answer has gone out."""
        busy = self._running is not None
        await self.rest()
        if busy:
            limit = Duration(seconds=_ACK_LIMIT)
            await asyncio.gather(
                *(
                    asyncio.to_thread(publisher.wait_for_all_acked, limit)
                    for publisher in (self._cancels, self._answers, self._messages)
                )
            )

    def _settings(self) -> Settings:
        text_format, tools_in = self.param("text_format"), self.param("tools_in")
        if text_format:
            try:
                formats.get(text_format)
            except ValueError as error:
                raise NodeError(f"text_format: {error}") from None
        elif tools_in == IN_PROMPT:
            raise NodeError("tools_in is prompt, so text_format should say how calls are written.")
        return Settings(
            max_turns=self.param("max_turns"),
            result_timeout=self.param("result_timeout"),
            same_failures=self.param("same_failures"),
            ask_once_more=self.param("ask_once_more"),
            system=self.param("system_prompt"),
            tools_text=self.param("tools_prompt"),
            text_format=text_format,
            text_prefix=self.param("text_prefix"),
            tools_in_request=tools_in == IN_REQUEST or (tools_in == AUTO and not text_format),
            finish_reasons=tuple(r.lower() for r in self.param("finish_reasons")),
            pictures=self.param("pictures"),
            max_pictures=self.param("max_pictures"),
        )

    def _server(self, url: str, model: str) -> Server:
        extra: Any = {}
        if self.param("extra_body"):
            try:
                extra = json.loads(self.param("extra_body"))
            except ValueError as error:
                raise NodeError(f"extra_body is no JSON: {error}") from None
            if not isinstance(extra, dict):
                raise NodeError("extra_body should be a JSON object.")
        variable = self.param("key_variable")
        return Server(
            url.rstrip("/"),
            model,
            os.environ.get(variable, "") if variable else "",
            self.param("temperature"),
            self.param("max_tokens"),
            self.param("request_timeout"),
            self.param("retries"),
            self.param("retry_delay"),
            self.param("stream"),
            extra,
        )

    def _in_loop(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_LOOP_LIMIT)

    def _publisher(self, topic: str, profile: QoSProfile) -> Publisher:
        publisher = self.create_publisher(String, topic, profile)
        self._made.callback(self.destroy_publisher, publisher)
        return publisher

    def _subscription(
        self, topic: str, take: Callable[[bytes], None], profile: QoSProfile = qos.COMMANDS
    ) -> None:
        """Hands each text over to the loop; as bytes, since not everybody writes UTF-8."""
        subscription = self.create_subscription(
            String,
            topic,
            lambda data: self._loop.call_soon_threadsafe(take, decode_string(data)),
            profile,
            raw=True,
        )
        self._made.callback(self.destroy_subscription, subscription)

    def _on_picture(self, message: CompressedImage) -> None:
        self._loop.call_soon_threadsafe(self._pictures.put_nowait, bytes(message.data))

    def _check(self) -> tuple[bytes, str, dict[str, Any]]:
        last = self._last
        values: dict[str, Any] = {"instructions waiting": len(self._waiting)}
        if last is not None:
            values.update({"last status": last.status, "last calls": last.calls_ran})
        if last is not None and last.status == FAILED:
            return WARN, last.answer, values
        return OK, "busy" if self._running is not None else "waits for an instruction", values

    # --- what the loop needs of the bridge ----------------------------------------------------

    def send(self, message: dict[str, Any]) -> None:
        """Publishes an assistant message with calls."""
        while not self._pictures.empty():  # an older picture belongs to nobody here
            self._pictures.get_nowait()
        publish_json(self._calls, message)

    def cancel(self, call_id: str) -> None:
        """Asks the bridge to cancel a call."""
        self._cancels.publish(String(data=call_id))

    async def _still(self) -> str:
        """The next still as a data URL, small enough."""
        try:
            data = await within(_PICTURE_LIMIT, self._pictures.get())
        except TimeoutError:
            self.get_logger().warning("No picture came for record_observation.")
            return ""
        side, size = self.param("picture_side"), self.param("picture_bytes")
        return await asyncio.to_thread(data_url, data, side, size)

    # --- in the loop --------------------------------------------------------------------------

    def _on_tools(self, data: bytes) -> None:
        def take(tools: Any) -> None:
            self.tools = tools
            self._catalogue.set()

        _json(data, take, list)

    def _on_instruction(self, data: bytes) -> None:
        text = data.decode(errors="replace").strip()[:_MAX_INSTRUCTION]
        if not text:
            return
        mode = self.param("on_new_instruction")
        busy = self._running is not None or bool(self._waiting)
        if self._worker is None:
            self._refuse(text, "The policy is not active.")
        elif busy and (mode == REPLACE or rules.is_stop(text)):
            self._end("Replaced by a new instruction.")
            self._take(text)
        elif busy and (mode == REFUSE or len(self._waiting) >= _MAX_WAITING):
            self._refuse(text, "Another instruction still runs.")
        else:
            self._take(text)

    def _on_cancel(self, data: bytes) -> None:
        self._end("Cancelled.")

    def _take(self, text: str) -> None:
        self._waiting.append(text)
        self._wake.set()

    def _end(self, why: str) -> None:
        """Ends what runs and what waits."""
        while self._waiting:
            self._refuse(self._waiting.popleft(), why)
        if self._running is not None:
            self._running.cancel()

    def _refuse(self, text: str, why: str) -> None:
        self._publish(Answer(text, why, REFUSED))

    async def _work(self) -> None:
        """Carries out one instruction after the other."""
        while True:
            while not self._waiting:
                self._wake.clear()
                await self._wake.wait()
            text = self._waiting.popleft()
            self._running = asyncio.create_task(self._carry_out(text))
            try:
                answer = await asyncio.shield(self._running)
            except asyncio.CancelledError:  # this worker ends, and what it does with it
                self._running.cancel()
                self._publish(await self._running)
                raise
            finally:
                self._running = None
            self._publish(answer)

    async def _carry_out(self, text: str) -> Answer:
        assert self._talk is not None
        limit = self.param("bridge_timeout")
        try:
            await within(limit, self._bridge_there())
        except asyncio.CancelledError:
            return Answer(text, "Cancelled.", "cancelled")
        except TimeoutError:
            name = self.param("bridge")
            return Answer(text, f"No bridge answers as {name} within {limit:g} s.", FAILED)
        return await self._talk.run(text)

    async def _bridge_there(self) -> None:
        await self._catalogue.wait()
        while not self._calls.get_subscription_count():
            await asyncio.sleep(0.02)

    def _publish(self, answer: Answer) -> None:
        self._last = answer
        log = self.get_logger()
        line = f"{answer.status}, {answer.calls_ran} calls ran: {answer.answer}"
        log.warning(line) if answer.status == FAILED else log.info(line)
        publish_json(self._answers, dataclasses.asdict(answer))

    def _told(self, message: Message) -> None:
        publish_json(self._messages, message)
        if self._file is not None:
            self._file.write(json.dumps(message, ensure_ascii=False) + "\n")
            self._file.flush()

    def _hint(self, text: str) -> None:
        self.get_logger().warning(text)


def data_url(data: bytes, side: int, size: int) -> str:
    """A picture as JPEG in a data URL; empty where it can't be read.

    Args:
        data: PNG or JPEG.
        side: Pixels to which its longer side is scaled down.
        size: Bytes that the JPEG may have; it gets smaller until it fits.
    """
    import cv2
    import numpy as np

    try:
        image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    except cv2.error:
        image = None
    if image is None:
        return ""
    scale = min(1.0, side / max(image.shape[:2]))
    while True:
        width, height = (max(1, round(v * scale)) for v in image.shape[1::-1])
        small = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
        jpeg = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])[1].tobytes()
        if len(jpeg) <= size or max(width, height) <= 16:
            return f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"
        scale *= 0.75


def _json(data: bytes, take: Callable[[Any], None], kind: type = dict) -> None:
    """Hands on what the bridge published; what is none of its messages is left alone."""
    try:
        value = json.loads(data)
    except ValueError:
        return
    if isinstance(value, kind):
        take(value)


def main(args: Sequence[str] | None = None) -> int:
    """Runs the node until SIGINT or SIGTERM."""
    return run_with_loop(LanguagePolicy, LanguagePolicy.last, args)


if __name__ == "__main__":
    sys.exit(main())
