"""Answers one PlanSequence request: conversion of its segments, one `sequence.solve`, conversion."""

import numpy as np

from gpu_planners_msgs.msg import MotionSegment
from gpu_planners_msgs.srv import PlanSequence

from ...arm import RobotModel, sequence
from ...arm.cartesian import End
from ...arm.planners.settings import PlannerSettings
from ...arm.sequence import Free, SequenceResult, Straight
from ...errors import RobotDescriptionError, one_line
from ..common.request_error import RequestError, answered_with, check_count
from . import codes, in_hands
from .arm_services import ArmServices, Planned
from .conversions import frame_transform, joint_goals, pose_goal, trajectory_message
from .parameters import PLANNERS, settings_on
from .payload import torque_limits
from .plan_service import RATES, asked_scene, planner_of, requested, scaling_of

CODE_OF_END = {
    End.COLLISION: codes.PLANNING_FAILED,
    End.LIMITS: codes.PLANNING_FAILED,
    End.SINGULAR: codes.PLANNING_FAILED,
    End.UNREACHABLE: codes.NO_IK_SOLUTION,
    End.TIMED_OUT: codes.TIMED_OUT,
}


def answer(arm: ArmServices, request: PlanSequence.Request, response: PlanSequence.Response) -> Planned | None:
    """Fill the response of a request -> Planned, None when there is no motion. May raise."""
    values = arm.values
    arm.scene.require_robot()
    name, settings = planner_of(values, request)
    margin = requested(request, values, "margin")
    if not request.segments:
        raise RequestError(codes.UNRECOGNIZED_GOAL_TYPE, "the request has no segments: give at least one")
    check_count("segments", len(request.segments), "max_segments", values, codes.FAILURE)
    goals = sum(len(segment.joint_goals) + len(segment.pose_goals) for segment in request.segments)
    check_count("goals", goals, "max_goals", values, codes.FAILURE)
    with arm.scene.lock:
        objects, checker, frames, start = asked_scene(arm, request, margin)
        in_hands.refuse(objects, checker.robot, "a sequence")
        start = inside_limits(checker.robot, start, settings)
        robot, tip_link = checker.robot, checker.robot.tip_link
        segments = [
            _segment(message, f"segment {i}", request, arm, robot, frames) for i, message in enumerate(request.segments)
        ]
    settings = settings_on(checker.device, settings)
    how = sequence.Settings(
        planning=settings,
        line=values.line,
        deviation=values.corner_deviation,
        jerk=robot.jerk_limits(time_s=values.jerk_time_s),
        torques=torque_limits(robot, values),
        time_limit_s=settings.time_limit_s,
        allow_partial=request.allow_partial,
    )
    with answered_with(codes.INVALID_LINK_NAME, RobotDescriptionError, f"tip_link '{tip_link}': "):
        result = sequence.solve(start, segments, checker, PLANNERS[name], how, tip_link, request.seed)
    response.fraction, response.planning_time_s = result.fraction, result.time_s
    if result.trajectory is None:
        response.code, response.message = code_of_failure(result), one_line(result.text)
        return None
    response.code = codes.SUCCESS
    response.trajectory = trajectory_message(robot, result.trajectory)
    response.segment_ends_s = result.ends_s.tolist()
    ended = f"; ended early, {one_line(result.text)}" if result.text else ""
    response.message = (
        f"solved: {len(result.ends_s)} of {len(segments)} segments, {result.trajectory.duration:.2f} s long, by {name} "
        f"on {checker.device} in {1e3 * result.time_s:.1f} ms{ended}"
    )
    return Planned(result.path, robot, objects)


def code_of_failure(result: SequenceResult) -> int:
    if result.status is not None:
        return codes.CODE_OF_STATUS[result.status]
    if result.failed == 0 and not result.fraction and result.end is End.COLLISION:
        return codes.START_STATE_IN_COLLISION
    return CODE_OF_END[result.end] if result.end else codes.FAILURE


def inside_limits(robot: RobotModel, q: np.ndarray, settings: PlannerSettings) -> np.ndarray:
    """The start q (dof,), values a little outside the limits taken to them; RequestError where one is farther outside
    than the robot may stand."""
    lower, upper = robot.standing_limits
    inside = np.where(robot.continuous, q, np.clip(q, robot.lower, robot.upper))
    standing = np.where(robot.continuous, q, np.clip(q, lower, upper))
    wrong = np.abs(standing - q) > settings.limit_tolerance
    if wrong.any():
        k = int(np.argmax(wrong))
        raise RequestError(
            codes.START_STATE_INVALID,
            f"the start is outside the joint limits: {robot.joint_names[k]} = {q[k]:.6g} "
            f"(allowed {lower[k]:.6g} to {upper[k]:.6g})",
        )
    return np.where(np.abs(inside - q) > settings.limit_tolerance, standing, inside)


def _segment(message, what, request, arm, robot, frames):
    """The library's Segment of one of a request. what: names it in texts; frames: {frame: (4, 4) T_root_frame}"""
    more = {"blend_radius": _in_range(message.blend_radius, 0.0, 10.0, f"{what}: blend_radius")}
    for rate in RATES:
        name = f"{rate}_scaling"
        own = getattr(message, name)  # 0: as the request, or the parameter, says
        more[name] = _in_range(own, 1e-3, 1.0, f"{what}: {name}") if own else scaling_of(request, arm, rate)
    vector = np.array([getattr(message.translation.vector, axis) for axis in "xyz"])
    if vector.any() and (message.kind == MotionSegment.FREE or message.pose_goals):
        raise _wrong_goal(
            f"{what} has a translation beside its goals; allowed: a translation for a LINE without a pose goal"
        )
    if message.kind == MotionSegment.FREE:
        goals = joint_goals(message.joint_goals, robot, f"{what}: ")
        poses = [pose_goal(goal, frames, f"{what}: pose goal {i}") for i, goal in enumerate(message.pose_goals)]
        if not goals and not poses:
            raise _wrong_goal(f"{what} has no goal: give joint_goals or pose_goals")
        return Free(np.array(goals), np.array(poses), **more)
    if message.kind != MotionSegment.LINE:
        raise RequestError(codes.FAILURE, f"{what}: kind is {message.kind}; allowed: FREE (0) or LINE (1)")
    if message.joint_goals or len(message.pose_goals) > 1:
        raise _wrong_goal(
            f"{what} is a LINE with {len(message.joint_goals)} joint goals and {len(message.pose_goals)} pose "
            "goals; allowed: one pose goal, or a translation"
        )
    if message.pose_goals:
        return Straight(pose=pose_goal(message.pose_goals[0], frames, f"{what}: the pose goal"), **more)
    if not np.isfinite(vector).all():
        text = f"{what}: the translation is {vector.tolist()}; allowed: finite numbers"
        raise RequestError(codes.GOAL_STATE_INVALID, text)
    frame = message.translation.header.frame_id
    if frame == robot.tip_link and frame not in frames:
        return Straight(translation=vector, along_tool=True, **more)
    T_root_frame = frame_transform(frames, frame, f"{what}: the translation")
    return Straight(translation=T_root_frame[:3, :3] @ vector, **more)


def _wrong_goal(text):
    return RequestError(codes.UNRECOGNIZED_GOAL_TYPE, text)


def _in_range(value, low, high, what):
    if not low <= value <= high:
        raise RequestError(codes.FAILURE, f"{what} is {value}; allowed: from {low:g} to {high:g}")
    return value
