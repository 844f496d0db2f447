"""Limits of planning joints: of position, velocity, acceleration and effort, by the URDF or as the caller has them."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...errors import RobotDescriptionError, shortened, shown
from ...ranges import GREATEST_LENGTH
from ..robot.model import periodic_joints
from .notes import warn_once
from .urdf_xml import GREATEST_ANGLE, Description, Joint

log = logging.getLogger(__name__)

DEFAULT_VELOCITY = 1.0  # rad/s or m/s where a URDF gives none, as MoveIt's timing has it
DEFAULT_ACCELERATION_TIME = 0.5  # s to full speed where no acceleration is given; URDFs before 1.2 have no such limit


def limits_of(
    description: Description,
    names: Sequence[str],
    kinematics: Mapping[str, Any],
    velocity: Mapping[str, float] | ArrayLike | None,
    acceleration: Mapping[str, float] | ArrayLike | None,
) -> dict[str, np.ndarray]:
    """The fields of a RobotModel that say how far, how fast and how strongly its planning joints move.

    kinematics: its fields that `frames` and their names are of; velocity, acceleration: as load_urdf takes them
    """
    joints = [description.joints[name] for name in names]
    periodic = periodic_joints(kinematics["frames"], len(names))
    continuous = np.array([not joint.kind.limited for joint in joints])
    for i in np.flatnonzero(continuous & ~periodic).tolist():
        log.warning(
            "joint '%s' is continuous, but a joint that mimics it slides or turns by a fraction of it, so that "
            "a full turn changes poses: it is planned from -pi to pi",
            names[i],
        )
    lower, upper = np.full(len(names), -np.pi), np.full(len(names), np.pi)
    for i, joint in enumerate(joints):
        if not joint.kind.limited:
            continue
        if joint.limits is None:
            raise RobotDescriptionError(f"joint '{joint.name}' is {joint.type} and has no <limit>")
        lower[i], upper[i] = joint.limits
        if not max(-lower[i], upper[i]) <= (np.finfo(float).max if joint.kind.slides else GREATEST_ANGLE):
            bounds = "" if joint.kind.slides else f" and within +-{GREATEST_ANGLE:g} rad, or both beyond for no end"
            raise RobotDescriptionError(
                f"joint '{joint.name}': the limits must be finite{bounds}, got {lower[i]:g} and {upper[i]:g}; "
                f"correct the URDF or plan other joints (joints, group)"
            )
    _check_values(kinematics, np.maximum(np.abs(lower), np.abs(upper)), periodic)
    speed = _per_joint("velocity", velocity, names, speed_limits(description.name, joints, velocity))
    reach = _per_joint("acceleration", acceleration, names, acceleration_limits(joints, speed))
    continuous &= periodic
    effort = np.array([joint.effort for joint in joints])
    return {
        "lower": lower,
        "upper": upper,
        "continuous": continuous,
        "velocity": speed,
        "acceleration": reach,
        "effort": effort,
    }


def speed_limits(robot: str, joints: Sequence[Joint], given: Any = None) -> list[float]:
    """The joints' velocity limits, rad/s or m/s: of the URDF, or DEFAULT_VELOCITY where it has none or 0.

    robot: its name; given: the caller's own limits; joints that have one there are not warned about
    """
    own = given if isinstance(given, Mapping) else {}
    unlimited = [joint.name for joint in joints if not joint.velocity and joint.name not in own]
    if unlimited and (given is None or own is given):
        warn_once(
            f"the URDF of '{robot}' gives no velocity limit, or 0, for {shortened(', '.join(unlimited))}: "
            f"{DEFAULT_VELOCITY:g} rad/s or m/s is assumed; correct the URDF, or give load_urdf a velocity"
        )
    return [joint.velocity or DEFAULT_VELOCITY for joint in joints]


def acceleration_limits(joints: Sequence[Joint], speed: ArrayLike) -> list[float]:
    """The joints' acceleration limits, rad/s^2 or m/s^2: of the URDF, or what reaches `speed` in 0.5 s."""
    return [joint.acceleration or v / DEFAULT_ACCELERATION_TIME for joint, v in zip(joints, np.asarray(speed))]


def _check_values(kinematics, farthest, periodic):
    """Refuse what slides beyond GREATEST_LENGTH or turns beyond GREATEST_ANGLE. farthest: (dof,) limits, rad or m."""
    farthest = np.where(periodic, np.minimum(farthest, np.pi), farthest)
    for frame, name in zip(kinematics["frames"], kinematics["frame_names"]):
        value = abs(frame["multiplier"]) * farthest[frame["joint"]] + abs(frame["offset"])
        greatest, unit = (GREATEST_LENGTH, "m") if frame["prismatic"] else (GREATEST_ANGLE, "rad")
        if value > greatest:
            raise RobotDescriptionError(
                f"joint '{name}' reaches {value:g} {unit} within its limits (or those of the "
                f"joint that it mimics); allowed: {greatest:g} {unit}; correct the URDF or plan other joints "
                f"(joints, group)"
            )


def _per_joint(what, given, names, default):
    """(dof,) positive limits from {joint: limit}, (dof,), one number or the default."""
    if isinstance(given, Mapping):
        if unknown := given.keys() - set(names):
            unknown = min(map(str, unknown))
            raise RobotDescriptionError(f"{what} is given for '{unknown}', which is not a planning joint")
        given = [given.get(name, value) for name, value in zip(names, default)]
    given = default if given is None else given
    limits = np.atleast_1d(np.asarray(given))
    if limits.ndim != 1:
        raise RobotDescriptionError(f"{what} must be one number or one for each joint, got {shown(given)}")
    if limits.size not in (1, len(names)):
        raise RobotDescriptionError(f"{what} needs one number for each of {len(names)} joints, got {limits.size}")
    limits = np.broadcast_to(limits, len(names)).copy()
    for name, limit in zip(names, limits):
        if not (np.isfinite(limit) and limit > 0):
            raise RobotDescriptionError(
                f"joint '{name}': the {what} limit must be finite and above 0, got {limit:g}; "
                f"correct the URDF or give {what}={{'{name}': ...}}"
            )
    return limits
