"""The virtual robot's head behind every protocol, by the driver's own code for it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from harness import wait_for

from lerobot_tool_bridge.drivers.arm.control import Joint
from lerobot_tool_bridge.drivers.gimbal.protocol import PROTOCOLS, Axis, find
from lerobot_tool_bridge.node.managed import NodeError
from lerobot_tool_bridge.robot import Robot
from lerobot_tool_bridge.sim.head import make_head
from lerobot_tool_bridge.sim.physics import Physics
from lerobot_tool_bridge.sim.scene import Scene

ROBOT = Robot.load("so101")


@pytest.fixture(scope="module")
def physics() -> Iterator[Physics]:
    physics = Physics(ROBOT, Scene(), 60.0)
    physics.start()
    yield physics
    physics.stop()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_head_turns_where_its_driver_sends_it(physics: Physics, protocol: str) -> None:
    assert ROBOT.gimbal is not None
    servos = [physics.servos[j] for j in ROBOT.gimbal.joints]
    device = make_head(protocol, [1, 2], servos)
    axes = [
        Axis(Joint(name, 0.0, math.radians(270), 3.0), i + 1, index=i)
        for i, name in enumerate(ROBOT.gimbal.joints)
    ]
    head = find(protocol)(device.path, 0, axes)
    try:
        head.hold()
        for target in ((100.0, 120.0), (170.0, 150.0)):
            wanted = [math.radians(v) for v in target]

            def there(wanted: list[float] = wanted) -> bool:
                head.write(wanted, 0.3)
                measured = head.read()
                real = [s.position for s in servos]
                told = real if measured is None else measured.positions
                pairs = [*zip(real, wanted, strict=True), *zip(told, real, strict=True)]
                return all(abs(a - b) < 0.04 for a, b in pairs)

            wait_for(there)
    finally:
        head.close()
        device.close()


def test_a_protocol_that_is_not_emulated(physics: Physics) -> None:
    with pytest.raises(NodeError, match="morse"):
        make_head("morse", [1, 2], [])
