"""``gimbal_move_relative``: turns the camera head on from where it is, as far as it can."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lerobot_tool_bridge.core.errors import LoadError, ToolFailure
from lerobot_tool_bridge.core.tool import CallContext
from lerobot_tool_bridge.ports import Ports
from lerobot_tool_bridge.tools.gimbal_control import GimbalControl

_NEAR = 0.05  # degrees that are not worth telling


class GimbalMoveRelative(GimbalControl):
    """Turns the head by two angles, stops at its limits, and tells how far it went.

    Settings:
        pan: minimum and maximum that it may look at, degrees; as for gimbal_control.
        tilt: Likewise.
        tolerance_deg: How far from its target a head that measures may end (5).
    """

    name = "gimbal_move_relative"

    def __init__(self, ports: Ports, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(ports, settings)
        self._limits = (
            _narrowed("pan", self._gimbal.pan_deg, self.settings.get("pan", {})),
            _narrowed("tilt", self._gimbal.tilt_deg, self.settings.get("tilt", {})),
        )

    @property
    def description(self) -> str:
        (pan_low, pan_high), (tilt_low, tilt_high) = self._limits
        return (
            "Turn the pan/tilt head that carries the camera by some degrees from where it looks "
            "now. More pan looks further to the left, less further to the right; more tilt looks "
            f"further up, less further down. It stops at its limits, pan {pan_low:g} to "
            f"{pan_high:g} and tilt {tilt_low:g} to {tilt_high:g}, and the answer says how far it "
            "really went. Moves the camera only, not the arm. For a known direction use "
            "gimbal_control."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {
                "pan_delta": _delta("to the left", "to the right"),
                "tilt_delta": _delta("up", "down"),
            },
            "required": ["pan_delta", "tilt_delta"],
            "additionalProperties": False,
        }

    async def run(self, arguments: dict[str, Any], context: CallContext) -> str:
        port = self.ports.gimbal
        if port is None:
            raise ToolFailure("unavailable", "This robot has no pan/tilt head.")
        try:
            start = [math.degrees(v) for v in await port.positions()]
        except ToolFailure as failure:
            if port.measures:
                raise
            raise ToolFailure(
                failure.code,
                "Before its first move nobody knows where it looks. Use gimbal_control first.",
            ) from None
        asked = (float(arguments["pan_delta"]), float(arguments["tilt_delta"]))
        wanted = [
            # a head that stands outside of the limits comes no further out
            max(min(low, at), min(max(high, at), at + delta))
            for at, delta, (low, high) in zip(start, asked, self._limits, strict=True)
        ]
        ended = await self._turn(port, (wanted[0], wanted[1]))
        says, notes = [], []
        for i, name in enumerate(("pan", "tilt")):
            went = round(ended[i] - start[i], 1) + 0.0
            says.append(f"{name} by {went:+.1f}° to {ended[i]:.1f}°")
            short = abs(start[i] + asked[i] - wanted[i])
            if short > _NEAR:
                limit = self._limits[i][asked[i] > 0]
                notes.append(
                    f"{name} stops at its limit {limit:g}°, {short:.1f}° short of what was asked"
                )
        how = "moved" if port.measures else "commanded"
        measured = " (measured)" if port.measures else "; this head does not measure where it is"
        return "; ".join([f"{how} {', '.join(says)}{measured}", *notes])


def _delta(more: str, less: str) -> dict[str, Any]:
    return {
        "type": "number",
        "description": f"By how much, degrees: positive {more}, negative {less}, 0 not at all.",
        "minimum": -270,
        "maximum": 270,
    }


def _narrowed(name: str, limits: tuple[float, float], settings: Any) -> tuple[float, float]:
    """The part of a range that a site allows."""
    known = ("minimum", "maximum")
    if not isinstance(settings, Mapping) or any(
        k not in known or isinstance(v, bool) or not isinstance(v, int | float)
        for k, v in settings.items()
    ):
        raise LoadError(
            "bad_file", f"{name} should be minimum and maximum in degrees, it is {settings!r}."
        )
    low = max(limits[0], float(settings.get("minimum", limits[0])))
    high = min(limits[1], float(settings.get("maximum", limits[1])))
    if not low < high:
        raise LoadError("bad_file", f"{name} leaves nothing of {list(limits)}.")
    return low, high
