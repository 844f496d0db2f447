"""Limits that MoveIt's users keep beside the URDF: files that parameters name, and robot_description_planning.*."""

from collections.abc import Mapping
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from ...arm import RobotModel
from ...arm.urdf.joint_limits import ROOT, PlanningLimits, planning_limits
from ...arm.urdf.limits import told_limits
from ...errors import RobotDescriptionError, SettingsError
from .parameters import ArmParameters

READ_ONLY = ParameterDescriptor(description="A limit as MoveIt has it, docs/moveit.md", read_only=True)


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
        # the names of joints are not known before the robot is, and rclpy lists what was given nowhere else
        given = {name: one.value for name, one in node._parameter_overrides.items() if name.startswith(f"{ROOT}.")}
        limits |= planning_limits(_nested(given), "parameters")
    except RobotDescriptionError as error:
        node.destroy_node()
        raise SettingsError(f"limits beside the URDF: {error}") from error
    for name, value in given.items():
        node.declare_parameter(name, value, READ_ONLY, ignore_override=True)
    return limits


def limit_facts(robot: RobotModel | None) -> dict[str, str]:
    """{key: text} for /diagnostics: each joint's limits, and where they are from."""
    told = {} if robot is None else told_limits(robot)
    return {f"limits of {name}": ", ".join(map(" ".join, limits.items())) for name, limits in told.items()}


def _nested(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a YAML file would hold, of parameters {name: value}. Names of joints may have dots in them."""
    document: dict[str, Any] = {}
    for name, value in given.items():
        section, _, rest = name.removeprefix(f"{ROOT}.").partition(".")
        joint, _, key = rest.rpartition(".")
        if not rest:
            document[section] = value
        elif joint:
            document.setdefault(section, {}).setdefault(joint, {})[key] = value
        else:
            document.setdefault(section, {})[key] = value
    return document
