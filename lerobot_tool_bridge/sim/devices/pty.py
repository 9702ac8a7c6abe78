"""A pseudo-terminal served by a thread: what every emulated serial device stands on."""

from __future__ import annotations

import os
import select
import threading
import tty
from collections.abc import Callable


class PtyDevice:
    """A serial port whose other end is a function.

    Args:
        receive: Gets the bytes that the client wrote, as they arrive and cut anywhere; what it
            returns is sent back. Called in one thread only.
        name: For the thread.

    Attributes:
        path: The terminal that a client opens (``/dev/pts/7``).
    """

    def __init__(self, receive: Callable[[bytes], bytes], name: str = "pty") -> None:
        self._receive = receive
        # The client's end stays open here too: else the last client's close would be an error at
        # this end, and settings (raw mode) would be lost between clients.
        self._server, self._client = os.openpty()
        tty.setraw(self._client)
        os.set_blocking(self._server, False)
        self.path = os.ttyname(self._client)
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Pulls the plug: clients that have the port open get an error. Safe to call twice."""
        if self._server < 0:
            return
        os.write(self._wake_write, b"x")
        self._thread.join()
        for fd in (self._server, self._client, self._wake_read, self._wake_write):
            os.close(fd)
        self._server = -1

    def _serve(self) -> None:
        while True:
            ready, _, _ = select.select([self._server, self._wake_read], [], [])
            if self._wake_read in ready:
                return
            try:
                data = os.read(self._server, 4096)
            except BlockingIOError:
                continue
            answer = self._receive(data)
            while answer:
                try:
                    answer = answer[os.write(self._server, answer) :]
                except BlockingIOError:
                    break  # nobody reads: lost, as on a wire
