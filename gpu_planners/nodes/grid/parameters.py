"""The parameters of the node grid_planner, with the settings of every algorithm as `<algorithm>.<field>`."""

from dataclasses import dataclass
from typing import Any

from rclpy.exceptions import InvalidTopicNameException
from rclpy.validate_full_topic_name import validate_full_topic_name

from ...errors import SettingsError
from ...grid.exact.blocks import BLOCK_SIZES
from ...grid.exact.settings import Settings as ExactSettings
from ...grid.papers.astar import Settings as AstarSettings
from ...grid.papers.pba_star import Settings as PbaStarSettings
from ...grid.papers.rtaa_star import Settings as RtaaStarSettings
from ...grid.planner import ALGORITHMS
from ...settings import Described, setting
from ..common.map_parameters import MapParameters


@dataclass(frozen=True)
class GridParameters(MapParameters):
    """Parameters of the node grid_planner."""

    free_below: int = setting(
        1, "Occupancy values below this cost 1; those up to occupied_from rise evenly", 0, 100, read_only=True
    )
    highest_cost: int = setting(
        1, "Cost of the occupancy value just below occupied_from; 1: all free cells cost 1", 1, 255, read_only=True
    )
    connectivity: int = setting(8, "Neighbours of a cell, 8 without cutting corners", choices=(4, 8), read_only=True)
    robots: tuple = setting(
        (), "Robots in the order of the agents: agent i's path goes to /<robot>/plan", items=str, read_only=True
    )
    algorithm: str = setting("exact", "Algorithm of requests that name none", choices=tuple(ALGORITHMS))
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
    robot_frame: str = setting(
        "base_link", "Frame of the robot for compute_path_to_pose goals without a start (needs tf2_ros)"
    )
    exact: ExactSettings = ExactSettings()
    pba_star: PbaStarSettings = PbaStarSettings()
    rtaa_star: RtaaStarSettings = RtaaStarSettings()
    astar: AstarSettings = AstarSettings()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.free_below > self.occupied_from:
            raise SettingsError(
                f"parameter 'free_below' is {self.free_below}; allowed: at most occupied_from, {self.occupied_from}"
            )
        known = set()
        for topic in self.plan_topics:
            try:
                validate_full_topic_name(topic)
            except InvalidTopicNameException as error:
                raise SettingsError(f"parameter 'robots': {error}") from error
            if topic in known:
                raise SettingsError(f"parameter 'robots': {topic} comes twice; allowed: each robot once")
            known.add(topic)

    @property
    def plan_topics(self) -> list[str]:
        """The topic of each robot's path, in the order of the agents."""
        return [f"/{robot.strip('/')}/plan" for robot in self.robots]

    @property
    def occupancy_rules(self) -> dict[str, Any]:
        """What GridMap.from_occupancy takes beside the values and their place."""
        names = ("free_below", "highest_cost", "connectivity")
        return super().occupancy_rules | {name: getattr(self, name) for name in names}

    def algorithm_settings(self, algorithm: str) -> Described:
        """The settings of one of ALGORITHMS."""
        return getattr(self, algorithm)
