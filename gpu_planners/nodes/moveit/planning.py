"""Plans one MotionPlanRequest: start, goal regions, one solve for all of them, timing."""

import math
import time
from dataclasses import replace

import numpy as np
from moveit_msgs.msg import MotionPlanRequest, RobotTrajectory

from ...arm import rrt_connect
from ...arm.constraints import KeepingChecker
from ...arm.motion.estimate import estimated_duration
from ...arm.planners.settings import LEAST_TIME_S
from ...errors import one_line
from ..arm import codes
from ..arm.conversions import trajectory_message
from ..arm.in_hands import in_hands
from ..arm.parameters import PLANNERS, ArmParameters, settings_on
from ..arm.plan_service import TRIED, timed
from ..arm.sequence_service import inside_limits
from ..common.request_error import RequestError, check_count
from . import industrial
from .cartesian_path import blind_checker
from .constraints import read_constraints, read_path_constraints
from .goals import Judge, goals_in
from .requests import INDUSTRIAL, MotionQuery, PlannedMotion, check_speed, check_start, kind_of

GOAL_TIME = 0.5  # part of the time that goals may take
FIRST_TIME = 0.5  # part of what is left of it, for a search for the goals that are asked for most of all


def check_request(request: MotionPlanRequest, values: ArmParameters) -> None:
    """Refuse what no plan can honour, before anything is made of it; RequestError with a code and a text."""
    kind_of(request, values)
    if not request.goal_constraints:
        raise RequestError(codes.INVALID_GOAL_CONSTRAINTS, "the request has no goal: goal_constraints is empty")
    check_count("goals", len(request.goal_constraints), "max_goals", values, codes.INVALID_GOAL_CONSTRAINTS)
    if request.trajectory_constraints.constraints:
        raise RequestError(codes.PLANNING_FAILED, "trajectory_constraints are not supported; allowed: none")
    check_speed(request)
    if not math.isfinite(request.allowed_planning_time):
        text = f"allowed_planning_time is {request.allowed_planning_time}; allowed: a finite number of seconds"
        raise RequestError(codes.FAILURE, text)


def plan(query: MotionQuery) -> PlannedMotion:
    """Plan to whichever goal region is reached first; RequestError where there is no motion."""
    request, values, checker = query.request, query.values, query.checker
    began, kind = time.monotonic(), kind_of(request, values)
    settings = getattr(values, kind if kind in PLANNERS else values.planner)
    limit = request.allowed_planning_time if request.allowed_planning_time > 0 else settings.time_limit_s
    check_start(checker, query.start)
    if kind in INDUSTRIAL:
        query = query._replace(start=inside_limits(checker.robot, query.start, settings))
        path, motion, text = industrial.plan(kind, query, limit)
    else:
        path, proving, text = _by_sampling(kind, query, limit)
        motion = timed(proving, path, query.scaling, values)
    spent = time.monotonic() - began
    text = (
        f"solved: {text}, {motion.duration:.2f} s long, on {checker.device} in {1e3 * spent:.1f} ms"
        + "; reference_trajectories are not used" * bool(request.reference_trajectories)
    )
    trajectory = RobotTrajectory(joint_trajectory=trajectory_message(checker.robot, motion))
    return PlannedMotion(path, trajectory, spent, text)


