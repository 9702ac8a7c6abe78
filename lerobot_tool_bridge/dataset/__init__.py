"""Data sets in LeRobot's form: their tool calls to be played, and sessions to be kept as one."""
