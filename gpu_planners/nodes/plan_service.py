"""Answers one PlanMotion request: conversion, inverse kinematics for pose goals, one solve, timing, conversion."""

import gc
import math
import time
from dataclasses import dataclass, replace

import numpy as np

from ..arm.collision_checker import GREATEST_MARGIN
from ..arm.collision_world import CollisionWorld
from ..arm.kinematics import inverse_kinematics
from ..arm.trajectory import time_parameterize
from ..device import resolve_device
from . import error_codes
from .arm_parameters import ARM_PARAMETERS, PLANNERS
from .conversions import configuration, joint_positions, only_joints, path_message, pose_goal, trajectory_message
from .error_codes import CODE_OF_STATUS, code_of
from .request_error import RequestError, check_count, error_text, one_line

LEAST_SCALING = 1e-3  # of the parameters too
LEAST_SEARCH_S = 1e-3  # the least time limit of a planner


@dataclass(frozen=True)
class Planned:
    """What a request led to, for the markers: path (K, dof) in the world that it was planned in."""

    path: np.ndarray
    world: object
    tip_link: str


def answer(scene, values, request, measured, response):
    """Fill the response of a request; returns Planned, or None when there is no motion.

    scene: PlanningScene; values: {parameter name: value}
    measured: callable that gives {joint: position} of joint_states, or None when there was no message lately
    Never raises: every failure becomes a code and a text.
    """
    try:
        return _plan(scene, values, request, measured, response)
    except Exception as error:  # a client must get an answer whatever goes wrong
        response.code, response.message, response.status = code_of(error), error_text(error), response.status or "refused"
    return None


def _plan(scene, values, request, measured, response):
    scene.require_robot()
    name, planner_settings = _planner(values, request)
    scaling = [_scaling(request, values, name) for name in ("velocity_scaling", "acceleration_scaling")]
    margin = _margin(request, values)
    goal_count = len(request.joint_goals) + len(request.pose_goals)
    check_count("goals", goal_count, "max_goals", values, error_codes.FAILURE)
    if (name, resolve_device(values["device"])) not in scene.warm_planners:
        warm_up(scene, values, name)
    until = time.monotonic() + planner_settings.time_limit_s
    start_positions = _start(scene, request, measured)
    scene.place_other_joints(start_positions, values["fixed_joint_tolerance"])
    robot = scene.robot
    start = configuration(robot, start_positions, "the start", error_codes.START_STATE_INVALID)
    world = scene.world_for(request)
    checker = scene.checker_for(world, values["device"], ARM_PARAMETERS.settings(values, "motion_check"), margin)
    tip_link = values["tip_link"] or robot.tip_link
    goals, goal_of = _goals(scene, checker, request, start, tip_link, values["ik_solutions"], until)
    left, late = until - time.monotonic(), f"the time limit of {planner_settings.time_limit_s:g} s was reached"
    if left < LEAST_SEARCH_S:
        raise RequestError(error_codes.TIMED_OUT, f"{late} before the search began")
    result = PLANNERS[name].solve(start, goals, checker, replace(planner_settings, time_limit_s=left), seed=request.seed)
    response.code, response.status = CODE_OF_STATUS[result.status], result.status.value
    response.planning_time_s, response.samples, response.device = (
        float(result.time_s),
        int(result.samples),
        checker.device,
    )
    response.message = one_line(result.message) or result.status.value
    if response.code == error_codes.TIMED_OUT:
        response.message = f"{late}: {response.message}"
    if not result.solved:
        return None
    path = result.path
    trajectory = time_parameterize(path, robot.velocity * scaling[0], robot.acceleration * scaling[1])
    response.path, response.trajectory = path_message(robot, path), trajectory_message(robot, trajectory)
    response.path_length, response.goal_index = float(result.cost), goal_of[result.goal_index]
    response.message = (
        f"solved: {len(path)} waypoints, length {result.cost:.2f}, {trajectory.times[-1]:.2f} s long, "
        f"among {len(world.names)} obstacles, by {name} on {checker.device} in {1e3 * result.time_s:.1f} ms"
    )
    response.message += f"; {one_line(result.message)}" if result.message else ""
    return Planned(path, world, tip_link)


def _planner(values, request):
    name = request.planner or values["planner"]
    if name not in PLANNERS:
        raise RequestError(error_codes.FAILURE, f"unknown planner '{name}'; known are {', '.join(PLANNERS)}")
    chosen = ARM_PARAMETERS.settings(values, name)
    if not math.isfinite(request.time_limit_s) or request.time_limit_s < 0:
        raise RequestError(error_codes.FAILURE, f"time_limit_s is {request.time_limit_s}, it must be 0 or more seconds")
    return name, replace(chosen, time_limit_s=request.time_limit_s) if request.time_limit_s else chosen


def _scaling(request, values, name):
    value = getattr(request, name) or values[name]
    if not LEAST_SCALING <= value <= 1:
        raise RequestError(
            error_codes.FAILURE, f"{name} is {value}; allowed: from {LEAST_SCALING} to 1, or 0 for the parameter's value"
        )
    return value


