"""MoveIt's limits beside a URDF: joint_limits.yaml and pilz_cartesian_limits.yaml, or the same as ROS parameters.

    default_velocity_scaling_factor: 0.5
    joint_limits:
      panda_joint1:
        has_velocity_limits: true
        max_velocity: 1.875
    cartesian_limits:
      max_trans_vel: 0.5

MoveIt has all of it below `robot_description_planning`, where it may be here, too, and below `ros__parameters`. What
`has_...: false` says to be no limit is left to the URDF; a value without its `has_...` is one.
"""

import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import RobotDescriptionError, shortened, shown
from ...files import read_yaml
from .notes import nearest, unknown, warn_once

ROOT, PARAMETERS = "robot_description_planning", "ros__parameters"
SCALING = {f"default_{what}_scaling_factor": what for what in ("velocity", "acceleration")}
SECTIONS = ("joint_limits", "cartesian_limits", *SCALING)
PADDING = ("default_robot_", "default_object_", "default_attached_")  # what names of MoveIt's paddings begin with
# what has_<key>_limits says is there: the names of its values
VALUES = {
    "position": ("min_position", "max_position"),
    "velocity": ("max_velocity",),
    "acceleration": ("max_acceleration",),
    "deceleration": ("max_deceleration",),
    "jerk": ("max_jerk",),
}
NOT_READ = (  # of ros2_control and others; MoveIt does not read them either
    *("has_effort_limits", "max_effort", "has_soft_limits", "k_position", "k_velocity", "soft_lower_limit"),
    *("soft_upper_limit", "angle_wraparound"),
)
CARTESIAN = ("max_trans_vel", "max_trans_acc", "max_trans_dec", "max_rot_vel")
DERIVED = ("max_rot_acc", "max_rot_dec")  # Pilz's planner finds them from the others, whatever a file says


@dataclass(frozen=True)
class PlanningLimits:
    """What such files and parameters say.

    joints: (source, {joint: {key: value}}) of each file, with the keys of VALUES that are limits and their values
    cartesian: {key of CARTESIAN: above 0}, of the tool, metres, rad and seconds
    scaling: {"velocity" or "acceleration": fraction} where a request gives none
    """

    joints: tuple[tuple[str, dict[str, dict[str, float]]], ...] = ()
    cartesian: dict[str, float] = field(default_factory=dict)
    scaling: dict[str, float] = field(default_factory=dict)

    def __or__(self, others: "PlanningLimits") -> "PlanningLimits":
        """These and others, which count where only one value can."""
        return PlanningLimits(
            self.joints + others.joints, self.cartesian | others.cartesian, self.scaling | others.scaling
        )

    def joints_with(self, key: str) -> dict[str, float]:
        """{joint: value} of the joints that have a limit of this key."""
        return {name: given[key] for _, joints in self.joints for name, given in joints.items() if key in given}

    def check_joints(self, known: Mapping[str, Any]) -> None:
        """RobotDescriptionError where a limit is of a joint that is not known."""
        for source, joints in self.joints:
            if odd := [name for name in joints if name not in known]:
                told = f"{source} has limits of {unknown(odd, known)}, which the URDF does not have"
                raise RobotDescriptionError(f"{told}; its joints: {shortened(', '.join(known))}")


