"""An event that a signal handler may set."""

from __future__ import annotations

import queue


class Latch:
    """Set once, for ever; for one waiting thread.

    ``threading.Event.set`` takes a lock that the interrupted code may hold already: a second
    signal right behind the first, or one that arrives inside ``wait``, would wait for itself for
    ever. ``SimpleQueue.put`` may be interrupted by itself.
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
        if not self._set:
            try:
                self._queue.get(timeout=timeout)
            except queue.Empty:
                return self._set
        return True
