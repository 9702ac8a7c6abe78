"""The servo bus, without ROS: packets, an emulated bus with faults, calibration files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest
from arm_rig import CALIBRATION, load_calibration, write_calibration

from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.drivers.feetech import __main__ as command
from lerobot_tool_bridge.drivers.feetech import calibration, protocol
from lerobot_tool_bridge.drivers.feetech import registers as reg
from lerobot_tool_bridge.drivers.feetech.bus import NoReply, PortError, ServoBus, open_port
from lerobot_tool_bridge.sim.devices.feetech import FeetechBus, SimpleServo


@pytest.fixture
def device(tmp_path):
    with FeetechBus({i: SimpleServo() for i in range(1, 7)}, tmp_path / "arm") as device:
        yield device


@pytest.fixture
def bus(device):
    bus = ServoBus.open(device.port)
    yield bus
    bus.close()


# --- packets ------------------------------------------------------------------------------


def test_packets_are_those_of_the_data_sheet():
    assert protocol.encode_frame(1, protocol.Instruction.PING) == bytes.fromhex("ffff010201fb")
    assert protocol.read_request(1, 56, 2) == bytes.fromhex("ffff0104023802be")
    request = protocol.sync_write_request([(1, b"\x00\x08"), (2, b"\x01\x02")], 42, 2)
    assert request == bytes.fromhex("ffff fe 0a 83 2a 02 010008 020102".replace(" ", "")) + bytes(
        [~(0xFE + 0x0A + 0x83 + 0x2A + 0x02 + 0x09 + 0x05) & 0xFF]
    )


def test_reader_finds_packets_in_pieces_and_behind_garbage():
    reader = protocol.FrameReader()
    good = protocol.encode_frame(3, 0, b"\x10\x20")
    stream = b"\x00\xff" + good[:-1] + b"\x00" + b"\xff\xff" + good
    frames = []
    for byte in stream:
        frames += reader.feed(bytes([byte]))
    assert frames == [protocol.Frame(3, 0, b"\x10\x20")]
    assert reader.damaged == 1


@pytest.mark.parametrize(
    ("register", "raw", "value"),
    [
        (reg.PRESENT_POSITION, 0x8023, -35),
        (reg.PRESENT_POSITION, 0x1010, 4112),
        (reg.HOMING_OFFSET, 0x0800 | 1411, -1411),
        (reg.PRESENT_LOAD, 0x0400 | 250, -250),
    ],
)
def test_signs_are_bits(register, raw, value):
    data = raw.to_bytes(2, "little")
    assert protocol.decode(register, data) == value
    assert protocol.encode(register, value) == data


def test_a_value_that_would_wrap_is_refused():
    with pytest.raises(ValueError, match=r"homing_offset is 2114, it should be -2047\.\.2047"):
        protocol.encode(reg.HOMING_OFFSET, 2114)


# --- bus ----------------------------------------------------------------------------------


def test_replies_with_error_bits_hold(device, bus):
    device.errors = dict.fromkeys(range(1, 7), 1)
    assert bus.ping(4)
    assert bus.read(4, reg.PRESENT_POSITION) == 2048
    replies = bus.sync_read([1, 2], reg.PRESENT_VOLTAGE.address, 1)
    assert replies[1].data == b"\x4a"
    assert protocol.describe_errors(replies[1].errors) == "voltage"


def test_lost_and_damaged_replies_are_asked_for_again(device, bus):
    def mangle(id: int, packet: bytes) -> bytes:
        if id != 3 or mangle.left == 0:
            return packet
        mangle.left -= 1
        return b"" if mangle.left else packet[:-1] + b"\x00"

    device.mangle = mangle
    mangle.left = 2
    ids = [1, 2, 3, 4, 5, 6]
    assert bus.sync_read_register(ids, reg.PRESENT_POSITION) == dict.fromkeys(ids, 2048)
    assert (bus.timeouts, bus.damaged) == (2, 1)
    mangle.left = 2
    bus.write(3, reg.TORQUE_LIMIT, 500)
    assert device.peek(3, reg.TORQUE_LIMIT) == 500


def test_servos_that_do_not_answer_are_named(device, bus):
    device.missing = {3, 5}
    with pytest.raises(NoReply, match=r"servos 3, 5 \(1, 2, 4, 6 did\)") as caught:
        bus.sync_read_register([1, 2, 3, 4, 5, 6], reg.PRESENT_POSITION)
    assert caught.value.missing == (3, 5)
    assert bus.scan(range(1, 9)) == [1, 2, 4, 6]
    with pytest.raises(NoReply):
        bus.write(3, reg.TORQUE_LIMIT, 500)


def test_an_unplugged_port_is_gone(device, bus):
    device.unplug()
    with pytest.raises(PortError, match="is gone"):
        bus.sync_read_register([1], reg.PRESENT_POSITION)


def test_a_missing_port_lists_those_that_exist():
    with pytest.raises(PortError, match=r"no port /dev/does_not_exist\. (Ports that|No serial)"):
        open_port("/dev/does_not_exist")
    with pytest.raises(PortError, match="no port is given"):
        open_port("")
    with pytest.raises(PortError, match="no serial port"):
        open_port(__file__)
    with pytest.raises(PortError, match="/dev/null is no serial port"):
        open_port("/dev/null")


@pytest.mark.skipif(os.geteuid() == 0 and not os.path.exists("/usr/bin/setpriv"), reason="root")
def test_no_permission_names_the_group(device):
    os.chmod(os.path.realpath(device.port), 0o000)
    code = (
        "from lerobot_tool_bridge.drivers.feetech.bus import open_port\n"
        f"try: open_port({os.path.realpath(device.port)!r})\n"
        "except Exception as e: print(e)"
    )
    command = [sys.executable, "-c", code]
    if os.geteuid() == 0:
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if not result.stdout:
        pytest.skip(f"another user can't run this Python: {result.stderr[-200:]}")
    assert "no permission for" in result.stdout
    assert "sudo usermod -aG" in result.stdout


@pytest.mark.parametrize("locked", [True, False])
def test_a_port_held_by_another_process_names_it(device, locked):
    """Also one that takes no lock, as LeRobot's programs do; killed, it leaves nothing behind."""
    code = (
        "import serial, time\n"
        f"port = serial.Serial({device.port!r}, 1000000, exclusive={locked or None})\n"
        "print('open', flush=True)\ntime.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        other.stdout.readline()
        with pytest.raises(PortError, match=rf"held by .*python.*\(pid {other.pid}\)"):
            open_port(device.port)
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    open_port(device.port).close()


def test_one_process_opens_a_port_once(device, bus):
    with pytest.raises(PortError, match="is held by another process"):
        open_port(device.port)


# --- calibration --------------------------------------------------------------------------


def faults(path, **changes) -> list[str]:
    write_calibration(path, **changes)
    ids = {name: entry["id"] for name, entry in CALIBRATION.items()}
    with pytest.raises(LoadError) as caught:
        calibration.load(path, ids)
    return [line.strip() for line in str(caught.value).splitlines() if str(path) in line]


def changed(joint: str, **fields) -> dict:
    return {joint: {**CALIBRATION[joint], **fields}}


def test_a_good_file_is_read_as_it_is(tmp_path):
    read = calibration.load(write_calibration(tmp_path / "a.json"))
    assert read["elbow_flex"] == calibration.JointCalibration(3, 0, -1411, 880, 3090)


def test_an_offset_that_does_not_fit_the_register(tmp_path):
    path = tmp_path / "my_arm.json"
    (line,) = faults(path, **changed("elbow_flex", homing_offset=2114))
    assert line.startswith(f"{path}: elbow_flex: homing_offset: found 2114, allowed -2047..2047")
    assert "put the joint in the middle of its range and calibrate" in line


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (changed("gripper", range_min=2048, range_max=2048), "gripper: range_max: found 2048 wi"),
        (changed("gripper", range_min=3480, range_max=2010), "gripper: range_max: found 2010 wi"),
        ({"wrist_flex": None}, "wrist_flex: this joint is missing"),
        (changed("gripper", id=3), "gripper: id: found 3, which is elbow_flex's"),
        (changed("gripper", id=9), "gripper: id: found 9, expected 6"),
        (changed("gripper", homing_offset=12.5), "gripper: homing_offset: found 12.5, expected a"),
        (changed("gripper", drive_mode=True), "gripper: drive_mode: found true, expected a"),
        ({"gripper": 5}, "gripper: found 5, expected an object"),
        ({"elbow_roll": CALIBRATION["gripper"]}, "elbow_roll: no joint of this robot"),
    ],
)
def test_faults_name_file_joint_field_found_and_expected(tmp_path, changes, words):
    path = tmp_path / "my_arm.json"
    (line,) = faults(path, **changes)
    assert line.startswith(f"{path}: {words}")


