"""The protocols of LX-16A and Waveshare heads, in front of emulated devices."""

from __future__ import annotations

import math

import pytest
from action_msgs.msg import GoalStatus
from harness import wait_for
from sensor_msgs.msg import JointState
from test_gimbal_node import NODE, Client

from lerobot_tool_bridge.drivers.arm.control import Joint
from lerobot_tool_bridge.drivers.feetech.bus import NoReply, PortError
from lerobot_tool_bridge.drivers.gimbal import lx16a
from lerobot_tool_bridge.drivers.gimbal.lx16a import Lx16a, pack, unpack
from lerobot_tool_bridge.drivers.gimbal.protocol import PROTOCOLS, Axis, find
from lerobot_tool_bridge.drivers.gimbal.waveshare_json import WaveshareJson
from lerobot_tool_bridge.sim.devices.lx16a import Lx16aHead, SimpleServo
from lerobot_tool_bridge.sim.devices.waveshare_json import WaveshareHead


def axes(ids=(1, 2), **more):
    return [
        Axis(Joint(name, 0.0, math.radians(270), 1.5), i, index=index, **more)
        for index, (name, i) in enumerate(zip(("pan", "tilt"), ids, strict=True))
    ]


def degrees(positions):
    return [math.degrees(p) for p in positions]


class Turned:
    """A Waveshare joint that is at once where it was sent."""

    def __init__(self):
        self.at = 0.0
        self.targets = []

    def position_deg(self):
        return self.at

    def set_target(self, degrees, speed):
        self.at = degrees
        self.targets.append((degrees, speed))


@pytest.fixture
def bus():
    servos = {1: SimpleServo(500), 2: SimpleServo(400)}
    head = Lx16aHead(servos)
    head.servos = servos
    yield head
    head.close()


@pytest.fixture
def waveshare():
    joints = [Turned(), Turned()]
    head = WaveshareHead(joints)
    head.joints = joints
    yield head
    head.close()


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol_can_be_found(name):
    kind = find(name)
    low, high = kind.reach_deg(axes()[0])
    assert low < 135 < high


# --- LX-16A ----------------------------------------------------------------------------------


def test_lx16a_packets():
    """The maker's example: servo 1 to 500 within 1000 ms."""
    packet = bytes.fromhex("5555 01 07 01 f401 e803 16")
    assert pack(1, 1, b"\xf4\x01\xe8\x03") == packet
    assert unpack(b"\x55noise" + packet + packet[:-1]) == [(1, 1, b"\xf4\x01\xe8\x03")]
    assert unpack(packet[:-1] + b"\x17") == []


def test_lx16a_reads_moves_and_lets_go(bus):
    head = Lx16a(bus.path, 0, axes())
    state = head.read()
    assert degrees(state.positions) == pytest.approx([135.0, 111.0])
    assert head.hold() == pytest.approx(state.positions)
    wait_for(lambda: bus.servos[1].torque and bus.servos[2].torque)
    assert bus.servos[2].position_ticks() == pytest.approx(400, abs=1)  # no jump
    head.write([math.radians(180.0), math.radians(90.0)], 0.05)
    wait_for(lambda: bus.servos[1].position_ticks() > 680)
    wait_for(lambda: degrees(head.read().positions) == pytest.approx([180.0, 90.0], abs=0.25))
    head.write([0.0, 0.0], 9.0)
    head.stop()
    assert degrees(head.read().positions)[0] > 150
    head.release()
    wait_for(lambda: not bus.servos[1].torque and not bus.servos[2].torque)
    head.close()


def test_lx16a_mounted_the_other_way_round(bus):
    head = Lx16a(bus.path, 0, axes(center_ticks=600, inverted=True))
    assert degrees(head.read().positions) == pytest.approx([159.0, 183.0])
    assert Lx16a.reach_deg(axes(center_ticks=600, inverted=True)[0]) == pytest.approx((39, 279))
    head.close()


def test_lx16a_on_a_bus_that_echoes(bus):
    bus.echo = True
    head = Lx16a(bus.path, 0, axes())
    assert degrees(head.read().positions) == pytest.approx([135.0, 111.0])
    head.close()


