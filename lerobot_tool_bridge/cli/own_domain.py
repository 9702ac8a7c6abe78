"""A ROS domain that nobody else on this machine has."""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lerobot_tool_bridge.core.errors import LoadError

# Above the ports that Linux hands out by itself, where hardly anybody puts a robot.
_DOMAINS = range(215, 233)


@contextmanager
def own_domain() -> Iterator[int]:
    """Takes a domain until the end of the ``with`` block.

    Robots that run beside have nodes of the same names: the domain of the environment, which may
    be theirs, is never taken.

    Raises:
        LoadError: ``bad_option``: all are in use.
    """
    folder = Path(tempfile.gettempdir()) / f"lerobot_tool_bridge-domains-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for domain in _DOMAINS:
        with (folder / str(domain)).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            if _unused(domain):
                yield domain
                return
    raise LoadError("bad_option", "All ROS domains for virtual robots are in use.")


def _unused(domain: int) -> bool:
    """Whether the port of the domain's first participant is free."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("", 7400 + 250 * domain + 10))
        except OSError:
            return False
    return True
