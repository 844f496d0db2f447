"""Answers compute_cartesian_path: the tool on straight lines through waypoints, as far as that can be done."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
from moveit_msgs.msg import RobotTrajectory
from moveit_msgs.srv import GetCartesianPath

from ...arm import CollisionChecker, CollisionWorld, RobotModel, cartesian, sequence
from ...arm.motion.timing import DIGITS, MOST_POINTS
from ...arm.robot.tip import Tip
from ...arm.sequence import SequenceResult, Straight
from ...arm.trajectory import Trajectory, standing
from ...errors import ObstacleError
from ..arm import codes
from ..arm.conversions import trajectory_message
from ..arm.parameters import PLANNERS, ArmParameters
from ..arm.sequence_service import inside_limits
from ..common.request_error import RequestError, check_count, one_line
from ..common.worker import device_of_seat
from . import constraints as constraint_messages
from .planning import Motion, check_group, check_speed, check_start, scaling_of
from .reference import Reference
from .shapes import read_pose


def check_request(request: GetCartesianPath.Request, values: ArmParameters) -> None:
    """Refuse what no path can honour; RequestError with a code and a text."""
    check_group(request.group_name, values)
    check_count("waypoints", len(request.waypoints), "max_goals", values, codes.INVALID_GOAL_CONSTRAINTS)
    if not request.waypoints:
        raise RequestError(codes.INVALID_GOAL_CONSTRAINTS, "the request has no waypoints: give at least one")
    if not 0 < request.max_step < np.inf:
        raise RequestError(codes.FAILURE, f"max_step is {request.max_step}; allowed: metres above 0")
    for name in ("jump_threshold", "prismatic_jump_threshold", "revolute_jump_threshold"):
        if not getattr(request, name) >= 0:
            raise RequestError(codes.FAILURE, f"{name} is {getattr(request, name)}; allowed: 0 for none, or more")
    if not constraint_messages.is_empty(request.path_constraints):
        raise RequestError(codes.PLANNING_FAILED, "a Cartesian path keeps no path_constraints; allowed: none")
    if hasattr(request, "max_cartesian_speed"):  # not in ROS 2 Humble
        check_speed(request)


def blind_checker(robot: RobotModel, device: str) -> CollisionChecker:
    """A checker to which nothing collides, where a request does not avoid collisions. device: of the parameters"""
    alone = replace(robot, self_collision_pairs=np.zeros((0, 2), np.int32))
    return CollisionChecker(alone, CollisionWorld(), device_of_seat(device))


def plan(
    request: GetCartesianPath.Request,
    values: ArmParameters,
    checker: CollisionChecker,
    reference: Reference,
    start: np.ndarray,
) -> tuple[Motion, float]:
    """The motion from start (dof,), and how much of the way it goes, 0..1, each waypoint the same part of it.

    Fewer waypoints than were asked for are no failure, as in MoveIt: the text says what ended the way.
    """
    began, robot = time.monotonic(), checker.robot
    check_start(checker, start)
    start = inside_limits(robot, start, values.planner_settings(values.planner))
    link = request.link_name or values.tip_link or robot.tip_link
    reference.check_link(link, "the request")
    tip = Tip(robot, link)
    T_start = tip.pose(start[None])[0]
    goals = _poses(request, reference, link, T_start)
    text = ""
    if request.jump_threshold or request.prismatic_jump_threshold or request.revolute_jump_threshold:
        goals, allowed, text = _before_jump(request, [T_start, *goals], start, checker, tip, values)
    else:
        allowed = float(len(goals))
    done, result, stopped = _followed(goals, start, checker, link, request, values)
    text = stopped.replace("segment", "waypoint", 1) or text
    fraction = min(done, allowed) / len(request.waypoints)
    motion = _with_steps(result.trajectory, tip, request.max_step)
    spent = time.monotonic() - began
    said = f"{100 * fraction:.4g} % of the way, {motion.duration:.2f} s long, in {1e3 * spent:.1f} ms"
    trajectory = RobotTrajectory(joint_trajectory=trajectory_message(robot, motion))
    return Motion(result.path, trajectory, spent, said + f"; it ends there: {one_line(text)}" * bool(text)), fraction


def _poses(request, reference, link, T_start):
    """[(4, 4) root_T_link] of the waypoints; in the link's own frame each is relative to the one before it."""
    own = request.header.frame_id.removeprefix("/") == link
    T_root_frame = T_start if own else reference.frame(request.header.frame_id, "the waypoints")
    poses = []
    for i, waypoint in enumerate(request.waypoints):
        try:
            poses.append(T_root_frame @ read_pose(waypoint, f"waypoint {i}"))
        except ObstacleError as error:
            raise RequestError(codes.INVALID_GOAL_CONSTRAINTS, str(error)) from error
        T_root_frame = poses[-1] if own else T_root_frame
    return poses


def _followed(goals, start, checker, link, request, values) -> tuple[float, SequenceResult, str]:
    """(waypoints reached, with the part of the last one; what sequence.solve answers; what stopped it)

    The motion goes through waypoints without a stop as far as it stays within the line's tolerance of them.
    """
    robot = checker.robot
    scaling = [scaling_of(getattr(request, f"max_{what}_scaling_factor", 1.0)) for what in ("velocity", "acceleration")]
    acceleration = robot.acceleration * scaling[1]
    segments: list[Any] = [Straight(pose=T, blend_radius=values.line.tolerance) for T in goals]
    settings = sequence.Settings(
        line=values.line,
        velocity=robot.velocity * scaling[0],
        acceleration=acceleration,
        jerk=acceleration / values.jerk_time_s,
        time_limit_s=values.line.time_limit_s,
        allow_partial=True,
    )
    if not segments:  # a jump at once
        return 0.0, _standing(start), ""
    result = sequence.solve(start, segments, checker, PLANNERS[values.planner], settings, link)
    if result.failed < 0:
        return float(len(goals)), result, ""
    if result.trajectory is None:
        return 0.0, _standing(start), result.text
    return result.failed + result.fraction, result, result.text


def _standing(start):
    return SequenceResult(-1, None, None, "", standing(start[None].copy()), start[None], np.zeros(0), 0.0, 0.0)


def _before_jump(request, poses, start, checker, tip, values):
    """The waypoints before the first jump by MoveIt's rule, their number with the part of the last one, and a text.

    poses: [(4, 4)] of the start and the waypoints
    """
    rows, places = [start], [(0, 0.0)]
    for i, (T_from, T_to) in enumerate(zip(poses, poses[1:])):
        line = cartesian.solve(rows[-1], T_to, checker, values.line, tip.link)
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
    """The same motion with as many points as move the tip by no more than max_step metres from one to the next."""
    times = trajectory.times
    while len(times) > 1:
        far = np.linalg.norm(np.diff(tip.pose(trajectory.at(times)[0])[:, :3, 3], axis=0), axis=1) > max_step
        if not far.any():
            break
        middle = np.round((times[:-1] + times[1:])[far] / 2, DIGITS)
        times = np.unique(np.r_[times, middle])
        if len(times) > MOST_POINTS:
            raise RequestError(
                codes.FAILURE, f"max_step is {max_step:g} m, which takes more than {MOST_POINTS} points; allowed: more"
            )
    rows = trajectory.at(times)
    for row, given in zip(rows, (trajectory.positions, trajectory.velocities, trajectory.accelerations)):
        row[np.searchsorted(times, trajectory.times)] = given
    robot = tip.robot
    inside = np.where(robot.continuous, rows[0], np.clip(rows[0], robot.lower, robot.upper))
    return Trajectory(times, inside, *rows[1:])
