"""plan_sequence_path and sequence_move_group over real DDS: where the tool is, by pinocchio; contacts by coal."""

import pytest

pytest.importorskip("moveit_msgs.msg", reason="the ROS package moveit_msgs is not installed")

import moveit_messages as messages
import numpy as np
from action_msgs.msg import GoalStatus
from line_oracle import off_the_line
from moveit_msgs.action import MoveGroupSequence
from moveit_msgs.msg import Constraints, MotionSequenceItem, MotionSequenceRequest, RobotState
from moveit_msgs.srv import GetMotionSequence
from rclpy.action import ActionClient
from running_node import shared
from test_moveit_lines import CODES, NAMES, PILZ, START, TIP, URDF, circle, moved, played, request, tips, to_pose
from test_moveit_node import SERVICES, MoveItNode

from gpu_planners.nodes.common.ros import DEEP

SERVICES["plan_sequence_path"] = GetMotionSequence
node_of_module, node = shared(lambda: MoveItNode(URDF, joints=NAMES, tip_link=TIP))

UP = moved((-0.1, 0, 0.1))
ACROSS = moved((-0.1, 0.2, 0.1))
DOWN = moved((0.0, 0.2, 0.0))
RADIUS = 0.04


def item(planner, *goals, radius=0.0, start=None, **fields):
    pipeline = PILZ if planner in ("PTP", "LIN", "CIRC") else ""
    message = request(planner, *goals, pipeline=pipeline, **fields)
    message.start_state = RobotState(is_diff=True) if start is None else messages.state(start, NAMES)
    return MotionSequenceItem(req=message, blend_radius=radius)


def lines(*radii, **fields):
    """LIN up, across and down, with these blend radii."""
    goals = zip((UP, ACROSS, DOWN), radii, strict=True)
    items = [item("LIN", to_pose(goal), radius=radius, **fields) for goal, radius in goals]
    items[0].req.start_state = messages.state(START, NAMES)
    return items


def ask(node, items):
    return node.ask("plan_sequence_path", request=MotionSequenceRequest(items=items)).response


def done(node, items, count=4000):
    """(positions, velocities played, text) of the sequence, which succeeds."""
    answer = ask(node, items)
    assert answer.error_code.val == CODES.SUCCESS, answer.error_code.message
    (trajectory,) = answer.planned_trajectories
    assert np.allclose(answer.sequence_start.joint_state.position, START) and answer.planning_time > 0
    return *played(trajectory, count), answer.error_code.message


def refused(node, items, code, *words):
    answer = ask(node, items)
    assert answer.error_code.val == code, answer.error_code.message
    assert all(word in answer.error_code.message for word in words), answer.error_code.message
    assert not answer.planned_trajectories


def stops(v):
    """How often the robot stands between its start and its end."""
    still = np.abs(v).max(axis=1) < 1e-2
    return np.count_nonzero(np.diff(still.astype(int)) == 1) - 1


def test_lines_with_stops(node):
    q, v, _ = done(node, lines(0.0, 0.0, 0.0))
    poses = tips(q)
    off = [off_the_line(poses, a, b)[0] for a, b in zip([moved((0, 0, 0)), UP, ACROSS], [UP, ACROSS, DOWN])]
    assert np.min(off, axis=0).max() < 1e-3 and np.abs(poses[-1] - DOWN).max() < 1e-5
    assert stops(v) == 2


def test_a_blend_leaves_the_lines_only_within_its_radius(node):
    stopping, _, _ = done(node, lines(0.0, 0.0, 0.0))
    q, v, text = done(node, lines(RADIUS, RADIUS, 0.0))
    assert stops(v) == 0 and "it stops" not in text
    at = tips(q)[:, :3, 3]
    corners = np.array([UP, ACROSS])[:, :3, 3]
    near = np.linalg.norm(at[:, None] - corners, axis=2).min(axis=1) <= RADIUS
    off = [off_the_line(tips(q), a, b)[0] for a, b in zip([moved((0, 0, 0)), UP, ACROSS], [UP, ACROSS, DOWN])]
    off = np.min(off, axis=0)
    assert off[~near].max() < 1e-3 < off[near].max()  # it does leave them, but only there
    assert near.any() and np.linalg.norm(at[:, None] - corners, axis=2).min(axis=0).max() < RADIUS
    assert np.abs(v).max() < 2.001


