"""What kind of motion a MotionPlanRequest asks for by its pipeline_id and planner_id."""

import re

from moveit_msgs.msg import MotionPlanRequest

from ..arm import codes
from ..arm.parameters import PLANNERS, ArmParameters
from ..common.request_error import RequestError
from .answers import SOURCE

INDUSTRIAL = "PTP", "LIN", "CIRC"  # of Pilz's pipeline
PILZ = "pilz_industrial_motion_planner"
OF_OMPL = {"rrtconnect": "rrt_connect", "rrt": "rrt", "rrtstar": "rrt_star", "prm": "prm"}
CUMOTION = "cuMotion"  # NVIDIA's plugin, where this node stands behind it
PIPELINES = "", SOURCE, "ompl", "isaac_ros_cumotion", PILZ


def kind_of(request: MotionPlanRequest, values: ArmParameters) -> str:
    """One of INDUSTRIAL, or of PLANNERS; RequestError with PLANNING_FAILED where neither plans what is asked for.

    An algorithm of OMPL that is among PLANNERS may have OMPL's name, as MoveIt's configurations write it.
    """
    name, pipeline = request.planner_id, request.pipeline_id
    if pipeline not in PIPELINES:
        known = ", ".join(f"'{one}'" for one in PIPELINES)
        raise RequestError(codes.PLANNING_FAILED, f"pipeline_id '{pipeline}' is not planned here; allowed: {known}")
    if name in INDUSTRIAL and pipeline in ("", SOURCE, PILZ):
        return name
    if pipeline == PILZ:
        raise RequestError(
            codes.PLANNING_FAILED, f"planner_id '{name}' is none of pipeline {PILZ}; allowed: {', '.join(INDUSTRIAL)}"
        )
    if name in ("", CUMOTION):
        return values.planner
    plain = re.sub(r"^.*\[|\]$|^geometric::|kConfigDefault(?=\]?$)", "", name)
    kind = name if name in PLANNERS else OF_OMPL.get(plain.removeprefix("geometric::").lower(), "")
    if not kind:
        raise RequestError(
            codes.PLANNING_FAILED,
            f"planner_id '{name}' of pipeline_id '{pipeline}' is not planned here; allowed: nothing, "
            f"{', '.join((*PLANNERS, *INDUSTRIAL))}, and OMPL's RRTConnect, RRT, RRTstar and PRM",
        )
    return kind
