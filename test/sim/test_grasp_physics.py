"""The physics alone grasps: cubes are picked up and put down with no driver and no tool."""

import math

import numpy as np
import pytest

from lerobot_tool_bridge.kinematics.chain import Chain
from lerobot_tool_bridge.kinematics.ik import Solver
from lerobot_tool_bridge.robot import Robot
from lerobot_tool_bridge.sim.physics import Physics, Pose
from lerobot_tool_bridge.sim.scene import Object, Scene

ROBOT = Robot.load("so101")
assert ROBOT.arm is not None
assert ROBOT.gripper is not None
SOLVER = Solver(Chain.of(ROBOT))
LIFT = ROBOT.grasp.hover


class Hand:
    """The arm's servos, driven straight."""

    def __init__(self, size: float) -> None:
        cube = Object("cube", "box", (size,) * 3, (0.2, 0.0, size / 2), 0.0, (1, 0, 0, 1), 0.015)
        self.physics = Physics(ROBOT, Scene(objects=(cube,)))
        self.arm = [self.physics.servos[j] for j in ROBOT.arm.joints]
        self.gripper = self.physics.servos[ROBOT.gripper.joint]
        for servo in self.physics.servos.values():
            servo.set_goal(servo.position)
            servo.set_torque(True)

    def go(self, q: np.ndarray) -> None:
        start = np.array([s.position for s in self.arm])
        steps = math.ceil(max(0.1, float(np.abs(q - start).max())) / 0.02)
        for share in np.linspace(0, 1, steps + 1)[1:]:
            for servo, goal in zip(self.arm, start + share * (q - start), strict=True):
                servo.set_goal(goal)
            self.physics.step(0.02)

    def grip(self, position: float, effort: float = 0.0) -> None:
        self.gripper.set_torque_limit(effort / 2.94 if effort else 1.0)
        self.gripper.set_speed_limit(2.0)
        self.gripper.set_goal(position)
        self.physics.step(1.0)

    def way(self, centre: np.ndarray, yaws: list[float], aside: float) -> list[np.ndarray]:
        """Poses from hovering down to a thing's centre, the fixed finger ``aside`` of it."""
        for pitch in np.radians([90, 80, 70, 60]):
            for yaw in yaws:
                approach, closing = SOLVER.directions(centre, pitch, yaw)
                low = centre - closing * aside
                points = np.array([low - approach * LIFT, low])
                ends = SOLVER.solve(points, [pitch] * 2, [yaw] * 2)
                if ends.solved.all():
                    line = SOLVER.line(*ends.q, points, float(pitch), yaw, 6)
                    if line is not None:
                        return list(line)
        raise AssertionError(f"{centre} is out of reach")

    def down_and_up(self, way: list[np.ndarray], position: float, effort: float = 0.0) -> None:
        for q in way:
            self.go(q)
        self.physics.step(0.2)
        self.grip(position, effort)
        for q in reversed(way):
            self.go(q)

    @property
    def cube(self) -> np.ndarray:
        return np.array(self.physics.pose("cube").position)


@pytest.mark.parametrize("size", [0.02, 0.025, 0.035])
def test_cubes_are_lifted_held_and_put_down(size: float) -> None:
    rng = np.random.default_rng(7)
    hand = Hand(size)
    quarter = math.pi / 2
    for _ in range(2):
        radius, azimuth = rng.uniform(0.15, 0.28, 2), rng.uniform(-math.pi / 3, math.pi / 3, 2)
        x, y = radius * np.cos(azimuth), radius * np.sin(azimuth)
        yaw = float(rng.uniform(-math.pi, math.pi))
        turn = (math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2))
        hand.go(np.array(ROBOT.arm_pose("home")))
        hand.physics.move_object("cube", Pose((x[0], y[0], size / 2), turn))
        hand.grip(ROBOT.gripper.open)

        yaws = [yaw + k * quarter for k in range(4)]
        way = hand.way(hand.cube, yaws, size / 2 + ROBOT.grasp.clearance)
        hand.down_and_up(way, ROBOT.gripper.closed, ROBOT.gripper.max_effort)
        assert hand.cube[2] > size / 2 + 0.8 * LIFT
        widths = np.array(ROBOT.gripper.widths)
        width = np.interp(hand.gripper.position, widths[:, 0], widths[:, 1])
        assert width == pytest.approx(size, abs=0.004)
        assert abs(hand.gripper.load) * 2.94 > ROBOT.gripper.held_effort

        target = np.array([x[1], y[1], size / 2 + 0.001])
        way = hand.way(target, list(np.radians(range(-180, 180, 20))), size / 2)
        hand.down_and_up(way, ROBOT.gripper.open)
        hand.physics.step(0.3)
        assert hand.cube == pytest.approx(target, abs=0.008)


def test_a_hand_that_closes_on_nothing_measures_nothing() -> None:
    hand = Hand(0.025)
    hand.grip(ROBOT.gripper.open)
    hand.grip(ROBOT.gripper.closed, ROBOT.gripper.max_effort)
    widths = np.array(ROBOT.gripper.widths)
    assert np.interp(hand.gripper.position, widths[:, 0], widths[:, 1]) < ROBOT.gripper.held_width
    assert abs(hand.gripper.load) * 2.94 < ROBOT.gripper.held_effort
