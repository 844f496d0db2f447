"""PTP, LIN and CIRC as Pilz's planner defines them: joints on a straight line, the tool on a straight line or an arc.

A request has one goal, all joints (PTP: some) or one pose. Where LIN or CIRC has joints, the tool goes to the pose that
they give it; an arm with a free joint may get there by other values. CIRC has path constraints named "interim", with a
point on the arc, or "center"; then the arc is the shorter one. None of them goes around anything: what is not free is
refused.
"""

from typing import Any

import numpy as np
from moveit_msgs.msg import Constraints, MotionPlanRequest

from ...arm import CollisionChecker, sequence
from ...arm.cartesian import Arc
from ...arm.sequence import Circular, Straight
from ...arm.trajectory import Trajectory
from ...errors import SettingsError
from ..arm import codes
from ..arm.parameters import PLANNERS, ArmParameters
from ..arm.plan_service import timed
from ..arm.sequence_service import code_of_failure
from ..common.request_error import RequestError, one_line
from . import constraints as constraint_messages
from .constraints import Region, link_poses, read_constraints
from .reference import Reference

EXACT = 1e-6  # m and rad: of a pose that PTP goes to
LOOKS = 64  # places of a motion that is not free, to say what is in its way
TRIED = 4  # times as many solutions as are used are looked for
ARCS = {"interim": "through", "center": "center"}  # name of a path constraint -> field of Arc


def plan(
    kind: str,
    request: MotionPlanRequest,
    values: ArmParameters,
    checker: CollisionChecker,
    reference: Reference,
    start: np.ndarray,
    scaling: list[float],
    limit: float,
) -> tuple[np.ndarray, Trajectory, str]:
    """(K, dof) path, its Trajectory, and what is said about it; RequestError where the motion cannot be made.

    kind: one of planner_names.INDUSTRIAL; start: (dof,); scaling: of velocity and acceleration limits
    limit: seconds
    """
    if len(request.goal_constraints) != 1:
        raise _wrong_goal(f"{kind} takes one goal; the request has {len(request.goal_constraints)} goal_constraints")
    goal = read_constraints(request.goal_constraints[0], reference, "the goal")
    if kind != "CIRC" and not constraint_messages.is_empty(request.path_constraints):
        raise RequestError(codes.PLANNING_FAILED, f"{kind} keeps no path_constraints; allowed: none")
    if kind == "PTP":
        path = np.stack([start, _target(goal, checker, start, values.ik_solutions, limit)])
        return path, timed(checker, path, scaling, values), "PTP, straight in joint space"
    link, T_goal = _pose(goal, request, checker.robot, values, start)
    if kind == "LIN":
        segment: Any = Straight(pose=T_goal)
    else:
        segment = Circular(T_goal, _arc(request, reference, link))
    path, motion = _followed(kind, segment, values, checker, start, link, scaling, limit)
    off = max((float(np.abs(band.excess(checker.robot, path[-1:])).max()) for band in goal.joints), default=0.0)
    other = f", with joints up to {off:.3g} rad or m from those of the goal" * bool(off > EXACT)
    return path, motion, f"{kind}, link '{link}' at the goal's pose{other}"


def _followed(kind, segment, values, checker, start, link, scaling, limit):
    """(K, dof) path and Trajectory of a line or an arc."""
    robot = checker.robot
    acceleration = robot.acceleration * scaling[1]
    settings = sequence.Settings(
        line=values.line,
        velocity=robot.velocity * scaling[0],
        acceleration=acceleration,
        jerk=acceleration / values.jerk_time_s,
        time_limit_s=limit,
    )
    try:
        result = sequence.solve(start, [segment], checker, PLANNERS[values.planner], settings, link)
    except SettingsError as error:
        raise RequestError(codes.INVALID_MOTION_PLAN, f"{kind}: {error}") from error
    if result.trajectory is None:
        text = one_line(result.text).removeprefix("segment 0: ")
        raise RequestError(
            code_of_failure(result), f"{kind} ends after {100 * result.fraction:.3g} % of the way: {text}"
        )
    return result.path, result.trajectory


def _pose(goal: Region, request, robot, values, start):
    """(link, (4, 4) root_T_link) where a goal of LIN or CIRC has it."""
    link, T = _one_pose(goal)
    if link:
        asked = request.goal_constraints[0].position_constraints[0].link_name
        if asked != link:
            raise RequestError(
                codes.INVALID_LINK_NAME,
                f"{request.planner_id} moves links; '{asked}' is a frame of what link '{link}' carries",
            )
        return link, T
    if len(goal.joints) != robot.dof:
        raise _wrong_goal(
            f"{request.planner_id} takes a goal of all {robot.dof} joints or a pose, got {len(goal.joints)} joints"
        )
    link = values.tip_link or robot.tip_link
    if request.planner_id == "CIRC" and request.path_constraints.position_constraints:
        link = request.path_constraints.position_constraints[0].link_name
        if link not in robot.link_names:
            raise RequestError(
                codes.INVALID_LINK_NAME, f"CIRC to joints moves the link that path_constraints name, got '{link}'"
            )
    return link, link_poses(robot, link, _joints(goal, robot, start)[None])[0]


