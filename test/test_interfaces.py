"""interfaces/control_msgs speaks the same language on the wire as control_msgs 6."""

import pytest
from control_msgs.action import FollowJointTrajectory, GripperCommand, ParallelGripperCommand
from control_msgs.msg import GripperCommand as GripperCommandMsg
from control_msgs.msg import JointComponentTolerance, JointTolerance

POINT = "trajectory_msgs/JointTrajectoryPoint"
MULTI_POINT = "trajectory_msgs/MultiDOFJointTrajectoryPoint"
TOLERANCE = {
    "position": "double",
    "velocity": "double",
    "acceleration": "double",
}
GRIPPER = {
    "position": "double",
    "effort": "double",
    "stalled": "boolean",
    "reached_goal": "boolean",
}

# The order counts too: it is the order of the bytes.
FIELDS = [
    (
        FollowJointTrajectory.Goal,
        {
            "trajectory": "trajectory_msgs/JointTrajectory",
            "multi_dof_trajectory": "trajectory_msgs/MultiDOFJointTrajectory",
            "path_tolerance": "sequence<control_msgs/JointTolerance>",
            "component_path_tolerance": "sequence<control_msgs/JointComponentTolerance>",
            "goal_tolerance": "sequence<control_msgs/JointTolerance>",
            "component_goal_tolerance": "sequence<control_msgs/JointComponentTolerance>",
            "goal_time_tolerance": "builtin_interfaces/Duration",
        },
    ),
    (FollowJointTrajectory.Result, {"error_code": "int32", "error_string": "string"}),
    (
        FollowJointTrajectory.Feedback,
        {
            "header": "std_msgs/Header",
            "joint_names": "sequence<string>",
            "desired": POINT,
            "actual": POINT,
            "error": POINT,
            "index": "int32",
            "multi_dof_joint_names": "sequence<string>",
            "multi_dof_desired": MULTI_POINT,
            "multi_dof_actual": MULTI_POINT,
            "multi_dof_error": MULTI_POINT,
            "multi_dof_index": "int32",
        },
    ),
    (GripperCommand.Goal, {"command": "control_msgs/GripperCommand"}),
    (GripperCommand.Result, GRIPPER),
    (GripperCommand.Feedback, GRIPPER),
    (ParallelGripperCommand.Goal, {"command": "sensor_msgs/JointState"}),
    (
        ParallelGripperCommand.Result,
        {"state": "sensor_msgs/JointState", "stalled": "boolean", "reached_goal": "boolean"},
    ),
    (ParallelGripperCommand.Feedback, {"state": "sensor_msgs/JointState"}),
    (GripperCommandMsg, {"position": "double", "max_effort": "double"}),
    (JointTolerance, {"name": "string", **TOLERANCE}),
    (JointComponentTolerance, {"joint_name": "string", "component": "uint16", **TOLERANCE}),
]


@pytest.mark.parametrize(("kind", "fields"), FIELDS, ids=lambda v: getattr(v, "__name__", ""))
def test_fields(kind, fields):
    assert list(kind.get_fields_and_field_types().items()) == list(fields.items())


def test_constants():
    result = FollowJointTrajectory.Result
    assert [
        result.SUCCESSFUL,
        result.INVALID_GOAL,
        result.INVALID_JOINTS,
        result.OLD_HEADER_TIMESTAMP,
        result.PATH_TOLERANCE_VIOLATED,
        result.GOAL_TOLERANCE_VIOLATED,
    ] == [0, -1, -2, -3, -4, -5]
    part = JointComponentTolerance
    axes = [part.X_AXIS, part.Y_AXIS, part.Z_AXIS, part.TRANSLATION, part.ROTATION]
    assert axes == [1, 2, 3, 4, 5]
