"""The camera's picture, drawn by MuJoCo."""

from __future__ import annotations

from typing import Any

import cv2

from lerobot_tool_bridge.sim.gl import load_mujoco
from lerobot_tool_bridge.sim.model import CAMERA
from lerobot_tool_bridge.sim.physics import Physics

_QUALITY = 92


class VirtualCamera:
    """Draws what the camera sees.

    OpenGL belongs to one thread: ``jpeg`` and ``close`` are to be called in the same one; the
    renderer is made by the first picture.
    """

    def __init__(self, physics: Physics, width: int, height: int) -> None:
        self._mujoco = load_mujoco()
        self._physics = physics
        self._size = (height, width)
        self._data = self._mujoco.MjData(physics.model)
        self._renderer: Any = None
        self._options = self._mujoco.MjvOption()

    def image(self) -> Any:
        """The picture of now, ``(height, width, 3)`` RGB."""
        if self._renderer is None:
            self._renderer = self._mujoco.Renderer(self._physics.model, *self._size)
        self._physics.copy_state(self._data)
        self._renderer.update_scene(self._data, CAMERA, self._options)
        return self._renderer.render()

    def jpeg(self) -> bytes:
        """The picture of now."""
        bgr = cv2.cvtColor(self.image(), cv2.COLOR_RGB2BGR)
        return bytes(cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])[1])

    def close(self) -> None:
        """Frees the renderer. Safe to call twice."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
