"""Paths for many agents on grid maps. Nothing here imports ROS or `gpu_planners.arm`."""

from .fleet import FleetPlanner
from .maps.grid_map import GridMap
from .maps.map_files import load_map_yaml, save_map_yaml
from .maps.movingai import load_movingai_map, load_movingai_scen
from .paths import AgentStatus, PathSet
from .planner import BlockPlanner

__all__ = [
    "AgentStatus",
    "BlockPlanner",
    "FleetPlanner",
    "GridMap",
    "PathSet",
    "load_map_yaml",
    "load_movingai_map",
    "load_movingai_scen",
    "save_map_yaml",
]
