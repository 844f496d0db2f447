"""Answers one PlanMotion request: conversion, goals, one solve, timing, conversion."""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpu_planners_msgs.msg import BlockedPair
from gpu_planners_msgs.srv import PlanMotion

from ...arm import CollisionChecker
from ...arm.constraints import KeepingChecker
from ...arm.control import moving
from ...arm.planners.settings import LEAST_TIME_S, PlannerSettings
from ...arm.trajectory import Trajectory, time_parameterize
from ...errors import RobotDescriptionError, one_line
from ..common.request_error import RequestError, answered_with, check_count
from ..common.ros import seconds
from . import codes, conversions, in_hands, kept
from .arm_services import ArmServices, Planned
from .parameters import PLANNERS, ArmParameters, settings_on
from .payload import torque_limits
from .scene_objects import SceneObjects

RATES = "velocity", "acceleration"
START_INVALID = codes.START_STATE_INVALID
AHEAD_S = 60.0  # that the beginning of a motion may lie ahead


def answer(arm: ArmServices, request: PlanMotion.Request, response: PlanMotion.Response) -> Planned | None:
    """Fill the response of a request -> Planned, None when there is no motion. May raise."""
    values = arm.values
    arm.scene.require_robot()
    name, settings = planner_of(values, request)
    scaling = [scaling_of(request, arm, what) for what in RATES]
    margin = requested(request, values, "margin")
    goal_count = len(request.joint_goals) + len(request.pose_goals)
    check_count("goals", goal_count, "max_goals", values, codes.FAILURE)
    until = time.monotonic() + settings.time_limit_s
    with arm.scene.lock:
        objects, checker, frames, start = asked_scene(arm, request, margin)
    if objects.movers:
        checker.world = objects.still
    held = in_hands.in_hands(objects, checker.robot, start, values)
    if held.rules and name != in_hands.PLANNER:
        if request.planner:
            in_hands.refuse(objects, checker.robot, f"planner '{name}'")
        name, settings = in_hands.PLANNER, getattr(values, in_hands.PLANNER)
    rule = held.beside(kept.kept(kept.constraints_of(request), checker.robot, frames))
    goals, goal_of = _goals(request, checker, frames, start, values, until, held, rule)
    left, late = until - time.monotonic(), f"the time limit of {settings.time_limit_s:g} s was reached"
    if left < LEAST_TIME_S:
        raise RequestError(codes.TIMED_OUT, f"{late} before the search began")
    settings = replace(settings_on(checker.device, settings), time_limit_s=left)
    solve: Any = PLANNERS[name].solve
    proving: Any = checker
    if rule is not None:
        solve, proving = partial(solve, constraints=rule), KeepingChecker(checker, rule)
    motion = None
    if objects.movers:
        found = moving.solve(
            start,
            goals,
            checker,
            objects.movers,
            lambda path: timed(proving, path, scaling, values),
            settings,
            request.seed,
            values.moving_slack_s,
            _begins(arm, request),
            name,
            rule,
        )
        result, motion = found.result, found.trajectory
    else:
        result = solve(start, goals, checker, settings, seed=request.seed)
    response.code, response.status = codes.CODE_OF_STATUS[result.status], result.status.value
    response.planning_time_s, response.samples = float(result.time_s), int(result.samples)
    response.device = checker.device
    if not result.solved:
        response.message = one_line(result.message) or result.status.value
        response.blocked = [BlockedPair(first=a, second=b, share=share) for a, b, share in result.blocked]
        if response.code == codes.TIMED_OUT:
            response.message = f"{late}: {response.message}"
        if margin and response.code in (codes.START_STATE_IN_COLLISION, codes.GOAL_IN_COLLISION):
            response.message += f"; what is nearer than the margin of {margin:g} m counts as in collision"
        return None
    if objects.movers and motion is None:
        response.code, response.status, response.message = codes.PLANNING_FAILED, "refused", found.message
        return None
    robot, trajectory = checker.robot, motion or timed(proving, result.path, scaling, values)
    response.path = conversions.path_message(robot, result.path)
    response.trajectory = conversions.trajectory_message(robot, trajectory)
    response.path_length, response.goal_index = float(result.cost), goal_of[result.goal_index]
    response.message = (
        f"solved: {len(result.path)} waypoints, length {result.cost:.2f}, {trajectory.duration:.2f} s long, "
        f"among {len(objects.standing)} obstacles, by {name} on {checker.device} in {1e3 * result.time_s:.1f} ms"
    ) + (f"; {one_line(result.message)}" if result.message else "")
    if objects.movers and found.message:
        response.message += f"; {found.message}"
    return Planned(result.path, robot, objects)


