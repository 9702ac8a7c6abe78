"""The emulated LX-16A bus and Waveshare head, by bytes of the makers' own documents."""

from __future__ import annotations

import pytest
import serial
from harness import wait_for

from lerobot_tool_bridge.sim.devices.lx16a import Lx16aHead, SimpleServo
from lerobot_tool_bridge.sim.devices.waveshare_json import WaveshareHead


class Joint:
    def __init__(self):
        self.at = 0.0
        self.targets = []

    def position_deg(self):
        return self.at

    def set_target(self, degrees, speed):
        self.targets.append((degrees, speed))


@pytest.fixture
def bus():
    servos = {1: SimpleServo(500), 2: SimpleServo(-7)}
    head = Lx16aHead(servos)
    head.servos = servos
    yield head
    head.close()


def test_lx16a_moves_and_answers(bus):
    with serial.Serial(bus.path, 115200, timeout=2) as port:
        # servo 1 to 100 within 50 ms; its position; in pieces and after garbage
        port.write(b"\x55\x00\x55\x55\x01\x07\x01\x64\x00\x32\x00\x60"[:7])
        port.flush()
        port.write(b"\x64\x00\x32\x00\x60")
        wait_for(lambda: bus.servos[1].position_ticks() == 100)
        port.write(b"\x55\x55\x01\x03\x1c\xdf")
        assert port.read(8) == b"\x55\x55\x01\x05\x1c\x64\x00\x79"
        port.write(b"\x55\x55\x02\x03\x1c\xde")
        assert port.read(8) == b"\x55\x55\x02\x05\x1c\xf9\xff\xe4"  # negative: beyond its end
        port.write(b"\x55\x55\xfe\x03\x0e\xf0")  # who is there?
        assert port.read(14)[5::7] == b"\x01\x02"


def test_lx16a_ignores_what_is_damaged_or_not_for_it(bus):
    with serial.Serial(bus.path, 115200, timeout=0.05) as port:
        port.write(b"\x55\x55\x01\x07\x01\x64\x00\x32\x00\x61")  # checksum
        port.write(b"\x55\x55\x09\x03\x1c\xd7")  # nobody's id
        port.write(b"\x55\x55\x01\xff\x1c\x00")  # length
        assert port.read(1) == b""
        assert bus.servos[1].position_ticks() == 500
        port.timeout = 2
        port.write(b"\x55\x55\x01\x04\x1f\x01\xda\x55\x55\x01\x03\x20\xdb")
        assert port.read(7)[5] == 1  # torque is on
        assert bus.servos[1].torque


def test_waveshare_takes_lines():
    joints = [Joint(), Joint()]
    head = WaveshareHead(joints)
    try:
        with serial.Serial(head.path, 115200) as port:
            port.write(b'{"T":133,"X":45,"Y":-60,"SPD":0,"A')
            port.flush()
            port.write(b'CC":0}\r\nnonsense\n[1]\n{"T":133}\n{"T":7}\n')
            wait_for(lambda: joints[1].targets)
            joints[0].at = 10.0
            port.write(b'{"T":134,"X":5,"Y":5,"SX":30,"SY":40}\n{"T":135}\n')
            wait_for(lambda: len(joints[1].targets) == 3)
        assert joints[0].targets == [(45.0, 0.0), (15.0, 30.0), (10.0, 0.0)]
        assert joints[1].targets == [(-30.0, 0.0), (5.0, 40.0), (0.0, 0.0)]
    finally:
        head.close()
