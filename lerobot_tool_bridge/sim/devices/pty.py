"""A pseudo-terminal served by a thread: what every emulated serial device stands on."""

from __future__ import annotations

import os
import select
import threading
import tty
from collections.abc import Callable

_LOOK = 0.005


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
        self._server, client = os.openpty()
        tty.setraw(client)
        self.path = os.ttyname(client)
        os.close(client)  # drivers look for other processes that have their port open
        os.set_blocking(self._server, False)
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Pulls the plug: clients that have the port open get an error. Safe to call twice."""
        if self._server < 0:
            return
        os.write(self._wake_write, b"x")
        self._thread.join()
        for fd in (self._server, self._wake_read, self._wake_write):
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
            except OSError:  # no client has it open, and nothing tells when one will
                select.select([self._wake_read], [], [], _LOOK)
                continue
            answer = self._receive(data)
            while answer:
                try:
                    answer = answer[os.write(self._server, answer) :]
                except BlockingIOError:
                    break  # nobody reads: lost, as on a wire
