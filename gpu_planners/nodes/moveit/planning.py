"""Plans one MotionPlanRequest: start, goal regions, one solve for all of them, timing."""

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from moveit_msgs.msg import MotionPlanRequest, RobotTrajectory

from ...arm import CollisionChecker, upright
from ...arm.planners.settings import LEAST_TIME_S
from ..arm import codes
from ..arm.codes import CODE_OF_STATUS
from ..arm.conversions import trajectory_message
from ..arm.parameters import PLANNERS, ArmParameters, settings_on
from ..arm.plan_service import timed
from ..arm.sequence_service import inside_limits
from ..common.request_error import RequestError, check_count, one_line
from . import industrial
from .constraints import Region, read_constraints
from .goals import goals_in
from .path_constraints import KeptUpright, read_path_constraints
from .planner_names import INDUSTRIAL, kind_of
from .reference import Reference

GOAL_TIME = 0.5  # part of the time that goals may take


@dataclass(frozen=True)
class Motion:
    """A plan: path (K, dof), its timed trajectory, seconds of planning, and what is said about it."""

    path: np.ndarray
    trajectory: RobotTrajectory
    planning_time_s: float
    text: str


def check_request(request: MotionPlanRequest, values: ArmParameters) -> None:
    """Refuse what no plan can honour, before anything is made of it; RequestError with a code and a text."""
    check_group(request.group_name, values)
    kind_of(request, values)
    if not request.goal_constraints:
        raise RequestError(codes.INVALID_GOAL_CONSTRAINTS, "the request has no goal: goal_constraints is empty")
    check_count("goals", len(request.goal_constraints), "max_goals", values, codes.INVALID_GOAL_CONSTRAINTS)
    if request.trajectory_constraints.constraints:
        raise RequestError(
            codes.PLANNING_FAILED, "the request has trajectory_constraints, which are not supported; allowed: none"
        )
    check_speed(request)
    if not math.isfinite(request.allowed_planning_time):
        raise RequestError(
            codes.FAILURE,
            f"allowed_planning_time is {request.allowed_planning_time}; allowed: a finite number of seconds",
        )


def check_speed(request: Any) -> None:
    """RequestError with PLANNING_FAILED for a limit of the tool's speed."""
    if not request.max_cartesian_speed <= 0:
        raise RequestError(
            codes.PLANNING_FAILED,
            f"the request limits max_cartesian_speed to {request.max_cartesian_speed}, which is not supported; "
            "allowed: 0",
        )


def check_group(name: str, values: ArmParameters) -> None:
    """RequestError with INVALID_GROUP_NAME for a group that is not the parameter `group`, where that is given."""
    if values.group and name not in ("", values.group):
        raise RequestError(
            codes.INVALID_GROUP_NAME, f"unknown group '{name}'; this node plans '{values.group}', parameter group"
        )


def plan(
    request: MotionPlanRequest,
    values: ArmParameters,
    checker: CollisionChecker,
    reference: Reference,
    start: np.ndarray,
) -> Motion:
    """Plan from start (dof,) to whichever goal region is reached first; RequestError where there is no motion.

    reference: of the start state; its frames that move count where they are then
    """
    began, kind = time.monotonic(), kind_of(request, values)
    scaling = [scaling_of(getattr(request, f"max_{what}_scaling_factor")) for what in ("velocity", "acceleration")]
    settings = values.planner_settings(kind if kind in PLANNERS else values.planner)
    limit = request.allowed_planning_time if request.allowed_planning_time > 0 else settings.time_limit_s
    if kind in INDUSTRIAL:
        check_start(checker, start)
        start = inside_limits(checker.robot, start, settings)
        path, motion, text = industrial.plan(kind, request, values, checker, reference, start, scaling, limit)
    else:
        path, values, text = _by_sampling(kind, request, values, checker, reference, start, limit)
        motion = timed(checker, path, scaling, values)
    spent = time.monotonic() - began
    text = (
        f"solved: {text}, {motion.duration:.2f} s long, on {checker.device} in {1e3 * spent:.1f} ms"
        + "; reference_trajectories are not used" * bool(request.reference_trajectories)
    )
    return Motion(path, RobotTrajectory(joint_trajectory=trajectory_message(checker.robot, motion)), spent, text)