def _by_sampling(kind, query, limit):
    """(K, dof) path of one of PLANNERS, which keeps path constraints; the checker to time it by; a text."""
    request, values, checker, reference, start, _ = query
    began, settings = time.monotonic(), getattr(values, kind)
    regions = [
        read_constraints(goal, reference, f"goal {i}" + f" '{goal.name}'" * bool(goal.name))
        for i, goal in enumerate(request.goal_constraints)
    ]
    kept = read_path_constraints(request.path_constraints, reference, checker.robot)
    if kept is not None and (broken := kept.rule.told(start)):
        text = f"the start does not keep the path_constraints: {broken}"
        raise RequestError(codes.START_STATE_VIOLATES_PATH_CONSTRAINTS, text)
    held = in_hands(reference.objects, checker.robot, start, values)
    rule = held.beside(None if kept is None else kept.rule)
    goals, goal_of, tried = _goals(regions, query, kept, held, began, limit)
    settings = settings_on(checker.device, settings)
    by_time, best = getattr(settings, "objective", "length") == "time", None

    def worth(result):
        robot, away = checker.robot, values.corner_deviation
        return estimated_duration(result.path, robot.velocity, robot.acceleration, away) if by_time else result.cost

    def solve(goals, left, seed):
        if rule is None:
            return PLANNERS[kind].solve(start, goals, checker, replace(settings, time_limit_s=left), seed=seed)
        own = replace(settings_on(checker.device, values.rrt_connect), time_limit_s=left)
        return rrt_connect.solve(start, goals, checker, own, seed, constraints=rule)

    for seed in range(max(1, request.num_planning_attempts)):
        left = began + limit - time.monotonic()
        if left < LEAST_TIME_S:
            break
        result = solve(goals[:tried], left * FIRST_TIME if tried < len(goals) else left, seed)
        left = began + limit - time.monotonic()
        if not result.solved and tried < len(goals) and left >= LEAST_TIME_S:
            tried, result = len(goals), solve(goals, left, seed)
        if best is None or (result.solved and (not best.solved or worth(result) < worth(best))):
            best = result
    if best is None:
        raise RequestError(codes.TIMED_OUT, f"the time limit of {limit:g} s was reached before the search began")
    if not best.solved:
        raise RequestError(codes.CODE_OF_STATUS[best.status], one_line(best.message) or best.status.value)
    if rule is not None:
        what = "path_constraints" if kept is not None else "what both hands hold"
        kind, checker = f"rrt_connect with {what}", KeepingChecker(checker, rule)
    text = f"goal {goal_of[best.goal_index]}, {len(best.path)} waypoints, length {best.cost:.2f}, by {kind}"
    return best.path, checker, text


def _goals(regions, query, kept, held, began, limit):
    """(G, dof) goals, for each the number of its region, and how many, the first ones, are tried before the others.

    A region without a goal counts only where all are.
    """
    goals, others, failures = [], [], []
    for number, region in enumerate(regions):
        until = began + GOAL_TIME * limit * (number + 1) / len(regions)
        try:
            found, first = _kept_goals(region, query, kept, held, until, number)
        except RequestError as failure:
            failures.append(failure)
            continue
        goals += [(q, number) for q in found[:first]]
        others += [(q, number) for q in found[first:]]
    if not goals:
        raise failures[0]
    q, goal_of = zip(*goals, *others)
    return np.array(q), goal_of, len(goals)


def _kept_goals(region, query, kept, held, until, seed):
    """Goals of a region, as of goals_in, that keep the path constraint, and have in both hands what is `held` there."""
    count = query.values.ik_solutions * (1 if kept is None else TRIED)  # to most postures it may leave no way
    asked = query.checker, query.start, count, until, seed
    if held.rules:
        return _goals_in_hands(region, query, kept, held, until, seed)
    found, first = goals_in(region, *asked)
    if kept is None:
        return found, first
    good = kept.rule.satisfied(found)
    if good.any():
        return found[good], int(good[:first].sum()) or int(good.sum())
    text = f"{region.what} does not keep the path_constraints: {kept.rule.told(found[0])}"
    try:
        found, first = goals_in(kept.of_goal(region), *asked)
    except RequestError as failure:
        raise RequestError(codes.GOAL_VIOLATES_PATH_CONSTRAINTS, f"{text}; with them: {failure}") from failure
    good = kept.rule.satisfied(found)
    if not good.any():
        raise RequestError(codes.GOAL_VIOLATES_PATH_CONSTRAINTS, text)
    return found[good], int(good[:first].sum()) or int(good.sum())


def _goals_in_hands(region, query, kept, held, until, seed):
    """`_kept_goals`, whose one hand is where the region has it, and the others follow."""
    blind = blind_checker(query.checker.robot, query.values.device)
    asked = region if kept is None else kept.of_goal(region)
    found, _ = goals_in(asked, blind, query.start, query.values.ik_solutions, until, seed)
    judge = Judge(query.checker.robot, asked, query.checker)
    found = held.closed(found, region.links, judge)
    if not len(found):
        if judge.colliding is not None:
            raise judge.none_found(time.monotonic() > until, *region.links)
        text = "no configuration found there has what both hands hold in both of them"
        raise RequestError(codes.GOAL_VIOLATES_PATH_CONSTRAINTS, f"{region.what}: {text}")
    return found, len(found)