def test_all_faults_of_a_file_come_in_one_go(tmp_path):
    lines = faults(
        tmp_path / "a.json",
        **changed("elbow_flex", homing_offset=2114),
        **changed("gripper", range_min=2048, range_max=2048),
        wrist_flex=None,
    )
    assert len(lines) == 3


def test_a_file_that_is_no_json_gives_line_and_column(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{\n  "gripper": {,}\n}')
    with pytest.raises(LoadError, match=r"a\.json, line 2, column 15"):
        calibration.load(path)
    path.write_text('{"gripper": {}, "gripper": {}}')
    with pytest.raises(LoadError, match="gripper: stands there more than once"):
        calibration.load(path)
    with pytest.raises(LoadError, match="Can't read"):
        calibration.load(tmp_path / "b.json")


def test_a_robot_id_is_looked_up_where_lerobot_keeps_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_LEROBOT_CALIBRATION", str(tmp_path))
    for kind, name in (("so101_follower", "007"), ("so101_follower", "left"), ("other", "left")):
        (tmp_path / "robots" / kind).mkdir(parents=True, exist_ok=True)
        (tmp_path / "robots" / kind / f"{name}.json").write_text("{}")
    assert calibration.find("007").parent.name == "so101_follower"
    with pytest.raises(LoadError, match="left has 2 calibration files"):
        calibration.find("left")
    with pytest.raises(LoadError, match=r"no calibration of robot_id 7 .* \(ids there: 007, left"):
        calibration.find("7")
    monkeypatch.delenv("HF_LEROBOT_CALIBRATION")
    monkeypatch.setenv("HF_HOME", "/cache")
    assert str(calibration.lerobot_folder()) == "/cache/lerobot/calibration/robots"


# --- command line -------------------------------------------------------------------------


def test_a_calibration_is_written_by_command_and_survives_a_power_cut(device, tmp_path, capsys):
    load_calibration(device)
    device.poke(3, reg.HOMING_OFFSET, -35)
    file = write_calibration(tmp_path / "a.json")
    arguments = ["write_calibration", "--port", device.port, "--file", str(file)]
    assert command.main(arguments) == 0
    shown = capsys.readouterr().out
    assert "elbow_flex: homing_offset of servo 3: -35 -> -1411" in shown
    assert shown.count("->") == 1
    device.power_cycle()
    assert device.peek(3, reg.HOMING_OFFSET) == -1411
    assert device.peek(3, reg.LOCK) == 1


def test_scan_shows_what_answers(device, capsys):
    device.missing = {2}
    assert command.main(["scan", "--port", device.port]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert "id 1: model 777, position 2048, 7.4 V (up to 8.0 V)" in lines[0]
    assert command.main(["scan", "--port", "/dev/does_not_exist"]) == 1


def test_a_broken_file_writes_nothing(device, tmp_path, capsys):
    file = write_calibration(tmp_path / "a.json", **changed("gripper", homing_offset=5000))
    written = []
    device.on_write = lambda *write: written.append(write)
    assert command.main(["write_calibration", "--port", device.port, "--file", str(file)]) == 1
    assert "found 5000" in capsys.readouterr().err
    assert written == []


def test_a_json_number_too_long_is_a_fault(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(changed("gripper", id=10**400)))
    with pytest.raises(LoadError, match="gripper: id"):
        calibration.load(path)


def test_a_request_takes_little_time(bus):
    """Six servos in one request: far from 20 ms, or the control period would not hold."""
    start = time.monotonic()
    for _ in range(20):
        bus.sync_read(range(1, 7), reg.PRESENT_POSITION.address, 8)
    assert time.monotonic() - start < 20 * 0.015
