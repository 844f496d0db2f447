"""Limits beside the URDF, as MoveIt's configurations give them to the node: files and parameters."""

import pytest

pytest.importorskip("moveit_msgs.msg", reason="the ROS package moveit_msgs is not installed")

import moveit_messages as messages
import numpy as np
import yaml
from moveit_msgs.msg import MoveItErrorCodes
from node_harness import joints
from panda_files import ARM, LIMITS, READY, URDF
from pinocchio_poses import pinocchio_poses
from rclpy.parameter import Parameter
from test_moveit_panda import PandaNode

from gpu_planners.errors import SettingsError
from gpu_planners.nodes.arm.conversions import trajectory_of
from gpu_planners_msgs.srv import PlanMotion

TIP = "panda_link8"
CODES = MoveItErrorCodes
GOAL = (0.8, -0.5, 0.3, -2.0, 0.1, 1.7, 0.5)
FILE = {
    "default_velocity_scaling_factor": 0.5,
    "joint_limits": {
        "panda_joint1": {"has_velocity_limits": True, "max_velocity": 1.0},
        "panda_joint2": {"has_velocity_limits": True, "max_velocity": 1.5, "has_acceleration_limits": False},
        "panda_finger_joint1": {"has_velocity_limits": True, "max_velocity": 0.1},
    },
}
FILES = {"joint": "joint_limits.yaml", "cartesian": "pilz_cartesian_limits.yaml"}
ROOT = "robot_description_planning"
PARAMETERS = {
    f"{ROOT}.joint_limits.panda_joint1.has_velocity_limits": True,
    f"{ROOT}.joint_limits.panda_joint1.max_velocity": 0.8,
    f"{ROOT}.joint_limits.panda_joint1.has_acceleration_limits": True,
    f"{ROOT}.joint_limits.panda_joint1.max_acceleration": 2,  # YAML makes an integer of it
    f"{ROOT}.default_acceleration_scaling_factor": 0.25,
    f"{ROOT}.cartesian_limits.max_trans_acc": 2.25,
    f"{ROOT}.cartesian_limits.max_rot_vel": 1.57,
}
PILZ = {"cartesian_limits": {"max_trans_vel": 0.2, "max_trans_acc": 9.0, "max_trans_dec": -0.8, "max_rot_vel": 0.5}}


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limits")
    (folder / "joint_limits.yaml").write_text(yaml.safe_dump(FILE))
    (folder / "pilz_cartesian_limits.yaml").write_text(yaml.safe_dump(PILZ))
    files = {f"{name}_limits_file": str(folder / file) for name, file in FILES.items()}
    given = files | PARAMETERS
    node = PandaNode(folder, group="panda_arm", **given)
    yield node
    node.close()


def fastest(motion):
    """(dof,) greatest velocities and accelerations at the points of a JointTrajectory."""
    return (
        np.abs([list(getattr(p, what)) for p in motion.points]).max(axis=0) for what in ("velocities", "accelerations")
    )


def test_what_the_limits_are_and_where_they_are_from_is_told(node):
    facts = node.facts
    assert facts["limits of panda_joint1"] == (
        "position -2.897 to 2.897 rad (soft limit), velocity 0.8 rad/s (parameters), "
        "acceleration 2 rad/s^2 (parameters), jerk none"
    )
    assert "velocity 1.5 rad/s (joint_limits.yaml), acceleration 3 rad/s^2 (assumed)" in facts["limits of panda_joint2"]
    assert "velocity 2.871 rad/s (URDF)" in facts["limits of panda_joint7"]


def test_the_parameters_are_declared_and_cannot_be_changed(node):
    name = f"{ROOT}.joint_limits.panda_joint1.max_velocity"
    assert node.node.get_parameter(name).value == 0.8
    (answer,) = node.node.set_parameters([Parameter(name, value=9.0)])
    assert not answer.successful


