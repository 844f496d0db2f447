"""PTP, LIN and CIRC as Pilz's planner defines them: joints on a straight line, the tool on a straight line or an arc.

A request has one goal: all joints (PTP: some) or one pose. LIN and CIRC to joints move the tool to the pose that these
give it; an arm with a free joint may arrive there with other values. The path constraints of CIRC are named "interim",
and give a point on the arc, or "center"; then the shorter arc is taken. None of them goes around an obstacle: a motion
that is not free is refused.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from moveit_msgs.msg import MotionPlanRequest

from ...arm import sequence
from ...arm.cartesian import Arc, Speeds
from ...arm.robot.inverse_kinematics import nearest_turn
from ...arm.sequence import Circular, SequenceResult, Straight
from ...arm.trajectory import Trajectory
from ...errors import SettingsError, one_line
from ..arm import codes
from ..arm.parameters import PLANNERS
from ..arm.payload import torque_limits
from ..arm.plan_service import TRIED, timed
from ..arm.sequence_service import code_of_failure
from ..common.request_error import RequestError, answered_with
from .constraints import Region, is_empty, link_poses, read_constraints
from .goals import EXACT, Judge, placed_at
from .reference import Reference
from .requests import MotionQuery

LOOKS = 64  # places of a motion that is not free, to say what is in its way
ARCS = {"interim": "through", "center": "center"}  # name of a path constraint -> field of Arc


def plan(kind: str, query: MotionQuery, limit: float) -> tuple[np.ndarray, Trajectory, str]:
    """(K, dof) path, its Trajectory, and what is said about it; RequestError where the motion cannot be made.

    kind: one of requests.INDUSTRIAL; query: of a MotionPlanRequest; limit: seconds
    """
    robot, goal = query.checker.robot, read_goal(kind, query)
    if kind == "PTP":
        path = np.stack([query.start, target(goal, query, limit)])
        return path, timed(query.checker, path, query.scaling, query.values), "PTP, straight in joint space"
    segment, link = line(kind, goal, query)
    with answered_with(codes.INVALID_MOTION_PLAN, SettingsError, f"{kind}: "):
        result = follow([segment], query, link, limit, tool=tool_speeds(query, query.scaling))
    if result.trajectory is None:
        text = one_line(result.text).removeprefix("segment 0: ")
        text = f"{kind} ends after {100 * result.fraction:.3g} % of the way: {text}"
        raise RequestError(code_of_failure(result), text)
    off = max((float(band.excess(robot, result.path[-1:])[0]) for band in goal.joints), default=0.0)
    other = f", with joints up to {off:.3g} rad or m from those of the goal" * bool(off > EXACT)
    return result.path, result.trajectory, f"{kind}, link '{link}' at the goal's pose{other}"


def read_goal(kind: str, query: MotionQuery) -> Region:
    """The one goal of a request; RequestError for another number, and for path constraints."""
    request = query.request
    if len(request.goal_constraints) != 1:
        raise _wrong_goal(f"{kind} takes one goal; the request has {len(request.goal_constraints)} goal_constraints")
    if kind != "CIRC" and not is_empty(request.path_constraints):
        raise RequestError(codes.PLANNING_FAILED, f"{kind} keeps no path_constraints; allowed: none")
    return read_constraints(request.goal_constraints[0], query.reference, "the goal")


def line(kind: str, goal: Region, query: MotionQuery, **more: Any) -> tuple[Straight | Circular, str]:
    """The segment of a LIN or CIRC, and the link that it moves. more: fields of Segment"""
    link, T_goal = _pose(kind, goal, query)
    if kind == "LIN":
        return Straight(pose=T_goal, **more), link
    return Circular(T_goal, _arc(query.request, query.reference, link), **more), link


def follow(
    segments: list[Any],
    query: MotionQuery,
    link: str,
    limit: float,
    allow_partial: bool = False,
    tool: Speeds = Speeds(),
) -> SequenceResult:
    """Move a link through lines and arcs from the query's start. limit: seconds; tool: how fast the link may move"""
    robot, values = query.checker.robot, query.values
    velocity, acceleration = query.scaling
    settings = sequence.Settings(
        line=values.line,
        tool=tool,
        velocity=robot.velocity * velocity,
        acceleration=robot.acceleration * acceleration,
        jerk=robot.jerk_limits(robot.acceleration * acceleration, values.jerk_time_s),
        torques=torque_limits(robot, values),
        time_limit_s=limit,
        allow_partial=allow_partial,
    )
    return sequence.solve(query.start, segments, query.checker, PLANNERS[values.planner], settings, link)


def tool_speeds(query: MotionQuery, scaling: Sequence[float] = (1.0, 1.0)) -> Speeds:
    """How fast a line may move the tool by pilz_cartesian_limits.yaml, as Pilz's planner has it: accelerations are the
    smaller of acceleration and deceleration, and of turning in the proportion of the speeds. scaling: fractions of
    velocities and accelerations"""
    given, (velocity, acceleration) = query.limits.cartesian, scaling
    speed, turning = given.get("max_trans_vel", np.inf), given.get("max_rot_vel", np.inf)
    rise = min(given.get("max_trans_acc", np.inf), given.get("max_trans_dec", np.inf))
    turn_rise = rise * turning / speed if max(rise, turning, speed) < np.inf else np.inf
    return Speeds(
        velocity=speed * velocity,
        acceleration=rise * acceleration,
        turning=turning * velocity,
        turning_rate=turn_rise * acceleration,
    )


