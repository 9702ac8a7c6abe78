"""Any OpenAI-compatible chat server, asked through the ``openai`` package.

What comes back is taken for what it is: text from a stranger. It is read as strict JSON, and its
calls stay as they came; ``loop`` judges them.
"""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import json
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lerobot_tool_bridge.core import strict_json
from lerobot_tool_bridge.core.errors import BridgeError, Rejection
from lerobot_tool_bridge.core.within import within

_MAX_ANSWER = 4 * 1024 * 1024
_LONGEST_DELAY = 30.0
_NO_KEY = "none"  # the package insists on one, local servers don't


class EndpointError(BridgeError):
    """The server gave no answer that can be used; a sentence for the person."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the model.

    Attributes:
        content: Its text.
        calls: Its ``tool_calls`` as they came; anything that JSON can hold.
        finish_reason: Why the server ended it; empty where it said nothing.
        reasoning: What the server keeps apart as thought; nothing is ever run from it.
    """

    content: str = ""
    calls: tuple[Any, ...] = ()
    finish_reason: str = ""
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class Server:
    """Where the model is, and how it is asked.

    Attributes:
        url: Up to ``/v1``.
        model: Its name there.
        key: For the server; empty for none.
        temperature: Negative: the server's own.
        max_tokens: Of an answer; 0: the server's own.
        time_limit: Seconds for one try.
        retries: After 429, 5xx or a broken connection. A try that took too long is not repeated:
            the server may still be at it.
        delay: Seconds before the first retry; doubled each time, or what the server asks for.
        stream: Ask for the answer in pieces.
        extra: More members of each request's body.
    """

    url: str
    model: str = ""
    key: str = ""
    temperature: float = 0.0
    max_tokens: int = 0
    time_limit: float = 60.0
    retries: int = 3
    delay: float = 0.5
    stream: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """Refuses an address that can't be one.

        Raises:
            EndpointError: It says what is expected.
        """
        try:
            parts = urllib.parse.urlsplit(self.url)
            good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            good = False
        if not good or parts.username or parts.query:
            raise EndpointError(
                f"{self.url!r} is no address of an OpenAI-compatible server, such as "
                "http://127.0.0.1:8080/v1; a key belongs into the environment."
            )


class Endpoint:
    """Asks one model.

    Args:
        server: Which, and how.

    Raises:
        EndpointError: The address is none, or the ``openai`` package is missing.
    """

    def __init__(self, server: Server) -> None:
        server.check()
        try:
            import httpx
            import openai
        except ImportError:
            raise EndpointError(
                "The openai package is missing: pip install 'lerobot_tool_bridge[policy]'"
            ) from None
        self._openai, self._httpx = openai, httpx
        self._server = server
        self._client = openai.AsyncOpenAI(
            base_url=server.url,
            api_key=server.key or _NO_KEY,
            max_retries=0,
            timeout=server.time_limit,
            # a proxy is for the world outside
            http_client=openai.DefaultAsyncHttpxClient(trust_env=not _is_here(server.url)),
        )
        gc.freeze()  # the package's objects stay; to look through them takes 0.1 s each time

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()

    async def ask(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]
    ) -> Reply:
        """The model's answer to a conversation.

        Args:
            messages: As OpenAI's API takes them.
            tools: What it may call; empty to ask for text only.

        Raises:
            EndpointError: There is none that can be used.
        """
        server, openai = self._server, self._openai
        body: dict[str, Any] = {"model": server.model or "default", "messages": messages}
        if tools:
            body["tools"] = tools
        if server.temperature >= 0:
            body["temperature"] = server.temperature
        if server.max_tokens:
            body["max_tokens"] = server.max_tokens
        if server.stream:
            body["stream"] = True
        body.update(server.extra)
        for left in range(server.retries, -1, -1):
            delay = server.delay * 2 ** (server.retries - left)
            try:
                return await within(server.time_limit, self._try(body))
            except (TimeoutError, openai.APITimeoutError, self._httpx.TimeoutException):
                raise EndpointError(
                    f"The model server at {server.url} did not answer within "
                    f"{server.time_limit:g} s."
                ) from None
            except openai.APIStatusError as error:
                status = error.status_code
                if not left or not (status == 429 or status >= 500):
                    raise EndpointError(
                        f"The model server at {server.url} answered with HTTP {status}: "
                        f"{_short(error.response.text)}"
                    ) from None
                delay = _wanted(error.response.headers.get("retry-after"), delay)
            except (openai.APIConnectionError, self._httpx.TransportError) as error:
                if not left:
                    why = error.__cause__ or error
                    raise EndpointError(
                        f"The model server at {server.url} can't be reached: {_short(str(why))}"
                    ) from None
            except openai.OpenAIError as error:
                raise self._nonsense(str(error)) from None
            await asyncio.sleep(min(delay, _LONGEST_DELAY))
        raise AssertionError("the last try returns or raises")

    async def _try(self, body: dict[str, Any]) -> Reply:
        # not through chat.completions.create: that looks at every value of every schema for what
        # it may have to rename, and takes 20 ms for a dozen tools
        response = await self._client.post(
            "/chat/completions", cast_to=self._httpx.Response, body=body
        )
        if "text/event-stream" in response.headers.get("content-type", ""):
            return merge(self._events(response.text))
        return self._reply(response.text)

    def _events(self, text: str) -> Iterator[dict[str, Any]]:
        for line in text.splitlines():
            data = line.removeprefix("data:").strip()
            if data != line.strip() and data != "[DONE]":  # else a comment, or an event's name
                yield self._object(data)

    def _reply(self, text: str) -> Reply:
        answer = self._object(text)
        choices = answer.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or not isinstance(message, dict):
            raise self._nonsense(text)
        calls = message.get("tool_calls") or ()
        if not calls and isinstance(message.get("function_call"), dict):
            calls = [message["function_call"]]  # as OpenAI had it first
        return Reply(
            _text(message.get("content")),
            tuple(calls) if isinstance(calls, list) else (calls,) if calls else (),
            _word(choice.get("finish_reason")),
            _text(message.get("reasoning_content") or message.get("reasoning")),
        )

    def _object(self, text: str) -> dict[str, Any]:
        try:
            answer = strict_json.read(text, _MAX_ANSWER)
        except Rejection:
            answer = None
        if not isinstance(answer, dict):
            raise self._nonsense(text)
        if answer.get("error"):
            raise EndpointError(
                f"The model server at {self._server.url} answered with an error: "
                f"{_short(json.dumps(answer['error'], ensure_ascii=False, default=str))}"
            )
        return answer

    def _nonsense(self, text: str) -> EndpointError:
        return EndpointError(
            f"The model server at {self._server.url} gave no chat completion: {_short(text)}"
        )


