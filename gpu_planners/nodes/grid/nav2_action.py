"""Nav2's action compute_path_to_pose, where nav2_msgs is installed, so that a behaviour tree can use this planner."""

import time
from collections.abc import Callable
from typing import Any

from rclpy.duration import Duration

from ..common import map_codes as codes
from ..common.optional import optional_module
from ..common.planner_node import PlannerNode
from ..common.request_error import error_text

NAV2_DEFAULT = "GridBased"  # what Nav2's behaviour trees ask for by default: here the parameter `algorithm`


def compute_path_to_pose(node: PlannerNode, plan_path: Callable[[Any, Any, str], Any]) -> str:
    """Offer the action -> why there is none; empty when there is.

    plan_path: called on the worker with start (None: where the robot stands) and goal (PoseStamped) and the algorithm
        ("": the parameter's) for a nav_msgs/Path; raises what goes wrong
    """
    nav2, missing = optional_module("nav2_msgs.action", "action compute_path_to_pose")
    if missing:
        return missing
    kind = nav2.ComputePathToPose

    def answer(goal):
        request, started = goal.request, time.monotonic()
        algorithm = "" if request.planner_id == NAV2_DEFAULT else request.planner_id
        path = plan_path(request.start if request.use_start else None, request.goal, algorithm)
        return kind.Result(path=path, planning_time=Duration(seconds=time.monotonic() - started).to_msg()), True

    def refused(error):
        node.get_logger().warning(f"compute_path_to_pose: {error_text(error)}")
        result = kind.Result(error_code=codes.code_of(error))
        if hasattr(result, "error_msg"):  # not in every release of Nav2
            result.error_msg = error_text(error)
        return result

    node.act(kind, "compute_path_to_pose", answer, refused, kind.Result)
    return ""
