"""The built-in tools, one a file. A tool is added with its file and one line here."""

from __future__ import annotations

BUILTIN: tuple[str, ...] = (
    "lerobot_tool_bridge.tools.say:Say",
    "lerobot_tool_bridge.tools.stop:Stop",
    "lerobot_tool_bridge.tools.arm_grab_object:ArmGrabObject",
    "lerobot_tool_bridge.tools.arm_place_object:ArmPlaceObject",
    "lerobot_tool_bridge.tools.arm_move_to_position:ArmMoveToPosition",
    "lerobot_tool_bridge.tools.arm_set_joint_angles:ArmSetJointAngles",
    "lerobot_tool_bridge.tools.arm_get_state:ArmGetState",
    "lerobot_tool_bridge.tools.gimbal_control:GimbalControl",
    "lerobot_tool_bridge.tools.gimbal_move_relative:GimbalMoveRelative",
    "lerobot_tool_bridge.tools.record_observation:RecordObservation",
    "lerobot_tool_bridge.tools.vlm_detect_objects:VlmDetectObjects",
    "lerobot_tool_bridge.tools.vlm_analyze_image:VlmAnalyzeImage",
    "lerobot_tool_bridge.tools.calculator:Calculator",
    "lerobot_tool_bridge.tools.calculator:AdvancedCalculator",
    "lerobot_tool_bridge.tools.music:MusicList",
    "lerobot_tool_bridge.tools.music:MusicPlay",
    "lerobot_tool_bridge.tools.music:MusicStop",
    "lerobot_tool_bridge.tools.music:MusicPlayRandom",
    "lerobot_tool_bridge.tools.music:MusicVolumeSet",
    "lerobot_tool_bridge.tools.music:MusicVolumeSetSmart",
    "lerobot_tool_bridge.tools.serial_device:SerialDevice",
)
"""Classes by ``module:Class``, imported when the bridge is configured, in the order in which they
are offered."""