def merge(chunks: Iterable[Mapping[str, Any]]) -> Reply:
    """The answer whose pieces came one by one (``chat.completion.chunk``).

    Pieces of a call belong together by ``index``. Some servers give each call the index 0, and
    some none: an id or a name that the call has not yet begins another one.
    """
    texts: list[str] = []
    thoughts: list[str] = []
    calls: dict[Any, list[dict[str, Any]]] = {}
    order: list[dict[str, Any]] = []
    reason = ""
    for chunk in chunks:
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            continue  # the last one may hold nothing but the usage
        reason = _word(choice.get("finish_reason")) or reason
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            continue
        texts.append(_text(delta.get("content")))
        thoughts.append(_text(delta.get("reasoning_content") or delta.get("reasoning")))
        for piece in delta.get("tool_calls") or ():
            if isinstance(piece, dict):
                _merge_piece(piece, calls, order)
    return Reply("".join(texts), tuple(order), reason, "".join(thoughts))


def _merge_piece(
    piece: dict[str, Any], calls: dict[Any, list[dict[str, Any]]], order: list[dict[str, Any]]
) -> None:
    function = piece.get("function")
    function = function if isinstance(function, dict) else {}
    same = calls.setdefault(_hashable(piece.get("index")), [])
    call = same[-1] if same else None
    name, call_id = function.get("name") or "", piece.get("id") or ""
    if call is None or (call_id and call["id"] and call_id != call["id"]) or (
        name and call["function"]["name"] and not call_id and call["function"]["arguments"]
    ):  # fmt: skip
        call = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        same.append(call)
        order.append(call)
    own = call["function"]
    call["id"] = call["id"] or call_id
    own["name"] = own["name"] or name
    part = function.get("arguments")
    if isinstance(part, dict) and not own["arguments"]:
        own["arguments"] = part  # a server that gives whole calls
    elif isinstance(part, str) and isinstance(own["arguments"], str):
        own["arguments"] += part


def _hashable(index: Any) -> Any:
    return index if isinstance(index, int | str) else None


def _text(content: Any) -> str:
    """The text of a content, which may be a list of parts."""
    if isinstance(content, list):
        texts = [p.get("text") for p in content if isinstance(p, dict)]
        return "".join(t for t in texts if isinstance(t, str))
    return content if isinstance(content, str) else ""


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return f"{line[:200]}…" if len(line) > 200 else line or "(nothing)"


def _wanted(header: str | None, delay: float) -> float:
    """Seconds to wait: what the server asks for, where that is a number."""
    try:
        return max(0.0, float(header)) if header is not None else delay
    except ValueError:
        return delay


def _is_here(url: str) -> bool:
    host = urllib.parse.urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
