"""The parameters of the node grid_planner, with the settings of every algorithm as `<algorithm>.<field>`."""

import importlib

from rclpy.exceptions import InvalidTopicNameException
from rclpy.validate_full_topic_name import validate_full_topic_name

from ..errors import SettingsError
from ..grid.planner import ALGORITHMS
from .parameters import Parameter, ParameterSet, strings

SETTINGS = {name: importlib.import_module(f"..grid.{module}", __package__).Settings for name, (module, _) in ALGORITHMS.items()}
# what `ros2 param describe` says of the fields of Settings: text, inclusive range of a number
SETTING_TEXTS = {
    "exact.memory_limit_bytes": ("Bound on the memory of all fields together; goals beyond it are planned in batches, maps of which no field fits in pieces", 1, 2**62),
    "exact.time_limit_s": ("Longest plan for several goals, seconds; agents to goals that are not begun by then are timed out",),
    "pba_star.loops": ("What is done about loops of border tiles: avoid them while moving, or raise their heuristics",),
    "pba_star.most_rounds": ("Rounds of raising heuristics", 1, 2**31 - 1),
    "pba_star.memory_mb": ("Bound on the memory for heuristics and links of distinct goals, MB", 1, 2**31 - 1),
    "rtaa_star.lookahead": ("States that one search closes; 3 in the paper", 1, 256),
    "rtaa_star.most_moves": ("Moves that an agent may make; 0: 16 times (rows + columns)", 0, 2**31 - 1),
    "rtaa_star.table_size": ("Tiles whose heuristics an agent remembers, a power of two", 16, 65536),
    "rtaa_star.memory_mb": ("Bound on the memory for tables and moves, MB; agents beyond it go in batches", 1, 2**20),
    "astar.time_limit_s": ("Longest plan, seconds; agents whose search has not begun by then are timed out",),
}


PARAMETERS = (
    Parameter("map_file", "", "Map to begin with: a map_server .yaml or a MovingAI .map; empty: wait for the topic map", read_only=True),
    Parameter("map_frame", "map", "Frame of map_file, and of maps that name none", read_only=True),
    Parameter(
        "map_durability",
        "transient_local",
        "QoS durability of the subscription map; volatile for publishers that do not latch",
        choices=("transient_local", "volatile"),
        read_only=True,
    ),
    Parameter("unknown", "blocked", "Unknown cells of a map: free, blocked, or a cost from 1 to 255", read_only=True),
    Parameter("occupied_from", 65, "Occupancy values from here on are blocked", 1, 100, read_only=True),
    Parameter("free_below", 1, "Occupancy values below this cost 1; those up to occupied_from rise evenly", 0, 100, read_only=True),
    Parameter("highest_cost", 1, "Cost of the occupancy value just below occupied_from; 1: all free cells cost 1", 1, 255, read_only=True),
    Parameter("connectivity", 8, "Neighbours of a cell, 8 without cutting corners", choices=(4, 8), read_only=True),
    Parameter("robots", [""], "Robots in the order of the agents: agent i's path goes to /<robot>/plan", read_only=True),
    Parameter("device", "auto", "Where to compute: auto, cpu, cuda or cuda:N"),
    Parameter("algorithm", "exact", "Algorithm of requests that name none", choices=tuple(ALGORITHMS)),
    Parameter("block_size", 32, "Tiles of a planning block's side", choices=(4, 8, 16, 32)),
    Parameter("footprint_radius", 0.0, "Radius of the robots, metres: cells nearer to an obstacle are blocked", 0.0, 1000.0),
    Parameter("max_agents", 1_000_000, "Most agents of a request or of the topics", 1, 2**31 - 1),
    Parameter("max_path_poses", 20_000, "Most poses of the nav_msgs/Path of an answer's path_agents, all together", 1, 2**31 - 1),
    Parameter("replan", True, "Plan again when the map or the starts change, not only for new goals (on the topics)"),
    Parameter("plan_agent", 0, "Agent whose path goes to the topic plan", 0, 2**31 - 1),
    Parameter("marker_agents", 1000, "Most agents whose paths ~/paths_markers shows, spread evenly", 0, 10_000_000),
    Parameter("marker_width", 0.0, "Width of the lines of ~/paths_markers, metres; 0: half a cell", 0.0, 100.0),
    Parameter("robot_frame", "base_link", "Frame of the robot for compute_path_to_pose goals without a start (needs tf2_ros)"),
)


def unknown_cells(text):
    """The parameter `unknown` as GridMap.from_occupancy takes it."""
    if text in ("free", "blocked"):
        return text
    if text.isdigit() and 1 <= int(text) <= 255:
        return int(text)
    raise SettingsError(f"parameter 'unknown' is '{text}'; allowed: free, blocked, or a cost from 1 to 255")


def _check(values):
    unknown_cells(values["unknown"])
    if values["free_below"] > values["occupied_from"]:
        raise SettingsError(
            f"parameter 'free_below' is {values['free_below']}; allowed: at most occupied_from, {values['occupied_from']}"
        )
    topics = plan_topics(values)
    for topic in topics:
        try:
            validate_full_topic_name(topic)
        except InvalidTopicNameException as error:
            raise SettingsError(f"parameter 'robots': {error}") from error
    if len(set(topics)) < len(topics):
        twice = next(topic for topic in topics if topics.count(topic) > 1)
        raise SettingsError(f"parameter 'robots': {twice} comes twice; allowed: each robot once")


def plan_topics(values):
    """The topic of each robot's path, in the order of the agents."""
    return [f"/{robot.strip('/')}/plan" for robot in strings(values["robots"])]


def settings_of(values, algorithm):
    """The Settings of an algorithm from parameter values."""
    return GRID_PARAMETERS.settings(values, algorithm)


GRID_PARAMETERS = ParameterSet(PARAMETERS, SETTINGS, SETTING_TEXTS, _check)
