"""Paths for many agents on grid maps. Nothing here imports ROS or `gpu_planners.arm`."""

from .agents import AgentStatus, PathSet
from .grid_map import GridMap
from .planner import BlockPlanner

__all__ = ["AgentStatus", "BlockPlanner", "GridMap", "PathSet"]
