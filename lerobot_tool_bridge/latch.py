"""An event that a signal handler may set."""

from __future__ import annotations

import contextlib
import queue
import time

_LOOK = 0.2


class Latch:
    """Set once, for ever; for one waiting thread.

    ``threading.Event.set`` takes a lock that the interrupted code may hold already: a second
    signal right behind the first, or one that arrives inside ``wait``, would wait for itself for
    ever. ``SimpleQueue.put`` may be interrupted by itself.

    A signal that arrives when Python has just looked for signals, and not yet gone to sleep, wakes
    nobody; so ``wait`` looks again a few times a second.
    """

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._set = False

    def set(self) -> None:
        """Sets it; in any thread, and in a signal handler."""
        self._set = True
        self._queue.put(None)

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is set, at most ``timeout`` seconds; returns whether it is."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self._set:
            left = _LOOK if end is None else min(_LOOK, end - time.monotonic())
            if left < 0:
                return False
            with contextlib.suppress(queue.Empty):
                self._queue.get(timeout=left)
        return True
