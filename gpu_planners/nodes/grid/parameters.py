"""The parameters of the node grid_planner, with the settings of every algorithm as `<algorithm>.<field>`."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from rclpy.exceptions import InvalidTopicNameException
from rclpy.validate_full_topic_name import validate_full_topic_name

from ...errors import GridMapError, SettingsError
from ...grid.exact.blocks import BLOCK_SIZES
from ...grid.planner import ALGORITHMS
from ...grid.poses.masks import convex_pieces, inner_radius
from ...grid.poses.moves import MoveCosts
from ...grid.poses.planner import ALGORITHMS as POSE_ALGORITHMS
from ...settings import setting
from ..common.map_messages import MAP_KINDS
from ..common.parameters import MapParameters, holding, is_name
from ..common.request_error import RequestError
from .footprints import read_footprint

# Nav2's names of how robots move, of Smac and of MPPI, for those of PoseGrid; a lattice has a file
MOTION_MODELS = {
    "DIFF": "differential",
    "DUBIN": "dubins",
    "REEDS_SHEPP": "reeds_shepp",
    "OMNI": "omni",
    "STATE_LATTICE": "",
    "DiffDrive": "differential",
    "Ackermann": "reeds_shepp",
    "Omni": "omni",
}


@dataclass(frozen=True)
@holding({name: algorithm.settings() for name, algorithm in ALGORITHMS.items()} | {"move_costs": MoveCosts()})
class GridParameters(MapParameters):
    """Parameters of the node grid_planner."""

    free_below: int = setting(
        1, "Occupancy values below this cost 1; those up to occupied_from rise evenly", 0, 100, read_only=True
    )
    highest_cost: int = setting(
        1, "Cost of the occupancy value just below occupied_from; 1: all free cells cost 1", 1, 255, read_only=True
    )
    map_kind: str = setting(
        "occupancy",
        "What map and map_updates are: nav_msgs/OccupancyGrid with occupancies; costmap: the same with the values of a "
        "costmap of Nav2; costmap_raw: nav2_msgs/Costmap and CostmapUpdate",
        choices=tuple(MAP_KINDS),
        read_only=True,
    )
    neutral_cost: int = setting(
        50, "Cost of a tile whose cost is 0 on a costmap of Nav2, or by the inflation", 1, 255, read_only=True
    )
    cost_factor: float = setting(
        0.8, "What a cost of Nav2, 0 to 252, adds to neutral_cost, times the cost", 0.0, 10.0, read_only=True
    )
    connectivity: int = setting(8, "Neighbours of a cell, 8 without cutting corners", choices=(4, 8), read_only=True)
    robots: tuple = setting(
        (), "Robots in the order of the agents: agent i's path goes to /<robot>/plan", items=str, read_only=True
    )
    lifecycle: bool = setting(
        False, "Begin unconfigured, and be configured and activated by a lifecycle manager", read_only=True
    )
    clear_costmap_service: str = setting(
        "",
        "Service (nav2_msgs/srv/ClearEntireCostmap) that takes back what map_updates changed; empty: none",
        must=("a name of ROS, or none", lambda name: not name or is_name(name)),
        read_only=True,
    )
    algorithm: str = setting("exact", "Algorithm of requests that name none", choices=tuple(ALGORITHMS))
    planner_ids: tuple = setting(
        ("GridBased",),
        "Names that Nav2's requests may give the parameter algorithm, beside the algorithms' own",
        items=str,
    )
    goal_tolerance: float = setting(
        0.0,
        "How far from a goal that is occupied or cut off the paths of Nav2's actions may end; get_plan has its own",
        0.0,
        1000.0,
        unit="metres",
    )
    start_tolerance: float = setting(
        0.0,
        "How far, beyond the first step, a path of Nav2's actions or of get_plan may leave a start where only "
        "footprint_radius, or a costmap's inscribed radius, forbids to stand; 0: the first step alone, as with NavFn",
        0.0,
        10.0,
        unit="metres",
    )
    inflation_radius: float = setting(
        0.0,
        "Tiles up to so far from an obstacle cost more, as by Nav2's inflation layer; 0: none; leave it for costmaps",
        0.0,
        1000.0,
        unit="metres",
    )
    cost_scaling_factor: float = setting(
        3.0,
        "How fast these costs fall off beyond footprint_radius: exp(-factor * distance)",
        0.0,
        1000.0,
        unit="1/metre",
    )
    footprint: str = setting(
        "",
        "Outline of the robot as Nav2 takes it, [[x, y], [x, y], ...], x ahead: paths of one robot are planned for it "
        "with its heading, and footprint_radius stays 0; empty or []: a disc of footprint_radius",
        unit="metres",
    )
    motion_model: str = setting(
        "DIFF",
        "How a robot with a footprint moves: DIFF, DiffDrive in curves both ways and on the spot; DUBIN in curves "
        "forwards; REEDS_SHEPP, Ackermann also backwards; OMNI, Omni to all sides and on the spot; STATE_LATTICE as "
        "lattice_filepath says",
        choices=tuple(MOTION_MODELS),
    )
    minimum_turning_radius: float = setting(
        0.4, "Least radius of curves of a robot with a footprint; 0, for DIFF: none", 0.0, 1000.0, unit="metres"
    )
    angle_quantization_bins: int = setting(
        16,
        "Headings that a robot with a footprint is planned with; a lattice has its own",
        choices=tuple(range(8, 80, 8)),
    )
    lattice_filepath: str = setting("", "File of Nav2's lattice primitives (.json), for STATE_LATTICE")
    heading_tolerance: float = setting(
        0.0,
        "How far from a goal's heading the path of a robot with a footprint may end, where it may end elsewhere",
        0.0,
        math.pi,
        unit="rad",
    )
    block_size: int = setting(32, "Tiles of a planning block's side", choices=BLOCK_SIZES)
    max_agents: int = setting(1_000_000, "Most agents of a request or of the topics", 1, 2**31 - 1)
    max_path_poses: int = setting(
        20_000, "Most poses of the nav_msgs/Path of an answer's path_agents, all together", 1, 2**31 - 1
    )
    replan: bool = setting(True, "Plan again when the map or the starts change, not only for new goals (on the topics)")
    plan_agent: int = setting(0, "Agent whose path goes to the topic plan", 0, 2**31 - 1)
    marker_agents: int = setting(1000, "Most agents whose paths ~/paths_markers shows, spread evenly", 0, 10_000_000)
    marker_width: float = setting(
        0.0, "Width of the lines of ~/paths_markers; 0: half a cell", 0.0, 100.0, unit="metres"
    )
    robot_frame: str = setting("base_link", "Frame of the robot for requests of Nav2 without a start (needs tf2_ros)")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.free_below > self.occupied_from:
            raise SettingsError(
                f"parameter 'free_below' is {self.free_below}; allowed: at most occupied_from, {self.occupied_from}"
            )
        for number, topic in enumerate(self.plan_topics):
            try:
                validate_full_topic_name(topic)
            except InvalidTopicNameException as error:
                raise SettingsError(f"parameter 'robots': {error}") from error
            if topic in self.plan_topics[:number]:
                raise SettingsError(f"parameter 'robots': {topic} comes twice; allowed: each robot once")
        if self.outline is not None:
            self._check_robot()

    def _check_robot(self):
        """SettingsError where a parameter does not go with a footprint."""
        radius, wanted = self.minimum_turning_radius, ("exact", "astar")
        if self.footprint_radius:
            raise SettingsError(
                f"parameter 'footprint_radius' is {self.footprint_radius}; allowed: 0 with the parameter footprint"
            )
        if self.algorithm not in wanted:
            allowed = f"allowed with the parameter footprint: {', '.join(wanted)}"
            raise SettingsError(f"parameter 'algorithm' is '{self.algorithm}'; {allowed}")
        if MOTION_MODELS[self.motion_model] in ("dubins", "reeds_shepp") and not radius:
            raise SettingsError(
                f"parameter 'minimum_turning_radius' is 0; allowed: above 0 metres for {self.motion_model}"
            )
        if self.motion_model == "STATE_LATTICE" and not self.lattice_filepath.endswith(".json"):
            raise SettingsError(
                f"parameter 'lattice_filepath' is '{self.lattice_filepath}'; allowed for STATE_LATTICE: a .json file"
            )

    @cached_property
    def outline(self) -> np.ndarray | None:
        """(V, 2) metres of the parameter footprint; None for a disc."""
        if self.footprint.strip() in ("", "[]"):
            return None
        try:
            outline = read_footprint(self.footprint)
            convex_pieces(outline)
        except (RequestError, GridMapError) as error:
            raise SettingsError(f"parameter {error}") from error
        return outline

    @property
    def inscribed_radius(self) -> float:
        """Metres about the robot's centre that it covers whatever its heading."""
        return self.footprint_radius if self.outline is None else inner_radius(self.outline)

    @property
    def pose_model(self) -> str:
        """The model of PoseGrid."""
        return MOTION_MODELS[self.motion_model] or self.lattice_filepath

    @property
    def route_algorithms(self) -> tuple[str, ...]:
        """The algorithms that plan the path of one robot."""
        return tuple(ALGORITHMS) if self.outline is None else POSE_ALGORITHMS

    @property
    def route_algorithm(self) -> str:
        """The one of requests that name none; with a footprint exact leaves the choice, since costs are the same."""
        return "auto" if self.outline is not None and self.algorithm == "exact" else self.algorithm

    @property
    def plan_topics(self) -> list[str]:
        """The topic of each robot's path, in the order of the agents."""
        return [f"/{robot.strip('/')}/plan" for robot in self.robots]

    @property
    def occupancy_rules(self) -> dict[str, Any]:
        names = ("free_below", "highest_cost", "connectivity")
        return super().occupancy_rules | {name: getattr(self, name) for name in names}
