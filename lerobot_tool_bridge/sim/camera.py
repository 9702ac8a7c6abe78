"""The camera's picture, drawn by MuJoCo."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cv2

from lerobot_tool_bridge.sim.gl import load_mujoco
from lerobot_tool_bridge.sim.model import CAMERA
from lerobot_tool_bridge.sim.physics import Physics

_QUALITY = 92


class VirtualCamera:
    """Draws what the camera sees.

    OpenGL belongs to one thread, which lives in here. The renderer is made at once: that holds
    Python up for a quarter of a second, too long for a servo bus that is in use.

    Args:
        physics: What is seen.
        width, height: Of the picture, pixels.
    """

    def __init__(self, physics: Physics, width: int, height: int) -> None:
        self._mujoco = load_mujoco()
        self._physics = physics
        self._data = self._mujoco.MjData(physics.model)
        self._renderer: Any = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="camera")
        self._thread.submit(self._open, width, height).result()

    def image(self) -> Any:
        """The picture of now, ``(height, width, 3)`` RGB."""
        return self._thread.submit(self._draw).result()

    def jpeg(self) -> bytes:
        """The picture of now."""
        bgr = cv2.cvtColor(self.image(), cv2.COLOR_RGB2BGR)
        return bytes(cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])[1])

    def close(self) -> None:
        """Frees the renderer; no picture after that. Safe to call twice."""
        if self._renderer is not None:
            self._thread.submit(self._renderer.close).result()
            self._renderer = None
            self._thread.shutdown()

    def _open(self, width: int, height: int) -> None:
        self._renderer = self._mujoco.Renderer(self._physics.model, height, width)
        self._draw()

    def _draw(self) -> Any:
        self._physics.show(self._data)
        self._renderer.update_scene(self._data, CAMERA)
        return self._renderer.render()