def _pose(kind, goal, query):
    """(link, (4, 4) root_T_link) where a goal of LIN or CIRC has it."""
    request, robot = query.request, query.checker.robot
    link, T = _one_pose(goal)
    if link:
        asked = request.goal_constraints[0].position_constraints[0].link_name
        if asked != link:
            text = f"{kind} moves links; '{asked}' is a frame of what link '{link}' carries"
            raise RequestError(codes.INVALID_LINK_NAME, text)
        return link, T
    if len(goal.joints) != robot.dof:
        raise _wrong_goal(f"{kind} takes a goal of all {robot.dof} joints or a pose, got {len(goal.joints)} joints")
    link = robot.tip_link
    if kind == "CIRC" and request.path_constraints.position_constraints:
        link = request.path_constraints.position_constraints[0].link_name
        if link not in robot.link_names:
            text = f"CIRC to joints moves the link that path_constraints name, got '{link}'"
            raise RequestError(codes.INVALID_LINK_NAME, text)
    return link, link_poses(robot, link, _joints(goal, robot, query.start)[None])[0]


def _one_pose(goal):
    """(link, (4, 4) root_T_link) of a goal of one pose, ("", identity) of one of joints; RequestError of others."""
    if goal.joints and not goal.links:
        return "", np.eye(4)
    if goal.joints or len(goal.links) != 1 or (len(goal.positions), len(goal.orientations)) != (1, 1):
        raise _wrong_goal(
            f"{goal.what} has {len(goal.joints)} joint, {len(goal.positions)} position and {len(goal.orientations)} "
            "orientation constraints; allowed: joints alone, or one position and one orientation of one link"
        )
    (placed,), (turned,) = goal.positions, goal.orientations
    T = np.eye(4)
    T[:3, :3] = turned.wanted @ turned.R_link_frame.T
    T[:3, 3] = placed.volumes[0].centre - T[:3, :3] @ placed.offset
    return placed.link, T


def _joints(goal, robot, start):
    """(dof,) of a goal of joints: each at its position, as far as that is within its limits; others as at the start."""
    q = start.copy()
    for band in goal.joints:
        q[band.joint] = np.clip(band.position, robot.lower[band.joint], robot.upper[band.joint])
        if robot.continuous[band.joint]:
            q[band.joint] = start[band.joint] + nearest_turn(band.position - start[band.joint])
    return q


def target(goal: Region, query: MotionQuery, limit: float) -> np.ndarray:
    """(dof,) nearest of a goal's configurations to which the straight joint motion from the query's start is free;
    RequestError where none is. limit: seconds"""
    checker, start, count = query.checker, query.start, query.values.ik_solutions
    robot, (link, T) = checker.robot, _one_pose(goal)
    if not link:
        goals = _joints(goal, robot, start)[None]
        for first, second in checker.colliding_pairs(goals[0]):
            raise RequestError(codes.GOAL_IN_COLLISION, f"at the goal '{first}' meets '{second}'")
    else:
        judge = Judge(robot, Region("the goal"), checker)
        goals = placed_at(T, link, judge, start, TRIED * count, limit / 2)[:count]
        goals = np.where(robot.continuous, start + nearest_turn(goals - start), goals)
    free = checker.motions_valid(np.repeat(start[None], len(goals), axis=0), goals)
    if free.any():
        return goals[np.argmax(free)]
    between = start + np.linspace(0, 1, LOOKS)[:, None] * (goals[0] - start)
    met = [pair for q in between for pair in checker.colliding_pairs(q)[:1]]
    what = f"'{met[0][0]}' meets '{met[0][1]}' on it" if met else "it comes too near to a contact to be proven free"
    raise RequestError(codes.PLANNING_FAILED, f"PTP goes straight in joint space, which is not free: {what}")


def _arc(request: MotionPlanRequest, reference: Reference, link: str) -> Arc:
    """The arc of path_constraints, whose point has the target_point_offset of the goal, as in Pilz's planner."""
    message, goal = request.path_constraints, request.goal_constraints[0]
    if message.name not in ARCS:
        raise _wrong_arc(f"path_constraints are named '{message.name}'; allowed: 'interim' or 'center'")
    one = message.position_constraints[0] if len(message.position_constraints) == 1 else None
    others = message.joint_constraints or message.orientation_constraints or message.visibility_constraints
    if one is None or len(one.constraint_region.primitive_poses) != 1 or others:
        raise _wrong_arc(
            "path_constraints of CIRC are one position constraint, whose region has one of primitive_poses"
        )
    if one.link_name not in ("", link):
        text = f"the path_constraints name link '{one.link_name}', the goal link '{link}'"
        raise RequestError(codes.INVALID_LINK_NAME, text)
    p = one.constraint_region.primitive_poses[0].position
    point = (reference.frame(one.header.frame_id, "the path constraint") @ [p.x, p.y, p.z, 1.0])[:3]
    if goal.position_constraints:
        (turned,) = read_constraints(goal, reference, "the goal").orientations
        o = goal.position_constraints[0].target_point_offset
        point = point - turned.wanted @ [o.x, o.y, o.z]
    return Arc(**{ARCS[message.name]: point})


def _wrong_goal(text):
    return RequestError(codes.INVALID_GOAL_CONSTRAINTS, text)


def _wrong_arc(text):
    return RequestError(codes.INVALID_MOTION_PLAN, text)
