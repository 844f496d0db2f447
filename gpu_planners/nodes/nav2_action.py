"""Nav2's action compute_path_to_pose, where nav2_msgs is installed, so that a behaviour tree can use this planner."""

import time

from rclpy.action import ActionServer, CancelResponse
from rclpy.duration import Duration

from . import grid_codes as codes
from .agent_planning import error_text
from .optional import optional_module

NAV2_DEFAULT = "GridBased"  # what Nav2's behaviour trees ask for unless told otherwise: the node's parameter `algorithm`


class ComputePathToPose:
    """missing: why there is no such action; empty when there is

    plan_path: called with start (None: where the robot stands) and goal (PoseStamped) and the algorithm ("": the
        parameter's) for a nav_msgs/Path; raises what goes wrong. It waits for the worker, so the executor needs threads.
    """

    def __init__(self, node, plan_path):
        nav2, self.missing = optional_module("nav2_msgs.action", "action compute_path_to_pose")
        self._plan_path, self._logger = plan_path, node.get_logger()
        if not self.missing:
            self._kind = nav2.ComputePathToPose
            self._server = ActionServer(
                node,
                self._kind,
                "compute_path_to_pose",
                self._execute,
                cancel_callback=lambda goal: CancelResponse.ACCEPT,
            )

    def _execute(self, goal):
        request, result, started = goal.request, self._kind.Result(), time.monotonic()
        algorithm = "" if request.planner_id == NAV2_DEFAULT else request.planner_id
        try:
            path = None
            if not goal.is_cancel_requested:
                path = self._plan_path(request.start if request.use_start else None, request.goal, algorithm)
            if goal.is_cancel_requested:  # a plan cannot be interrupted, but it is not used
                goal.canceled()
                return result
            result.path, result.planning_time = path, Duration(seconds=time.monotonic() - started).to_msg()
            goal.succeed()
        except Exception as error:  # an action that raises is aborted without a reason
            self._logger.warning(f"compute_path_to_pose: {error_text(error)}")
            result.error_code = codes.code_of(error)
            if hasattr(result, "error_msg"):  # since Kilted
                result.error_msg = error_text(error)
            goal.abort()
        return result
