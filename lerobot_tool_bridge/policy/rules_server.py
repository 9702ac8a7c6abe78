"""The policy of rules behind OpenAI's API, on this machine: for trying everything without a model.

``python -m lerobot_tool_bridge.policy.rules_server --port 8090`` serves it by itself;
``language_policy`` starts one where it is given no other server. So the client's code that runs
with it is the one that runs with every server.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lerobot_tool_bridge.core import strict_json
from lerobot_tool_bridge.core.errors import Rejection
from lerobot_tool_bridge.policy import rules
from lerobot_tool_bridge.policy.conversation import for_openai

MODEL = "rules"
_MAX_BODY = 16 * 1024 * 1024
_PIECE = 12  # characters of a streamed piece
_numbers = itertools.count(1)


class RulesServer:
    """Serves from a thread of its own.

    Args:
        port: 0 for one that is free.
    """

    def __init__(self, port: int = 0) -> None:
        self._http = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(0.1,), name="rules server"
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """For the client."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def close(self) -> None:
        """Ends it."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5.0)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet: two would wait 40 ms for each other

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        if self.path.rstrip("/") == "/v1/models":
            self._send(200, {"object": "list", "data": [{"id": MODEL, "object": "model"}]})
        else:
            self._refuse(404, "not here; there are /v1/models and /v1/chat/completions")

    def do_POST(self) -> None:
        size = self.headers.get("Content-Length", "")
        if not size.isdigit() or int(size) > _MAX_BODY:
            self.close_connection = True
            self._refuse(413, "a body of a known length, up to 16 MB, is expected")
            return
        body = self.rfile.read(int(size))
        if self.path.rstrip("/") != "/v1/chat/completions":
            self._refuse(404, "not here; there are /v1/models and /v1/chat/completions")
            return
        try:
            request = strict_json.read(body, _MAX_BODY)
        except Rejection as error:
            self._refuse(400, error.message)
            return
        trouble = _trouble(request)
        if trouble:
            self._refuse(400, trouble)
            return
        message = for_openai(rules.reply(request["messages"], request.get("tools") or []))
        if request.get("stream"):
            self._stream(message)
        else:
            choice = {"index": 0, "message": message, "finish_reason": _reason(message)}
            self._send(200, {**_head("chat.completion"), "choices": [choice]})

    def _refuse(self, status: int, why: str) -> None:
        self._send(status, {"error": {"message": why, "type": "invalid_request_error"}})

    def _send(self, status: int, answer: Any) -> None:
        body = json.dumps(answer, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, message: Mapping[str, Any]) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        head = _head("chat.completion.chunk")
        for delta, reason in _deltas(message):
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            data = json.dumps({**head, "choices": [choice]}, ensure_ascii=False)
            self.wfile.write(f"data: {data}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")


def _trouble(request: Any) -> str:
    """What is wrong with a request; as strict as the strictest server is."""
    if not isinstance(request, dict) or not isinstance(request.get("messages"), list):
        return "messages should be a list"
    if not isinstance(request.get("tools", []), list):
        return "tools should be a list"
    asked: set[str] = set()
    for message in request["messages"]:
        if not isinstance(message, dict) or "role" not in message:
            return "a message should be an object with a role"
        for call in message.get("tool_calls") or ():
            if not isinstance(call["function"]["arguments"], str):
                return "arguments should be a string"
            asked.add(call["id"])
        if message["role"] == "tool" and message.get("tool_call_id") not in asked:
            return f"tool_call_id {message.get('tool_call_id')!r} answers no call"
    return ""


def _head(kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{next(_numbers)}",
        "object": kind,
        "created": int(time.time()),
        "model": MODEL,
    }


def _reason(message: Mapping[str, Any]) -> str:
    return "tool_calls" if message.get("tool_calls") else "stop"


def _deltas(message: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str | None]]:
    """A message in pieces, as OpenAI's API sends them."""
    yield {"role": "assistant", "content": ""}, None
    for piece in _pieces(message["content"]):
        yield {"content": piece}, None
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = {"name": call["function"]["name"], "arguments": ""}
        begin = {"index": index, "id": call["id"], "type": "function", "function": function}
        yield {"tool_calls": [begin]}, None
        for piece in _pieces(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}, None
    yield {}, _reason(message)


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]


def main(argv: list[str] | None = None) -> int:
    """Serves until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m lerobot_tool_bridge.policy.rules_server", description=__doc__
    )
    parser.add_argument("--port", type=int, default=8090, help="TCP port on 127.0.0.1 (8090)")
    server = RulesServer(parser.parse_args(argv).port)
    print(f"Serving the model {MODEL} at {server.url}; Ctrl-C ends it.", flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        pass
    finally:
        server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