def test_a_mixed_sequence_goes_through_its_goals(node):
    turned = np.add(START, (0.4, 0.1, 0.0, 0.2, 0.0, 0.0))
    first = tips(turned)[0]
    up = first.copy()
    up[:3, 3] += (0.0, 0.0, 0.08)
    via = (first[:3, 3] + up[:3, 3]) / 2 + np.array([0.0, 0.03, 0.0])
    items = [
        item("PTP", messages.joint_goal(turned, names=NAMES), start=START),
        item("CIRC", to_pose(up), path_constraints=circle("interim", via), radius=0.01),
        item("LIN", to_pose(first), max_velocity_scaling_factor=0.2),
        item("", messages.joint_goal(START, names=NAMES)),
        item("PTP", messages.joint_goal((0.5,), names=["j2"])),  # the others stay
    ]
    q, v, text = done(node, items)
    at = tips(q)[:, :3, 3]
    for place in (first[:3, 3], via):
        assert np.linalg.norm(at - place, axis=1).min() < 2e-3
    assert np.linalg.norm(at - up[:3, 3], axis=1).min() < 0.01
    assert np.abs(q - START).max(axis=1)[len(q) // 3 :].min() < 0.02
    assert np.allclose(q[-1], (*START[:2], 0.5, *START[3:]), atol=1e-3) and "5 items" in text


def test_goals_in_a_frame_that_moves_count_from_where_their_item_begins(node):
    step = np.eye(4)
    step[:3, 3] = 0.0, 0.0, 0.05
    items = [item("LIN", messages.pose_goal(TIP, step, TIP)) for _ in range(2)]
    items[0].req.start_state = messages.state(START, NAMES)
    q, _, _ = done(node, items)
    wanted = tips(START)[0] @ step @ step
    assert np.abs(tips(q)[-1] - wanted).max() < 1e-4


def test_a_free_motion_ends_where_the_line_after_it_can_be_done(node):
    items = [
        item("", to_pose(UP), start=START),
        item("LIN", to_pose(ACROSS), radius=RADIUS),
        item("LIN", to_pose(DOWN)),
    ]
    q, v, _ = done(node, items)
    assert np.abs(tips(q)[-1] - DOWN).max() < 1e-4


HALF = np.array([0.08, 0.02, 0.02])  # of the box of the last link, which is 0.1 m before its frame


def in_hand(points, poses, grown):
    """(points, poses) bool: are points in the box of the last link, which is larger by `grown` on each side?"""
    R, p = poses[:, :3, :3], poses[:, :3, 3]
    local = np.einsum("nij,mni->mnj", R, points[:, None] - p) - [0.1, 0.0, 0.0]
    return (np.abs(local) <= HALF + grown).all(axis=2)


def nearest(q):
    """Metres from the first corner to the tip, where that comes nearest to it."""
    return np.linalg.norm(tips(q)[:, :3, 3] - UP[:3, 3], axis=1).min()


def test_a_blend_keeps_away_from_what_is_in_the_corner(node):
    """A pebble lies where the hand comes only if it cuts the corner."""
    stopping, blending = (done(node, lines(radius, 0.0, 0.0))[0] for radius in (0.0, 0.09))
    stopped, blended = tips(stopping), tips(blending)
    x, y, z = np.meshgrid(np.linspace(0.03, 0.17, 8), np.linspace(-0.03, 0.03, 7), np.linspace(-0.03, 0.03, 7))
    local = np.stack([x, y, z, np.ones_like(x)], axis=-1).reshape(-1, 4)
    corner = blended[np.linalg.norm(blended[:, :3, 3] - UP[:3, 3], axis=1).argsort()[::50][:8]]
    points = (corner @ local.T)[:, :3].swapaxes(1, 2).reshape(-1, 3)
    points = points[in_hand(points, corner, -0.001).any(axis=1)]
    pebble = points[~in_hand(points, stopped[::4], 0.004).any(axis=1)][0]
    node.apply(messages.scene(messages.box("pebble", (0.003,) * 3, pebble, "root")))
    q, v, text = done(node, lines(0.09, 0.0, 0.0))
    assert stops(v) == 1 and "it stops" not in text
    assert not in_hand(pebble[None], tips(q), 0.0).any() and nearest(q) < nearest(blending) - 0.005


def test_where_no_blend_is_possible_it_stops_and_says_so(node):
    _, v, text = done(node, lines(1e-7, 0.0, 0.0))
    assert stops(v) == 2 and "it stops at the goal of item 0" in text
    there_and_back = [item("LIN", to_pose(UP), radius=RADIUS, start=START), item("LIN", to_pose(moved((0, 0, 0))))]
    _, v, text = done(node, there_and_back)
    assert stops(v) == 1 and "it stops at the goal of item 0" in text


def test_how_items_scale_the_speed(node):
    _, v, _ = done(node, lines(RADIUS, RADIUS, 0.0, max_velocity_scaling_factor=0.1))
    assert np.abs(v).max() < 0.2001


JOINTS = messages.joint_goal(np.add(START, 0.1), names=NAMES)


@pytest.mark.parametrize(
    ("items", "code", "words"),
    [
        (lines(0.0, 0.0, 0.02), CODES.INVALID_MOTION_PLAN, ["item 2", "last", "0.02"]),
        (lines(-0.1, 0.0, 0.0), CODES.INVALID_MOTION_PLAN, ["item 0", "blend_radius", "-0.1"]),
        (lines(float("nan"), 0.0, 0.0), CODES.INVALID_MOTION_PLAN, ["item 0", "blend_radius"]),
        (lines(0.1, 0.15, 0.0), CODES.INVALID_MOTION_PLAN, ["item 0 and item 1", "0.1 and 0.15 m", "0.2 m"]),
        ([item("PTP", JOINTS, start=START), item("PTP", JOINTS, start=START)], CODES.INVALID_ROBOT_STATE, ["item 1"]),
        ([item("PTP", JOINTS, start=START), item("PTP")], CODES.INVALID_GOAL_CONSTRAINTS, ["item 1", "no goal"]),
        (
            [item("PTP", JOINTS, start=START), item("LIN", JOINTS, JOINTS)],
            CODES.INVALID_GOAL_CONSTRAINTS,
            ["item 1", "one goal"],
        ),
        ([item("PTP", JOINTS, start=START), item("STOMP", JOINTS)], CODES.PLANNING_FAILED, ["item 1", "'STOMP'"]),
        (
            [item("rrt_connect", JOINTS, start=START), item("prm", JOINTS)],
            CODES.PLANNING_FAILED,
            ["item 0 rrt_connect", "item 1 prm"],
        ),
        (
            [item("", JOINTS, start=START, path_constraints=JOINTS)],
            CODES.PLANNING_FAILED,
            ["item 0", "path_constraints"],
        ),
        (
            [item("PTP", JOINTS, start=START, group_name="arm"), item("PTP", JOINTS, group_name="hand")],
            CODES.INVALID_GROUP_NAME,
            ["'arm'", "'hand'"],
        ),
        (
            [item("PTP", JOINTS, start=START), item("CIRC", JOINTS, path_constraints=Constraints(name="via"))],
            CODES.INVALID_MOTION_PLAN,
            ["item 1", "'via'"],
        ),
        (
            [item("LIN", to_pose(UP), start=START), item("LIN", messages.pose_goal("l4", ACROSS, "root"))],
            CODES.INVALID_LINK_NAME,
            [f"item 0 '{TIP}'", "item 1 'l4'"],
        ),
        (
            [item("PTP", JOINTS, start=START), item("PTP", to_pose(moved((9, 0, 0))))],
            CODES.NO_IK_SOLUTION,
            ["item 1", "limits"],
        ),
        ([item("LIN", to_pose(UP), start=START), item("LIN", to_pose(moved((9, 0, 0))))], None, ["item 1"]),
        ([item("PTP", JOINTS, start=(0, 4, 0, 0, 0, 0))], CODES.START_STATE_INVALID, ["j1"]),
    ],
)
def test_what_is_refused_and_why(node, items, code, words):
    answer = ask(node, items)
    if code is None:
        code = CODES.NO_IK_SOLUTION
    assert answer.error_code.val == code, answer.error_code.message
    refused(node, items, code, *words)


def test_no_items_are_no_failure(node):
    answer = ask(node, [])
    assert answer.error_code.val == CODES.SUCCESS and not answer.planned_trajectories


def test_what_is_in_the_way_is_named_with_its_item(node):
    wall = messages.box("wall", (0.3, 0.02, 0.3), moved((-0.1, 0.1, 0.1))[:3, 3], "root")
    node.apply(messages.scene(wall))
    refused(node, lines(RADIUS, RADIUS, 0.0), CODES.PLANNING_FAILED, "item 1", "'wall'")


def test_the_action_plans(node):
    action = ActionClient(node.client_node, MoveGroupSequence, "sequence_move_group", goal_service_qos_profile=DEEP)
    assert action.wait_for_server(10)
    goal = MoveGroupSequence.Goal(request=MotionSequenceRequest(items=lines(RADIUS, RADIUS, 0.0)))
    goal.planning_options.plan_only = True
    future = action.send_goal_async(goal)
    node.wait_until(future.done)
    future = future.result().get_result_async()
    node.wait_until(future.done)
    response = future.result().result.response
    assert future.result().status == GoalStatus.STATUS_SUCCEEDED and response.error_code.val == CODES.SUCCESS
    assert np.abs(tips(played(response.planned_trajectories[0])[0])[-1] - DOWN).max() < 1e-4
