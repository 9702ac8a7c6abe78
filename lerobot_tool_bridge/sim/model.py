"""The physics model, made out of the robot's URDF and a scene."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from lerobot_tool_bridge.core.errors import LoadError
from lerobot_tool_bridge.robot import Robot
from lerobot_tool_bridge.sim.gl import load_mujoco
from lerobot_tool_bridge.sim.scene import Object, Scene

CAMERA = "camera"
"""The camera's name in the model."""

TIMESTEP = 0.0025
"""Seconds. Contacts get as stiff as two steps allow; at 5 ms the fingers sink 4 mm into a cube."""

_FLOOR = -0.72  # metres under the table's top

# A bus servo with LeRobot's proportional gain of 16, as identified for the STS3215.
_SERVO_KP, _SERVO_KV, _SERVO_ARMATURE = 998.22, 2.731, 0.028
# A hobby servo under a camera of 50 g.
_HEAD_KP, _HEAD_KV, _HEAD_ARMATURE = 30.0, 0.8, 0.002

# Fingers: torsional and rolling friction keep a thing from turning between two pads.
_FINGER_FRICTION = [1.0, 5e-3, 5e-4]
_STIFF = [2 * TIMESTEP, 1.0]
_STIFF_IMPEDANCE = [0.97, 0.99, 0.001, 0.5, 2.0]


def build(robot: Robot, scene: Scene, camera_fovy_deg: float = 60.0) -> Any:
    """The compiled ``MjModel``.

    Bodies and joints have the URDF's names; each driven joint has an actuator, and each object of
    the scene a body, of the same name.

    Raises:
        LoadError: MuJoCo can't use the URDF or the scene.
    """
    mujoco = load_mujoco()
    try:
        spec = mujoco.MjSpec.from_string(_urdf(robot.urdf))
        _options(mujoco, spec)
        _fingers(robot, spec)
        _actuators(mujoco, robot, spec)
        _surroundings(mujoco, spec, scene)
        for thing in scene.objects:
            _object(mujoco, spec, thing)
        if robot.camera is not None:
            # the optical frame looks along +z with y down, MuJoCo's cameras along -z with y up
            spec.body(robot.camera.frame).add_camera(
                name=CAMERA, fovy=camera_fovy_deg, quat=[0.0, 1.0, 0.0, 0.0]
            )
        return spec.compile()
    except (ValueError, AttributeError) as error:
        raise LoadError(
            "bad_file", f"MuJoCo can't make a model of {robot.urdf} and the scene: {error}"
        ) from error


def _urdf(path: Path) -> str:
    """The URDF with what MuJoCo has to be told: keep fixed links, and shapes that only show."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        raise LoadError("bad_file", f"{path} is no URDF that can be read: {error}") from None
    compiler = ElementTree.SubElement(ElementTree.SubElement(root, "mujoco"), "compiler")
    compiler.set("fusestatic", "false")
    compiler.set("discardvisual", "false")
    compiler.set("strippath", "false")
    compiler.set("meshdir", str(path.parent))
    return ElementTree.tostring(root, encoding="unicode")


def velocity_limits(path: Path) -> dict[str, float]:
    """Speed limits of the URDF's joints, which MuJoCo leaves out; rad/s or m/s."""
    limits = ElementTree.parse(path).getroot().iterfind("joint[limit]")
    return {
        j.attrib["name"]: float(j.find("limit").attrib.get("velocity", math.inf))  # type: ignore[union-attr]
        for j in limits
    }


def _options(mujoco: Any, spec: Any) -> None:
    spec.option.timestep = TIMESTEP
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.impratio = 10.0
    spec.option.noslip_iterations = 3
    spec.visual.quality.offsamples = 0  # both cost more than the rest of the picture
    spec.visual.quality.shadowsize = 1024
    spec.visual.global_.offwidth = 1920
    spec.visual.global_.offheight = 1080
    spec.visual.map.znear = 0.02
    spec.visual.headlight.ambient = [0.4, 0.4, 0.4]
    spec.visual.headlight.diffuse = [0.25, 0.25, 0.25]
    spec.visual.headlight.specular = [0.0, 0.0, 0.0]
    spec.stat.extent = 1.0


def _fingers(robot: Robot, spec: Any) -> None:
    if robot.gripper is None:
        return
    jaw = spec.joint(robot.gripper.joint).parent
    for geom in (*jaw.geoms, *jaw.parent.geoms):
        if geom.contype:
            geom.condim = 6
            geom.friction = _FINGER_FRICTION
            geom.solref = _STIFF
            geom.solimp = _STIFF_IMPEDANCE
            geom.priority = 1


def driven_joints(robot: Robot) -> tuple[str, ...]:
    """The joints that have a servo: the arm's, the gripper's and the head's."""
    arm = robot.arm.joints if robot.arm is not None else ()
    gripper = (robot.gripper.joint,) if robot.gripper is not None else ()
    return (*arm, *gripper, *(robot.gimbal.joints if robot.gimbal is not None else ()))


def _actuators(mujoco: Any, robot: Robot, spec: Any) -> None:
    head = robot.gimbal.joints if robot.gimbal is not None else ()
    for name in driven_joints(robot):
        in_head = name in head
        spec.joint(name).armature = _HEAD_ARMATURE if in_head else _SERVO_ARMATURE
        actuator = spec.add_actuator(
            name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT, forcelimited=True
        )
        actuator.set_to_position(
            kp=_HEAD_KP if in_head else _SERVO_KP, kv=_HEAD_KV if in_head else _SERVO_KV
        )
        actuator.forcerange = spec.joint(name).actfrcrange  # the URDF's effort


def _surroundings(mujoco: Any, spec: Any, scene: Scene) -> None:
    world = spec.worldbody
    spec.add_texture(
        name="sky",
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=[0.75, 0.78, 0.82],
        rgb2=[0.5, 0.52, 0.55],
        width=64,
        height=384,
    )
    world.add_light(
        pos=[0.3, 0.4, 1.6],
        dir=[-0.05, -0.2, -1.0],
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        diffuse=[0.4, 0.4, 0.4],
        specular=[0.05, 0.05, 0.05],
        castshadow=True,
    )
    x, y = scene.table_center
    width, depth = scene.table_size
    world.add_geom(
        name="table",
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=[width / 2, depth / 2, 0.015],
        pos=[x, y, -0.015],
        rgba=list(scene.table_color),
    )
    world.add_geom(
        name="floor",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[3.0, 3.0, 0.1],
        pos=[0.0, 0.0, _FLOOR],
        rgba=[0.55, 0.56, 0.58, 1.0],
    )


def _object(mujoco: Any, spec: Any, thing: Object) -> None:
    half = [v / 2 for v in thing.size]
    kind, size = {
        "box": (mujoco.mjtGeom.mjGEOM_BOX, half),
        "cylinder": (mujoco.mjtGeom.mjGEOM_CYLINDER, [*half, 0.0]),
        "sphere": (mujoco.mjtGeom.mjGEOM_SPHERE, [*half, 0.0, 0.0]),
    }[thing.shape]
    body = spec.worldbody.add_body(
        name=thing.name,
        pos=list(thing.position),
        quat=[math.cos(thing.yaw / 2), 0.0, 0.0, math.sin(thing.yaw / 2)],
    )
    body.add_freejoint(name=thing.name)
    body.add_geom(
        name=thing.name,
        type=kind,
        size=size,
        mass=thing.mass,
        rgba=list(thing.color),
        condim=4,
        solref=_STIFF,
    )
