"""A chat server for tests that misbehaves as it is told, and keeps every request."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[dict[str, Any]], Any]


def completion(
    content: Any = "", calls: list[Any] | None = None, reason: Any = None, **more: Any
) -> dict[str, Any]:
    """A chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": content, **more}
    if calls is not None:
        message["tool_calls"] = calls
    reason = reason if reason is not None else "tool_calls" if calls else "stop"
    return {"choices": [{"index": 0, "message": message, "finish_reason": reason}]}


def call(name: str, arguments: Any, call_id: Any = "call_1") -> dict[str, Any]:
    """One call as servers write it; a mapping becomes a JSON text."""
    text = json.dumps(arguments) if isinstance(arguments, dict) else arguments
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def status(number: int, body: Any = "busy", **headers: str) -> tuple[int, Any, dict[str, str]]:
    """An HTTP answer."""
    return number, body, headers


class Stub:
    """Gives one answer after the other; the last one again and again.

    An answer is a completion, a text that is sent as it is, a ``status``, ``Stub.CUT`` (the
    connection ends in the middle), a number (seconds that it hangs), a list (events that are
    streamed), or a function of the request that gives one of them.
    """

    CUT = object()

    def __init__(self, *answers: Any) -> None:
        self.served = 0.0  # seconds
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._answers = list(answers)
        self.released = threading.Event()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # headers and body in one packet

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def do_POST(self) -> None:
                begin = time.perf_counter()
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                stub.requests.append(body)
                stub.headers.append(dict(self.headers))
                answer = stub._answers.pop(0) if len(stub._answers) > 1 else stub._answers[0]
                if callable(answer):
                    answer = answer(body)
                if isinstance(answer, int | float):
                    stub.released.wait(answer)
                    answer = completion("too late")
                self.reply(answer)
                stub.served += time.perf_counter() - begin

            def reply(self, answer: Any) -> None:
                number, headers, kind = 200, {}, "application/json"
                if answer is Stub.CUT:
                    self.send_response(200)
                    self.send_header("Content-Length", "1000")
                    self.end_headers()
                    self.wfile.write(b'{"choices": [')
                    self.wfile.flush()
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                if isinstance(answer, tuple):
                    number, answer, headers = answer
                if isinstance(answer, list):
                    kind = "text/event-stream"
                    answer = "".join(
                        f"data: {e if isinstance(e, str) else json.dumps(e)}\n\n" for e in answer
                    )
                data = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
                self.send_response(number)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(data)

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._http.handle_error = lambda *a: None  # type: ignore[method-assign]
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def close(self) -> None:
        self.released.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5.0)


def chunks(*deltas: dict[str, Any], reason: str | None = "tool_calls") -> list[Any]:
    """The events of a streamed answer."""
    made: list[Any] = [
        {"choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas
    ]
    if reason is not None:
        made.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    return [*made, {"choices": [], "usage": {}}, "[DONE]"]


def piece(index: Any, name: str = "", arguments: str = "", call_id: str = "") -> dict[str, Any]:
    """A delta with a piece of a call."""
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v}
    made = {"index": index, "function": function, **({"id": call_id} if call_id else {})}
    return {"tool_calls": [made]}
