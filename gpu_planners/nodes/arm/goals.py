"""The goals of a PlanMotion request as configurations; pose goals by inverse kinematics."""

import time

import numpy as np

from gpu_planners_msgs.srv import PlanMotion

from ...arm import CollisionChecker
from ...errors import RobotDescriptionError
from ..common.request_error import RequestError
from . import codes as error_codes
from .conversions import joint_goal, pose_goal
from .parameters import ArmParameters

TRIED = 4  # times as many solutions are looked for as are used: the nearest of them lead to shorter motions


def goals_of(
    request: PlanMotion.Request,
    checker: CollisionChecker,
    frames: dict[str, np.ndarray],
    start: np.ndarray,
    values: ArmParameters,
    until: float,
) -> tuple[np.ndarray, list[int]]:
    """(G, dof) goals, and for each the number of the request's goal that it comes from.

    frames: {frame: (4, 4) T_root_frame}; start: (dof,); until: time.monotonic() when the request's time is over
    """
    goals = [joint_goal(goal, f"joint goal {i}", checker.robot) for i, goal in enumerate(request.joint_goals)]
    goal_of = list(range(len(goals)))
    if request.pose_goals:
        tip_link = values.tip_link or checker.robot.tip_link
        poses = [pose_goal(message, frames, f"pose goal {i}") for i, message in enumerate(request.pose_goals)]
        found, spent_s = _solutions(checker, tip_link, np.array(poses), start, TRIED * values.ik_solutions, until)
        if not goals and not any(map(len, found)):
            raise _no_goal(checker, found, tip_link, spent_s)
        for number, solutions in enumerate(found, len(request.joint_goals)):
            nearest = solutions.q[: values.ik_solutions]
            goals.extend(nearest)
            goal_of += [number] * len(nearest)
    if not goals:
        raise RequestError(
            error_codes.UNRECOGNIZED_GOAL_TYPE, "the request has no goal: give joint_goals or pose_goals"
        )
    return np.array(goals), goal_of


def _solutions(checker, tip_link, poses, start, count, until):
    """[PoseSolutions] of the poses (G, 4, 4), free of collision; and their time limit, half of the time that is left,
    where it ended the search, else 0."""
    half = max((until - time.monotonic()) / 2, 0.0)
    try:
        found = checker.robot.inverse_kinematics(
            poses, checker, link=tip_link, seed_q=start, solutions=count, time_limit_s=half
        )
    except RobotDescriptionError as error:
        raise RequestError(error_codes.INVALID_LINK_NAME, f"parameter tip_link '{tip_link}': {error}") from error
    return found, half if any(solutions.timed_out for solutions in found) else 0.0


def _no_goal(checker, found, tip_link, spent_s):
    """RequestError that says why no pose goal has a configuration. spent_s: the time limit where it ended the search"""
    number = next((i for i, solutions in enumerate(found) if len(solutions.colliding)), None)
    if number is not None:
        first, second = checker.colliding_pairs(found[number].colliding[0])[0]
        return RequestError(
            error_codes.GOAL_IN_COLLISION,
            f"pose goal {number}: all {len(found[number].colliding)} joint configurations found collide; "
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
