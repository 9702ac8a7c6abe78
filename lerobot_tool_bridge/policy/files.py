"""Files that a policy leaves."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from lerobot_tool_bridge.node.managed import NodeError


def open_new(path: Path) -> IO[str]:
    """Makes a file that was not there; where the name is taken, one with a number."""
    for name in (path.name, *(f"{path.stem}-{n}{path.suffix}" for n in range(2, 10000))):
        try:
            return path.with_name(name).open("x", encoding="utf-8")
        except FileExistsError:
            continue
        except OSError as error:
            raise NodeError(f"Can't write {path}: {error.strerror}.") from None
    raise NodeError(f"Can't write {path}: there are 10,000 of them.")
