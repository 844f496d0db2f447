from .bands.cut import plan_bands
from .bands.planner import BandedPlanner
from .bands.source import MapRows
from .fleet import FleetPlanner
from .maps.grid_map import GridMap
from .maps.map_files import load_map_yaml, save_map_yaml
from .maps.movingai import load_movingai_map, load_movingai_scen
from .paths import AgentStatus, PathSet
from .planner import BlockPlanner
from .poses.moves import MoveCosts
from .poses.paths import PosePathSet
from .poses.planner import PosePlanner, PoseSettings
from .poses.pose_grid import PoseGrid

__all__ = [
    "AgentStatus",
    "BandedPlanner",
    "BlockPlanner",
    "FleetPlanner",
    "GridMap",
    "MapRows",
    "MoveCosts",
    "PathSet",
    "PoseGrid",
    "PosePathSet",
    "PosePlanner",
    "PoseSettings",
    "load_map_yaml",
    "load_movingai_map",
    "load_movingai_scen",
    "plan_bands",
    "save_map_yaml",
]
