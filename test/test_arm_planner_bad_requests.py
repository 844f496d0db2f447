"""Every bad request is answered with a code and a text that names the offender, and the next one is answered.

Over real DDS; what the node knew before a bad request it knows after it.
"""

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Point
from node_harness import GROUP, LATCHED, ROBOT, RunningNode, joints, marker, pose_goal, request
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker, MarkerArray

from gpu_planners.device import cuda_problem
from gpu_planners.nodes import error_codes as codes
from gpu_planners_msgs.srv import PlanMotion

NAN = float("nan")


@pytest.fixture(scope="module")
def running():
    node = RunningNode()
    node.good_path = node.plan(request()).path
    yield node
    node.close()


def obstacles(*markers):
    return MarkerArray(markers=list(markers))


def flat_triangles():
    message = marker(Marker.TRIANGLE_LIST, scale=(1, 1, 1))
    message.points = [
        Point(x=x, y=y, z=0.0) for x, y in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.0, 1.0), (1.0, 0.0)]
    ]
    return message


def with_start(start, **fields):
    message = request(start=None, **fields)
    message.start = start
    return message


def with_goal(goal):
    message = request(goals=())
    message.joint_goals = [goal]
    return message


def turned(frame):
    message = marker(scale=(0.1, 0.1, 0.1))
    message.pose.orientation.w = 0.0
    message.header.frame_id = frame
    return message


BLOCK = dict(position=(0.0, 0.45, 0.1), scale=(0.2, 0.2, 0.2))  # on the upper arm at q = 0
GOAL_BLOCK = dict(position=(-0.75, 0.0, 0.1), scale=(0.1, 0.1, 0.1))

