"""An emulated network camera: MJPEG over HTTP, as ``multipart/x-mixed-replace``."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATH = "/stream"

_BOUNDARY = "frame"
_SEND_BUFFER = 256 * 1024  # less slows the loopback down, more keeps old frames for slow readers
_log = logging.getLogger(__name__)


class MjpegServer:
    """Serves what ``grab`` returns to every client, on 127.0.0.1.

    ``grab`` is called only while somebody watches, once per frame however many they are, and
    always in the same thread (an OpenGL context can be made in its first call). A client that
    reads slowly misses frames; it never gets old ones.

    Args:
        port: TCP port; 0 picks a free one.
        grab: Returns the picture of now as JPEG. An exception skips the frame and is logged.
        fps: Frames a second, at most.
        finish: Called once when the server is closed, in the thread of ``grab``.

    Attributes:
        port: The port in use.
        url: What OpenCV opens.
    """

    def __init__(
        self,
        port: int,
        grab: Callable[[], bytes],
        fps: float = 15.0,
        finish: Callable[[], None] | None = None,
    ) -> None:
        self._grab = grab
        self._period = 1.0 / fps
        self._finish = finish
        self._changed = threading.Condition()
        self._frame = b""
        self._number = 0
        self._clients: set[socket.socket] = set()
        self._closed = False
        self._http = _Server(("127.0.0.1", port), self)
        self.port: int = self._http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}{PATH}"
        self._threads = [
            threading.Thread(target=self._produce, name="mjpeg-grab", daemon=True),
            threading.Thread(target=self._http.serve_forever, name="mjpeg-http", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def clients(self) -> int:
        """How many are watching."""
        return len(self._clients)

    def close(self) -> None:
        """Drops the clients and frees the port. Safe to call twice."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            for client in self._clients:
                with contextlib.suppress(OSError):  # gone already
                    client.shutdown(socket.SHUT_RDWR)
            self._changed.notify_all()
        self._http.shutdown()
        for thread in self._threads:
            thread.join()
        self._http.server_close()

    def _produce(self) -> None:
        due = time.monotonic()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._clients or self._closed)
                if self._closed:
                    break
                due = max(due + self._period, time.monotonic())
                self._changed.wait_for(lambda: self._closed, due - time.monotonic())
                if self._closed:
                    break
            try:
                frame = self._grab()
            except Exception:
                _log.exception("the picture could not be taken")
                continue
            with self._changed:
                self._frame = frame
                self._number += 1
                self._changed.notify_all()
        if self._finish is not None:
            self._finish()

    def serve(self, client: socket.socket) -> None:
        """Sends frames to one client until it leaves or the server is closed."""
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._changed:
            if self._closed:
                return
            self._clients.add(client)
            sent = self._number
            self._changed.notify_all()
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._number != sent or self._closed)  # noqa: B023
                    if self._closed:
                        return
                    sent, frame = self._number, self._frame
                head = (
                    f"--{_BOUNDARY}\r\nContent-Type: image/jpeg\r\n"
                    f"Content-Length: {len(frame)}\r\n\r\n"
                )
                client.sendall(head.encode() + frame + b"\r\n")
        except OSError:
            pass  # it left
        finally:
            with self._changed:
                self._clients.discard(client)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], stream: MjpegServer) -> None:
        self.stream = stream
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        if self.path.split("?")[0] != PATH:
            self.send_error(404, f"The stream is at {PATH}")
            return
        self.send_response(200)
        self.send_header("Content-Type", f"multipart/x-mixed-replace; boundary={_BOUNDARY}")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.flush()
        self.server.stream.serve(self.connection)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: the driver tells what happens to its camera."""
