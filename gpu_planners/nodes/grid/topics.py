"""Topics of the node grid_planner: starts and goals that come, paths and pictures of them that go out."""

from collections.abc import Callable
from functools import partial

import numpy as np
from geometry_msgs.msg import PoseArray
from nav_msgs.msg import OccupancyGrid, Path
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from ...grid import GridMap, PathSet
from ..common.map_messages import map_message
from ..common.pictures import Pictures, marker_of, serialized_with_points
from ..common.planner_node import PlannerNode
from .agent_planning import AgentsPlan
from .conversions import agents_message

PATH_COLOUR = ColorRGBA(r=0.13, g=0.45, b=0.85, a=0.8)


class PlanPublishers:
    """All calls are made on the worker's thread: Numba's parallel code expands paths, for one thread at a time.

    plan: publishes the path of one agent of the topics, and those of requests for one path
    """

    def __init__(self, node: PlannerNode) -> None:
        self._node = node
        self.plan = node.create_publisher(Path, "plan", 10)
        self._robots = [node.create_publisher(Path, topic, 10) for topic in node.values.plan_topics]
        topics = {"paths_markers": MarkerArray, "agents": PointCloud2, "map": OccupancyGrid}
        self._pictures = Pictures(node, topics, node.worker.do, 0.2)

    def show(self, plan: AgentsPlan) -> None:
        """Publish the paths of agents now, and pictures of them a little later."""
        values = self._node.values
        outputs = [*enumerate(self._robots), (values.plan_agent, self.plan)]
        for agent, publisher in outputs:
            if agent < len(plan.paths) and publisher.get_subscription_count():
                publisher.publish(*plan.paths_of([agent]))
        most_agents, width = values.marker_agents, values.marker_width or 0.5 * plan.grid.resolution
        show = self._pictures.show
        show("paths_markers", lambda: paths_markers(path_lines(plan.grid, plan.paths, most_agents), plan.header, width))
        show("agents", lambda: agents_message(plan.starts.points[:, :2], plan.paths, plan.header))

    def show_map(self, grid: GridMap, header: Header) -> None:
        self._pictures.show("map", lambda: map_message(grid, header))


def path_lines(grid: GridMap, paths: PathSet, most_agents: int) -> np.ndarray:
    """(2 R, 2) metres: both ends of each line of the paths of at most so many agents, spread evenly."""
    solved = np.flatnonzero(paths.solved & (paths.length > 0))
    if len(solved):
        solved = solved[np.linspace(0, len(solved) - 1, min(most_agents, len(solved))).astype(int)]
    return grid.centres_of(straight_runs(*paths.paths(solved)).reshape(-1, 2))


def paths_markers(lines: np.ndarray, header: Header, width: float) -> bytes:
    """A serialized visualization_msgs/MarkerArray of path_lines. width: metres"""
    marker = marker_of("paths", 0, Marker.LINE_LIST, PATH_COLOUR, (width, 0.0, 0.0))
    marker.header, marker.action = header, Marker.ADD if len(lines) else Marker.DELETE
    return serialized_with_points(marker, np.pad(lines, ((0, 0), (0, 1))))


def straight_runs(tiles: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """(R, 2, 2) first and last tile of every straight run. tiles (T, 2), offsets (N + 1,): of PathSet.paths"""
    if len(tiles) < 2:
        return np.empty((0, 2, 2), np.int32)
    moves = np.diff(tiles, axis=0)
    joins = np.ones(len(moves), bool)  # is the pair (k, k + 1) of one path?
    ends = offsets[1:-1]
    joins[ends[(ends > 0) & (ends < len(tiles))] - 1] = False
    turns = np.ones(len(moves), bool)  # does move k start a new run?
    turns[1:] = (moves[1:] != moves[:-1]).any(axis=1) | (joins[1:] != joins[:-1])
    begins = np.flatnonzero(turns & joins)
    last = np.append(turns[1:], True)  # does a run end at k + 1?
    return np.stack([tiles[begins], tiles[np.flatnonzero(last & joins) + 1]], axis=1)


class TopicAgents:
    """The latest messages on ~/starts and ~/goals. All but the subscriptions runs on the worker thread.

    plan: called with starts and goals when a plan is due; may raise
    """

    def __init__(self, node: PlannerNode, plan: Callable[[PoseArray, PoseArray], None]) -> None:
        self._node, self._plan = node, plan
        self._messages = {"starts": None, "goals": None}
        self._goals_are_new = self._queued = False
        for name in self._messages:
            node.create_subscription(PoseArray, f"~/{name}", partial(node.worker.do, self._take, name), 10)

    def _take(self, name, message):
        self._messages[name] = message
        self._goals_are_new |= name == "goals"
        self.plan_again()

    def plan_again(self) -> None:
        """Plan after what is queued now, once for all of it; without the parameter `replan` only for new goals."""
        replan = self._node.get_parameter("replan").value
        if (replan or self._goals_are_new) and None not in self._messages.values() and not self._queued:
            self._queued = True
            self._node.worker.do(self._plan_now)

    def _plan_now(self):
        self._queued = False
        with self._node.state.watched("topics", "the starts and goals of the topics"):
            self._plan(**self._messages)
            self._goals_are_new = False
