"""Paths for many agents on grid maps. Nothing here imports ROS or `gpu_planners.arm`."""

from .agents import AgentStatus, PathSet
from .grid_map import GridMap

__all__ = ["AgentStatus", "GridMap", "PathSet"]
