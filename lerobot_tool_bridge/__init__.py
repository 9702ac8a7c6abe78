"""Runtime for the tool calls of a language policy on a ROS 2 robot."""

__version__ = "0.1.0"