def _begins(arm, request):
    """A function -> seconds on the node's clock when the motion begins: when its start's stamp says, at the earliest
    now."""
    stamp = seconds(request.start.header.stamp)
    if (ahead := stamp - arm.now()) > AHEAD_S:
        text = f"the start's stamp lies {ahead:.3g} s ahead of the node's clock; allowed: up to {AHEAD_S:g} s"
        raise RequestError(START_INVALID, f"{text}, where obstacles move")
    return lambda: max(stamp, arm.now())


def asked_scene(
    arm: ArmServices, request: Any, margin: float
) -> tuple[SceneObjects, CollisionChecker, dict[str, np.ndarray], np.ndarray]:
    """(objects, checker, {frame: (4, 4) T_root_frame}, start (dof,)) of a request, with the gripper where it has it,
    else where joint_states do.

    request: PlanMotion.Request or PlanSequence.Request; the scene's lock must be held
    """
    scene, positions, group = arm.scene, arm.measured(), arm.scene.group_named(group_of(request))
    robot = scene.described(group)
    if request.start.name or request.start.position:
        given = conversions.joint_positions(request.start, "the start", START_INVALID)
        joints = (*robot.joint_names, *robot.other_joints, *robot.mimic_joints)
        conversions.only_joints(joints, given, "the start", START_INVALID)
        positions = {name: value for name, value in (positions or {}).items() if name in robot.other_joints} | given
    elif positions is None:
        raise RequestError(
            codes.ROBOT_STATE_STALE, "the request gives no start, and joint_states has brought none lately"
        )
    start = conversions.configuration(robot, positions, "the start", START_INVALID)
    objects = scene.objects_for(request)
    checker = scene.checker_for(objects, margin, positions, group)
    return objects, checker, scene.frames_of(checker.robot), start


def group_of(request: Any) -> str:
    """The group that a request names; "" also for one of interfaces that were built before they had the field."""
    return getattr(request, "group", "")


def timed(checker: Any, path: np.ndarray, scaling: Sequence[float], values: ArmParameters) -> Trajectory:
    """A path (K, dof) with times. checker: a CollisionChecker or a KeepingChecker

    scaling: fractions of the velocity and acceleration limits
    """
    velocity, acceleration = checker.robot.velocity * scaling[0], checker.robot.acceleration * scaling[1]
    jerk = checker.robot.jerk_limits(acceleration, values.jerk_time_s)
    torques = torque_limits(checker.robot, values)
    return time_parameterize(path, velocity, acceleration, jerk, values.corner_deviation, checker, torques)


def planner_of(values: ArmParameters, request: Any) -> tuple[str, PlannerSettings]:
    """Name and settings of the planner that a request names, or else the parameter."""
    name = kept.planner_for(request, values.planner)
    if name not in PLANNERS:
        raise RequestError(codes.FAILURE, f"unknown planner '{name}'; known are {', '.join(PLANNERS)}")
    chosen = getattr(values, name)
    if not math.isfinite(request.time_limit_s) or request.time_limit_s < 0:
        raise RequestError(codes.FAILURE, f"time_limit_s is {request.time_limit_s}, it must be 0 or more seconds")
    return name, replace(chosen, time_limit_s=request.time_limit_s) if request.time_limit_s else chosen


