"""Messages to types and back: each field, frame and mistake, without a running node."""

import re
from dataclasses import dataclass

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

import rclpy
from checkout import ROOT
from geometry_msgs.msg import Point
from node_harness import joints, marker, pose_goal
from rclpy.node import Node
from rclpy.parameter import Parameter
from running_node import new_context
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import Marker

from gpu_planners.arm import Status
from gpu_planners.arm.geometry.shapes import ShapeKind
from gpu_planners.arm.trajectory import time_parameterize
from gpu_planners.errors import DeviceError, ObstacleError
from gpu_planners.nodes.arm import codes as error_codes
from gpu_planners.nodes.arm import conversions
from gpu_planners.nodes.arm.marker_objects import marker_object
from gpu_planners.nodes.common.parameters import declare
from gpu_planners.nodes.common.request_error import RequestError
from gpu_planners.settings import Described, setting
from gpu_planners_msgs.srv import PlanMotion

T_ROOT_SHELF = np.eye(4)
T_ROOT_SHELF[:3, :3] = Rotation.from_euler("z", 90, degrees=True).as_matrix()
T_ROOT_SHELF[:3, 3] = [1, 2, 3]
FRAMES = {"": np.eye(4), "base": np.eye(4), "shelf": T_ROOT_SHELF}


class Robot:
    joint_names, root_link, dof = ("a", "b"), "base", 2


def test_joint_states_are_matched_by_name():
    positions = conversions.joint_positions(joints([1, 2, 3], ["b", "x", "a"]), "it", -26)
    assert conversions.configuration(Robot, positions, "it", -26).tolist() == [3, 1]


def test_values_of_joints_that_do_not_matter_are_not_looked_at():
    message = joints([1, np.nan, 3], ["b", "x", "a"])
    assert conversions.joint_positions(message, "it", -26, known=("a", "b")) == {"a": 3, "b": 1}


@pytest.mark.parametrize(
    "message, words",
    [
        (JointState(name=["a", "b"], position=[1.0]), ["2 joint names", "1 positions"]),
        (joints([1, 2], ["a", "a"]), ["'a' twice"]),
        (joints([1, np.nan], ["a", "b"]), ["'b'", "nan"]),
        (joints([1, np.inf], ["a", "b"]), ["'b'", "inf"]),
    ],
)
def test_malformed_joint_states_are_named(message, words):
    with pytest.raises(RequestError) as error:
        conversions.joint_positions(message, "joint goal 3", error_codes.GOAL_STATE_INVALID)
    assert error.value.code == error_codes.GOAL_STATE_INVALID
    assert all(word in str(error.value) for word in ["joint goal 3", *words])


def test_missing_and_unknown_joints_are_named():
    with pytest.raises(RequestError, match="the start lacks joint 'b'"):
        conversions.configuration(Robot, {"a": 1.0}, "the start", -26)
    with pytest.raises(RequestError, match="unknown joint 'z'.*'a', 'b'"):
        conversions.only_joints(("a", "b"), {"a": 1.0, "z": 2.0}, "the start", -26)


def test_pose_goals_are_moved_to_the_root_frame():
    T_root_goal = conversions.pose_goal(pose_goal([1, 0, 0], "shelf"), FRAMES, "pose goal 0")
    assert np.allclose(T_root_goal[:3, 3], [1, 3, 3])
    assert np.allclose(T_root_goal[:3, :3], T_ROOT_SHELF[:3, :3])


@pytest.mark.parametrize(
    "message, code, words",
    [
        (pose_goal([0, 0, 0], "moon"), -21, ["'moon'", "'base'", "'shelf'"]),
        (pose_goal([0, np.nan, 0], "base"), -27, ["pose goal 0", "position"]),
        (pose_goal([0, 0, 0], "base", (0, 0, 0, 0)), -27, ["pose goal 0", "quaternion"]),
    ],
)
def test_bad_pose_goals_are_named(message, code, words):
    with pytest.raises(RequestError) as error:
        conversions.pose_goal(message, FRAMES, "pose goal 0")
    assert error.value.code == code and all(word in str(error.value) for word in words)


def shape_of(message):
    one = marker_object(message, FRAMES, now=0.0)
    assert one.name == one.placed[0].name == f"{message.ns}/{message.id}"
    return one.placed[0]


def test_round_obstacles_and_boxes():
    box = shape_of(marker(Marker.CUBE, (1, 0, 0), (0.2, 0.4, 0.6), "shelf"))
    assert box.kind == ShapeKind.BOX and np.allclose(box.half_extents, [0.1, 0.2, 0.3])
    assert np.allclose(box.pose[:3, 3], [1, 3, 3]) and np.allclose(box.pose[:3, :3], T_ROOT_SHELF[:3, :3])
    cylinder = shape_of(marker(Marker.CYLINDER, scale=(0.2, 0.2, 0.6), frame=""))
    assert cylinder.kind == ShapeKind.CYLINDER and np.allclose(cylinder.half_extents, [0.1, 0.1, 0.3])
    sphere = shape_of(marker(Marker.SPHERE, scale=(0.2, 0.2, 0.2), frame=""))
    assert sphere.kind == ShapeKind.SPHERE and np.allclose(sphere.half_extents, 0.1)