@pytest.mark.parametrize(("asked", "share"), [(0.0, (0.5, 0.25)), (0.9, (0.9, 0.9)), (1.0, (1.0, 1.0))])
def test_motions_keep_them_and_the_default_scaling_counts_where_a_request_has_none(node, asked, share):
    velocity = np.array([0.8, 1.5, *(limit[2] for limit in LIMITS[2:])])
    acceleration = np.array([2.0, 3.0, *(2 * limit[2] for limit in LIMITS[2:])])
    message = messages.motion_request(messages.joint_goal(GOAL, names=ARM), start=None)
    message.start_state = messages.state(READY, ARM)
    message.max_velocity_scaling_factor = message.max_acceleration_scaling_factor = asked
    _, result = node.move(message)
    assert result.error_code.val == CODES.SUCCESS, result.error_code.message
    own = PlanMotion.Request(start=joints(READY, ARM), joint_goals=[joints(GOAL, ARM)])
    own.velocity_scaling = own.acceleration_scaling = asked
    for motion in (result.planned_trajectory.joint_trajectory, node.plan(own).trajectory):
        fast, rising = fastest(motion)
        assert (fast <= share[0] * velocity * 1.001).all() and (fast / velocity).max() > 0.5 * share[0]
        assert (rising <= share[1] * acceleration * 1.001).all() and (rising / acceleration).max() > 0.9 * share[1]


@pytest.mark.parametrize("asked", [0.0, 0.3, 1.0])
def test_the_tool_keeps_cartesian_limits_on_lines(node, asked):
    """Speed of the file; acceleration the smaller one, which is the file's deceleration."""
    T = tips(READY)[0]
    T[:3, 3] += 0.0, 0.25, -0.1
    goal = messages.pose_goal(TIP, T, "panda_link0")
    message = messages.motion_request(goal, start=None, planner_id="LIN", pipeline_id="pilz_industrial_motion_planner")
    message.start_state = messages.state(READY, ARM)
    message.max_velocity_scaling_factor = message.max_acceleration_scaling_factor = asked
    _, result = node.move(message)
    assert result.error_code.val == CODES.SUCCESS, result.error_code.message
    motion = trajectory_of(result.planned_trajectory.joint_trajectory)
    times = np.linspace(0, motion.duration, 2001)
    speed = np.linalg.norm(np.diff(tips(motion.at(times)[0])[:, :3, 3], axis=0), axis=1) / times[1]
    velocity, acceleration = (asked, asked) if asked else (0.5, 0.25)
    assert 0.7 * 0.2 * velocity < speed.max() <= 0.2 * velocity * 1.005
    assert np.abs(np.diff(speed)).max() / times[1] <= 0.8 * acceleration * 1.01


@pytest.mark.parametrize("planner", ["", "PTP", "LIN"])
def test_a_robot_beyond_its_soft_limits_gets_back(node, planner):
    start = list(READY)
    start[3] = 0.08  # of -3.0716 to 0.0173 by the soft limits, to 0.0873 by the URDF
    message = messages.motion_request(messages.joint_goal(READY, names=ARM), start=None, planner_id=planner)
    message.start_state = messages.state(start, ARM)
    _, result = node.move(message)
    if planner == "LIN":
        assert result.error_code.val == CODES.PLANNING_FAILED
        assert "joint limits: at the start 'panda_joint4' is at 0.08" in result.error_code.message
        return
    assert result.error_code.val == CODES.SUCCESS, result.error_code.message
    path = messages.path_of(result.planned_trajectory)
    np.testing.assert_allclose(path[[0, -1]], [start, READY], atol=1e-4)
    assert path[:, 3].max() <= start[3]
    back = messages.motion_request(messages.joint_goal(start, names=ARM), start=None, planner_id=planner)
    back.start_state = messages.state(READY, ARM)
    assert node.move(back)[1].error_code.val == CODES.GOAL_STATE_INVALID


def tips(q):
    return pinocchio_poses(URDF, ARM, np.atleast_2d(q))[TIP]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({f"{ROOT}.joint_limits.panda_joint1.max_velocity": "fast"}, "parameters: joint 'panda_joint1', max_velocity"),
        ({f"{ROOT}.joint_limits.panda_joint1.max_velosity": 1.0}, "nearest: max_velocity"),
        ({f"{ROOT}.joint_limit.panda_joint1.max_velocity": 1.0}, "'joint_limit' is unknown .nearest: joint_limits"),
        ({"joint_limits_file": "/nowhere/joint_limits.yaml"}, "'/nowhere/joint_limits.yaml' cannot be read"),
    ],
)
def test_mistakes_end_the_node_with_their_names(given, told, tmp_path):
    with pytest.raises(SettingsError, match=told):
        PandaNode(tmp_path, **given)
