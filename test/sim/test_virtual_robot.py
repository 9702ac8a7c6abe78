"""The node: devices appear and go, the stream opens, the truth is published."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import cv2
import pytest
from harness import Process, Ros, Spawner, wait_for
from std_srvs.srv import Trigger
from visualization_msgs.msg import Marker, MarkerArray

from lerobot_tool_bridge.bringup import free_port
from lerobot_tool_bridge.drivers.feetech.bus import ServoBus
from lerobot_tool_bridge.sim.scene import Scene

MODULE = "lerobot_tool_bridge.sim.virtual_robot"


def _start(spawn: Spawner, folder: Path, **parameters: Any) -> Process:
    return spawn.node(MODULE, device_dir=str(folder), **{"camera_port": 0, **parameters})


def _positions(arrays: list[MarkerArray]) -> dict[str, tuple[float, float, float]]:
    if not arrays:
        return {}
    return {
        m.ns: (m.pose.position.x, m.pose.position.y, m.pose.position.z) for m in arrays[-1].markers
    }


def test_objects_devices_and_stream(ros: Ros, spawn: Spawner, tmp_path: Path) -> None:
    port = free_port()
    process = _start(spawn, tmp_path / "dev", camera_port=port)
    arrays = ros.collect(MarkerArray, "virtual_robot/objects")
    scene = {o.name: o for o in Scene.load("cubes").objects}
    wait_for(lambda: len(arrays) > 3)
    for marker in arrays[-1].markers:
        assert marker.header.frame_id == "base_link"
        assert (marker.type, marker.action) == (Marker.CUBE, Marker.ADD)
        assert marker.scale.x == pytest.approx(scene[marker.ns].size[0])
        assert (marker.color.r, marker.color.g) == pytest.approx(scene[marker.ns].color[:2])
    found = _positions(arrays)
    assert set(found) == set(scene)
    for name, position in found.items():
        assert position == pytest.approx(scene[name].position, abs=1e-3)

    # somebody moves a cube, and everything is put back
    mover = ros.node.create_publisher(Marker, "virtual_robot/move_object", 10)
    wait_for(lambda: mover.get_subscription_count() > 0)
    mover.publish(Marker(ns="nothing"))  # is warned about, and changes nothing
    marker = Marker(ns="red_cube")
    marker.pose.position.x, marker.pose.position.z = 0.3, 0.0125
    mover.publish(marker)
    wait_for(lambda: _positions(arrays)["red_cube"] == pytest.approx((0.3, 0, 0.0125), abs=1e-3))
    assert ros.call(Trigger, "virtual_robot/reset").success
    home = scene["red_cube"].position
    wait_for(lambda: _positions(arrays)["red_cube"] == pytest.approx(home, abs=1e-3))

    # the arm answers on its port
    bus = ServoBus.open(str(tmp_path / "dev" / "arm"))
    assert bus.scan(range(1, 8)) == [1, 2, 3, 4, 5, 6]
    bus.close()

    capture = cv2.VideoCapture(f"http://127.0.0.1:{port}/stream")
    good, image = capture.read()
    capture.release()
    assert good
    assert image.shape == (480, 640, 3)
    assert image.std() > 10

    process.signal(signal.SIGINT)
    assert process.wait() == 0
    assert "Traceback" not in process.output
    assert not os.path.lexists(tmp_path / "dev" / "arm")
    assert not os.path.lexists(tmp_path / "dev" / "gimbal")


def test_stale_links_are_replaced_and_files_are_not(spawn: Spawner, tmp_path: Path) -> None:
    dead = _start(spawn, tmp_path)
    dead.wait_output("Virtual so101 at")
    dead.popen.kill()
    dead.popen.wait()
    assert os.path.lexists(tmp_path / "arm")

    again = _start(spawn, tmp_path)
    again.wait_output("Virtual so101 at")
    second = _start(spawn, tmp_path, autostart_timeout=0.0)
    second.wait_output("Another virtual robot has its devices in")
    again.signal(signal.SIGTERM)
    again.wait()

    (tmp_path / "arm").write_text("a letter")
    third = _start(spawn, tmp_path, autostart_timeout=0.0)
    third.wait_output("is not a link of a virtual robot")
    third.signal(signal.SIGTERM)
    assert third.wait() == 0
    assert (tmp_path / "arm").read_text() == "a letter"
    assert not os.path.lexists(tmp_path / "gimbal")


def test_a_missing_gl_library_is_one_line(spawn: Spawner) -> None:
    broken = spawn(
        sys.executable,
        "-m",
        MODULE,
        env={"MUJOCO_GL": "osmesa", "PYOPENGL_PLATFORM": "nonsense"},
    )
    assert broken.wait() == 1
    errors = [line for line in broken.output.splitlines() if line.strip()]
    assert len(errors) == 1
    assert "apt install libegl1" in errors[0]


def test_faults_of_the_scene_end_it_with_one_line(spawn: Spawner, tmp_path: Path) -> None:
    process = _start(spawn, tmp_path, scene="moon")
    assert process.wait() == 1
    assert len(process.output.strip().splitlines()) == 1
    assert "There is no scene file" in process.output