def test_lx16a_servo_that_does_not_answer(bus):
    head = Lx16a(bus.path, 0, axes())
    bus.missing.add(2)
    for _ in range(lx16a._MISSED - 1):
        assert degrees(head.read().positions) == pytest.approx([135.0, 111.0])
    with pytest.raises(NoReply, match="servo 2"):
        head.read()
    head.close()
    with pytest.raises(NoReply, match="servo 2"):
        Lx16a(bus.path, 0, axes())


def test_lx16a_unplugged(bus):
    head = Lx16a(bus.path, 0, axes())
    bus.close()
    with pytest.raises(PortError, match="Plug the head's USB cable in again"):
        head.read()
    head.close()


def test_lx16a_head_is_measured_by_the_driver(ros, spawn, bus):
    states = ros.collect(JointState, "joint_states")
    node = spawn.node(
        NODE, "-p", "servo_ids:=[1,2]", protocol="lx16a", port=bus.path, max_speed=3.0
    )
    client = Client(ros)
    wait_for(lambda: states)
    assert degrees(states[-1].position) == pytest.approx([135, 111], abs=0.3)
    status, code, text = client.run((1.0, 180, 135))
    assert (status, code) == (GoalStatus.STATUS_SUCCEEDED, 0), text
    assert bus.servos[1].position_ticks() == pytest.approx(500 + 45 / 0.24, abs=12)
    status, _, text = client.run((1.0, 260, 135))
    assert status == GoalStatus.STATUS_ABORTED
    assert "gimbal_pan" in text  # beyond what the servo reaches: 255°
    assert "commanded" not in node.output
    bus.servos[1].held = True
    status, code, text = client.run((0.5, 135, 135))
    assert (status, code) == (GoalStatus.STATUS_ABORTED, -5)
    assert "gimbal_pan stopped at 180" in text


# --- Waveshare -------------------------------------------------------------------------------


def test_waveshare_counts_from_its_middle_and_to_the_right(waveshare):
    head = WaveshareJson(waveshare.path, 0, axes())
    assert head.read() is None
    assert head.hold() is None
    head.write([math.radians(165.0), math.radians(120.5)], 0.02)
    wait_for(lambda: waveshare.joints[1].targets)
    assert waveshare.joints[0].targets == [(-30.0, 0.0)]  # more pan is to the left
    assert waveshare.joints[1].targets == [(-14.5, 0.0)]
    head.write([math.radians(135.0), math.radians(135.0)], 3.0)
    wait_for(lambda: len(waveshare.joints[1].targets) == 2)
    assert waveshare.joints[0].targets[-1] == (0.0, 85.0)  # 1.5 rad/s
    head.stop()
    wait_for(lambda: len(waveshare.joints[1].targets) == 3)
    assert WaveshareJson.reach_deg(axes()[0]) == (-45.0, 315.0)
    assert WaveshareJson.reach_deg(axes()[1]) == (105.0, 225.0)
    assert WaveshareJson.reach_deg(axes(inverted=True)[1]) == (45.0, 165.0)
    head.close()


def test_waveshare_behind_the_driver(ros, spawn, waveshare):
    node = spawn.node(NODE, protocol="waveshare_json", port=waveshare.path, max_speed=6.0)
    states = ros.collect(JointState, "joint_states")
    client = Client(ros)
    assert client.run((0.1, 135, 135))[0] == GoalStatus.STATUS_SUCCEEDED
    assert waveshare.joints[0].targets[0] == (0.0, 343.0)  # where it is, nobody knows
    assert client.run((0.5, 180, 120))[0] == GoalStatus.STATUS_SUCCEEDED
    assert waveshare.joints[0].at == pytest.approx(-45.0)
    assert waveshare.joints[1].at == pytest.approx(-15.0)
    status, _, text = client.run((1.0, 180, 90))
    assert status == GoalStatus.STATUS_ABORTED
    assert "gimbal_tilt" in text
    wait_for(lambda: states)
    assert node.output.count("joint_states are what was commanded") == 1
