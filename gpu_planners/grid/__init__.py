"""Paths for many agents on grid maps. Nothing here imports ROS or `gpu_planners.arm`."""

from .agents import AgentStatus, PathSet

__all__ = ["AgentStatus", "PathSet"]
