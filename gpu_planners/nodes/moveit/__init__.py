"""MoveIt's messages, where moveit_msgs is installed: its action, services and topics around the arm node's scene."""

from typing import Any

from ..common.ros import optional_module


def serve(arm: Any) -> Any:
    """The MoveItServer of an ArmServices, None where `moveit_interface` is "none" or moveit_msgs is not installed."""
    if arm.values.moveit_interface == "none":
        return None
    _, missing = optional_module("moveit_msgs.msg", "MoveIt interfaces")
    if missing:
        arm.node.get_logger().info(missing)
        return None
    from .server import MoveItServer

    return MoveItServer(arm)
