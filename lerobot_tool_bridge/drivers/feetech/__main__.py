"""``python -m lerobot_tool_bridge.drivers.feetech scan|write_calibration``: a look at the bus.

``scan`` shows the servos that answer. ``write_calibration`` writes a LeRobot calibration file
into the servos' memory, which turns their torque off: hold the arm.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lerobot_tool_bridge.core.errors import BridgeError
from lerobot_tool_bridge.drivers.feetech import calibration
from lerobot_tool_bridge.drivers.feetech import registers as reg
from lerobot_tool_bridge.drivers.feetech.bus import BAUD_RATE, BusError, ServoBus

SCANNED_IDS = range(1, 31)


def scan(bus: ServoBus) -> None:
    """Prints a line for each servo that answers."""
    ids = bus.scan(SCANNED_IDS)
    if not ids:
        raise BusError(
            f"no servo answers (ids {SCANNED_IDS[0]}..{SCANNED_IDS[-1]} were asked): "
            "check power, cable and baud rate."
        )
    for id in ids:
        position = bus.read(id, reg.PRESENT_POSITION)
        volts = bus.read(id, reg.PRESENT_VOLTAGE) / 10
        most = bus.read(id, reg.MAX_VOLTAGE) / 10
        print(
            f"id {id}: model {bus.read(id, reg.MODEL)}, position {position}, {volts:.1f} V (up to "
            f"{most:.1f} V), {bus.read(id, reg.PRESENT_TEMPERATURE)} °C, torque "
            f"{'on' if bus.read(id, reg.TORQUE_ENABLE) else 'off'}"
        )


def write_calibration(bus: ServoBus, file: Path) -> None:
    """Writes offsets and ranges of a file into the servos, with torque off; prints changes."""
    for name, joint in calibration.load(file).items():
        bus.write(joint.id, reg.TORQUE_ENABLE, 0)
        bus.write(joint.id, reg.LOCK, 0)
        for register, value in (
            (reg.HOMING_OFFSET, joint.homing_offset),
            (reg.MIN_POSITION, joint.range_min),
            (reg.MAX_POSITION, joint.range_max),
        ):
            before = bus.read(joint.id, register)
            if before == value:
                continue
            bus.write(joint.id, register, value)
            after = bus.read(joint.id, register)
            if after != value:
                raise BusError(f"{name}: servo {joint.id} has {register.name} {after} after all.")
            print(f"{name}: {register.name} of servo {joint.id}: {before} -> {value}")
        bus.write(joint.id, reg.LOCK, 1)
    print(f"The servos' memory is as {file} says.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="feetech", description=__doc__)
    parser.add_argument("command", choices=("scan", "write_calibration"))
    parser.add_argument("--port", required=True, help="serial port of the bus, /dev/ttyACM0")
    parser.add_argument("--baud-rate", type=int, default=BAUD_RATE)
    parser.add_argument("--file", type=Path, help="LeRobot's calibration file of this arm")
    options = parser.parse_args(arguments)
    if options.command == "write_calibration" and options.file is None:
        parser.error("write_calibration needs --file")
    try:
        bus = ServoBus.open(options.port, options.baud_rate)
        try:
            if options.command == "scan":
                scan(bus)
            else:
                write_calibration(bus, options.file)
        finally:
            bus.close()
    except BridgeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
