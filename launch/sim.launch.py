"""The virtual robot, its drivers and the bridge; ``--show-args`` lists the arguments."""

from launch import LaunchDescription

from lerobot_tool_bridge.launch_description import describe


def generate_launch_description() -> LaunchDescription:
    return describe(sim=True)