def test_a_list_of_cubes_is_each_of_them():
    message = marker(Marker.CUBE_LIST, (1, 0, 0), (0.2, 0.4, 0.6), "shelf")
    message.points = [Point(x=0.0), Point(x=1.0)]
    first, second = marker_object(message, FRAMES, now=0.0).placed
    assert np.allclose(first.pose[:3, 3], [1, 3, 3]) and np.allclose(second.pose[:3, 3], [1, 4, 3])
    assert np.allclose(second.half_extents, [0.1, 0.2, 0.3]) and second.name == "test/0#1"


def tetrahedron(height):
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, height]], dtype=float)
    faces = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]
    message = marker(Marker.TRIANGLE_LIST, (1, 0, 0), (2, 1, 1), "shelf")
    message.points = [Point(x=x, y=y, z=z) for x, y, z in corners[np.ravel(faces)].tolist()]
    return message


def test_triangle_lists_are_scaled_and_placed():
    shape = shape_of(tetrahedron(1.0))
    corners = shape.vertices @ shape.pose[:3, :3].T + shape.pose[:3, 3]
    assert np.allclose(sorted(corners.tolist()), sorted([[1, 3, 3], [1, 5, 3], [0, 3, 3], [1, 3, 4]]), atol=1e-6)


@pytest.mark.parametrize(
    "message, words",
    [
        (marker(scale=(0, 1, 1)), ["'test/0'", "CUBE", "0.0"]),
        (marker(scale=(1, -1, 1)), ["-1.0"]),
        (marker(scale=(1, np.nan, 1)), ["nan"]),
        (marker(position=(0, 0, np.inf)), ["position"]),
        (marker(Marker.SPHERE, scale=(1, 1, 2)), ["SPHERE", "round"]),
        (marker(Marker.CYLINDER, scale=(1, 2, 2)), ["CYLINDER", "round"]),
        (marker(Marker.ARROW), ["type 0", "CUBE"]),
        (tetrahedron(0.0), ["'test/0'"]),
        (tetrahedron(np.nan), ["finite"]),
        (marker(Marker.TRIANGLE_LIST), ["3 points"]),
    ],
)
def test_bad_obstacles_are_named(message, words):
    message.header.frame_id = ""
    with pytest.raises(ObstacleError) as error:
        marker_object(message, FRAMES, now=0.0)
    assert "'test/0'" in str(error.value) and all(word in str(error.value) for word in words)


def test_an_obstacle_in_a_foreign_frame_is_refused():
    with pytest.raises(RequestError, match="'test/0'.*'moon'.*'base', 'shelf'"):
        marker_object(marker(frame="moon"), FRAMES, now=0.0)


def test_a_trajectory_keeps_the_rules_of_controllers():
    path = np.array([[0, 0], [1, 0.5], [1.2, -0.3]])
    message = conversions.trajectory_message(Robot, time_parameterize(path, np.ones(2), np.full(2, 2.0)))
    times = [conversions.seconds(point.time_from_start) for point in message.points]
    assert isinstance(message, JointTrajectory) and message.joint_names == ["a", "b"]
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (0, 0)
    assert np.all(np.diff(times) > 0)
    assert list(message.points[0].velocities) == [0, 0] and list(message.points[-1].velocities) == [0, 0]
    assert list(message.points[0].positions) == [0, 0] and np.allclose(message.points[-1].positions, [1.2, -0.3])


def test_every_status_has_a_code_of_the_service():
    assert set(error_codes.CODE_OF_STATUS) == set(Status)
    text = (ROOT / "gpu_planners_msgs/srv/PlanMotion.srv").read_text(encoding="utf-8")
    constants = re.findall(r"^int32 (\w+)=", text, re.MULTILINE)
    assert len(constants) > 10
    for name in constants:
        assert getattr(PlanMotion.Response, name) == getattr(error_codes, name)
    assert set(error_codes.CODE_OF_STATUS.values()) | set(error_codes.CODE_OF_ERROR.values()) <= {
        getattr(PlanMotion.Response, name) for name in constants
    }


def test_errors_of_the_library_have_codes():
    assert error_codes.code_of(ObstacleError("x")) == error_codes.INVALID_OBJECT_NAME
    assert error_codes.code_of(DeviceError("x")) == error_codes.COLLISION_CHECKING_UNAVAILABLE
    assert error_codes.code_of(KeyError("x")) == error_codes.FAILURE


def test_a_list_of_doubles_may_be_empty_and_read_only():
    @dataclass(frozen=True)
    class Given(Described):
        box: tuple = setting((), "Corners", items=float, unit="metres", read_only=True)
        pose: tuple = setting((), "Pose", items=float, unit="metres")

    context = new_context()
    try:
        for given in ([], [1.0, 2.0]):
            overrides = [Parameter("box", value=given)] if given else []
            node = Node("lists", context=context, parameter_overrides=overrides)
            assert declare(node, Given).box == tuple(given)
            (changed,) = node.set_parameters([Parameter("box", value=[3.0])])
            assert not changed.successful and "read-only" in changed.reason
            assert node.set_parameters([Parameter("pose", value=[3.0])])[0].successful
            assert node.describe_parameter("box").description == "Corners (metres)"
            node.destroy_node()
    finally:
        rclpy.shutdown(context=context)
