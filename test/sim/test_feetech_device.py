"""The emulated servo bus, asked by a client that shares no code with it."""

from __future__ import annotations

import math
import os

import pytest
from harness import wait_for

from lerobot_tool_bridge.drivers.feetech import registers as reg
from lerobot_tool_bridge.sim.devices.feetech import FeetechBus, SimpleServo

rustypot = pytest.importorskip("rustypot")

IDS = [1, 2, 3, 4, 5, 6]


@pytest.fixture
def bus(tmp_path):
    with FeetechBus({i: SimpleServo() for i in IDS}, tmp_path / "arm") as bus:
        yield bus


@pytest.fixture
def client(bus):
    client = rustypot.Sts3215PyController(bus.port, 1_000_000, 0.2)
    yield client
    client.close()


def test_ping_and_scan(bus, client):
    assert client.ping(1)
    assert not client.ping(9)
    assert client.scan() == dict.fromkeys(IDS, 777)
    bus.missing = {4}
    assert not client.ping(4)


def test_registers_are_where_the_client_looks(bus, client):
    assert client.read_id(5) == [5]
    assert client.read_model(5) == [777]
    assert client.read_present_voltage(1) == [74]
    assert client.read_present_temperature(1) == [30]
    assert client.read_max_voltage_limit(1) == [80]
    assert client.read_raw_max_position_limit(1) == [4095]
    assert client.read_lock(1) == [True]
    bus.poke(2, reg.HOMING_OFFSET, -1411)
    assert client.read_raw_homing_offset(2)[0] & 0xFFFF == 0x0800 | 1411


def test_sync_write_moves_and_sync_read_measures(bus, client):
    client.sync_write_torque_enable(IDS, [True] * 6)
    client.sync_write_raw_goal_position(IDS, [2048 + 100 * i for i in IDS])
    wait_for(
        lambda: client.sync_read_raw_present_position(IDS) == [2048 + 100 * i for i in IDS],
        5.0,
    )
    degrees = [math.degrees(v) for v in client.sync_read_present_position([1, 2])]
    assert degrees == pytest.approx([100 * 360 / 4096, 200 * 360 / 4096], abs=0.1)


def test_torque_off_lets_go_and_a_goal_takes_hold_again(bus, client):
    client.write_torque_enable(1, False)
    assert not bus.servos[1].torque
    bus.servos[1].place(1000)
    assert client.read_raw_present_position(1) == [1000]
    client.write_raw_goal_position(1, 1200)  # turns torque on by itself
    assert client.read_torque_enable(1) == [True]
    wait_for(lambda: client.read_raw_present_position(1) == [1200], 5.0)


def test_goal_velocity_and_torque_limit_reach_the_servo(bus, client):
    client.write_raw_goal_velocity(1, 400)
    client.write_raw_goal_position(1, 3000)
    speeds = []
    wait_for(lambda: speeds.append(client.read_raw_present_velocity(1)[0]) or len(speeds) > 10)
    assert max(speeds) <= 420
    client.write_torque_limit(1, 300)
    assert bus.servos[1].torque_limit == pytest.approx(0.3)
    bus.servos[1].high = 2100.0
    wait_for(lambda: client.read_present_load(1)[0] & 0x7FFF == 300, 5.0)


def test_a_servo_turns_no_farther_than_its_own_limits(bus, client):
    bus.poke(1, reg.MIN_POSITION, 1500)
    bus.poke(1, reg.MAX_POSITION, 2500)
    bus.poke(1, reg.HOMING_OFFSET, 100)
    client.write_raw_goal_position(1, 4000)
    wait_for(lambda: client.read_raw_present_position(1) == [2500], 5.0)
    assert bus.servos[1].position_ticks() == pytest.approx(2600, abs=1)


def test_memory_without_power(bus, client):
    """What was written to the EEPROM while it was locked is gone with the power."""
    client.write_raw_min_position_limit(1, 100)
    client.write_lock(2, False)
    client.write_raw_min_position_limit(2, 100)
    client.write_lock(2, True)
    client.write_torque_enable(2, True)
    bus.power_cycle()
    assert client.sync_read_raw_min_position_limit([1, 2]) == [0, 100]
    assert client.read_torque_enable(2) == [False]


def test_a_pulled_plug_takes_the_port_away_and_keeps_the_servos(bus, tmp_path):
    first = rustypot.Sts3215PyController(bus.port, 1_000_000, 0.2)
    first.write_raw_goal_position(1, 2500)
    bus.unplug()
    assert not os.path.lexists(bus.port)
    with pytest.raises(Exception, match=r"(?s).*"):
        first.read_raw_present_position(1)
    first.close()
    bus.plug()
    second = rustypot.Sts3215PyController(bus.port, 1_000_000, 0.2)
    wait_for(lambda: second.read_raw_present_position(1) == [2500], 5.0)
    assert second.read_torque_enable(1) == [True]
    second.close()
