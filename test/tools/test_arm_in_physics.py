"""Grab and place in MuJoCo, without ROS: the numbers that grasping has to keep."""

from __future__ import annotations

import asyncio
import math
import random
import statistics

import pytest
from mujoco_arm import CUBE, MujocoArm, one_cube, put, somewhere

from lerobot_tool_bridge.core.errors import ToolFailure
from lerobot_tool_bridge.core.tool import CallContext
from lerobot_tool_bridge.ports import Ports
from lerobot_tool_bridge.robot import Robot
from lerobot_tool_bridge.sim.physics import Physics
from lerobot_tool_bridge.tools.arm_grab_object import ArmGrabObject
from lerobot_tool_bridge.tools.arm_place_object import ArmPlaceObject

CONTEXT = CallContext("call00001")


@pytest.fixture
def arm() -> MujocoArm:
    robot = Robot.load("so101")
    return MujocoArm(robot, Physics(robot, one_cube()))


def run(
    arm: MujocoArm, kind: type[ArmGrabObject] | type[ArmPlaceObject], **arguments: float
) -> str:
    tool = kind(Ports(robot=arm.robot, arm=arm))
    return asyncio.run(tool.run(arguments, CONTEXT))


@pytest.mark.parametrize(("count", "yaw_known", "enough"), [(12, True, 12), (6, False, 5)])
def test_cubes_are_lifted_and_placed(
    arm: MujocoArm, count: int, yaw_known: bool, enough: int
) -> None:
    """The benchmark does it with 30 and more; here a few, as a guard."""
    rng = random.Random(11)
    lifted, errors, grabs, places = 0, [], [], []
    for _ in range(count):
        (x, y), (to_x, to_y) = somewhere(rng), somewhere(rng)
        yaw = rng.uniform(-math.pi, math.pi)
        put(arm.physics, "cube", x, y, yaw)
        arm.physics.step(0.2)
        known = {"yaw_deg": math.degrees(yaw)} if yaw_known else {}
        begin = arm.time
        run(arm, ArmGrabObject, x=x, y=y, z=CUBE / 2, **known)
        grabs.append(arm.time - begin)
        if arm.physics.pose("cube").position[2] < 0.04:
            continue
        lifted += 1
        begin = arm.time
        run(arm, ArmPlaceObject, x=to_x, y=to_y, z=CUBE / 2)
        places.append(arm.time - begin)
        arm.physics.step(0.3)
        at = arm.physics.pose("cube").position
        errors.append(math.hypot(at[0] - to_x, at[1] - to_y))
    print(
        f"\n{lifted} of {count} lifted; place error median "
        f"{1000 * statistics.median(errors):.1f} mm, worst {1000 * max(errors):.1f} mm; grab "
        f"{max(grabs):.1f} s, place {max(places):.1f} s; tool point {arm.tool_speed:.3f} m/s"
    )
    assert lifted >= enough
    assert statistics.median(errors) < 0.004
    assert max(grabs) < 8.0
    assert max(places) < 9.0
    if yaw_known:
        assert arm.tool_speed < 0.25
        assert arm.joint_speed < 1.5


def test_empty_place_is_nothing_grasped(arm: MujocoArm) -> None:
    put(arm.physics, "cube", 0.25, 0.1, 0.0)
    with pytest.raises(ToolFailure) as error:
        run(arm, ArmGrabObject, x=0.2, y=-0.1, z=CUBE / 2)
    assert error.value.code == "nothing_grasped"
    home = arm.robot.arm_pose("home")
    assert asyncio.run(arm.positions()) == pytest.approx(home, abs=0.03)


def test_fingers_on_top_of_the_cube_back_off(arm: MujocoArm) -> None:
    """The cube is not quite where it was said to be, and the fixed finger lands on it."""
    aside = arm.robot.grasp.clearance + CUBE / 2
    put(arm.physics, "cube", 0.2, 0.0, 0.0)
    with pytest.raises(ToolFailure) as error:
        run(arm, ArmGrabObject, x=0.2, y=-aside - 0.002, z=CUBE / 2, yaw_deg=90, width=CUBE)
    assert error.value.code in ("tool_error", "nothing_grasped")
    assert arm.physics.pose("cube").position[2] < 0.02
