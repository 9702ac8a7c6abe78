"""``record_observation``: saves one still of the robot's camera under a label."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lerobot_tool_bridge import images
from lerobot_tool_bridge.core.errors import ToolFailure
from lerobot_tool_bridge.core.tool import CallContext, Outcome, Tool
from lerobot_tool_bridge.observations import (
    LABEL_FORM,
    LABEL_PATTERN,
    MAX_CHARACTERS,
    Observations,
    check_label,
)
from lerobot_tool_bridge.ports import Frame, Ports
from lerobot_tool_bridge.vision.joints import moving, stand


class RecordObservation(Tool):
    """Takes a still, saves it losslessly with a side file, and publishes it.

    Settings:
        output_dir: Folder for the pictures, in place of the bridge's own.
    """

    name = "record_observation"
    needs = ("camera",)
    resources = frozenset({"camera"})
    timeout = 15.0

    def __init__(self, ports: Ports, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(ports, settings)
        folder = self.settings.get("output_dir") or ports.output_dir
        self._observations = Observations(Path(folder).expanduser())

    @property
    def description(self) -> str:
        return (
            "Capture a high-resolution still image with the robot's camera and save it for the "
            "user. The picture shows what the camera sees now; it is not returned to you. Answers "
            "with the name of the saved file; an existing picture is never replaced, a number is "
            "added instead."
        )

    @property
    def parameters(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {
                "label": {
                    "type": "string",
                    "description": (
                        f"Short label for the saved image, such as 'red cup'. {LABEL_FORM}"
                    ),
                    "x-form": LABEL_FORM,
                    "minLength": 1,
                    "maxLength": MAX_CHARACTERS,
                    "pattern": LABEL_PATTERN,
                }
            },
            "required": ["label"],
            "additionalProperties": False,
        }

    def check(self, arguments: Mapping[str, Any]) -> None:
        check_label(arguments["label"])

    async def run(self, arguments: dict[str, Any], context: CallContext) -> Outcome:
        camera = self.ports.camera
        if camera is None:
            raise ToolFailure("unavailable", "This robot has no camera.")
        stem = check_label(arguments["label"])
        before = await stand(self.ports)
        frame = await camera.still()
        after = await stand(self.ports)
        facts = {
            "label": arguments["label"],
            "call_id": context.call_id,
            **_facts(frame, self._camera_name()),
            "intrinsics": dataclasses.asdict(frame.intrinsics) if frame.intrinsics else None,
            "joints": {n: round(p, 5) for n, p in after.positions.items()},
            "gripper_effort": after.effort,
            "moving": moving(before.positions, after.positions),
        }
        file, png = await asyncio.to_thread(self._save, stem, frame, facts)
        camera.publish_observation(png, "png", frame)
        return Outcome(f"saved {file}", (file, f"{file.removesuffix('.png')}.json"))

    def _save(self, stem: str, frame: Frame, facts: dict[str, Any]) -> tuple[str, bytes]:
        """Encodes and saves, in one thread: a change of threads takes milliseconds."""
        picture = images.to_png(frame)
        facts |= {
            "width": picture.width,
            "height": picture.height,
            "channels": picture.channels,
            "bits": picture.bits,
            "note": picture.note,
        }
        return self._observations.save(stem, picture.png, facts), picture.png

    def _camera_name(self) -> str:
        robot = self.ports.robot
        return robot.camera.name if robot is not None and robot.camera is not None else "camera"


def _facts(frame: Frame, camera: str) -> dict[str, Any]:
    return {
        "camera": camera,
        "stamp": frame.stamp,
        "frame_id": frame.frame_id,
        "source": frame.source,
        "encoding": frame.encoding,
    }
