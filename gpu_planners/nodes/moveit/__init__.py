"""MoveIt's messages, where moveit_msgs is installed: its action, services and topics around the arm node's scene."""

from typing import Any

from ..common.ros import optional_module


def serve(arm: Any) -> None:
    """Start the MoveItServer of an ArmServices, unless `moveit_interface` is "none" or moveit_msgs is not installed."""
    if arm.values.moveit_interface == "none":
        return
    _, missing = optional_module("moveit_msgs.msg", "MoveIt interfaces")
    if missing:
        arm.node.get_logger().info(missing)
        return
    from .server import MoveItServer

    MoveItServer(arm)