BAD_REQUESTS = {
    "start of wrong size": (
        with_start(JointState(name=GROUP, position=[0.0, 0.0])),
        codes.START_STATE_INVALID,
        ["start", "3", "2"],
    ),
    "start lacks a joint": (with_start(joints([0, 0], GROUP[:2])), codes.START_STATE_INVALID, ["start", "'wrist'"]),
    "start NaN": (with_start(joints([0, NAN, 0])), codes.START_STATE_INVALID, ["start", "'elbow'", "nan"]),
    "start with an unknown joint": (
        with_start(joints([0, 0, 0, 0], [*GROUP, "tail"])),
        codes.START_STATE_INVALID,
        ["start", "'tail'"],
    ),
    "start outside the limits": (with_start(joints([0, 2.6, 0])), codes.START_STATE_INVALID, ["start", "elbow", "2.5"]),
    "start in collision": (
        request(obstacles=obstacles(marker(**BLOCK))),
        codes.START_STATE_IN_COLLISION,
        ["upper", "test/0"],
    ),
    "no start and no joint_states": (request(start=None), codes.ROBOT_STATE_STALE, ["joint_states"]),
    "goal of wrong size": (
        with_goal(JointState(name=GROUP, position=[0.0])),
        codes.GOAL_STATE_INVALID,
        ["joint goal 0", "3", "1"],
    ),
    "goal lacks a joint": (
        with_goal(joints([0], ["elbow"])),
        codes.GOAL_STATE_INVALID,
        ["goal 0", "'shoulder'", "'wrist'"],
    ),
    "goal inf": (with_goal(joints([0, 0, np.inf])), codes.GOAL_STATE_INVALID, ["goal 0", "'wrist'", "inf"]),
    "goal with an unknown joint": (
        with_goal(joints([0, 0, 0, 0], [*GROUP, "tail"])),
        codes.GOAL_STATE_INVALID,
        ["goal 0", "'tail'"],
    ),
    "goal outside the limits": (with_goal(joints([0, 0, -2.1])), codes.GOAL_STATE_INVALID, ["goal", "wrist", "-2"]),
    "goal in collision": (
        request(goals=[(1.57, 0, 0)], obstacles=obstacles(marker(**GOAL_BLOCK))),
        codes.GOAL_IN_COLLISION,
        ["fore", "test/0"],
    ),
    "no goal": (request(goals=()), codes.UNRECOGNIZED_GOAL_TYPE, ["goal"]),
    "pose goal out of reach": (
        request(goals=(), pose_goals=[pose_goal([5, 0, 0])]),
        codes.NO_IK_SOLUTION,
        ["pose goal 0"],
    ),
    "pose goal not finite": (
        request(goals=(), pose_goals=[pose_goal([NAN, 0, 0])]),
        codes.GOAL_STATE_INVALID,
        ["pose goal 0", "position"],
    ),
    "pose goal without orientation": (
        request(goals=(), pose_goals=[pose_goal([0, 0, 0], "plate", (0, 0, 0, 0))]),
        codes.GOAL_STATE_INVALID,
        ["pose goal 0", "quaternion"],
    ),
    "pose goal in an unknown frame": (
        request(goals=(), pose_goals=[pose_goal([0.5, 0, 0], "moon")]),
        codes.FRAME_TRANSFORM_FAILURE,
        ["'moon'", "'plate'", "'base'"],
    ),
    "pose goal in a moving frame": (
        request(goals=(), pose_goals=[pose_goal([0.5, 0, 0], "hand")]),
        codes.FRAME_TRANSFORM_FAILURE,
        ["'hand'", "'plate'"],
    ),
    "obstacle in an unknown frame": (
        request(obstacles=obstacles(marker(frame="moon"))),
        codes.FRAME_TRANSFORM_FAILURE,
        ["'test/0'", "'moon'", "'plate'"],
    ),
    "obstacle of zero size": (
        request(obstacles=obstacles(marker(scale=(0.1, 0, 0.1)))),
        codes.INVALID_OBJECT_NAME,
        ["'test/0'", "scale"],
    ),
    "obstacle of negative size": (
        request(obstacles=obstacles(marker(Marker.SPHERE, scale=(-1, -1, -1)))),
        codes.INVALID_OBJECT_NAME,
        ["'test/0'", "-1"],
    ),
    "degenerate hull": (request(obstacles=obstacles(flat_triangles())), codes.INVALID_OBJECT_NAME, ["'test/0'"]),
    "obstacle with a pose that is not finite": (
        request(obstacles=obstacles(marker(position=(0, NAN, 0)))),
        codes.INVALID_OBJECT_NAME,
        ["'test/0'", "position"],
    ),
    "obstacle without orientation": (
        request(obstacles=obstacles(turned("plate"))),
        codes.INVALID_OBJECT_NAME,
        ["'test/0'", "quaternion"],
    ),
    "second obstacle bad": (
        request(obstacles=obstacles(marker(**BLOCK), marker(number=1, scale=(0, 0, 0)))),
        codes.INVALID_OBJECT_NAME,
        ["'test/1'"],
    ),
    "ellipsoid": (
        request(obstacles=obstacles(marker(Marker.SPHERE, scale=(1, 2, 1)))),
        codes.INVALID_OBJECT_NAME,
        ["'test/0'", "round"],
    ),
    "marker that is no obstacle": (
        request(obstacles=obstacles(marker(Marker.TEXT_VIEW_FACING))),
        codes.INVALID_OBJECT_NAME,
        ["'test/0'", "CUBE"],
    ),
    "deleting by request": (
        request(obstacles=obstacles(marker(action=Marker.DELETE))),
        codes.INVALID_OBJECT_NAME,
        ["'test/0'"],
    ),
    "unknown planner": (request(planner="astar"), codes.FAILURE, ["'astar'", "rrt_connect", "prm", "rrt", "rrt_star"]),
    "negative time limit": (request(time_limit_s=-1.0), codes.FAILURE, ["time_limit_s", "-1"]),
    "time limit NaN": (request(time_limit_s=NAN), codes.FAILURE, ["time_limit_s", "nan"]),
    "scaling above 1": (request(velocity_scaling=1.5), codes.FAILURE, ["velocity_scaling", "1.5"]),
    "scaling NaN": (request(acceleration_scaling=NAN), codes.FAILURE, ["acceleration_scaling", "nan"]),
}


