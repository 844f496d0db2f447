"""Nav2's interfaces, where nav2_msgs is installed, so that behaviour trees can use this planner in place of Nav2's."""

import time
from collections.abc import Callable
from typing import Any

from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from rclpy.duration import Duration

from ...errors import error_text
from ..common import map_codes as codes
from ..common.planner_node import PlannerNode
from ..common.request_error import RequestError
from ..common.ros import optional_module

# Nav2's codes in place of those that it does not have; after a timeout behaviour trees ask again
NAV2_CODES = {
    codes.NO_MAP: codes.UNKNOWN,
    codes.START_NOT_FINITE: codes.START_OUTSIDE_MAP,
    codes.GOAL_NOT_FINITE: codes.GOAL_OUTSIDE_MAP,
    codes.OUT_OF_MEMORY: codes.UNKNOWN,
    codes.LOOP: codes.NO_VALID_PATH,
    codes.STEP_LIMIT: codes.NO_VALID_PATH,
    codes.NO_DEVICE: codes.UNKNOWN,
    codes.INVALID_REQUEST: codes.UNKNOWN,
    codes.NOT_BEGUN: codes.TIMEOUT,
}
THROUGH_POSES = 100  # what compute_path_through_poses adds to the codes of compute_path_to_pose
NO_VIAPOINTS_GIVEN = 309
ALL_GOALS = -1

# start (None: where the robot stands), goals in their order, planner_id -> the path; raises what goes wrong
PlanRoute = Callable[[PoseStamped | None, list[PoseStamped], str], Path]


def nav2_code(error: Exception, through_poses: bool = False) -> int:
    code = codes.code_of(error)
    if code == NO_VIAPOINTS_GIVEN:
        return code
    return NAV2_CODES.get(code, code) + THROUGH_POSES * through_poses


def algorithm_of(planner_id: str, names: tuple[str, ...], algorithms: tuple[str, ...], default: str) -> str:
    """The algorithm that a planner_id asks for; RequestError when there is none.

    names: those that stand for the default, as an empty one does
    """
    if not planner_id or planner_id in names:
        return default
    if planner_id in algorithms:
        return planner_id
    text = f"unknown planner_id '{planner_id}'; known are {', '.join((*names, *algorithms))}"
    raise RequestError(codes.INVALID_PLANNER, text)


def offer_actions(node: PlannerNode, plan_route: PlanRoute) -> str:
    """Offer compute_path_to_pose and compute_path_through_poses -> why there are none; empty when there are.

    plan_route: called on the worker
    """
    nav2, missing = optional_module("nav2_msgs.action", "actions compute_path_to_pose, compute_path_through_poses")
    if not missing:
        for name, kind in (
            ("compute_path_to_pose", nav2.ComputePathToPose),
            ("compute_path_through_poses", nav2.ComputePathThroughPoses),
        ):
            node.act(kind, name, *answers(node, name, kind, plan_route), beside=True)
    return missing


def answers(node: Any, name: str, kind: Any, plan_route: PlanRoute) -> tuple[Callable, Callable, Callable]:
    """The functions answer, refused and cancelled of an action. kind: one of Nav2's two, or of the same fields"""
    through_poses = name.endswith("through_poses")

    def answer(goal):
        request, started = goal.request, time.monotonic()
        # a list, or in later releases of Nav2 a nav_msgs/Goals
        if through_poses:
            goals = list(getattr(request.goals, "goals", request.goals))
        else:  # later releases may name poses on the way
            goals = [*getattr(request, "viapoints", ()), request.goal]
        if not goals:
            raise RequestError(NO_VIAPOINTS_GIVEN, "the request has no goals; allowed: 1 or more")
        path = plan_route(request.start if request.use_start else None, goals, request.planner_id)
        result = kind.Result(path=path, planning_time=Duration(seconds=time.monotonic() - started).to_msg())
        if hasattr(result, "last_reached_index"):  # not in every release of Nav2, here and below
            result.last_reached_index = ALL_GOALS
        return result, True

    def refused(error):
        node.get_logger().warning(f"{name}: {error_text(error)}")
        result = kind.Result(error_code=nav2_code(error, through_poses))
        if hasattr(result, "error_msg"):
            result.error_msg = error_text(error)
        return result

    return answer, refused, kind.Result


def offer_service(
    node: PlannerNode,
    name: str,
    kind: str,
    answer: Callable[[Any, Any], Any],
    tell: Callable[[str, str, bool], None],
    beside: bool = False,
    **refused: Any,
) -> str:
    """Offer a service of nav2_msgs -> why there is none; empty when there is, or when the name is empty.

    answer, beside: as of PlannerNode.serve; tell: called with the name, the text and False when a request fails
    refused: fields of the response to such a request
    The field `success`, which later releases have, is set where the answer does not raise.
    """
    if not name:
        return ""
    nav2, missing = optional_module("nav2_msgs.srv", f"service {name}")
    if missing:
        return missing
    service = getattr(nav2, kind)

    def succeed(request, response):
        response = answer(request, response)
        if hasattr(response, "success"):
            response.success = True
        return response

    def refuse(error):
        tell(name, error_text(error), False)
        return service.Response(**refused)

    node.serve(service, name, succeed, refuse, beside=beside)
    return ""
