"""Emulated devices: servo bus, pan/tilt head and network camera, as seen on the wire."""
