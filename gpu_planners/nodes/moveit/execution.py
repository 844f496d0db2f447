"""Goals of MoveGroup and ExecuteTrajectory that are executed, by the machinery of ~/move."""

from collections.abc import Callable
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from moveit_msgs.action import ExecuteTrajectory, MoveGroup

from ...arm.control.spline import State
from ...errors import ConfigurationError
from ..arm import codes
from ..arm.arm_services import ArmServices
from ..arm.move_run import MotionUnderWay, Task, TaskPlan
from ..common.request_error import RequestError
from ..player.trajectories import check_trajectory, curve_of
from .answers import code_message

START_TOLERANCE = 0.01  # rad or m, MoveIt's allowed_start_tolerance
STATES = {"planning": "PLANNING", "moving": "MONITOR", "stopping": "MONITOR"}  # as MoveIt's feedback names them


def move_group_task(
    goal: Any, plan: Callable[[], tuple[TaskPlan, MoveGroup.Result]], end: Callable[[Any, MoveGroup.Result, bool], None]
) -> Task:
    """The Task of a goal of MoveGroup that is not plan_only. As in MoveIt the motion starts where the robot is.

    plan: called on the worker for (TaskPlan, MoveGroup.Result that tells it); may raise
    end: called with the goal's handle, its result and whether it succeeded
    """
    options, result = goal.request.planning_options, MoveGroup.Result()

    def plan_it():
        nonlocal result
        planned, result = plan()
        return planned

    def feed_back(state, *_):
        goal.publish_feedback(MoveGroup.Feedback(state=STATES[state]))

    def end_it(code, message, _, plans):
        done = code == codes.SUCCESS
        if code == codes.CONTROL_FAILED and not plans:
            message += "; a goal with plan_only is planned all the same"
        if done:
            result.executed_trajectory = result.planned_trajectory
        result.error_code = code_message(code, message)
        end(goal, result, done)

    return Task("move_group", max(options.replan_attempts, 0) * bool(options.replan), plan_it, feed_back, end_it)


def execute_task(
    goal: Any, arm: ArmServices, margin: float, end: Callable[[Any, ExecuteTrajectory.Result, bool], None]
) -> Task:
    """The Task of a goal of ExecuteTrajectory: a motion that was planned before, by whomever.

    margin: metres that it keeps from obstacles; end: as of move_group_task
    """

    def feed_back(state, *_):
        goal.publish_feedback(ExecuteTrajectory.Feedback(state=STATES[state]))

    def end_it(code, message, *_):
        end(goal, ExecuteTrajectory.Result(error_code=code_message(code, message)), code == codes.SUCCESS)

    return Task("execute_trajectory", 0, lambda: _given(goal.request.trajectory, arm, margin), feed_back, end_it)


def _given(asked, arm, margin):
    """The TaskPlan of a RobotTrajectory that is free, and begins where the robot is."""
    robot = arm.scene.require_robot()
    if asked.multi_dof_joint_trajectory.points:
        raise RequestError(codes.INVALID_MOTION_PLAN, "joints of several degrees of freedom are not executed")
    trajectory = asked.joint_trajectory
    trajectory.header.stamp = Time()
    q = arm.place()
    if q is None:
        raise RequestError(codes.ROBOT_STATE_STALE, "joint_states has not brought every planning joint lately")
    rest = State(q, np.zeros_like(q), np.zeros_like(q))
    try:
        check_trajectory(trajectory, robot.joint_names, 0.0)
        curve = curve_of(trajectory, robot.joint_names, rest, 0.0, START_TOLERANCE)
    except ConfigurationError as error:
        raise RequestError(codes.INVALID_MOTION_PLAN, str(error)) from error
    motion = MotionUnderWay(curve, robot, (None, None), margin)
    if met := arm.contact_ahead(motion, 0.0):
        raise RequestError(codes.INVALID_MOTION_PLAN, f"the trajectory is not free: {met}")
    return TaskPlan(codes.SUCCESS, "", motion, trajectory)