def planning_limits(given: str | os.PathLike | Mapping | PlanningLimits, source: str = "limits") -> PlanningLimits:
    """PlanningLimits of a YAML file, or of what such a file holds. source: what a mapping is called

    Raises RobotDescriptionError that names the file, the joint and the key.
    """
    if isinstance(given, PlanningLimits):
        return given
    document: Any = given
    if not isinstance(given, Mapping):
        document, source = read_yaml(given, "limits", RobotDescriptionError), Path(given).name
    document = _unwrapped(document)
    if isinstance(document, Mapping) and (odd := [key for key in document if str(key).startswith(PADDING)]):
        warn_once(f"{source}: {', '.join(map(str, odd))} are no limits and are not read")
        document = {key: value for key, value in document.items() if key not in odd}
    sections = _mapping(document, source, SECTIONS)
    joints = _mapping(sections.get("joint_limits"), f"{source}: joint_limits")
    cartesian = _mapping(sections.get("cartesian_limits"), f"{source}: cartesian_limits", CARTESIAN + DERIVED)
    scaling = {}
    for key, what in SCALING.items():
        if key in sections:
            scaling[what] = _number(sections[key], f"{source}: {key}")
            if not 0 < scaling[what] <= 1:
                raise _wrong(f"{source}: {key}", sections[key], "a number above 0, up to 1")
    return PlanningLimits(
        ((source, {name: _joint(given, f"{source}: joint '{name}'") for name, given in joints.items()}),),
        {key: _size(cartesian[key], f"{source}: cartesian_limits, {key}") for key in CARTESIAN if key in cartesian},
        scaling,
    )


def _unwrapped(document):
    """The mapping below a node's name, ros__parameters and robot_description_planning."""
    while isinstance(document, Mapping):
        inner = document.get(PARAMETERS, document.get(ROOT))
        if inner is None and len(document) == 1:
            (only,) = document.values()
            inner = only if isinstance(only, Mapping) and (PARAMETERS in only or ROOT in only) else None
        if inner is None:
            break
        document = inner
    return document


def _joint(given, what):
    """{key: value} of the limits that a joint has."""
    names = [f"has_{kind}_limits" for kind in VALUES] + [name for names in VALUES.values() for name in names]
    if isinstance(given, Mapping) and (passed := [key for key in NOT_READ if key in given]):
        warn_once(f"{what}: {', '.join(passed)} are not read")
        given = {key: value for key, value in given.items() if key not in NOT_READ}
    values = _mapping(given, what, names)
    limits = {}
    for kind, keys in VALUES.items():
        flag = f"has_{kind}_limits"
        has = values.get(flag, True)
        if not isinstance(has, bool):
            raise _wrong(f"{what}, {flag}", has, "true or false")
        found = {key: _number(values[key], f"{what}, {key}") for key in keys if key in values}
        if has and flag in values and not found:
            warn_once(f"{what}: {flag} is true, but there is no {' and no '.join(keys)}: it stays as it is without")
        limits |= found if has else {}
    for key in [key for key in limits if "position" not in key]:
        limits[key] = _size(limits[key], f"{what}, {key}", signed=key == "max_deceleration")
    lower, upper = (limits.get(key, default) for key, default in zip(VALUES["position"], (-math.inf, math.inf)))
    if not lower < upper:
        raise _wrong(f"{what}, min_position", lower, f"less than max_position, which is {upper:g}")
    return limits


def _mapping(given, what, allowed=None):
    """A mapping with texts, some of those allowed, as keys; an empty one of None."""
    told = f"a mapping of {'joints' if allowed is None else ', '.join(allowed)}"
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise _wrong(what, given, told)
    for key in given:
        if not isinstance(key, str):
            raise _wrong(f"{what}: a key", key, told)
        if allowed is not None and key not in allowed:
            like = nearest(key, allowed)
            raise RobotDescriptionError(
                f"{what}: '{shortened(key)}' is unknown{f' (nearest: {like})' if like else ''}; allowed: "
                f"{', '.join(allowed)}"
            )
    return dict(given)


def _number(value, what):
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise _wrong(what, value, "a finite number")
    return float(value)


def _size(value, what, signed=None):
    """A number above 0; where it is signed, without its sign, as Pilz's max_trans_dec is below 0."""
    signed = what.endswith("_dec") if signed is None else signed
    number = abs(_number(value, what)) if signed else _number(value, what)
    if not number > 0:
        raise _wrong(what, value, "a number that is not 0" if signed else "a number above 0")
    return number


def _wrong(what, value, allowed):
    return RobotDescriptionError(f"{what} is {shown(value)}; allowed: {allowed}")
