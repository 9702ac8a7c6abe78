"""One bridge for the tests of a file: starting it takes longer than most of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bridge_client import BridgeProcess, World
from fake_robot import FakeRobot
from harness import Domain, Ros, Spawner


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("bridge")
    domain = Domain()
    ros, spawn = Ros(domain), Spawner(domain, folder)
    robot = FakeRobot(ros.node)
    ros.executor.wake()
    try:
        bridge = BridgeProcess(
            ros,
            spawn,
            server_timeout=1.0,
            cancel_limit=0.5,
            rate_limit=0.0,
            output_dir=str(folder / "observations"),
        )
        yield World(ros, spawn, bridge, robot)
    finally:
        spawn.close()
        robot.close()
        ros.close()
        domain.close()


@pytest.fixture
def bridge(world: World) -> Iterator[BridgeProcess]:
    """The file's bridge; afterwards it must still answer."""
    yield world.bridge
    world.bridge.check_alive()


@pytest.fixture
def robot(world: World) -> Iterator[FakeRobot]:
    """The file's robot, well behaved again afterwards."""
    yield world.robot
    world.robot.measured = True
    for server in world.robot.servers:
        server.behaviour = "succeed"
        server.result = {}
        server.release()
