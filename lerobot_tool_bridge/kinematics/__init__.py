"""Arm geometry: forward and inverse kinematics and the timing of a path (numpy)."""
