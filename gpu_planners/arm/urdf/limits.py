"""Limits of planning joints, of position, velocity, acceleration, jerk and effort: by the URDF, its soft limits within
<limit>, MoveIt's joint_limits.yaml (`joint_limits`), or as the caller has them; and where each is from."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...errors import RobotDescriptionError, shortened, shown
from ...ranges import GREATEST_LENGTH
from ..robot.model import RobotModel, periodic_joints
from .joint_limits import VALUES, PlanningLimits
from .notes import warn_once
from .urdf_xml import GREATEST_ANGLE, Description, Joint

log = logging.getLogger(__name__)

DEFAULT_VELOCITY = 1.0  # rad/s or m/s where a URDF gives none, as MoveIt's timing has it
URDF, SOFT, ARGUMENT, ASSUMED, NONE = "URDF", "soft limit", "argument", "assumed", "none"  # sources of limits
ENDS = "lower", "upper"
NO_LIMITS = PlanningLimits()
TURN = 2 * np.pi
DEFAULT_ACCELERATION_TIME = 0.5  # s to full speed where no acceleration is given; URDFs before 1.2 have no such limit


class _Limit(NamedTuple):
    """A limit of each joint: values (dof,), and where each is from. greatest: is it an upper one?"""

    values: np.ndarray
    sources: list[str]
    greatest: bool = True

    def put(self, i: int, value: float, source: str) -> None:
        self.values[i], self.sources[i] = value, source

    def narrow(self, i: int, value: float, source: str) -> None:
        """Take a value that is stricter than the one that is known."""
        stricter = value < self.values[i] if self.greatest else value > self.values[i]
        if stricter or self.sources[i] in (ASSUMED, NONE):
            self.put(i, value, source)


def limits_of(
    description: Description,
    names: Sequence[str],
    kinematics: Mapping[str, Any],
    velocity: Mapping[str, float] | ArrayLike | None,
    acceleration: Mapping[str, float] | ArrayLike | None,
    more: PlanningLimits = NO_LIMITS,
) -> dict[str, Any]:
    """The fields of a RobotModel that say how far, how fast and how strongly its planning joints move.

    kinematics: its fields that `frames` and their names are of; velocity, acceleration: as load_urdf takes them
    more: of joint_limits.yaml. Of positions and velocities the strictest counts, of accelerations and jerks, which
        URDFs seldom have, the last
    """
    more.check_joints(description.joints)
    joints, count = [description.joints[name] for name in names], len(names)
    periodic = periodic_joints(kinematics["frames"], count)
    continuous = np.array([not joint.kind.limited for joint in joints])
    for i in np.flatnonzero(continuous & ~periodic).tolist():
        log.warning(
            "joint '%s' is continuous, but a joint that mimics it slides or turns by a fraction of it, so that "
            "a full turn changes poses: it is planned from -pi to pi",
            names[i],
        )
    hard = np.array([np.full(count, -np.pi), np.full(count, np.pi)])
    for i, joint in enumerate(joints):
        if joint.kind.limited:
            hard[:, i] = _checked_limits(joint)
    sources = [URDF if joint.kind.limited else NONE for joint in joints]
    limits = {
        "lower": _Limit(hard[0].copy(), list(sources), greatest=False),
        "upper": _Limit(hard[1].copy(), list(sources)),
        **_rates(description.name, joints, velocity, acceleration, more),
        "jerk": _Limit(np.full(count, np.inf), [NONE] * count),
    }
    for i, joint in enumerate(joints):
        for what, value in zip(ENDS, joint.soft or ()):
            limits[what].narrow(i, value, SOFT)
        for source, of_joints in more.joints:
            _take(limits, i, joint, of_joints.get(joint.name, {}), source)
        if continuous[i] and limits["lower"].sources[i] != NONE:  # a file gives it limits: it may stand outside of them
            continuous[i] = False
            hard[:, i] = min(limits["lower"].values[i], -TURN), max(limits["upper"].values[i], TURN)
    speed, rise = limits["velocity"], limits["acceleration"]
    assumed = np.array([source == ASSUMED for source in rise.sources])
    rise.values[assumed] = speed.values[assumed] / DEFAULT_ACCELERATION_TIME
    _check_values(kinematics, np.abs(hard).max(axis=0), periodic)
    told = {what: tuple(limit.sources) for what, limit in limits.items()}
    values = {what: limit.values for what, limit in limits.items()}
    continuous &= periodic
    wider = ~continuous & ((hard[0] < values["lower"]) | (hard[1] > values["upper"]))
    return values | {
        "continuous": continuous,
        "hard_limits": hard if wider.any() else None,
        "jerk": values["jerk"] if np.isfinite(values["jerk"]).any() else None,
        "effort": np.array([joint.effort for joint in joints]),
        "limit_sources": told,
    }


def _checked_limits(joint):
    """(lower, upper) of a joint's <limit>."""
    if joint.limits is None:
        raise RobotDescriptionError(f"joint '{joint.name}' is {joint.type} and has no <limit>")
    lower, upper = joint.limits
    if not max(-lower, upper) <= (np.finfo(float).max if joint.kind.slides else GREATEST_ANGLE):
        bounds = "" if joint.kind.slides else f" and within +-{GREATEST_ANGLE:g} rad, or both beyond for no end"
        raise RobotDescriptionError(
            f"joint '{joint.name}': the limits must be finite{bounds}, got {lower:g} and {upper:g}; "
            f"correct the URDF or plan other joints (joints, group)"
        )
    return lower, upper


