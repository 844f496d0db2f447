"""PTP, LIN, CIRC and compute_cartesian_path over real DDS: straight and round by pinocchio, between points too."""

import pytest

pytest.importorskip("moveit_msgs.msg", reason="the ROS package moveit_msgs is not installed")

import moveit_messages as messages
import numpy as np
from line_oracle import off_the_circle, off_the_line
from moveit_msgs.msg import Constraints, GenericTrajectory, MoveItErrorCodes
from moveit_msgs.srv import GetCartesianPath, GetPositionIK
from pinocchio_poses import pinocchio_poses
from running_node import shared
from scipy.interpolate import BPoly
from scipy.spatial.transform import Rotation
from test_moveit_node import SERVICES, MoveItNode, spatial_arm

from gpu_planners.nodes.common.ros import seconds

CODES = MoveItErrorCodes
PILZ = "pilz_industrial_motion_planner"
URDF, NAMES, TIP = spatial_arm(), [f"j{i}" for i in range(6)], "l5"
START = (0.0, -0.5, 1.0, 0.0, -0.5, 0.0)
SERVICES["compute_cartesian_path"] = GetCartesianPath

node_of_module, node = shared(lambda: MoveItNode(URDF, joints=NAMES, tip_link=TIP))


def tips(q):
    return pinocchio_poses(URDF, NAMES, np.atleast_2d(q))[TIP]


def moved(shift, rotvec=(0, 0, 0), T=None):
    """(4, 4) the tip at START, or T, shifted and turned in the root frame."""
    T = (tips(START)[0] if T is None else T).copy()
    T[:3, 3] += shift
    T[:3, :3] = Rotation.from_rotvec(rotvec).as_matrix() @ T[:3, :3]
    return T


def request(planner, *goals, start=START, pipeline=PILZ, **fields):
    message = messages.motion_request(*goals, start=None, planner_id=planner, pipeline_id=pipeline, **fields)
    message.start_state = messages.state(start, NAMES)
    return message


def to_pose(T, **more):
    return messages.pose_goal(TIP, T, "root", **more)


def played(trajectory, count=2000):
    """(N, dof) positions and velocities of what a controller plays, between the points too."""
    points = trajectory.joint_trajectory.points
    times = [seconds(point.time_from_start) for point in points]
    knots = [(point.positions, point.velocities, point.accelerations) for point in points]
    curve, at = BPoly.from_derivatives(times, np.array(knots)), np.linspace(0, times[-1], count)
    return curve(at), curve.derivative()(at)


def done(node, message, diff=None):
    """The positions played; the plan is a success."""
    _, result = node.move(message, diff)
    assert result.error_code.val == CODES.SUCCESS, result.error_code.message
    return played(result.planned_trajectory)


def refused(node, message, code, *words, diff=None):
    _, result = node.move(message, diff)
    assert result.error_code.val == code, result.error_code.message
    assert all(word in result.error_code.message for word in words), result.error_code.message
    assert not result.planned_trajectory.joint_trajectory.points


def check_line(q, first, last):
    poses = tips(q)
    off, angle = off_the_line(poses, first, last)
    assert off.max() < 1e-3 and angle.max() < 1e-3
    assert np.abs(poses[-1] - last).max() < 1e-5


@pytest.mark.parametrize("pipeline", [PILZ, ""])
def test_lin_is_a_straight_line_of_the_tool(node, pipeline):
    goal = moved((-0.1, 0.25, 0.1), (0.2, -0.1, 0.3))
    q, v = done(node, request("LIN", to_pose(goal), pipeline=pipeline))
    check_line(q, tips(START)[0], goal)
    assert 0.5 < np.abs(v).max() < 2.001
    slow, v = done(node, request("LIN", to_pose(goal), pipeline=pipeline, max_velocity_scaling_factor=0.1))
    check_line(slow, tips(START)[0], goal)
    assert np.abs(v).max() < 0.2001
    answer = node.ask("plan_kinematic_path", motion_plan_request=request("LIN", to_pose(goal), pipeline=pipeline))
    check_line(played(answer.motion_plan_response.trajectory)[0], tips(START)[0], goal)


def test_lin_to_joints_goes_straight_to_the_pose_that_they_give(node):
    end = np.add(START, (0.3, 0.1, -0.2, 0.1, 0.1, -0.2))
    q, _ = done(node, request("LIN", messages.joint_goal(end, names=NAMES)))
    check_line(q, tips(START)[0], tips(end)[0])


