"""The pan/tilt head's driver node and its serial protocols."""
