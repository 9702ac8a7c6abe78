"""MuJoCo with a way to draw without a display; nothing else may import ``mujoco`` first."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from typing import Any

from lerobot_tool_bridge.core.errors import LoadError

_INSTALL = (
    "MuJoCo can't draw the camera's picture here: {why}. Install Mesa's software renderer: "
    "sudo apt install libegl1 libgl1-mesa-dri (or libosmesa6 and MUJOCO_GL=osmesa)."
)
_BACKENDS = (("egl", ("EGL", "libEGL.so.1")), ("osmesa", ("OSMesa", "libOSMesa.so.8")))


def load_mujoco() -> Any:
    """Imports MuJoCo, with ``MUJOCO_GL`` chosen where it is not set.

    Raises:
        LoadError: ``no_mujoco`` or ``no_gl``; the text says what to install.
    """
    if "MUJOCO_GL" not in os.environ:
        backend = next((b for b, library in _BACKENDS if _installed(*library)), "")
        if not backend:
            raise LoadError("no_gl", _INSTALL.format(why="there is no EGL and no OSMesa library"))
        os.environ["MUJOCO_GL"] = backend
    try:
        import mujoco
    except ModuleNotFoundError as error:
        if error.name != "mujoco":
            raise
        raise LoadError(
            "no_mujoco", "The virtual robot needs MuJoCo: pip install 'mujoco>=3.3.3,<4'."
        ) from None
    except Exception as error:  # whatever PyOpenGL and the driver think of
        raise LoadError("no_gl", _INSTALL.format(why=_why(error))) from error
    return mujoco


def check_drawing() -> None:
    """Makes a drawing surface and frees it.

    Raises:
        LoadError: As ``load_mujoco``; also where the library is there and its driver is not.
    """
    mujoco = load_mujoco()
    try:
        context = mujoco.GLContext(64, 64)
        context.make_current()
        context.free()
    except Exception as error:
        raise LoadError("no_gl", _INSTALL.format(why=_why(error))) from error


def _installed(name: str, file: str) -> bool:
    if ctypes.util.find_library(name):
        return True
    try:  # there is no ldconfig on every machine
        ctypes.CDLL(file)
    except OSError:
        return False
    return True


def _why(error: Exception) -> str:
    return f"{type(error).__name__} with MUJOCO_GL={os.environ.get('MUJOCO_GL')}"
