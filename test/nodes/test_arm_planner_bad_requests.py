"""Every bad request is answered with a code and a text that names the offender, and the next one is answered.

Over real DDS; what the node knew before a bad request it knows after it.
"""

import time

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Point
from node_harness import GROUP, LATCHED, ROBOT, RunningNode, joints, marker, pose_goal, request
from running_node import shared, starter
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from visualization_msgs.msg import Marker, MarkerArray

from gpu_planners.arm import load_urdf
from gpu_planners.device import cuda_problem
from gpu_planners.errors import SettingsError
from gpu_planners.nodes.arm import codes
from gpu_planners_msgs.srv import PlanMotion

NAN = float("nan")


def node_with_good_path():
    node = RunningNode(**{"rrt_connect.optimise_s": 0.0})
    node.good_path = node.plan(request()).path
    return node


node_of_module, running = shared(node_with_good_path)
start_node = starter(RunningNode)


def obstacles(*markers):
    return MarkerArray(markers=list(markers))


def flat_triangles():
    message = marker(Marker.TRIANGLE_LIST, scale=(1, 1, 1))
    message.points = [
        Point(x=x, y=y, z=0.0) for x, y in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.0, 1.0), (1.0, 0.0)]
    ]
    return message


def triangles(count, value=0.1):
    """A TRIANGLE_LIST of tetrahedra; `value` is one of its coordinates."""
    corners = [(0.0, 0.0, 0.0), (0.1, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, 0.0, value)]
    faces = [Point(x=corners[i][0], y=corners[i][1], z=corners[i][2]) for i in (0, 2, 1, 0, 1, 3, 1, 2, 3, 2, 0, 3)]
    message = marker(Marker.TRIANGLE_LIST, position=(0, 2, 0), scale=(1, 1, 1))
    message.points = (faces * (count // 4 + 1))[: 3 * count]
    return message


def with_orientation(*xyzw):
    message = marker()
    o = message.pose.orientation
    o.x, o.y, o.z, o.w = map(float, xyzw)
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
    "time limit beyond a day": (request(time_limit_s=1e9), codes.FAILURE, ["time_limit_s", "1000000000", "86400"]),
    "margin below 0": (request(margin=-0.01), codes.FAILURE, ["margin", "-0.01", "100"]),
    "margin NaN": (request(margin=NAN), codes.FAILURE, ["margin", "nan"]),
    "margin beyond all robots": (request(margin=101.0), codes.FAILURE, ["margin", "101", "100"]),
    "scaling below what can be timed": (
        request(velocity_scaling=1e-300),
        codes.FAILURE,
        ["velocity_scaling", "1e-300", "0.001"],
    ),
    "start in the next galaxy": (
        with_start(joints([1e300, 0, 0])),
        codes.START_STATE_INVALID,
        ["start", "'shoulder'", "1e+300", "1e+10"],
    ),
    "start names 100,000 unknown joints": (
        with_start(joints(range(100_000), [f"j{i}" for i in range(100_000)])),
        codes.START_STATE_INVALID,
        ["start", "'j0'", "and 99980 more", "'elbow'"],
    ),
    "start names the last of 100,000 joints twice": (
        with_start(joints(range(100_001), [f"j{min(i, 99_999)}" for i in range(100_001)])),
        codes.START_STATE_INVALID,
        ["start", "'j99999' twice"],
    ),
    "pose goal in the next galaxy": (
        request(goals=(), pose_goals=[pose_goal([1e300, 0, 0])]),
        codes.GOAL_STATE_INVALID,
        ["pose goal 0", "1e+300"],
    ),
    "pose goal beyond all lengths": (
        request(goals=(), pose_goals=[pose_goal([0, 2e5, 0])]),
        codes.GOAL_STATE_INVALID,
        ["pose goal 0", "200000"],
    ),
    "pose goal turned by half a rotation": (
        request(goals=(), pose_goals=[pose_goal([0.5, 0, 0], "plate", (0, 0, 0, 0.5))]),
        codes.GOAL_STATE_INVALID,
        ["pose goal 0", "quaternion", "0.5"],
    ),
    "obstacle that float32 does not hold": (
        request(obstacles=obstacles(marker(scale=(1e39, 1, 1)))),
        codes.INVALID_OBJECT_NAME,
        ["'test/0'", "1e+39"],
    ),
    "sphere beyond all lengths": (
        request(obstacles=obstacles(marker(Marker.SPHERE, scale=(1e20, 1e20, 1e20)))),
        codes.INVALID_OBJECT_NAME,
        ["'test/0'", "e+"],
    ),
    "obstacle in the next galaxy": (
        request(obstacles=obstacles(marker(position=(2e5, 0, 0)))),
        codes.INVALID_OBJECT_NAME,
        ["'test/0'", "200000"],
    ),
    "vertex beyond all lengths": (
        request(obstacles=obstacles(triangles(4, 1e25))),
        codes.INVALID_OBJECT_NAME,
        ["'test/0'"],
    ),
    "vertex NaN": (request(obstacles=obstacles(triangles(4, NAN))), codes.INVALID_OBJECT_NAME, ["'test/0'", "finite"]),
    "obstacle turned by a quaternion that is none": (
        request(obstacles=obstacles(with_orientation(NAN, 0, 0, 1))),
        codes.INVALID_OBJECT_NAME,
        ["'test/0'", "quaternion"],
    ),
    "obstacle turned by a quaternion of length 2": (
        request(obstacles=obstacles(with_orientation(0, 0, 0, 2))),
        codes.INVALID_OBJECT_NAME,
        ["'test/0'", "quaternion"],
    ),
    "two points": (
        request(obstacles=obstacles(triangles(0))),
        codes.INVALID_OBJECT_NAME,
        ["'test/0'", "TRIANGLE_LIST"],
    ),
    "more goals than allowed": (
        request(goals=[(1, 0.5, 0)] * 1001),
        codes.FAILURE,
        ["1001 goals", "1000", "max_goals"],
    ),
    "more triangles than allowed": (
        request(obstacles=obstacles(triangles(20_001))),
        codes.INVALID_OBJECT_NAME,
        ["20001 triangles", "20000", "max_triangles"],
    ),
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


ODD_NUMBERS = (
    NAN,
    np.inf,
    -np.inf,
    -0.0,
    5e-324,
    1e-300,
    -1.0,
    1e-9,
    1e-3,
    1e5,
    1.1e5,
    1e10,
    1.1e10,
    1e39,
    1e154,
    1e300,
)
ODD_TEXTS = ("\0", "rrt\0", "x" * 100_000, "\n", "'", "%s%n{}", "\x1b[31m", "\u202e", "漢")
NUMBER_FIELDS = {
    **{
        name: lambda v, name=name: request(**{name: v})
        for name in ("time_limit_s", "velocity_scaling", "acceleration_scaling", "margin")
    },
    **{f"start {joint}": lambda v, i=i: request(start=v * np.eye(3)[i]) for i, joint in enumerate(GROUP)},
    **{f"joint goal {joint}": lambda v, i=i: request(goals=[v * np.eye(3)[i]]) for i, joint in enumerate(GROUP)},
    "start of the gripper": lambda v: with_start(joints([0, 0, 0, v], [*GROUP, "slide"])),
    "pose goal position": lambda v: request(goals=(), pose_goals=[pose_goal([0.3, v, 0.1])]),
    "pose goal orientation": lambda v: request(
        goals=(), pose_goals=[pose_goal([0.3, 0.4, 0.1], "plate", (0, v, 0, 1))]
    ),
    "marker position": lambda v: request(obstacles=obstacles(marker(position=(0, v, 0.1)))),
    "marker orientation": lambda v: request(obstacles=obstacles(with_orientation(0, 0, v, 1))),
    **{
        f"scale of marker type {kind}": lambda v, kind=kind: request(
            obstacles=obstacles(marker(kind, scale=(v, v, v)), marker(kind, number=1, scale=(0.1, 0.1, v)))
        )
        for kind in (Marker.CUBE, Marker.CYLINDER, Marker.SPHERE, Marker.TRIANGLE_LIST, Marker.ARROW)
    },
    "scale of triangles": lambda v: request(obstacles=obstacles(scaled(triangles(4), v))),
    "vertex": lambda v: request(obstacles=obstacles(triangles(4, v))),
}
TEXT_FIELDS = {
    "planner": lambda text: request(planner=text),
    "joint of the start": lambda text: with_start(joints([0, 0, 0, 0], [*GROUP, text])),
    "joint of a goal": lambda text: with_goal(joints([0, 0, 0], [*GROUP[:2], text])),
    "frame of a goal": lambda text: request(goals=(), pose_goals=[pose_goal([0.3, 0.4, 0.1], text)]),
    "frame of an obstacle": lambda text: request(obstacles=obstacles(marker(frame=text))),
    "namespace of an obstacle": lambda text: request(obstacles=obstacles(marker(**BLOCK, namespace=text))),
}


def scaled(message, value):
    message.scale.x = float(value)
    return message


@pytest.mark.parametrize("field", [*NUMBER_FIELDS, *TEXT_FIELDS])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_whatever_a_field_holds_the_node_answers_in_words(running, field):
    """Past DDS too: DDS ends a text at its first NUL."""
    for value in ODD_NUMBERS if field in NUMBER_FIELDS else ODD_TEXTS:
        make = NUMBER_FIELDS.get(field) or TEXT_FIELDS[field]
        for ask in (running.plan, lambda message: running.answer_without_dds("plan_motion", message)):
            message = make(value)
            message.time_limit_s = message.time_limit_s or 2.0
            response = ask(message)
            assert response.code and response.status and response.message.isprintable(), (value, response)
            assert "internal" not in response.message and len(response.message) < 3000, (value, response.message)
    assert running.plan(request()).path == running.good_path


@pytest.mark.parametrize("planner", ["prm", "rrt", "rrt_star"])
def test_every_planner_takes_every_seed_and_names_a_bad_start(running, planner):
    for seed in (0, 2**31, 2**63, 2**64 - 1):
        assert running.plan(request(planner=planner, seed=seed), timeout=300).code == codes.SUCCESS
    for start in ((1e300, 0, 0), (0, NAN, 0), (0, 0, 1e10)):
        assert running.plan(request(planner=planner, start=start)).code == codes.START_STATE_INVALID


def test_obstacles_are_bounded_together_and_a_message_that_is_too_large_changes_nothing(start_node):
    running = start_node(robot=None, max_obstacles=3, max_triangles=8)
    running.publish_obstacles(*(marker(number=i) for i in range(4)))  # before there is a robot, too
    running.wait_until(lambda: "4 obstacles" in running.problem and "max_obstacles" in running.problem)
    running.publish_obstacles(marker(scale=(0, 1, 1)))
    running.publish_robot(ROBOT)
    running.wait_until(lambda: "scale" in running.problem)
    assert running.plan(request(ignore_scene=True), timeout=300).code == codes.SUCCESS  # ready all the same
    running.publish_obstacles(triangles(4), marker(number=1))
    running.wait_until(lambda: running.facts["obstacles"] == "2")
    more = triangles(5)
    more.id = 2
    running.publish_obstacles(more)
    running.wait_until(lambda: "9 triangles" in running.problem)
    running.publish_obstacles(marker(number=3), marker(number=4))
    running.wait_until(lambda: "4 obstacles" in running.problem)
    assert running.facts["obstacles"] == "2"
    few = [marker(number=i) for i in range(4)]
    response = running.plan(request(obstacles=obstacles(*few), ignore_scene=True))
    assert response.code == codes.INVALID_OBJECT_NAME and "max_obstacles" in response.message
    assert running.set_parameter("max_obstacles", 4).successful
    running.publish_obstacles(marker(number=3), marker(number=4))
    running.wait_until(lambda: running.facts["obstacles"] == "4")


def test_the_time_limit_covers_inverse_kinematics(running):
    for goals in ([pose_goal([0.3, 0.4, 0.1])] * 1000, [pose_goal([3.0, 0, 0])] * 1000):
        began = time.monotonic()
        response = running.plan(request(goals=(), pose_goals=goals, time_limit_s=1.0))
        assert time.monotonic() - began < 15  # without a limit: minutes
        assert response.code in (codes.NO_IK_SOLUTION, codes.TIMED_OUT, codes.GOAL_STATE_INVALID), response.message
    goals = [pose_goal([3.0, 0, 0])] * 300 + [pose_goal_of((1.0, 0.5, 0.3))]
    drawn_in = joints([0, 0, 0, 0], [*GROUP, "slide"])
    response = running.plan(with_start(drawn_in, goals=(), pose_goals=goals, time_limit_s=4.0))
    assert response.code == codes.SUCCESS and response.goal_index == 300, response.message


@pytest.mark.parametrize("link", ["plate", "nothing"])
def test_a_tip_link_that_cannot_be_placed_is_named(start_node, link):
    """The root, which no joint moves, and a link that there is not."""
    running = start_node(tip_link=link)
    response = running.plan(request(goals=(), pose_goals=[pose_goal([0.3, 0.4, 0.1])]))
    assert response.code == codes.INVALID_LINK_NAME, response.message
    assert "tip_link" in response.message and f"'{link}'" in response.message


def test_a_robot_without_the_tip_link_is_refused_and_says_so(start_node, tmp_path):
    """Nothing is planned, whatever is asked for, and the node is not said to be ready."""
    running = start_node(tip_link="zz")
    for asked in (request(), request(goals=(), pose_goals=[pose_goal([0.3, 0.4, 0.1])])):
        response = running.plan(asked)
        assert response.code == codes.INVALID_LINK_NAME and "parameter tip_link is 'zz'" in response.message
        assert "hand" in response.message and "internal error" not in response.message
    running.wait_until(lambda: "tip_link is 'zz'" in running.status.message, 20)
    assert "internal error" not in running.status.message and running.facts["robot"] == "none"
    (tmp_path / "robot.urdf").write_text(ROBOT)
    with pytest.raises(SettingsError, match="tip_link is 'zz'"):
        start_node(robot="", robot_description_file=str(tmp_path / "robot.urdf"), tip_link="zz")


def pose_goal_of(q):
    """The pose of the tip at q, with the gripper drawn in."""
    robot = load_urdf(ROBOT, joints=GROUP)
    T = robot.link_poses(q)[robot.tip_link][0]
    return pose_goal(T[:3, 3], "plate", Rotation.from_matrix(T[:3, :3]).as_quat())


def test_the_margin_is_kept(running):
    beside = dict(position=(0.0, 0.45, 0.3), scale=(0.1, 0.1, 0.1))  # 12 cm above the upper arm's middle at q = 0
    near = obstacles(marker(**beside))
    assert running.plan(request(obstacles=near)).code == codes.SUCCESS
    response = running.plan(request(obstacles=near, margin=0.2))
    assert "margin of 0.2 m" in response.message
    assert response.code == codes.START_STATE_IN_COLLISION and "test/0" in response.message
    assert running.set_parameter("margin", 0.2).successful
    assert running.plan(request(obstacles=near)).code == codes.START_STATE_IN_COLLISION
    assert running.plan(request(obstacles=near, margin=0.01)).code == codes.SUCCESS  # the request's own counts
    assert running.set_parameter("margin", 0.0).successful
    assert not running.set_parameter("margin", -0.1).successful


def test_values_a_hair_beyond_a_limit_are_taken_to_it_and_named(running):
    response = running.plan(request(start=(0, 2.5003, 0), goals=[(1, 0.5, 0)]))
    assert response.code == codes.SUCCESS and "elbow = 2.5003 taken to 2.5" in response.message
    assert 2.5 - 1e-9 < response.trajectory.points[0].positions[1] <= 2.5
    response = running.plan(request(start=(0, 2.52, 0)))
    assert response.code == codes.START_STATE_INVALID and "elbow" in response.message
    assert running.set_parameter("rrt_connect.limit_tolerance", 0.05).successful
    assert running.plan(request(start=(0, 2.52, 0))).code == codes.SUCCESS
    assert running.set_parameter("rrt_connect.limit_tolerance", 1e-3).successful


def test_no_robot_yet(start_node):
    running = start_node(robot=None)
    response = running.plan(request())
    assert response.code == codes.COLLISION_CHECKING_UNAVAILABLE and "robot_description" in response.message
    running.publish_robot(ROBOT)
    assert running.plan(request()).code == codes.SUCCESS


@pytest.mark.parametrize(
    "text, word",
    [
        ("not XML", "URDF"),
        (ROBOT.replace("revolute", "helical"), "helical"),
        (ROBOT.replace('upper="2.5"', 'upper="nan"'), "elbow"),
    ],
)
def test_a_bad_robot_is_named_and_a_good_one_taken(start_node, text, word):
    running = start_node(robot=None)
    running.publisher(String, "/robot_description", LATCHED).publish(String(data=text))
    running.wait_until(lambda: running.status.level == DiagnosticStatus.ERROR)
    assert word in running.status.message
    assert running.plan(request()).code == codes.COLLISION_CHECKING_UNAVAILABLE
    running.publish_robot(ROBOT)
    assert running.plan(request()).code == codes.SUCCESS
    running.publisher(String, "/robot_description", LATCHED).publish(String(data=text))  # it has come too late
    running.wait_until(lambda: "a robot_description was refused" in running.problem and word in running.problem, 20)
    response = running.plan(request())
    assert response.code == codes.SUCCESS and "the one before it is planned with" in response.message
    running.publish_robot(ROBOT)
    running.wait_until(lambda: not running.problem, 20)


@pytest.mark.skipif(not cuda_problem(), reason="this machine has a CUDA device")
def test_a_device_that_is_not_there_is_refused(running, start_node):
    for device, word in (("cuda", "no CUDA driver|does not import|is not installed"), ("tpu", "unknown device 'tpu'")):
        with pytest.raises(SettingsError, match=f"parameter 'device'.*({word})"):
            start_node(device=device)
        result = running.set_parameter("device", device)
        assert not result.successful and "parameter 'device'" in result.reason
    assert running.plan(request()).code == codes.SUCCESS


def test_a_bad_obstacle_message_changes_nothing_and_is_reported(running):
    running.publish_obstacles(marker(**BLOCK), marker(number=1, scale=(0, 1, 1)))
    running.wait_until(lambda: running.problem)
    response = running.plan(request())  # nobody knows where the obstacle is
    assert response.code == codes.INVALID_OBJECT_NAME and "'test/1'" in response.message
    assert running.plan(request(ignore_scene=True)).code == codes.SUCCESS
    running.publish_obstacles(marker(namespace="", action=Marker.DELETEALL))
    running.wait_until(lambda: not running.problem)
    response = running.plan(request())
    assert response.code == codes.SUCCESS and "'test/1'" not in response.message


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
    with pytest.raises(SettingsError, match=word):
        RunningNode(robot=None, **parameters)


def test_the_response_names_the_interface_constants():
    assert PlanMotion.Response.SUCCESS == codes.SUCCESS