def _one_pose(goal: Region):
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
    T[:3, 3] = placed.bodies[0].centre - T[:3, :3] @ placed.offset
    return placed.link, T


def _joints(goal: Region, robot, start):
    """(dof,) of a goal of joints: each at its position, as far as that is within its limits; others as at the start."""
    q = start.copy()
    for band in goal.joints:
        j = band.joint
        if robot.continuous[j]:
            q[j] = start[j] + (band.position - start[j] + np.pi) % (2 * np.pi) - np.pi
        else:
            q[j] = np.clip(band.position, robot.lower[j], robot.upper[j])
    return q


def _target(goal: Region, checker, start, count, limit):
    """(dof,) nearest of the goal's configurations to which the straight joint motion is free."""
    robot, (link, T) = checker.robot, _one_pose(goal)
    if not link:
        goals = _joints(goal, robot, start)[None]
        pairs = checker.colliding_pairs(goals[0])
        if pairs:
            raise RequestError(codes.GOAL_IN_COLLISION, f"at the goal '{pairs[0][0]}' meets '{pairs[0][1]}'")
    else:
        (found,) = robot.inverse_kinematics(
            T[None],
            checker,
            link=link,
            seed_q=start,
            solutions=TRIED * count,
            position_tolerance=EXACT,
            orientation_tolerance=EXACT,
            time_limit_s=limit / 2,
        )
        if not len(found):
            raise _unreachable(found, checker, link)
        goals = found.q[:count]
        around = (goals - start + np.pi) % (2 * np.pi) - np.pi
        goals = np.where(robot.continuous, start + around, goals)
    free = checker.motions_valid(np.repeat(start[None], len(goals), axis=0), goals)
    if free.any():
        return goals[np.argmax(free)]
    between = start + np.linspace(0, 1, LOOKS)[:, None] * (goals[0] - start)
    met = [pair for q in between for pair in checker.colliding_pairs(q)[:1]]
    what = f"'{met[0][0]}' meets '{met[0][1]}' on it" if met else "it comes too near to a contact to be proven free"
    raise RequestError(codes.PLANNING_FAILED, f"PTP goes straight in joint space, which is not free: {what}")


def _unreachable(found, checker, link):
    if len(found.colliding):
        first, second = checker.colliding_pairs(found.colliding[0])[0]
        return RequestError(
            codes.GOAL_IN_COLLISION,
            f"all joint configurations found for the goal's pose collide: '{first}' meets '{second}'",
        )
    if found.timed_out:
        return RequestError(codes.TIMED_OUT, "no configuration was found in half of the time, which the goal may take")
    return RequestError(codes.NO_IK_SOLUTION, f"no joint configuration inside the limits places link '{link}' there")


def _arc(request: MotionPlanRequest, reference: Reference, link: str) -> Arc:
    """The arc of path_constraints, whose point has the target_point_offset of the goal, as in Pilz's planner."""
    message, goal = request.path_constraints, request.goal_constraints[0]
    if message.name not in ARCS:
        raise _wrong_arc(f"path_constraints are named '{message.name}'; allowed: 'interim' or 'center'")
    one = message.position_constraints[0] if len(message.position_constraints) == 1 else None
    if one is None or len(one.constraint_region.primitive_poses) != 1 or _others(message):
        raise _wrong_arc(
            "CIRC takes path_constraints of one position constraint, whose region has one of primitive_poses, and "
            "no others"
        )
    if one.link_name not in ("", link):
        raise RequestError(
            codes.INVALID_LINK_NAME, f"the path_constraints name link '{one.link_name}', the goal link '{link}'"
        )
    p = one.constraint_region.primitive_poses[0].position
    point = (reference.frame(one.header.frame_id, "the path constraint") @ [p.x, p.y, p.z, 1.0])[:3]
    if goal.position_constraints:
        (turned,) = read_constraints(goal, reference, "the goal").orientations
        o = goal.position_constraints[0].target_point_offset
        point = point - turned.wanted @ [o.x, o.y, o.z]
    return Arc(**{ARCS[message.name]: point})


def _others(message: Constraints) -> bool:
    return bool(message.joint_constraints or message.orientation_constraints or message.visibility_constraints)


def _wrong_goal(text):
    return RequestError(codes.INVALID_GOAL_CONSTRAINTS, text)


def _wrong_arc(text):
    return RequestError(codes.INVALID_MOTION_PLAN, text)
