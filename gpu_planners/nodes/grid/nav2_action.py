"""Nav2's action compute_path_to_pose, where nav2_msgs is installed, so that a behaviour tree can use this planner."""

import time
from collections.abc import Callable
from typing import Any

from rclpy.action import ActionServer, CancelResponse
from rclpy.duration import Duration
from rclpy.node import Node

from ..common.optional import optional_module
from ..common.request_error import error_text
from ..common.worker import Worker
from . import codes

NAV2_DEFAULT = "GridBased"  # what Nav2's behaviour trees ask for by default: here the parameter `algorithm`


class ComputePathToPose:
    """Goals are planned by the worker one after the other; none holds a thread of the executor while it waits.

    missing: why there is no such action; empty when there is
    plan_path: called on the worker with start (None: where the robot stands) and goal (PoseStamped) and the algorithm
        ("": the parameter's) for a nav_msgs/Path; raises what goes wrong
    """

    def __init__(self, node: Node, worker: Worker, plan_path: Callable[[Any, Any, str], Any]) -> None:
        nav2, self.missing = optional_module("nav2_msgs.action", "action compute_path_to_pose")
        self._plan_path, self._logger = plan_path, node.get_logger()
        self._answers: dict[bytes, Any] = {}  # by goal: result, failure
        if not self.missing:
            self._kind = nav2.ComputePathToPose
            self._server = ActionServer(
                node,
                self._kind,
                "compute_path_to_pose",
                self._finish,
                handle_accepted_callback=lambda goal: worker.do(self._answer, goal),
                cancel_callback=lambda goal: CancelResponse.ACCEPT,
            )

    def _answer(self, goal):
        request, result, started = goal.request, self._kind.Result(), time.monotonic()
        failure = None
        if not goal.is_cancel_requested:
            try:
                algorithm = "" if request.planner_id == NAV2_DEFAULT else request.planner_id
                result.path = self._plan_path(request.start if request.use_start else None, request.goal, algorithm)
            except Exception as error:  # an action that raises is aborted without a reason
                failure = error
        result.planning_time = Duration(seconds=time.monotonic() - started).to_msg()
        self._answers[bytes(goal.goal_id.uuid)] = result, failure
        goal.execute()

    def _finish(self, goal):
        result, failure = self._answers.pop(bytes(goal.goal_id.uuid))
        if goal.is_cancel_requested:  # a plan cannot be interrupted, but it is not used
            goal.canceled()
            return self._kind.Result()
        if failure is None:
            goal.succeed()
            return result
        self._logger.warning(f"compute_path_to_pose: {error_text(failure)}")
        result.error_code = codes.code_of(failure)
        if hasattr(result, "error_msg"):  # not in every release of Nav2
            result.error_msg = error_text(failure)
        goal.abort()
        return result
