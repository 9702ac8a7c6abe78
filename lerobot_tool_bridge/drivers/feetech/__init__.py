"""The Feetech STS servo bus: packets, registers, bus, LeRobot's calibration."""
