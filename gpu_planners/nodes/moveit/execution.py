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
from ..arm.move_run import MotionUnderWay, TaskPlan
from ..common.request_error import RequestError
from ..player.trajectories import check_trajectory, curve_of
from .answers import code_message

START_TOLERANCE = 0.01  # rad or m, MoveIt's allowed_start_tolerance
STATES = {"planning": "PLANNING", "moving": "MONITOR", "stopping": "MONITOR"}  # as MoveIt's feedback names them


class MoveGroupTask:
    """A goal of MoveGroup that is not plan_only, as a Task. As in MoveIt the motion starts where the robot is.

    plan: called on the worker for (TaskPlan, MoveGroup.Result that tells it); may raise
    end: called with the goal's handle, its result and whether it succeeded
    """

    line = "move_group"

    def __init__(
        self,
        goal: Any,
        plan: Callable[[], tuple[TaskPlan, MoveGroup.Result]],
        end: Callable[[Any, MoveGroup.Result, bool], None],
    ) -> None:
        options = goal.request.planning_options
        self.replans = max(options.replan_attempts, 0) if options.replan else 0
        self._goal, self._plan, self._end = goal, plan, end
        self._result = MoveGroup.Result()

    def plan(self) -> TaskPlan:
        plan, self._result = self._plan()
        return plan

    def feed_back(self, state: str, plans: int, progress: float, remaining_s: float) -> None:
        self._goal.publish_feedback(MoveGroup.Feedback(state=STATES[state]))

    def end(self, code: int, message: str, goal_index: int, plans: int) -> None:
        done, result = code == codes.SUCCESS, self._result
        if code == codes.CONTROL_FAILED and not plans:
            message += "; a goal with plan_only is planned all the same"
        if done:
            result.executed_trajectory = result.planned_trajectory
        result.error_code = code_message(code, message)
        self._end(self._goal, result, done)


class ExecuteTask:
    """A goal of ExecuteTrajectory as a Task: a motion that was planned before, by whomever.

    margin: metres that it keeps from obstacles; end: as of MoveGroupTask
    """

    replans, line = 0, "execute_trajectory"

    def __init__(
        self, goal: Any, arm: ArmServices, margin: float, end: Callable[[Any, ExecuteTrajectory.Result, bool], None]
    ) -> None:
        self._goal, self._arm, self._margin, self._end = goal, arm, margin, end

    def plan(self) -> TaskPlan:
        robot, asked = self._arm.scene.require_robot(), self._goal.request.trajectory
        if asked.multi_dof_joint_trajectory.points:
            raise RequestError(codes.INVALID_MOTION_PLAN, "joints of several degrees of freedom are not executed")
        trajectory = asked.joint_trajectory
        trajectory.header.stamp = Time()
        q = self._arm.place()
        if q is None:
            raise RequestError(codes.ROBOT_STATE_STALE, "joint_states has not brought every planning joint lately")
        rest = State(q, np.zeros_like(q), np.zeros_like(q))
        try:
            check_trajectory(trajectory, robot.joint_names, 0.0)
            curve = curve_of(trajectory, robot.joint_names, rest, 0.0, START_TOLERANCE)
        except ConfigurationError as error:
            raise RequestError(codes.INVALID_MOTION_PLAN, str(error)) from error
        motion = MotionUnderWay(curve, robot, (None, None), self._margin)
        if met := self._arm.contact_ahead(motion, 0.0):
            raise RequestError(codes.INVALID_MOTION_PLAN, f"the trajectory is not free: {met}")
        return TaskPlan(codes.SUCCESS, "", motion, trajectory)

    def feed_back(self, state: str, plans: int, progress: float, remaining_s: float) -> None:
        self._goal.publish_feedback(ExecuteTrajectory.Feedback(state=STATES[state]))

    def end(self, code: int, message: str, goal_index: int, plans: int) -> None:
        result = ExecuteTrajectory.Result(error_code=code_message(code, message))
        self._end(self._goal, result, code == codes.SUCCESS)