def _rates(robot, joints, velocity, acceleration, more):
    """Limits of velocity and acceleration by the URDF and the caller."""
    names = [joint.name for joint in joints]
    by_file, own = more.joints_with("max_velocity"), {} if velocity is None else velocity
    told = by_file | own if isinstance(own, Mapping) else own  # those without a limit are warned about
    speeds = _per_joint("velocity", velocity, names, speed_limits(robot, joints, told))
    rises = _per_joint("acceleration", acceleration, names, acceleration_limits(joints, speeds))

    def limit(values, own, by_urdf):
        asked = [own is not None and (not isinstance(own, Mapping) or name in own) for name in names]
        return _Limit(values, [ARGUMENT if a else URDF if known else ASSUMED for a, known in zip(asked, by_urdf)])

    return {
        "velocity": limit(speeds, velocity, [joint.velocity for joint in joints]),
        "acceleration": limit(rises, acceleration, [joint.acceleration for joint in joints]),
    }


def _take(limits, i, joint, given, source):
    """Take what a file gives joint i. given: {key of joint_limits.VALUES: value}"""
    ends = [given.get(key) for key in VALUES["position"]]
    if not joint.kind.limited and (ends[0] is None) != (ends[1] is None):
        raise RobotDescriptionError(
            f"{source}: joint '{joint.name}' is continuous and has one of min_position and max_position; allowed: both "
            "or neither"
        )
    for what, value in zip(ENDS, ends):
        if value is not None:
            limits[what].narrow(i, value, source)
    lower, upper = (limits[what] for what in ENDS)
    if not lower.values[i] < upper.values[i]:
        raise RobotDescriptionError(
            f"joint '{joint.name}': no position is within all of its limits, from {lower.values[i]:g} "
            f"({lower.sources[i]}) to {upper.values[i]:g} ({upper.sources[i]})"
        )
    if "max_velocity" in given:
        limits["velocity"].narrow(i, given["max_velocity"], source)
    if rises := [given[key] for key in ("max_acceleration", "max_deceleration") if key in given]:
        limits["acceleration"].put(i, min(rises), source)
    if "max_jerk" in given:
        limits["jerk"].put(i, given["max_jerk"], source)


def told_limits(robot: RobotModel) -> dict[str, dict[str, str]]:
    """{joint: {"position", "velocity", "acceleration" or "jerk": its limit, and where that is from}}."""
    told = {}
    for i, name in enumerate(robot.joint_names):
        unit = "m" if robot.frames[robot.frame_names.index(name)]["prismatic"] else "rad"
        source = {what: sources[i] for what, sources in robot.limit_sources.items()}
        low, high = (source.get(what, "") for what in ENDS)
        position = f"{robot.lower[i]:.4g}" + f" ({low})" * (low != high) + f" to {robot.upper[i]:.4g} {unit} ({high})"
        rates = {"velocity": robot.velocity, "acceleration": robot.acceleration, "jerk": robot.jerk_limits()}
        told[name] = {"position": "without end" if robot.continuous[i] else position} | {
            what: f"{values[i]:.4g} {unit}/s{power} ({source.get(what, '')})" if np.isfinite(values[i]) else NONE
            for (what, values), power in zip(rates.items(), ("", "^2", "^3"))
        }
    return told


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
