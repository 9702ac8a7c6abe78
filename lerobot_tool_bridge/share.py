"""Where the package's launch, config and example files are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from lerobot_tool_bridge.core.errors import LoadError

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


def config(kind: str, name_or_path: str) -> tuple[Path, Any]:
    """Reads a YAML file of this package, or the user's own.

    Args:
        kind: ``robot`` or ``scene``.
        name_or_path: ``so101`` for ``config/robots/so101.yaml``, or a path that ends in ``.yaml``.

    Returns:
        The file and what is in it.

    Raises:
        LoadError: ``bad_file``; the text names the file and what is expected.
    """
    file = Path(name_or_path).expanduser()
    if file.suffix not in (".yaml", ".yml"):
        file = path("config", f"{kind}s", f"{name_or_path}.yaml")
    try:
        return file, yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = sorted(p.stem for p in path("config", f"{kind}s").glob("*.yaml"))
        raise LoadError(
            "bad_file",
            f"There is no {kind} file {file}. Known {kind}s: {', '.join(known)}; or give the "
            "path of a .yaml file.",
        ) from None
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise LoadError("bad_file", f"{file} can't be read: {error}") from None


def quick_discovery() -> None:
    """Lets this process and its children find others at once, unless the user chose otherwise.

    Counts for what is made after it; see ``config/fastdds.xml``.
    """
    os.environ.setdefault("FASTDDS_DEFAULT_PROFILES_FILE", str(path("config", "fastdds.xml")))