def test_lin_and_circ_go_around_nothing(node):
    goal, middle = moved((-0.15, 0.3, 0.0)), moved((-0.075, 0.15, 0.0))[:3, 3]
    wall = messages.box("wall", (0.3, 0.02, 0.3), middle, "root")
    arc = circle("interim", moved((-0.05, 0.15, 0.05))[:3, 3])
    scene = messages.scene(wall)
    assert node.move(request("", to_pose(goal), pipeline=""), scene)[1].error_code.val == CODES.SUCCESS
    refused(node, request("LIN", to_pose(goal)), CODES.PLANNING_FAILED, "LIN ends after", "'wall'", diff=scene)
    refused(
        node,
        request("CIRC", to_pose(goal), path_constraints=arc),
        CODES.PLANNING_FAILED,
        "CIRC ends after",
        "'wall'",
        diff=scene,
    )


def circle(name, point, frame="root", link=TIP):
    return Constraints(name=name, position_constraints=[messages.position_constraint(link, point, frame=frame)])


@pytest.mark.parametrize("name", ["interim", "center"])
@pytest.mark.parametrize("joints", [False, True])
def test_circ_is_an_arc_of_the_tool(node, name, joints):
    first, last = moved((0, 0, 0)), moved((-0.1, 0.2, 0.05), (0, 0.2, 0.1))
    normal = np.cross(last[:3, 3] - first[:3, 3], (0.3, 0.1, 0.9))
    chord, across = last[:3, 3] - first[:3, 3], normal / np.linalg.norm(normal)
    center = first[:3, 3] + chord / 2 + 0.04 * across
    radius = np.linalg.norm(first[:3, 3] - center)
    via = center - radius * across  # in the middle of the shorter way
    arc = circle(name, via if name == "interim" else center)
    goal = to_pose(last)
    if joints:
        answer = node.ask("compute_ik", ik_request=ik(last))
        assert answer.error_code.val == CODES.SUCCESS
        goal = messages.joint_goal(answer.solution.joint_state.position, names=answer.solution.joint_state.name)
    q, _ = done(node, request("CIRC", goal, path_constraints=arc))
    poses = tips(q)
    off, share = off_the_circle(poses[:, :3, 3], first[:3, 3], via, last[:3, 3])
    share = np.where(share > 1.2, 0, np.minimum(share, 1))
    turn = Rotation.from_matrix(last[:3, :3] @ first[:3, :3].T).as_rotvec()
    wanted = Rotation.from_rotvec(share[:, None] * turn) * Rotation.from_matrix(first[:3, :3])
    assert off.max() < 1e-3 and (Rotation.from_matrix(poses[:, :3, :3]) * wanted.inv()).magnitude().max() < 1e-3
    assert np.linalg.norm(poses[:, :3, 3] - via, axis=1).min() < 1e-3 and np.abs(poses[-1] - last).max() < 1e-4


def ik(T):
    message = GetPositionIK.Request().ik_request
    message.robot_state, message.pose_stamped.header.frame_id = messages.state(START, NAMES), "root"
    message.pose_stamped.pose = messages.pose(T[:3, 3], Rotation.from_matrix(T[:3, :3]))
    return message


def test_the_longer_way_round_through_a_point(node):
    first, last = moved((0, 0, 0)), moved((0, 0.08, 0))
    via = moved((-0.06, 0.04, 0))[:3, 3]
    q, _ = done(node, request("CIRC", to_pose(last), path_constraints=circle("interim", via)))
    poses = tips(q)
    off, share = off_the_circle(poses[:, :3, 3], first[:3, 3], via, last[:3, 3])
    length = np.linalg.norm(np.diff(poses[:, :3, 3], axis=0), axis=1).sum()
    assert off.max() < 1e-3 and length > 0.15 and np.linalg.norm(poses[:, :3, 3] - via, axis=1).min() < 1e-3


def test_ptp_is_straight_in_joint_space_and_synchronised(node):
    end = np.add(START, (0.8, -0.4, 0.5, 0.2, -0.3, 0.6))
    q, v = done(node, request("PTP", messages.joint_goal(end, names=NAMES)))
    share = (q - START) @ (end - START) / ((end - START) @ (end - START))
    assert np.abs(q - START - share[:, None] * (end - START)).max() < 1e-6 and np.diff(share).min() >= -1e-9
    assert np.allclose(q[-1], end, atol=1e-9) and 1.5 < np.abs(v).max() < 2.001
    some, _ = done(node, request("PTP", messages.joint_goal((0.5,), names=["j2"])))  # the others stay
    assert np.allclose(some[-1], (*START[:2], 0.5, *START[3:]))
    goal = moved((-0.1, 0.2, 0.1))
    q, _ = done(node, request("PTP", to_pose(goal)))
    assert np.abs(tips(q)[-1] - goal).max() < 1e-5
    chord = q[-1] - q[0]
    assert np.abs(q - q[0] - np.outer((q - q[0]) @ chord / (chord @ chord), chord)).max() < 1e-6
    wall = messages.box("wall", (0.1, 0.1, 0.1), tips((START + end) / 2)[0, :3, 3], "root")
    message = request("PTP", messages.joint_goal(end, names=NAMES))
    refused(node, message, CODES.PLANNING_FAILED, "straight in joint space", "'wall'", diff=messages.scene(wall))


