"""MoveIt's messages, where moveit_msgs is installed: its action, services and topics around the arm node's scene."""

from typing import Any

from ..common.optional import optional_module


def serve(node: Any, scene: Any, executing: Any, values: Any, *arguments: Any) -> Any:
    """The MoveItServer of a node, or None where the parameter `moveit_interface` or what is installed says so.

    Arguments as of MoveItServer.
    """
    if values().moveit_interface == "none":
        return None
    _, missing = optional_module("moveit_msgs.msg", "MoveIt interfaces")
    if missing:
        node.get_logger().info(missing)
        return None
    from .server import MoveItServer

    return MoveItServer(node, scene, executing, values, *arguments)
