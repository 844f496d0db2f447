"""Limits that MoveIt's users keep beside the URDF: files that parameters name, and robot_description_planning.*."""

from collections.abc import Mapping
from typing import Any

from rclpy.node import Node

from ...arm import RobotModel
from ...arm.urdf.joint_limits import ROOT, PlanningLimits, planning_limits
from ...arm.urdf.limits import told_limits
from ...errors import RobotDescriptionError, SettingsError
from ..common.parameters import given_below
from .parameters import ArmParameters


def given_limits(node: Node, values: ArmParameters) -> PlanningLimits:
    """The limits of joint_limits_file, cartesian_limits_file and robot_description_planning.*, which are declared here.

    SettingsError, with which the node has ended, names what is wrong with them; joints are looked for when the robot is
    there.
    """
    limits = PlanningLimits()
    try:
        for name in ("joint_limits_file", "cartesian_limits_file"):
            if path := getattr(values, name):
                limits |= planning_limits(path)
        limits |= planning_limits(_nested(given_below(node, ROOT)), "parameters")
    except RobotDescriptionError as error:
        node.destroy_node()
        raise SettingsError(f"limits beside the URDF: {error}") from error
    return limits


def limit_facts(robot: RobotModel | None) -> dict[str, str]:
    """{key: text} for /diagnostics: each joint's limits, and where they are from."""
    told = {} if robot is None else told_limits(robot)
    return {f"limits of {name}": ", ".join(map(" ".join, limits.items())) for name, limits in told.items()}


def _nested(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a YAML file would hold, of parameters {name below ROOT: value}. Names of joints may have dots in them."""
    document: dict[str, Any] = {}
    for name, value in given.items():
        section, _, rest = name.partition(".")
        joint, _, key = rest.rpartition(".")
        if not rest:
            document[section] = value
        elif joint:
            document.setdefault(section, {}).setdefault(joint, {})[key] = value
        else:
            document.setdefault(section, {})[key] = value
    return document