JOINTS = messages.joint_goal(np.add(START, 0.1), names=NAMES)
VIA = moved((0.0, 0.05, 0.05))[:3, 3]


@pytest.mark.parametrize(
    ("message", "code", "words"),
    [
        (request("", JOINTS), CODES.PLANNING_FAILED, ["planner_id ''", "PTP, LIN, CIRC"]),
        (request("lin", JOINTS), CODES.PLANNING_FAILED, ["'lin'"]),
        (request("RRTConnect", JOINTS), CODES.PLANNING_FAILED, ["'RRTConnect'", PILZ]),
        (request("LIN", JOINTS, pipeline="ompl"), CODES.PLANNING_FAILED, ["'LIN'", "'ompl'"]),
        (request("", JOINTS, pipeline="chomp"), CODES.PLANNING_FAILED, ["pipeline_id 'chomp'", "'ompl'"]),
        (request("BKPIECEkConfigDefault", JOINTS, pipeline="ompl"), CODES.PLANNING_FAILED, ["'BKPIECEkConfigDefault'"]),
        (request("POLYLINE", JOINTS), CODES.PLANNING_FAILED, ["'POLYLINE'"]),
        (request("STOMP", JOINTS, pipeline=""), CODES.PLANNING_FAILED, ["'STOMP'", "rrt_connect", "LIN"]),
        (request("LIN", JOINTS, JOINTS), CODES.INVALID_GOAL_CONSTRAINTS, ["one goal", "2"]),
        (request("LIN", messages.joint_goal((0.1,), names=["j1"])), CODES.INVALID_GOAL_CONSTRAINTS, ["6 joints"]),
        (
            request("PTP", Constraints(position_constraints=to_pose(moved((0, 0.1, 0))).position_constraints)),
            CODES.INVALID_GOAL_CONSTRAINTS,
            ["one orientation"],
        ),
        (request("LIN", to_pose(moved((9, 0, 0)))), CODES.NO_IK_SOLUTION, ["LIN ends after"]),
        (request("PTP", to_pose(moved((9, 0, 0)))), CODES.NO_IK_SOLUTION, ["limits"]),
        (request("LIN", JOINTS, path_constraints=JOINTS), CODES.PLANNING_FAILED, ["path_constraints"]),
        (request("PTP", JOINTS, path_constraints=JOINTS), CODES.PLANNING_FAILED, ["path_constraints"]),
        (request("LIN", JOINTS, start=(0, 4, 0, 0, 0, 0)), CODES.START_STATE_INVALID, ["j1"]),
        (request("CIRC", JOINTS), CODES.INVALID_MOTION_PLAN, ["'interim' or 'center'"]),
        (request("CIRC", JOINTS, path_constraints=circle("via", VIA)), CODES.INVALID_MOTION_PLAN, ["'via'"]),
        (request("CIRC", JOINTS, path_constraints=Constraints(name="interim")), CODES.INVALID_MOTION_PLAN, ["one of"]),
        (
            request("CIRC", JOINTS, path_constraints=circle("interim", VIA, link="foot")),
            CODES.INVALID_LINK_NAME,
            ["'foot'"],
        ),
        (
            request(
                "CIRC", to_pose(moved((0, 0.1, 0))), path_constraints=circle("interim", moved((0, 0.05, 0))[:3, 3])
            ),
            CODES.INVALID_MOTION_PLAN,
            ["on one line"],
        ),
        (
            request(
                "CIRC", to_pose(moved((0, 0.1, 0))), path_constraints=circle("center", moved((0, 0.02, 0.1))[:3, 3])
            ),
            CODES.INVALID_MOTION_PLAN,
            ["as far from both"],
        ),
        (
            request("CIRC", JOINTS, path_constraints=circle("interim", VIA, frame="moon")),
            CODES.FRAME_TRANSFORM_FAILURE,
            ["'moon'"],
        ),
        (request("LIN", JOINTS, max_cartesian_speed=float("nan")), CODES.PLANNING_FAILED, ["max_cartesian_speed"]),
    ],
)
def test_what_is_refused_and_why(node, message, code, words):
    refused(node, message, code, *words)


