"""The bridge's parameters."""

from __future__ import annotations

from lerobot_tool_bridge.node.parameters import Param

PARAMETERS = (
    Param(
        "robot",
        "so101",
        "The robot: a name in config/robots, or the path of a .yaml file. Empty: no robot, only "
        "the tools that need none.",
    ),
    Param(
        "without",
        "",
        "Parts of the robot that are not there, separated by commas (arm, gripper, gimbal, "
        "camera): tools that need them are not offered.",
    ),
    Param(
        "tools_file",
        "",
        "YAML file with function_calling: tools: <name>: {enabled, description, timeout, ...}. "
        "Empty: every tool as it is.",
    ),
    Param(
        "tools_dir",
        "",
        "Folder of Python files whose tools are offered too. They run with the bridge's rights. "
        "Empty: none.",
    ),
    Param(
        "catalogue",
        "",
        "A data set's folder or its meta/info.json: only the tools that it declares are offered. "
        "Empty: all that the robot can do.",
    ),
    Param("output_dir", "observations", "Folder in which tools leave files."),
    Param("audit_file", "", "File to which every call is appended as JSON lines. Empty: none."),
    Param(
        "speech",
        "auto",
        "What say speaks with: auto, hibari, espeak, log, or module:function of another package.",
    ),
    Param("voice", "", "Voice of the speech backend. Empty: its default."),
    Param(
        "text_format",
        "",
        "Read calls out of the text of messages that have no tool_calls: a format that python -m "
        "lerobot_tool_bridge.formats lists, such as hermes. Empty: text is never read.",
    ),
    Param(
        "text_prefix",
        "",
        "What the model's chat template begins an answer with, such as <think>, where the server "
        "leaves it out of the text.",
    ),
    Param(
        "accept_repeated_ids",
        False,
        "Run a call although its id was answered before, for model servers that reuse ids.",
    ),
    Param(
        "max_age",
        10.0,
        "Seconds after which a message, by its sender's clock, is refused as stale. 0: never.",
        low=0.0,
        high=3600.0,
    ),
    Param(
        "max_calls_per_message",
        16,
        "Calls in one message; a longer one is refused as a whole.",
        low=1,
        high=1000,
    ),
    Param(
        "rate_limit",
        100.0,
        "Calls per second, of all tools together. 0: no limit.",
        low=0.0,
        high=1e6,
    ),
    Param("max_pending", 4096, "Calls that may wait or run at a time.", low=1, high=100_000),
    Param(
        "cancel_limit",
        1.0,
        "Seconds in which a driver has to confirm a cancel; then the answer is "
        "cancel_unconfirmed.",
        low=0.1,
        high=30.0,
    ),
    Param(
        "server_timeout",
        5.0,
        "Seconds for which a driver that is not there is waited for.",
        low=0.0,
        high=60.0,
    ),
)