def requested(request: Any, values: ArmParameters, name: str) -> float:
    """A number of the request, or the parameter of the same name where the request has 0."""
    value, rule = getattr(request, name) or getattr(values, name), ArmParameters.rules[name]
    if not rule.low <= value <= rule.high:  # type: ignore[operator]
        raise RequestError(
            codes.FAILURE, f"{name} is {value}; allowed: from {rule.range}, where 0 stands for the parameter's value"
        )
    return value


def scaling_of(request: Any, arm: ArmServices, what: str) -> float:
    """Fraction of the limits of RATES that a request asks for, or that the parameter and joint_limits.yaml say where it
    has 0."""
    name = f"{what}_scaling"
    value = requested(request, arm.values, name)
    return value if getattr(request, name) else min(value, arm.scene.limits.scaling.get(what, 1.0))


TRIED = 4  # times as many solutions are looked for as are used: the nearest of them lead to shorter motions


def _goals(request, checker, frames, start, values, until, held, rule):
    """(G, dof) goals, and for each the number of the request's goal that it comes from.

    frames: {frame: (4, 4) T_root_frame}; start: (dof,); until: time.monotonic() when the request's time is over
    held: in_hands.InHands
    rule: what the motion keeps, or None. With one, all solutions that keep it are goals: to most of the near ones there
        may be no way, since it joins few postures of an arm
    """
    goals = conversions.joint_goals(request.joint_goals, checker.robot)
    goal_of = list(range(len(goals)))
    if request.pose_goals:
        tip_link = checker.robot.tip_link
        poses = [conversions.pose_goal(one, frames, f"pose goal {i}") for i, one in enumerate(request.pose_goals)]
        half, count = max((until - time.monotonic()) / 2, 0.0), TRIED * values.ik_solutions
        with answered_with(codes.INVALID_LINK_NAME, RobotDescriptionError, f"tip_link '{tip_link}': "):
            judge = None if held.rules else checker  # the other hand is brought there first
            found = checker.robot.inverse_kinematics(
                np.array(poses), judge, link=tip_link, seed_q=start, solutions=count, time_limit_s=half
            )
        if not goals and not any(map(len, found)):
            raise _no_goal(checker, found, tip_link, half)
        for number, solutions in enumerate(found, len(request.joint_goals)):
            placed = held.closed(solutions.q, [tip_link], checker) if held.rules else solutions.q
            keeping = placed[rule.satisfied(placed)] if rule is not None and len(placed) else placed[:0]
            nearest = keeping if len(keeping) else placed[: values.ik_solutions]
            goals.extend(nearest)
            goal_of += [number] * len(nearest)
        if not goals:
            text = "no configuration found at a pose goal has what both hands hold in both of them, free"
            raise RequestError(codes.NO_IK_SOLUTION, text)
    if not goals:
        raise RequestError(codes.UNRECOGNIZED_GOAL_TYPE, "the request has no goal: give joint_goals or pose_goals")
    return np.array(goals), goal_of


def _no_goal(checker, found, tip_link, limit_s):
    """RequestError that says why no pose goal has a configuration. limit_s: of the search"""
    number = next((i for i, solutions in enumerate(found) if len(solutions.colliding)), None)
    if number is not None:
        first, second = checker.colliding_pairs(found[number].colliding[0])[0]
        return RequestError(
            codes.GOAL_IN_COLLISION,
            f"pose goal {number}: all {len(found[number].colliding)} joint configurations found collide; "
            f"in the first, '{first}' meets '{second}'",
        )
    if any(solutions.timed_out for solutions in found):
        return RequestError(
            codes.TIMED_OUT,
            f"no joint configuration that places '{tip_link}' at one of {len(found)} pose goals was found in "
            f"{limit_s:.3g} s, half of the time limit",
        )
    return RequestError(
        codes.NO_IK_SOLUTION, f"pose goal 0: no joint configuration inside the limits places '{tip_link}' there"
    )