@pytest.mark.parametrize(
    ("pipeline", "planner", "by"),
    [
        ("", "", "rrt_connect"),
        ("ompl", "", "rrt_connect"),
        ("ompl", "RRTConnectkConfigDefault", "rrt_connect"),
        ("", "geometric::RRTConnect", "rrt_connect"),
        ("ompl", "arm[RRTConnectkConfigDefault]", "rrt_connect"),
        ("gpu_planners", "rrt_connect", "rrt_connect"),
        ("isaac_ros_cumotion", "cuMotion", "rrt_connect"),
    ],
)
def test_names_of_the_same_kind_are_planned(node, pipeline, planner, by):
    _, result = node.move(request(planner, JOINTS, pipeline=pipeline))
    assert result.error_code.val == CODES.SUCCESS and f"by {by}" in result.error_code.message


def test_what_is_not_used_is_told(node):
    message = request("", JOINTS, pipeline="", reference_trajectories=[GenericTrajectory()])
    assert "reference_trajectories are not used" in node.move(message)[1].error_code.message
    (listed,) = node.ask("query_planner_interface").planner_interfaces
    assert {"PTP", "LIN", "CIRC", "rrt_connect"} <= set(listed.planner_ids)


# ---- compute_cartesian_path ----


def waypoints(*poses):
    return [messages.pose(T[:3, 3], Rotation.from_matrix(T[:3, :3])) for T in poses]


def follow(node, *poses, start=START, frame="root", **fields):
    fields = {"max_step": 0.01, "avoid_collisions": True} | fields
    message = GetCartesianPath.Request(waypoints=waypoints(*poses), **fields)
    message.header.frame_id, message.start_state = frame, messages.state(start, NAMES)
    return node.ask("compute_cartesian_path", **{name: getattr(message, name) for name in fields_of(message)})


def fields_of(message):
    return message.get_fields_and_field_types()


CORNERS = [moved((-0.1, 0, 0.1)), moved((-0.1, 0.2, 0.1), (0, 0, 0.3)), moved((0, 0.2, 0), (0, 0.1, 0.3))]


def test_a_cartesian_path_goes_straight_through_its_waypoints(node):
    answer = follow(node, *CORNERS)
    assert answer.error_code.val == CODES.SUCCESS and answer.fraction == 1, answer.error_code.message
    assert list(answer.start_state.joint_state.position) == list(START)
    trajectory = answer.solution.joint_trajectory
    assert trajectory.joint_names == NAMES and not any(trajectory.points[-1].velocities)
    q, v = played(answer.solution, 4000)
    assert np.abs(v).max() < 2.001
    poses = tips(q)
    off = [off_the_line(poses, a, b)[0] for a, b in zip([moved((0, 0, 0)), *CORNERS], CORNERS)]
    assert np.min(off, axis=0).max() < 1e-3
    for corner in CORNERS:
        nearest = np.linalg.norm(poses[:, :3, 3] - corner[:3, 3], axis=1).argmin()
        assert np.linalg.norm(poses[nearest, :3, 3] - corner[:3, 3]) < 1.1e-3
        assert np.abs(poses[nearest, :3, :3] - corner[:3, :3]).max() < 0.02
    assert np.abs(poses[-1] - CORNERS[-1]).max() < 1e-5
    rows = tips(messages.path_of(answer.solution))[:, :3, 3]
    assert np.linalg.norm(np.diff(rows, axis=0), axis=1).max() <= 0.01 + 1e-9
    slow = follow(node, *CORNERS, max_velocity_scaling_factor=0.1)
    assert np.abs(played(slow.solution)[1]).max() < 0.2001
    fine = follow(node, CORNERS[0], max_step=0.001)
    assert (
        np.linalg.norm(np.diff(tips(messages.path_of(fine.solution))[:, :3, 3], axis=0), axis=1).max() <= 0.001 + 1e-9
    )


