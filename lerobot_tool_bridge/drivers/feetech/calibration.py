"""LeRobot's calibration of an arm: a JSON file per robot id, read as it is.

Each joint has ``id``, ``drive_mode``, ``homing_offset``, ``range_min`` and ``range_max``, in
ticks. LeRobot writes the last three into the servos' memory as well.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.drivers.feetech.registers import TICKS_PER_TURN

MAX_OFFSET = 2047
"""A homing offset has 11 bits and a sign in the servo; more would wrap to another angle."""
MIN_RANGE = 100
"""Ticks (9°); a joint that was moved less while it was calibrated was not moved at all."""
_FIELDS = ("id", "drive_mode", "homing_offset", "range_min", "range_max")
_AGAIN = "calibrate this arm again (lerobot-calibrate)"


@dataclass(frozen=True, slots=True)
class JointCalibration:
    """One joint of the file, in ticks.

    Attributes:
        id: The servo's id.
        drive_mode: 1 where the joint counts against its servo.
        homing_offset: What the servo subtracts from its encoder.
        range_min, range_max: How far the joint was moved, after the offset.
    """

    id: int
    drive_mode: int
    homing_offset: int
    range_min: int
    range_max: int


def find(robot_id: str) -> Path:
    """The file of a robot id, in the folder where LeRobot keeps them.

    Raises:
        LoadError: There is none, or more than one.
    """
    folder = lerobot_folder()
    files = sorted(folder.glob("*/*.json"))
    mine = [f for f in files if f.stem == robot_id]
    if len(mine) == 1:
        return mine[0]
    if mine:
        raise LoadError(
            "bad_file",
            f"robot_id {robot_id} has {len(mine)} calibration files: "
            f"{', '.join(map(str, mine))}. Choose one with calibration_file.",
        )
    known = ", ".join(sorted({f.stem for f in files})) or "none"
    raise LoadError(
        "bad_file",
        f"There is no calibration of robot_id {robot_id} below {folder} (ids there: {known}). "
        "Calibrate the arm with LeRobot, or give the file with calibration_file.",
    )


def lerobot_folder() -> Path:
    """Where LeRobot keeps the calibration of robots; its environment variables count."""
    environment = os.environ
    if "HF_LEROBOT_CALIBRATION" in environment:
        return Path(environment["HF_LEROBOT_CALIBRATION"]).expanduser() / "robots"
    cache = Path(environment.get("HF_HOME", "~/.cache/huggingface"))
    home = Path(environment.get("HF_LEROBOT_HOME", cache / "lerobot"))
    return home.expanduser() / "calibration" / "robots"


def load(path: Path, ids: Mapping[str, int] | None = None) -> dict[str, JointCalibration]:
    """Reads a calibration file.

    Args:
        path: The file.
        ids: The joints that it should have, with their servos' ids; None takes what is there.

    Returns:
        The joints, in the order of ``ids``.

    Raises:
        LoadError: ``bad_file``; all faults of the file, a line each, which names file, joint,
            field, what was found, what is expected and what to do.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise LoadError("bad_file", f"Can't read the calibration {path}: {reason}.") from None
    repeated: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in items]
        repeated.extend(sorted({n for n in names if names.count(n) > 1}))
        return dict(items)

    try:
        data = json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise LoadError(
            "bad_file",
            f"{path}, line {error.lineno}, column {error.colno}: not JSON ({error.msg}). "
            f"Correct it, or {_AGAIN}.",
        ) from None
    except RecursionError:
        data = None
    if not isinstance(data, dict):
        raise LoadError("bad_file", f"{path} should be a JSON object with a joint each.")
    faults = [f"{name}: stands there more than once; keep the right one." for name in repeated]
    faults += _faults(data, ids)
    if faults:
        lines = [f"{path}: {fault}" for fault in faults]
        head = f"{len(lines)} faults in the calibration:\n  " if len(lines) > 1 else ""
        raise LoadError("bad_file", head + "\n  ".join(lines))
    return {
        name: JointCalibration(**{f: data[name][f] for f in _FIELDS}) for name in (ids or data)
    }


def _faults(data: Mapping[str, Any], ids: Mapping[str, int] | None) -> Iterator[str]:
    for name in ids or ():
        if name not in data:
            yield f"{name}: this joint is missing; {_AGAIN}."
    owners: dict[int, str] = {}
    for name, entry in data.items():
        if ids is not None and name not in ids:
            yield (
                f"{name}: no joint of this robot (expected {', '.join(ids)}); "
                "is this another robot's file?"
            )
            continue
        if not isinstance(entry, dict):
            yield f"{name}: found {entry!r}, expected an object with {', '.join(_FIELDS)}."
            continue
        faults = list(_value_faults(name, entry))
        yield from faults
        id = entry.get("id")
        if type(id) is not int:
            continue
        if id in owners:
            yield (
                f"{name}: id: found {id}, which is {owners[id]}'s; expected an id of its own; "
                f"correct it, or {_AGAIN}."
            )
        elif ids is not None and id != ids[name]:
            yield (
                f"{name}: id: found {id}, expected {ids[name]} (servo_ids); correct the one "
                "that is wrong."
            )
        owners.setdefault(id, name)


def _value_faults(name: str, entry: Mapping[str, Any]) -> Iterator[str]:
    limits = {
        "id": (0, 253, "correct it, or " + _AGAIN),
        "drive_mode": (0, 1, _AGAIN),
        "homing_offset": (
            -MAX_OFFSET,
            MAX_OFFSET,
            "put the joint in the middle of its range and " + _AGAIN,
        ),
        "range_min": (0, TICKS_PER_TURN - 1, _AGAIN),
        "range_max": (0, TICKS_PER_TURN - 1, _AGAIN),
    }
    good = set()
    for field, (low, high, cure) in limits.items():
        if field not in entry:
            yield f"{name}: {field}: missing, expected a whole number {low}..{high}; {cure}."
        elif type(entry[field]) is not int:
            found = json.dumps(entry[field])[:40]
            yield f"{name}: {field}: found {found}, expected a whole number {low}..{high}; {cure}."
        elif not low <= entry[field] <= high:
            yield f"{name}: {field}: found {entry[field]}, allowed {low}..{high}; {cure}."
        else:
            good.add(field)
    if {"range_min", "range_max"} <= good:
        low, high = entry["range_min"], entry["range_max"]
        if high - low < MIN_RANGE:
            yield (
                f"{name}: range_max: found {high} with range_min {low}, expected range_max at "
                f"least {MIN_RANGE} above range_min; {_AGAIN}, and move this joint over its "
                "whole range."
            )