@pytest.mark.parametrize("case", BAD_REQUESTS)
def test_a_bad_request_is_named_and_the_next_one_answered(running, case):
    message, code, words = BAD_REQUESTS[case]
    response = running.plan(message)
    assert response.code == code, response.message
    assert response.status and all(word in response.message for word in words), response.message
    assert not response.trajectory.points and not response.path.points
    good = running.plan(request())
    assert (
        good.code == codes.SUCCESS and good.path == running.good_path
    )  # repeatable, so any trace of the bad one would show


def test_no_robot_yet():
    running = RunningNode(robot=None)
    try:
        response = running.plan(request())
        assert response.code == codes.COLLISION_CHECKING_UNAVAILABLE and "robot_description" in response.message
        running.publish_robot(ROBOT)
        assert running.plan(request()).code == codes.SUCCESS
    finally:
        running.close()


@pytest.mark.parametrize(
    "text, word",
    [
        ("not XML", "URDF"),
        (ROBOT.replace("revolute", "helical"), "helical"),
        (ROBOT.replace('upper="2.5"', 'upper="nan"'), "elbow"),
    ],
)
def test_a_bad_robot_is_named_and_a_good_one_taken(text, word):
    running = RunningNode(robot=None)
    try:
        from std_msgs.msg import String

        running.publisher(String, "/robot_description", LATCHED).publish(String(data=text))
        running.wait_until(lambda: running.node._state.level == DiagnosticStatus.ERROR)
        running.wait_until(lambda: word in running.node._state.text, timeout=5)
        assert running.plan(request()).code == codes.COLLISION_CHECKING_UNAVAILABLE
        running.publish_robot(ROBOT)
        assert running.plan(request()).code == codes.SUCCESS
    finally:
        running.close()


@pytest.mark.skipif(not cuda_problem(), reason="this machine has a CUDA device")
def test_no_cuda_device_though_one_was_asked_for():
    running = RunningNode(device="cuda")
    try:
        response = running.plan(request())
        assert response.code == codes.COLLISION_CHECKING_UNAVAILABLE and "'cuda'" in response.message
        running.node.set_parameters([Parameter("device", value="cpu")])
        assert running.plan(request()).code == codes.SUCCESS
    finally:
        running.close()


def test_a_bad_obstacle_message_changes_nothing_and_is_reported(running):
    publisher = running.publisher(MarkerArray, "/arm_planner/obstacles")
    publisher.publish(obstacles(marker(**BLOCK), marker(number=1, scale=(0, 1, 1))))
    running.wait_until(lambda: running.node._state.problem)
    response = running.plan(request())
    assert (
        response.code == codes.SUCCESS and "'test/1'" in response.message
    )  # the whole message was refused, and this says so
    publisher.publish(obstacles(marker(namespace="", action=Marker.DELETEALL)))
    running.wait_until(lambda: not running.node._state.problem)
    assert "'test/1'" not in running.plan(request()).message


@pytest.mark.parametrize(
    "parameters, word",
    [
        ({"planner": "astar"}, "astar"),
        ({"obstacles_durability": "firm"}, "firm"),
        ({"motion_check.mode": "guess"}, "guess"),
        ({"prm.weights": [1.0, -2.0, 1.0]}, "weights"),
    ],
)
def test_a_wrong_parameter_at_the_start_is_an_error(parameters, word):
    from gpu_planners.errors import SettingsError

    with pytest.raises(SettingsError, match=word):
        RunningNode(robot=None, **parameters)


def test_the_response_names_the_interface_constants():
    assert PlanMotion.Response.SUCCESS == codes.SUCCESS
