"""The goals of a PlanMotion request as configurations; pose goals by inverse kinematics."""

import time

import numpy as np

from gpu_planners_msgs.srv import PlanMotion

from ...arm import CollisionChecker
from ...arm.robot.kinematics import inverse_kinematics
from ..common.request_error import RequestError
from . import codes as error_codes
from .conversions import configuration, joint_positions, only_joints, pose_goal

TRIED = 4  # times as many solutions are looked for as are used: many of them may collide


def goals_of(
    request: PlanMotion.Request,
    checker: CollisionChecker,
    frames: dict[str, np.ndarray],
    start: np.ndarray,
    tip_link: str,
    ik_solutions: int,
    until: float,
) -> tuple[np.ndarray, list[int]]:
    """(G, dof) goals, and for each the number of the request's goal that it comes from.

    frames: {frame: (4, 4) T_root_frame}; start: (dof,); ik_solutions: most for each pose
    until: time.monotonic() when the request's time is over
    """
    robot, code = checker.robot, error_codes.GOAL_STATE_INVALID
    goals = []
    for number, message in enumerate(request.joint_goals):
        what = f"joint goal {number}"
        positions = joint_positions(message, what, code)
        only_joints(robot.joint_names, positions, what, code)
        goals.append(configuration(robot, positions, what, code))
    goal_of = list(range(len(goals)))
    if request.pose_goals:
        poses = [pose_goal(message, frames, f"pose goal {i}") for i, message in enumerate(request.pose_goals)]
        found, spent_s = _solutions(checker, tip_link, np.array(poses), start, TRIED * ik_solutions, until)
        free = _free(checker, found, ik_solutions)
        if not goals and not any(map(len, free)):
            raise _no_goal(checker, found, tip_link, spent_s)
        for number, solutions in enumerate(free, len(request.joint_goals)):
            goals.extend(solutions)
            goal_of += [number] * len(solutions)
    if not goals:
        raise RequestError(
            error_codes.UNRECOGNIZED_GOAL_TYPE, "the request has no goal: give joint_goals or pose_goals"
        )
    return np.array(goals), goal_of


def _solutions(checker, tip_link, poses, start, count, until):
    """For each pose (4, 4) at most `count` configurations (K, dof) that place the tip link, nearest to the start first;
    and the time limit, half of the time that is left, where it ended the search, else 0."""
    robot = checker.robot
    if tip_link not in robot.link_names:
        raise RequestError(
            error_codes.INVALID_LINK_NAME,
            f"parameter tip_link '{tip_link}' is not a link of the robot; its links: {', '.join(robot.link_names)}",
        )
    half = (until - time.monotonic()) / 2
    found = inverse_kinematics(robot, tip_link, poses, seed_q=start, count=count, time_limit_s=half)
    return found, 0.0 if time.monotonic() < until - half else half


def _free(checker, found, count):
    """Of the configurations for each pose, at most `count` that touch nothing."""
    q = np.concatenate(found)
    valid = checker.configurations_valid(q) if len(q) else np.zeros(0, dtype=bool)
    ends = np.cumsum([len(solutions) for solutions in found])
    return [solutions[good][:count] for solutions, good in zip(found, np.split(valid, ends[:-1]), strict=True)]


def _no_goal(checker, found, tip_link, spent_s):
    """RequestError that says why no pose goal has a configuration. spent_s: the time limit where it ended the search"""
    number = next((i for i, solutions in enumerate(found) if len(solutions)), None)
    if number is not None:
        first, second = checker.colliding_pairs(found[number][0])[0]
        return RequestError(
            error_codes.GOAL_IN_COLLISION,
            f"pose goal {number}: all {len(found[number])} joint configurations found collide; "
            f"in the first, '{first}' meets '{second}'",
        )
    if spent_s:
        return RequestError(
            error_codes.TIMED_OUT,
            f"no joint configuration that places '{tip_link}' at one of {len(found)} pose goals was found in "
            f"{spent_s:.3g} s, half of the time limit",
        )
    return RequestError(
        error_codes.NO_IK_SOLUTION, f"pose goal 0: no joint configuration inside the limits places '{tip_link}' there"
    )
