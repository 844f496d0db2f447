"""Requests of MoveIt to plan: checks that they share, and the records of what is asked and what is planned."""

import re
from typing import Any, NamedTuple

import numpy as np
from moveit_msgs.msg import MotionPlanRequest, RobotTrajectory

from ...arm import CollisionChecker
from ...arm.urdf.joint_limits import PlanningLimits
from ..arm import codes
from ..arm.parameters import PLANNERS, ArmParameters
from ..arm.plan_service import RATES
from ..common.request_error import RequestError
from .reference import Reference

SOURCE = "gpu_planners"  # of error codes, and the name of our pipeline
INDUSTRIAL = "PTP", "LIN", "CIRC"  # of Pilz's pipeline
PILZ = "pilz_industrial_motion_planner"
OF_OMPL = {"rrtconnect": "rrt_connect", "rrt": "rrt", "rrtstar": "rrt_star", "prm": "prm"}
CUMOTION = "cuMotion"  # NVIDIA's plugin, where this node stands behind it
PIPELINES = "", SOURCE, "ompl", "isaac_ros_cumotion", PILZ


class MotionQuery(NamedTuple):
    """A request to plan, and what planning it needs.

    request: MotionPlanRequest or GetCartesianPath.Request; start: (dof,)
    checker: of the robot as the request's group is planned
    reference: frames and objects at the start state
    limits: of joint_limits.yaml and pilz_cartesian_limits.yaml
    """

    request: Any
    values: ArmParameters
    checker: CollisionChecker
    reference: Reference
    start: np.ndarray
    limits: PlanningLimits

    @property
    def scaling(self) -> list[float]:
        """Fractions of the velocity and acceleration limits: the default of joint_limits.yaml for 0, and 1 for another
        one outside (0, 1], as in MoveIt."""
        factors = []
        for what in RATES:
            factor = getattr(self.request, f"max_{what}_scaling_factor", 0.0)  # in Humble's Cartesian paths: none
            factors.append(factor if 0 < factor <= 1 else 1.0 if factor else self.limits.scaling.get(what, 1.0))
        return factors


class PlannedMotion(NamedTuple):
    """A plan: path (K, dof), its timed trajectory, seconds of planning, and a text about it."""

    path: np.ndarray
    trajectory: RobotTrajectory
    planning_time_s: float
    text: str


def kind_of(request: MotionPlanRequest, values: ArmParameters) -> str:
    """One of INDUSTRIAL, or of PLANNERS, by pipeline_id and planner_id; RequestError where neither plans that.

    An algorithm of OMPL that is among PLANNERS may have OMPL's name, as MoveIt's configurations write it.
    """
    name, pipeline = request.planner_id, request.pipeline_id
    if pipeline not in PIPELINES:
        known = ", ".join(f"'{one}'" for one in PIPELINES)
        raise RequestError(codes.PLANNING_FAILED, f"pipeline_id '{pipeline}' is not planned here; allowed: {known}")
    if name in INDUSTRIAL and pipeline in ("", SOURCE, PILZ):
        return name
    if pipeline == PILZ:
        text = f"planner_id '{name}' is none of pipeline {PILZ}; allowed: {', '.join(INDUSTRIAL)}"
        raise RequestError(codes.PLANNING_FAILED, text)
    if name in ("", CUMOTION):
        return values.planner
    plain = re.sub(r"^.*\[|\]$|^geometric::|kConfigDefault(?=\]?$)", "", name)
    kind = name if name in PLANNERS else OF_OMPL.get(plain.removeprefix("geometric::").lower(), "")
    if not kind:
        known = f"nothing, {', '.join((*PLANNERS, *INDUSTRIAL))}, and OMPL's RRTConnect, RRT, RRTstar and PRM"
        text = f"planner_id '{name}' of pipeline_id '{pipeline}' is not planned here; allowed: {known}"
        raise RequestError(codes.PLANNING_FAILED, text)
    return kind


def check_speed(request: Any) -> None:
    """RequestError with PLANNING_FAILED for a limit of the tool's speed."""
    if not request.max_cartesian_speed <= 0:
        text = f"max_cartesian_speed is {request.max_cartesian_speed}, which is not supported; allowed: 0"
        raise RequestError(codes.PLANNING_FAILED, text)


def check_start(checker: CollisionChecker, start: np.ndarray) -> None:
    """RequestError where the start (dof,) collides, before goals are looked for: then nothing else matters."""
    for first, second in checker.colliding_pairs(start):
        text = f"the start state is in collision: '{first}' meets '{second}'"
        raise RequestError(codes.START_STATE_IN_COLLISION, text)