def _margin(request, values):
    value = request.margin or values["margin"]
    if not 0 <= value <= GREATEST_MARGIN:
        raise RequestError(
            error_codes.FAILURE,
            f"margin is {value}; allowed: from 0 to {GREATEST_MARGIN:g} metres, where 0 stands for the parameter's value",
        )
    return value


def _start(scene, request, measured):
    """{joint: position} of the request, completed by joint_states for joints that are not planned."""
    if request.start.name or request.start.position:
        code = error_codes.START_STATE_INVALID
        positions = joint_positions(request.start, "the start", code)
        only_joints((*scene.robot.joint_names, *scene.other_joints, *scene.mimic_joints), positions, "the start", code)
        return {name: value for name, value in (measured() or {}).items() if name in scene.other_joints} | positions
    positions = measured()
    if positions is None:
        raise RequestError(
            error_codes.ROBOT_STATE_STALE, "the request gives no start, and joint_states has brought none lately"
        )
    return positions


def _goals(scene, checker, request, start, tip_link, ik_solutions, until):
    """(G, dof) goals, and for each the number of the request's goal that it comes from. until: time.monotonic() at most"""
    robot, code = scene.robot, error_codes.GOAL_STATE_INVALID
    goals = []
    for number, message in enumerate(request.joint_goals):
        what = f"joint goal {number}"
        positions = joint_positions(message, what, code)
        only_joints(robot.joint_names, positions, what, code)
        goals.append(configuration(robot, positions, what, code))
    goal_of = list(range(len(goals)))
    if request.pose_goals:
        poses = [pose_goal(message, scene.frames, f"pose goal {number}") for number, message in enumerate(request.pose_goals)]
        for number, solutions in enumerate(_free_solutions(robot, checker, tip_link, poses, start, ik_solutions, until, bool(goals))):
            goals.extend(solutions)
            goal_of += [len(request.joint_goals) + number] * len(solutions)
    if not goals:
        raise RequestError(error_codes.UNRECOGNIZED_GOAL_TYPE, "the request has no goal: give joint_goals or pose_goals")
    return np.array(goals), goal_of


def _free_solutions(robot, checker, tip_link, poses, start, count, until, other_goals):
    """For each pose at most `count` configurations (K, dof) that place the tip link and touch nothing, nearest to the start first.

    Half of the time that is left goes to them. other_goals: is it no error when there is none for any pose?
    """
    if tip_link not in robot.link_names:
        raise RequestError(
            error_codes.INVALID_LINK_NAME,
            f"parameter tip_link '{tip_link}' is not a link of the robot; its links: {', '.join(robot.link_names)}",
        )
    half = (until - time.monotonic()) / 2
    found = inverse_kinematics(
        robot, tip_link, np.array(poses), seed_q=start, count=4 * count, time_limit_s=half
    )  # many of them may collide
    in_time = time.monotonic() < until - half
    q = np.concatenate(found)
    valid = checker.configurations_valid(q) if len(q) else np.zeros(0, dtype=bool)
    ends = np.cumsum([len(solutions) for solutions in found])
    free = [solutions[good][:count] for solutions, good in zip(found, np.split(valid, ends[:-1]), strict=True)]
    if valid.any() or other_goals:
        return free
    if len(q):
        number = next(i for i, solutions in enumerate(found) if len(solutions))
        first, second = checker.colliding_pairs(q[0])[0]
        raise RequestError(
            error_codes.GOAL_IN_COLLISION,
            f"pose goal {number}: all {len(found[number])} joint configurations found collide; "
            f"in the first, '{first}' meets '{second}'",
        )
    if not in_time:
        raise RequestError(
            error_codes.TIMED_OUT,
            f"no joint configuration that places '{tip_link}' at one of {len(poses)} pose goals was found in {half:.3g} s, "
            "half of the time limit",
        )
    raise RequestError(
        error_codes.NO_IK_SOLUTION, f"pose goal 0: no joint configuration inside the limits places '{tip_link}' there"
    )


def warm_up(scene, values, planner):
    """Compile what a request to a planner needs, by a small one in an empty world; returns the device."""
    robot, rng = scene.robot, np.random.default_rng(0)
    checker = scene.checker_for(CollisionWorld(), values["device"], ARM_PARAMETERS.settings(values, "motion_check"))
    q = rng.uniform(robot.lower, robot.upper, (64, robot.dof))
    checker.colliding_pairs(q[0])
    free = q[checker.configurations_valid(q)]
    if len(free) > 1:
        PLANNERS[planner].solve(free[0], free[1:2], checker, PLANNERS[planner].Settings(max_samples=256, time_limit_s=1.0))
    scene.warm_planners.add((planner, checker.device))
    gc.collect()
    gc.freeze()  # what the compiler leaves behind stays: to look through it again took a fifth of a second of some requests
    return checker.device
