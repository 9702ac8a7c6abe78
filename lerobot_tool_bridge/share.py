"""Where the package's launch, config and example files are."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = "lerobot_tool_bridge"


def path(*parts: str) -> Path:
    """A path below the package's share folder.

    In a source tree that is the folder above the Python package; else what the ament index says.
    """
    source = Path(__file__).resolve().parent.parent
    if (source / "package.xml").is_file() and (source / "config").is_dir():
        return source.joinpath(*parts)
    from ament_index_python.packages import get_package_share_directory

    return Path(get_package_share_directory(PACKAGE)).joinpath(*parts)


def quick_discovery() -> None:
    """Lets this process and its children find others at once, unless the user chose otherwise.

    Counts for what is made after it; see ``config/fastdds.xml``.
    """
    os.environ.setdefault("FASTDDS_DEFAULT_PROFILES_FILE", str(path("config", "fastdds.xml")))
