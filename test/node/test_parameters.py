from pathlib import Path

from lerobot_tool_bridge.node.parameters import file_warnings


def warnings(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "limits.yaml"
    path.write_text(text)
    arguments = ["bridge", "--ros-args", "--params-file", str(path)]
    return file_warnings(arguments, "tool_bridge", "/lab", ["workspace.z_min", "autostart"])


def test_entry_for_another_node_is_named(tmp_path):
    (line,) = warnings(tmp_path, "bridge:\n  ros__parameters:\n    autostart: false\n")
    assert "no entry for /lab/tool_bridge (found: bridge)" in line
    assert "defaults are in force" in line


def test_unknown_parameter_is_named(tmp_path):
    (line,) = warnings(
        tmp_path, "tool_bridge:\n  ros__parameters:\n    workspace:\n      z_mim: 0.05\n"
    )
    assert "workspace.z_mim" in line


def test_entries_that_match_are_silent(tmp_path):
    for entry in ("tool_bridge", "/lab/tool_bridge", "/**", "/*/tool_bridge"):
        text = f"{entry}:\n  ros__parameters:\n    workspace: {{z_min: 0.1}}\n"
        assert warnings(tmp_path, text) == [], entry
    nested = "lab:\n  tool_bridge:\n    ros__parameters:\n      autostart: true\n"
    assert warnings(tmp_path, nested) == []
