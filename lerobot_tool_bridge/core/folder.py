"""Tools from a folder of plain Python files, as a site keeps them.

The files run with the rights of the process: the folder is as trusted as the program itself.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import inspect
import logging
import sys
import types
from pathlib import Path
from typing import Any

from lerobot_tool_bridge.core.adapt import MARK, is_lerobot, is_twinkle
from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.core.tool import Tool

PACKAGE = "lerobot_tool_bridge_site"
"""The files are modules of this package, so that one can import from another with a dot."""

_log = logging.getLogger(__name__)


def load_folder(path: str | Path) -> tuple[list[tuple[str, Any]], list[LoadError]]:
    """Imports every ``*.py`` file of a folder, but those that begin with ``_``.

    The tools of a file are those in its list ``TOOLS`` (or ``tools``); without one, all that it
    defines in one of the forms of ``adapt``, but for functions that are not registered.

    Returns:
        The tools, each with the file's name; and what could not be loaded.

    Raises:
        LoadError: ``bad_file``: there is no such folder.
    """
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise LoadError("bad_file", f"The folder of tools {folder} does not exist.")
    for name in [n for n in sys.modules if n == PACKAGE or n.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
    package = types.ModuleType(PACKAGE)
    package.__path__ = [str(folder)]
    sys.modules[PACKAGE] = package
    found: list[tuple[str, Any]] = []
    problems: list[LoadError] = []
    for file in sorted(folder.glob("*.py")):
        if file.name.startswith("_"):
            continue
        try:
            tools = _tools(_run(file))
        except (Exception, SystemExit) as error:
            _log.debug("%s", file, exc_info=True)
            text = f"{file.name} is skipped: {_where(error, file)}"
            problems.append(LoadError("bad_tool", text))
            continue
        if not tools:
            text = f"{file.name} has no tool in it: see docs/programming.md for what counts as one"
            problems.append(LoadError("bad_tool", text))
        found += [(file.name, tool) for tool in tools]
    return found, problems


def _run(file: Path) -> types.ModuleType:
    name = f"{PACKAGE}.{file.stem}"
    if name in sys.modules:  # another file has imported it
        return sys.modules[name]
    loader = importlib.machinery.SourceFileLoader(name, str(file))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _tools(module: types.ModuleType) -> list[Any]:
    listed = getattr(module, "TOOLS", getattr(module, "tools", None))
    if isinstance(listed, list | tuple):
        return list(listed)
    things = {id(t): t for t in vars(module).values()}  # each once, whatever its names
    return [t for t in things.values() if _is_tool(t, module)]


def _is_tool(thing: Any, module: types.ModuleType) -> bool:
    if hasattr(thing, MARK):
        return getattr(thing, "__module__", None) == module.__name__
    if not isinstance(thing, type) or thing.__module__ != module.__name__:
        return False
    if inspect.isabstract(thing):
        return False
    return issubclass(thing, Tool) or is_lerobot(thing) or is_twinkle(thing)


def _where(error: BaseException, file: Path) -> str:
    """The error with the line of the file at which it came about."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    at = f"line {line}: " if line else ""
    return f"{at}{type(error).__name__}: {error}"
