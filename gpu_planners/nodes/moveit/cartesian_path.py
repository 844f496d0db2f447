"""Answers compute_cartesian_path: the tool on straight lines through waypoints, as far as that can be done."""

import time
from dataclasses import replace

import numpy as np
from moveit_msgs.msg import RobotTrajectory
from moveit_msgs.srv import GetCartesianPath

from ...arm import CollisionChecker, CollisionWorld, RobotModel, cartesian
from ...arm.motion.played import DIGITS, MOST_POINTS
from ...arm.robot.tip import Tip
from ...arm.sequence import Straight
from ...arm.trajectory import Trajectory, standing
from ...errors import ObstacleError, one_line
from ..arm import codes
from ..arm.conversions import trajectory_message
from ..arm.parameters import ArmParameters
from ..arm.sequence_service import inside_limits
from ..common.request_error import RequestError, answered_with, check_count
from ..common.worker import device_of_seat
from .constraints import is_empty
from .industrial import follow
from .requests import MotionQuery, PlannedMotion, check_speed, check_start
from .shapes import read_pose


def check_request(request: GetCartesianPath.Request, values: ArmParameters) -> None:
    """Refuse what no path can honour; RequestError with a code and a text."""
    check_count("waypoints", len(request.waypoints), "max_goals", values, codes.INVALID_GOAL_CONSTRAINTS)
    if not request.waypoints:
        raise RequestError(codes.INVALID_GOAL_CONSTRAINTS, "the request has no waypoints: give at least one")
    if not 0 < request.max_step < np.inf:
        raise RequestError(codes.FAILURE, f"max_step is {request.max_step}; allowed: metres above 0")
    for name in ("jump_threshold", "prismatic_jump_threshold", "revolute_jump_threshold"):
        if not getattr(request, name) >= 0:
            raise RequestError(codes.FAILURE, f"{name} is {getattr(request, name)}; allowed: 0 for none, or more")
    if not is_empty(request.path_constraints):
        raise RequestError(codes.PLANNING_FAILED, "a Cartesian path keeps no path_constraints; allowed: none")
    if hasattr(request, "max_cartesian_speed"):  # not in ROS 2 Humble
        check_speed(request)


def blind_checker(robot: RobotModel, device: str) -> CollisionChecker:
    """A checker to which nothing collides, where a request does not avoid collisions. device: of the parameters"""
    alone = replace(robot, self_collision_pairs=np.zeros((0, 2), np.int32))
    return CollisionChecker(alone, CollisionWorld(), device_of_seat(device))


def plan(query: MotionQuery) -> tuple[PlannedMotion, float]:
    """The motion, and the part of the way that it goes, 0..1, of which each waypoint is an equal share.

    It goes through waypoints without a stop as far as it stays within the line's tolerance of them. Fewer waypoints
    than were asked for are no failure, as in MoveIt: the text says what ended the way.
    """
    began, request, values, robot = time.monotonic(), query.request, query.values, query.checker.robot
    check_start(query.checker, query.start)
    start = inside_limits(robot, query.start, getattr(values, values.planner))
    query = query._replace(start=start)
    link = request.link_name or robot.tip_link
    query.reference.check_link(link, "the request")
    tip = Tip(robot, link)
    T_start = tip.pose(start[None])[0]
    goals, text = _poses(request, query.reference, link, T_start), ""
    allowed = float(len(goals))
    if request.jump_threshold or request.prismatic_jump_threshold or request.revolute_jump_threshold:
        goals, allowed, text = _before_jump(query, [T_start, *goals], tip)
    done, path, motion = 0.0, start[None], standing(start[None].copy())
    if goals:  # else there is a jump at once
        segments = [Straight(pose=T, blend_radius=values.line.tolerance) for T in goals]
        result = follow(segments, query, link, values.line.time_limit_s, allow_partial=True)
        text = text if result.failed < 0 else result.text.replace("segment", "waypoint", 1)
        if result.trajectory is not None:
            path, motion = result.path, result.trajectory
            done = float(len(goals)) if result.failed < 0 else result.failed + result.fraction
    fraction, motion = min(done, allowed) / len(request.waypoints), _with_steps(motion, tip, request.max_step)
    spent = time.monotonic() - began
    said = f"{100 * fraction:.4g} % of the way, {motion.duration:.2f} s long, in {1e3 * spent:.1f} ms"
    said += f"; it ends there: {one_line(text)}" * bool(text)
    trajectory = RobotTrajectory(joint_trajectory=trajectory_message(robot, motion))
    return PlannedMotion(path, trajectory, spent, said), fraction


