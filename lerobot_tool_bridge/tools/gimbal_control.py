"""``gimbal_control``: turns the camera head."""

from __future__ import annotations

import math
from typing import Any

from lerobot_tool_bridge.core.errors import ToolFailure
from lerobot_tool_bridge.core.tool import CallContext, Tool
from lerobot_tool_bridge.ports import GimbalPort
from lerobot_tool_bridge.robot import Gimbal

_PEAK = 1.5
"""A driver that interpolates smoothly moves at up to 1.5 times its mean speed."""
_SHORTEST = 0.2


class GimbalControl(Tool):
    """Turns the head to two angles and tells where it is then.

    Settings:
        tolerance_deg: How far from its target a head that measures may end (5).
    """

    name = "gimbal_control"
    needs = ("gimbal",)
    resources = frozenset({"gimbal"})
    motion = True
    timeout = 30.0

    @property
    def description(self) -> str:
        pan, tilt = self._gimbal.ahead_deg
        return (
            "Turn the pan/tilt head that carries the camera, to absolute angles in degrees. "
            f"pan {pan:g} looks straight ahead, a larger pan looks further to the left, a smaller "
            f"one further to the right. tilt {tilt:g} looks level, a larger tilt looks further "
            f"up, a smaller one further down.{self._views()} Moves the camera only, not the arm. "
            "Answers with where the head is afterwards."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        gimbal = self._gimbal
        return {
            "type": "object",
            "properties": {
                "pan": _angle("left and right", gimbal.pan_deg, gimbal.ahead_deg[0], "ahead"),
                "tilt": _angle("up and down", gimbal.tilt_deg, gimbal.ahead_deg[1], "level"),
            },
            "required": ["pan", "tilt"],
            "additionalProperties": False,
        }

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        port = self.ports.gimbal
        if port is None:
            raise ToolFailure("unavailable", "This robot has no pan/tilt head.")
        wanted = (float(arguments["pan"]), float(arguments["tilt"]))
        pan, tilt = await self._turn(port, wanted)
        if not port.measures:
            return (
                f"commanded pan {pan:.1f}°, tilt {tilt:.1f}°; "
                "this head does not measure where it is"
            )
        return f"pan {pan:.1f}°, tilt {tilt:.1f}° (measured)"

    async def _turn(self, port: GimbalPort, wanted: tuple[float, float]) -> tuple[float, float]:
        """Turns the head, and returns where it is then; degrees.

        Raises:
            ToolFailure: It measured that it did not get there.
        """
        target = (math.radians(wanted[0]), math.radians(wanted[1]))
        way = await self._way(port, target)
        duration = max(_SHORTEST, _PEAK * way / self._gimbal.max_speed)
        reached = await port.move(*target, duration)
        pan, tilt = (math.degrees(v) for v in reached)
        if not port.measures:
            return pan, tilt
        tolerance = float(self.settings.get("tolerance_deg", 5.0))
        if abs(pan - wanted[0]) > tolerance or abs(tilt - wanted[1]) > tolerance:
            raise ToolFailure(
                "tool_error",
                f"The head stopped at pan {pan:.1f}°, tilt {tilt:.1f}° instead of pan "
                f"{wanted[0]:.1f}°, tilt {wanted[1]:.1f}°. Something may be in its way; try "
                "another direction, or tell the operator.",
            )
        return pan, tilt

    async def _way(self, port: GimbalPort, target: tuple[float, float]) -> float:
        """How far the joint with the longer way has to go, radians."""
        try:
            start = await port.positions()
        except ToolFailure:
            if port.measures:
                raise
            # nobody knows where it is before its first command: allow for the whole range
            limits = (self._gimbal.pan_deg, self._gimbal.tilt_deg)
            return max(math.radians(high - low) for low, high in limits)
        return max(abs(b - a) for a, b in zip(start, target, strict=True))

    @property
    def _gimbal(self) -> Gimbal:
        robot = self.ports.robot
        if robot is not None and robot.gimbal is not None:
            return robot.gimbal
        return Gimbal(joints=("pan", "tilt"))

    def _views(self) -> str:
        views = self._gimbal.look_deg.items()
        if not views:
            return ""
        return " Views: " + ", ".join(f"{n} = pan {p:g}, tilt {t:g}" for n, (p, t) in views) + "."


def _angle(way: str, limits: tuple[float, float], middle: float, word: str) -> dict[str, Any]:
    low, high = limits
    return {
        "type": "number",
        "description": f"Angle {way}, degrees, {low:g} to {high:g}; {middle:g} is {word}.",
        "minimum": low,
        "maximum": high,
    }