def _by_sampling(kind, request, values, checker, reference, start, limit):
    """(K, dof) path of one of PLANNERS, or of one that keeps upright; the parameters to time it by; a text."""
    began, settings = time.monotonic(), values.planner_settings(kind)
    regions = [
        read_constraints(goal, reference, f"goal {i}" + f" '{goal.name}'" * bool(goal.name))
        for i, goal in enumerate(request.goal_constraints)
    ]
    kept = read_path_constraints(request.path_constraints, reference)
    check_start(checker, start, kept)
    goals, goal_of = _goals(regions, checker, start, values.ik_solutions, began, limit, kept)
    settings = settings_on(checker.device, settings)
    best, attempts = None, max(1, request.num_planning_attempts)
    for seed in range(attempts):
        left = began + limit - time.monotonic()
        if left < LEAST_TIME_S:
            if best is not None:
                break
            raise RequestError(codes.TIMED_OUT, f"the time limit of {limit:g} s was reached before the search began")
        if kept is None:
            result = PLANNERS[kind].solve(start, goals, checker, replace(settings, time_limit_s=left), seed=seed)
        else:
            rule = kept.rule(checker.robot)
            result = upright.solve(start, goals, checker, rule, upright.Settings(time_limit_s=left), seed)
        if best is None or (result.solved and (not best.solved or result.cost < best.cost)):
            best = result
    assert best is not None
    if not best.solved:
        raise RequestError(CODE_OF_STATUS[best.status], one_line(best.message) or best.status.value)
    if kept is not None:  # a rounded corner is not proven to keep it
        kind, values = "upright", replace(values, corner_deviation=0.0)
    text = f"goal {goal_of[best.goal_index]}, {len(best.path)} waypoints, length {best.cost:.2f}, by {kind}"
    return best.path, values, text


def check_start(checker: CollisionChecker, start: np.ndarray, kept: KeptUpright | None = None) -> None:
    """Say what is wrong with the start (dof,) before goals are looked for: then nothing else matters."""
    pairs = checker.colliding_pairs(start)
    if pairs:
        raise RequestError(
            codes.START_STATE_IN_COLLISION, f"the start state is in collision: '{pairs[0][0]}' meets '{pairs[0][1]}'"
        )
    tilt = 0.0 if kept is None else float(kept.rule(checker.robot).tilts(start[None])[0])
    if kept is not None and tilt > kept.tolerance:
        raise RequestError(
            codes.START_STATE_VIOLATES_PATH_CONSTRAINTS,
            f"at the start link '{kept.link}' tilts by {tilt:.4g} rad; the path_constraints allow {kept.tolerance:.4g}",
        )


def _goals(regions: list[Region], checker, start, count, began, limit, kept):
    """(G, dof) goals, and for each the number of its region. A region without one counts only where all are."""
    goals, goal_of, failures = [], [], []
    for number, region in enumerate(regions):
        until = began + GOAL_TIME * limit * (number + 1) / len(regions)
        try:
            found = _kept_goals(region, checker, start, count, until, number, kept)
        except RequestError as failure:
            failures.append(failure)
            continue
        goals.append(found)
        goal_of += [number] * len(found)
    if not goals:
        raise failures[0]
    return np.concatenate(goals), goal_of


def _kept_goals(region, checker, start, count, until, seed, kept):
    """goals_in, of those that keep the path constraint."""
    found = goals_in(region, checker, start, count, until, seed)
    if kept is None:
        return found
    good = found[kept.rule(checker.robot).tilts(found) <= kept.tolerance]
    if len(good):
        return good
    try:
        return goals_in(kept.within(region), checker, start, count, until, seed)
    except RequestError as failure:
        raise RequestError(
            codes.GOAL_VIOLATES_PATH_CONSTRAINTS, f"{failure}; without the path_constraints there are goals"
        ) from failure


def scaling_of(factor: float) -> float:
    """A scaling factor as MoveIt has it: outside (0, 1] it is 1."""
    return factor if 0 < factor <= 1 else 1.0
