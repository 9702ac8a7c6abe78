"""The audit log: one JSON line for every step of every call, appended, never in the way."""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_log = logging.getLogger(__name__)
_MAX_WAITING = 20_000
_PAUSE = 0.02
"""Seconds for which records gather: waking the thread for each one would slow the calls down."""


class AuditLog:
    """Writes records to a file in a thread of its own, flushed every 20 ms.

    A disk that stands still or is full never holds a call up: what can't be kept is counted, and
    the count is written as soon as writing works again.

    Args:
        path: Appended to; its folder is made.

    Raises:
        OSError: The file can't be opened.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("a", encoding="utf-8")
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._lost = 0
        self._thread = threading.Thread(target=self._work, name="audit", daemon=True)
        self._thread.start()

    def write(self, record: Mapping[str, Any]) -> None:
        """Takes a record and returns at once."""
        if self._queue.qsize() < _MAX_WAITING:
            self._queue.put(json.dumps(record, default=str))
        else:
            self._lost += 1

    def close(self, timeout: float = 2.0) -> None:
        """Writes what is waiting, and ends."""
        self._queue.put(None)
        self._thread.join(timeout)

    def _work(self) -> None:
        failing = False
        going = True
        while going:
            items = [self._queue.get()]
            if items[0] is not None:
                time.sleep(_PAUSE)
            while not self._queue.empty():
                items.append(self._queue.get())
            going = None not in items
            lines = [i for i in items if i is not None]
            lost, self._lost = self._lost, 0
            if lost:
                lines.append(json.dumps({"event": "lost", "count": lost}))
            try:
                self._file.write("".join(f"{line}\n" for line in lines))
                self._file.flush()
                failing = False
            except OSError as error:
                self._lost += len(lines) - bool(lost) + lost
                if not failing:
                    _log.error("The audit log %s can't be written: %s", self.path, error)
                failing = True
        with contextlib.suppress(OSError):
            self._file.close()
