"""gpu_planners_msgs/MotionConstraint to what planners keep all along a motion."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...arm import RobotModel
from ...arm.constraints import Constraint, JointRange, Orientation, Position, all_of
from ...compiling import KEEPING
from ...errors import RobotDescriptionError, SettingsError
from ..common.request_error import RequestError
from . import codes, conversions

PLANNER = "rrt_connect"  # that keeps constraints


def constraints_of(request: Any) -> Sequence[Any]:
    """MotionConstraints of a request; () also for one of interfaces that were built before they had the field."""
    return getattr(request, "constraints", ())


def planner_for(request: Any, default: str) -> str:
    """The planner that a request names, or the default one; what it must keep takes PLANNER, so another is refused."""
    if not constraints_of(request):
        return request.planner or default
    if request.planner not in ("", PLANNER):
        raise RequestError(
            codes.FAILURE, f"planner '{request.planner}' keeps no constraints; allowed: '{PLANNER}', or none"
        )
    return PLANNER


def search_for(request: Any, default: str, held: bool) -> str:
    """What must be compiled for a request: KEEPING, or the planner that it names, or the default one. held: are there
    objects in several hands?"""
    planner = planner_for(request, default)
    return KEEPING if held or constraints_of(request) else planner


def kept(messages: Sequence[Any], robot: RobotModel, frames: dict[str, np.ndarray]) -> Constraint | None:
    """What MotionConstraints ask for, of the checker's robot; None: nothing. frames: {frame: (4, 4) T_root_frame}"""
    rules: list[Constraint] = []
    for number, message in enumerate(messages):
        what, found = f"constraint {number}", []
        try:
            found = _rules(message, robot, frames, what)
        except (RobotDescriptionError, SettingsError) as error:
            raise RequestError(codes.FAILURE, f"{what}: {error}") from error
        if not found:
            text = f"{what} constrains nothing; allowed: a region, tolerances or joints, or several of these"
            raise RequestError(codes.FAILURE, text)
        rules += found
    return all_of(rules) if rules else None


def _rules(message, robot, frames, what):
    link, rules = message.link or robot.tip_link, []
    lower, upper = conversions.points_of([message.lower, message.upper])
    turned = message.tolerances
    tolerances = np.array([turned.x, turned.y, turned.z])
    if lower.any() or upper.any() or tolerances.any():
        pose = conversions.pose_goal(message.pose, frames, f"the pose of {what}")
    if lower.any() or upper.any():
        point = conversions.points_of([message.point])[0]
        rules.append(Position(robot, link, point, lower, upper, pose))
    if tolerances.any():
        rules.append(Orientation(robot, link, pose[:3, :3], np.where(tolerances >= math.pi, math.inf, tolerances)))
    names, low, high = message.joint_names, message.joint_lower, message.joint_upper
    if not len(names) == len(low) == len(high):
        text = f"{what} has {len(names)} joint_names, {len(low)} joint_lower and {len(high)} joint_upper"
        raise RequestError(codes.FAILURE, f"{text}; allowed: as many of each")
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise RequestError(codes.FAILURE, f"{what} has joint '{twice}' twice in joint_names; allowed: once")
    if names:
        rules.append(JointRange(robot, dict(zip(names, zip(low, high)))))
    return rules