def _poses(request, reference, link, T_start):
    """[(4, 4) root_T_link] of the waypoints; in the link's own frame each is relative to the one before it."""
    own = request.header.frame_id.removeprefix("/") == link
    T_root_frame = T_start if own else reference.frame(request.header.frame_id, "the waypoints")
    poses = []
    for i, waypoint in enumerate(request.waypoints):
        with answered_with(codes.INVALID_GOAL_CONSTRAINTS, ObstacleError):
            poses.append(T_root_frame @ read_pose(waypoint, f"waypoint {i}"))
        T_root_frame = poses[-1] if own else T_root_frame
    return poses


def _before_jump(query, poses, tip):
    """The waypoints before the first jump by MoveIt's rule, their number with the part of the last one, and a text.

    poses: [(4, 4)] of the start and the waypoints
    """
    request, start = query.request, query.start
    rows, places = [start], [(0, 0.0)]
    for i, (T_from, T_to) in enumerate(zip(poses, poses[1:])):
        line = cartesian.solve(rows[-1], T_to, query.checker, query.values.line, tip.link)
        if len(line.path) < 2:
            break
        steps = int(np.linalg.norm(T_to[:3, 3] - T_from[:3, 3]) / request.max_step) + 1
        shares = np.arange(1, steps + 1) / steps
        for share in shares[shares <= line.fraction]:
            rows.append(np.array([np.interp(share, line.fractions, q) for q in line.path.T]))
            places.append((i, share))
        if not line.solved:
            break
    moved = np.abs(np.diff(rows, axis=0))
    slides = np.zeros(len(start), dtype=bool)
    slides[tip.robot.frames["joint"]] = tip.robot.frames["prismatic"]
    limits = np.where(slides, request.prismatic_jump_threshold, request.revolute_jump_threshold)
    far = moved.sum(axis=1)
    jumps = (far > request.jump_threshold * far.mean()) if request.jump_threshold and len(far) else far < 0
    jumps |= ((moved > limits) & (limits > 0)).any(axis=1)
    if not jumps.any():
        return poses[1:], float(len(poses) - 1), ""
    i, share = places[int(np.argmax(jumps))]
    text = f"the next step of {request.max_step:g} m moves the joints by more than the jump threshold"
    end = [cartesian.part_of_line(poses[i], poses[i + 1], share)] if share > 0 else []
    return [*poses[1 : i + 1], *end], i + share, text


def _with_steps(trajectory, tip, max_step):
    """A motion with more points, between which the tip moves by no more than max_step metres."""
    times = trajectory.times
    while len(times) > 1:
        far = np.linalg.norm(np.diff(tip.pose(trajectory.at(times)[0])[:, :3, 3], axis=0), axis=1) > max_step
        if not far.any():
            break
        middle = np.round((times[:-1] + times[1:])[far] / 2, DIGITS)
        times = np.unique(np.r_[times, middle])
        if len(times) > MOST_POINTS:
            text = f"max_step is {max_step:g} m, which takes more than {MOST_POINTS} points; allowed: more"
            raise RequestError(codes.FAILURE, text)
    rows = trajectory.at(times)
    for row, given in zip(rows, (trajectory.positions, trajectory.velocities, trajectory.accelerations)):
        row[np.searchsorted(times, trajectory.times)] = given
    return Trajectory(times, tip.bounded(rows[0]), *rows[1:])