def test_frames_and_links_of_waypoints(node):
    in_root = follow(node, *CORNERS[:2])
    T_root_frame = pinocchio_poses(URDF, NAMES, [START])["l2"][0]
    in_link = follow(node, *(np.linalg.inv(T_root_frame) @ T for T in CORNERS[:2]), frame="l2")
    steps = [np.linalg.inv(a) @ b for a, b in zip([moved((0, 0, 0)), CORNERS[0]], CORNERS)]
    in_tool = follow(node, *steps, frame=TIP)  # as in MoveIt each from the one before
    for answer in (in_root, in_link, in_tool):
        assert answer.fraction == 1
        assert np.abs(tips(messages.path_of(answer.solution)[-1])[0] - CORNERS[1]).max() < 1e-5
    answer = follow(node, moved((0, 0, 0)))  # where it is already
    assert answer.fraction == 1 and len(answer.solution.joint_trajectory.points) == 1
    answer = follow(node, np.diag([1, 1, 1, 1]), frame="l4", link_name="l4")
    assert answer.fraction == 1 and len(answer.solution.joint_trajectory.points) == 1


def test_collisions_end_a_path_or_do_not_count(node):
    wall = messages.box("wall", (0.3, 0.02, 0.3), tips(START)[0, :3, 3] + (0, 0.25, 0), "root")
    node.apply(messages.scene(wall))
    way = [moved((-0.05, 0.05, 0)), moved((-0.2, 0.35, 0))]
    answer = follow(node, *way)
    assert answer.error_code.val == CODES.SUCCESS and "'wall'" in answer.error_code.message
    assert "waypoint 1" in answer.error_code.message and 0.5 < answer.fraction < 1
    poses = tips(played(answer.solution)[0])
    reached = np.add((-0.05, 0.05, 0), (2 * answer.fraction - 1) * np.array((-0.15, 0.3, 0)))
    assert np.allclose(poses[-1], moved(reached), atol=1e-4)
    blind = follow(node, *way, avoid_collisions=False)
    assert blind.error_code.val == CODES.SUCCESS and blind.fraction == 1
    check_line(played(blind.solution)[0][-500:], way[0], way[1])
    node.apply(messages.scene(messages.box("wall", (0.1, 0.1, 0.1), tips(START)[0, :3, 3], "root")))
    assert follow(node, *way).error_code.val == CODES.START_STATE_IN_COLLISION


def test_what_is_out_of_reach_ends_a_path(node):
    answer = follow(node, CORNERS[0], moved((5, 0, 0)))
    assert answer.error_code.val == CODES.SUCCESS and 0.5 <= answer.fraction < 1
    assert "it ends there" in answer.error_code.message
    poses = tips(played(answer.solution)[0])
    off = [off_the_line(poses, a, b)[0] for a, b in ((moved((0, 0, 0)), CORNERS[0]), (CORNERS[0], moved((5, 0, 0))))]
    assert np.min(off, axis=0).max() < 1e-3


@pytest.mark.parametrize("threshold", [{"revolute_jump_threshold": 0.03}, {"jump_threshold": 1.3}])
def test_a_jump_threshold_ends_a_path_before_the_step(node, threshold):
    """Towards the stretched arm the joints move ever more for each step."""
    goal = moved((0.2, 0, 0))
    free, answer = (follow(node, goal, max_step=0.002, **more) for more in ({}, threshold))
    assert answer.error_code.val == CODES.SUCCESS and 0 < answer.fraction < free.fraction
    assert "jump threshold" in answer.error_code.message
    q = played(answer.solution)[0]
    check_line(q, tips(START)[0], moved((0.2 * answer.fraction, 0, 0)))


@pytest.mark.parametrize(
    ("fields", "code", "word"),
    [
        ({"max_step": 0.0}, CODES.FAILURE, "max_step"),
        ({"max_step": float("nan")}, CODES.FAILURE, "max_step"),
        ({"max_step": 1e-9}, CODES.FAILURE, "max_step"),
        ({"jump_threshold": float("nan")}, CODES.FAILURE, "jump_threshold"),
        ({"path_constraints": JOINTS}, CODES.PLANNING_FAILED, "path_constraints"),
        ({"max_cartesian_speed": 0.1}, CODES.PLANNING_FAILED, "max_cartesian_speed"),
        ({"link_name": "foot"}, CODES.INVALID_LINK_NAME, "'foot'"),
        ({"frame": "moon"}, CODES.FRAME_TRANSFORM_FAILURE, "'moon'"),
        ({"start": (0, 4, 0, 0, 0, 0)}, CODES.START_STATE_INVALID, "j1"),
    ],
)
def test_paths_that_are_refused(node, fields, code, word):
    answer = follow(node, CORNERS[0], **fields)
    assert answer.error_code.val == code and word in answer.error_code.message, answer.error_code.message
    assert follow(node).error_code.val == CODES.INVALID_GOAL_CONSTRAINTS
