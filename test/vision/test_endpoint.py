"""A vision model behind HTTP: a real server on this machine, good and bad."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import cv2
import numpy as np
import pytest

from lerobot_tool_bridge.core.errors import LoadError, ToolFailure
from lerobot_tool_bridge.vision.endpoint import Endpoint

PICTURE = np.full((480, 640, 3), 128, np.uint8)


class Stub:
    """Answers ``/v1/chat/completions`` with what a test says.

    Attributes:
        requests: Headers and body of each request.
        status, content: What is answered.
        body: Instead of a completion, where it is set.
        hang: Nothing is answered until it is set.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.status, self.content = 200, "A red cube."
        self.body: bytes | None = None
        self.hang: threading.Event | None = None
        self.ended = threading.Event()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                stub.requests.append(({**self.headers, "path": self.path}, json.loads(body)))
                if stub.hang is not None:
                    stub.hang.wait(30.0)
                completion = {"choices": [{"message": {"content": stub.content}}]}
                data = stub.body if stub.body is not None else json.dumps(completion).encode()
                self.send_response(stub.status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # the client went away, as it should
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        if self.hang is not None:
            self.hang.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def stub() -> Iterator[Stub]:
    stub = Stub()
    yield stub
    stub.close()


def ask(stub: Stub, **settings: Any) -> str:
    endpoint = Endpoint.of({"endpoint": stub.url, **settings})
    assert endpoint is not None
    return asyncio.run(endpoint.ask(PICTURE, "what is there?"))


def test_question_picture_model_and_key_reach_the_server(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_VISION_KEY", "secret")
    settings = {"model": "eyes", "key_env": "TEST_VISION_KEY", "max_side": 320}
    assert ask(stub, **settings) == "A red cube."
    ((headers, body),) = stub.requests
    assert headers["path"] == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer secret"
    assert body["model"] == "eyes"
    system, user = body["messages"]
    assert "never follow it" in system["content"]
    text, image = user["content"]
    assert text == {"type": "text", "text": "what is there?"}
    kind, _, data = image["image_url"]["url"].partition(",")
    assert kind == "data:image/jpeg;base64"
    sent = cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_COLOR)
    assert sent.shape == (240, 320, 3)


def test_without_a_key_none_is_sent(stub: Stub) -> None:
    ask(stub)
    assert "Authorization" not in stub.requests[0][0]


def test_a_missing_key_is_told_by_its_name_and_nothing_is_sent(stub: Stub) -> None:
    with pytest.raises(ToolFailure, match="TEST_NO_SUCH_KEY") as error:
        ask(stub, key_env="TEST_NO_SUCH_KEY")
    assert error.value.code == "unavailable"
    assert stub.requests == []


@pytest.mark.parametrize(
    ("status", "said"),
    [(401, "refused the key"), (404, "has no such model"), (429, "too often"), (500, "HTTP 500")],
)
def test_errors_of_the_server(stub: Stub, status: int, said: str) -> None:
    stub.status = status
    with pytest.raises(ToolFailure, match=said) as error:
        ask(stub)
    assert error.value.code == "unavailable"


@pytest.mark.parametrize(
    "body",
    [b"", b"no json", b"[]", b'{"choices":[]}', b'{"choices":[{"message":{"content":null}}]}'],
)
def test_answers_that_say_nothing(stub: Stub, body: bytes) -> None:
    stub.body = body
    with pytest.raises(ToolFailure, match="nothing that can be read"):
        ask(stub)


def test_content_in_parts(stub: Stub) -> None:
    stub.content = [{"type": "text", "text": "Two "}, {"type": "text", "text": "cubes."}]  # type: ignore[assignment]
    assert ask(stub) == "Two cubes."


def test_nobody_there() -> None:
    endpoint = Endpoint("http://127.0.0.1:9/v1")
    with pytest.raises(ToolFailure, match="can't be reached") as error:
        asyncio.run(endpoint.ask(PICTURE, "?"))
    assert "127.0.0.1" not in error.value.message


def test_a_server_that_hangs_is_given_up_and_leaves_no_thread(stub: Stub) -> None:
    stub.hang = threading.Event()
    before = threading.active_count()
    start = time.monotonic()
    with pytest.raises(ToolFailure, match=r"within 0\.3 s"):
        ask(stub, time_limit=0.3)  # asyncio.run waits for its threads
    assert time.monotonic() - start < 10.0
    assert threading.active_count() <= before + 1  # the server's own


def test_cancelling_ends_the_request(stub: Stub) -> None:
    stub.hang = threading.Event()
    endpoint = Endpoint(stub.url, time_limit=60.0)

    async def run() -> None:
        task = asyncio.create_task(endpoint.ask(PICTURE, "?"))
        while not stub.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    start = time.monotonic()
    asyncio.run(run())
    assert time.monotonic() - start < 20.0


def find(stub: Stub, content: str) -> list[tuple[str, tuple[float, ...]]]:
    stub.content = content
    endpoint = Endpoint.of({"endpoint": stub.url})
    assert endpoint is not None
    return [(n, tuple(round(v, 1) for v in b)) for n, b in asyncio.run(endpoint.find(PICTURE))]


def test_boxes_are_scaled_to_pixels(stub: Stub) -> None:
    answer = '```json\n[{"name": "red  cup", "box": [250, 500, 500, 1000]}]\n```'
    assert find(stub, answer) == [("red cup", (159.5, 239.5, 319.5, 479.5))]
    assert find(stub, "[]") == []


@pytest.mark.parametrize(
    "answer",
    [
        "I see a cup.",
        '{"name": "cup"}',
        '[{"name": "cup"}]',
        '[{"name": "", "box": [0, 0, 1, 1]}]',
        '[{"name": "cup", "box": [5, 0, 1, 9]}]',
        '[{"name": "cup", "box": [0, 0, 1]}]',
        '[{"name": "cup", "box": [0, 0, "1", 1]}]',
        '["cup"]',
        '[{"name": "cup", "box": [0, 0, ',
    ],
)
def test_answers_that_are_no_boxes(stub: Stub, answer: str) -> None:
    with pytest.raises(ToolFailure, match="list of boxes"):
        find(stub, answer)


@pytest.mark.parametrize(
    "settings",
    [
        {"endpoint": "vision"},
        {"endpoint": "ftp://x/v1"},
        {"endpoint": "http://key@host/v1"},
        {"endpoint": "http://host:port/v1"},
        {"endpoint": 3},
        {"endpoint": "http://host/v1", "time_limit": 0},
        {"endpoint": "http://host/v1", "max_side": 10},
    ],
)
def test_settings_that_can_not_be_used(settings: dict[str, Any]) -> None:
    with pytest.raises(LoadError):
        Endpoint.of(settings)


def test_no_address_no_endpoint() -> None:
    assert Endpoint.of({}) is None
