"""Servos, things and time in the virtual robot's physics, without ROS."""

import math
import time

import numpy as np
import pytest

from lerobot_tool_bridge.robot import Robot
from lerobot_tool_bridge.sim.physics import Physics, Pose
from lerobot_tool_bridge.sim.scene import Scene
from lerobot_tool_bridge.sim.servos import BusServo, HobbyServo

ROBOT = Robot.load("so101")
assert ROBOT.arm is not None


def _physics(torque: bool = True) -> Physics:
    physics = Physics(ROBOT, Scene.load("cubes"))
    for servo in physics.servos.values():
        servo.set_goal(servo.position)
        servo.set_torque(torque)
    return physics


def test_things_stay_where_the_scene_has_them() -> None:
    physics = _physics()
    physics.step(5.0)
    for name, thing in physics.objects.items():
        assert physics.pose(name).position == pytest.approx(thing.position, abs=5e-4)
    assert np.isfinite(physics.data.qpos).all()


def test_things_can_be_moved_and_put_back() -> None:
    physics = _physics()
    physics.move_object("red_cube", Pose((0.3, -0.1, 0.1), (0.0, 0.0, 0.0, 0.0)))
    physics.step(1.0)
    assert physics.pose("red_cube").position == pytest.approx((0.3, -0.1, 0.0125), abs=5e-3)
    physics.reset_objects()
    assert physics.pose("red_cube").position == pytest.approx(
        physics.objects["red_cube"].position, abs=1e-9
    )
    with pytest.raises(KeyError):
        physics.move_object("nothing", Pose((0, 0, 0), (1, 0, 0, 0)))


def test_a_servo_goes_to_its_goal_no_faster_than_it_may() -> None:
    physics = _physics()
    servo = physics.servos["shoulder_pan"]
    start = servo.position
    servo.set_speed_limit(0.5)
    servo.set_goal(start - 1.0)
    physics.step(1.0)
    assert servo.position == pytest.approx(start - 0.5, abs=0.03)
    assert servo.velocity == pytest.approx(-0.5, abs=0.1)
    physics.step(2.0)
    assert servo.position == pytest.approx(start - 1.0, abs=2e-3)


def test_the_arm_holds_up_with_torque_and_sinks_without() -> None:
    physics = _physics()
    for joint, goal in zip(ROBOT.arm.joints, (0.0, 0.0, 0.0, 0.0, 0.0), strict=True):
        physics.servos[joint].set_goal(goal)
    physics.step(3.0)
    stretched = physics.pose("tool").position
    assert stretched[2] > 0.2
    assert physics.servos["shoulder_lift"].position == pytest.approx(0.0, abs=5e-3)
    for joint in ROBOT.arm.joints:
        physics.servos[joint].set_torque(False)
    physics.step(3.0)
    assert physics.pose("tool").position[2] < stretched[2] - 0.1


def test_a_held_joint_pulls_with_what_it_may_and_says_so() -> None:
    physics = _physics()
    servo = physics.servos["gripper"]
    bus = BusServo(servo)
    physics.move_object("red_cube", Pose((0.0, 0.0, -0.5), (1, 0, 0, 0)))
    servo.set_goal(servo.low - 0.5)  # against its stop
    physics.step(1.0)
    assert bus.load() == pytest.approx(-1.0, abs=0.02)
    bus.set_torque_limit(0.3)
    physics.step(0.1)
    assert bus.load() == pytest.approx(-0.3, abs=0.02)


def test_bus_servos_count_in_ticks_about_2048() -> None:
    physics = _physics()
    bus = BusServo(physics.servos["wrist_roll"])
    assert bus.position_ticks() == pytest.approx(2048, abs=1)
    bus.set_goal(2048 + 1024)
    physics.step(2.0)
    assert bus.position_ticks() == pytest.approx(3072, abs=2)
    assert physics.servos["wrist_roll"].position == pytest.approx(math.pi / 2, abs=3e-3)


def test_hobby_servos_take_the_time_that_they_are_given() -> None:
    physics = _physics()
    servo = physics.servos["gimbal_pan"]
    head = HobbyServo(servo)
    assert servo.position == pytest.approx(math.radians(135))
    head.set_target(500 + 90 * 2000 / 270, 1000.0)
    physics.step(0.5)
    assert math.degrees(servo.position) == pytest.approx(112.5, abs=3)
    physics.step(1.0)
    assert math.degrees(servo.position) == pytest.approx(90, abs=0.5)


def test_time_passes_in_the_thread() -> None:
    physics = _physics()
    physics.start()
    try:
        start, since = physics.data.time, time.monotonic()
        while physics.data.time < start + 0.5:
            assert time.monotonic() < since + 20, "half a second took 20"
            time.sleep(0.01)
        assert time.monotonic() > since + 0.3  # and not as fast as it can
    finally:
        physics.stop()
    stopped = physics.data.time
    time.sleep(0.05)
    assert physics.data.time == stopped
