"""What the node grid_planner publishes: paths as they are planned, and pictures of them where someone looks."""

from collections.abc import Callable
from typing import Any

from nav_msgs.msg import OccupancyGrid, Path
from rclpy.node import Node
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Header
from visualization_msgs.msg import MarkerArray

from ...grid import GridMap
from ..common.diagnostics import steady_clock
from ..common.map_messages import map_message
from ..common.qos import LATCHED
from ..common.worker import Worker
from .agent_planning import Plan
from .conversions import agents_message
from .markers import path_lines, paths_markers
from .parameters import GridParameters


class PlanPublishers:
    """All calls are made on the worker's thread: Numba's parallel code expands paths, for one thread at a time."""

    def __init__(self, node: Node, values: GridParameters, worker: Worker) -> None:
        self._worker = worker
        self._plan = node.create_publisher(Path, "plan", 10)
        self._robots = [node.create_publisher(Path, topic, 10) for topic in values.plan_topics]
        self._latched = {
            name: node.create_publisher(kind, f"~/{name}", LATCHED)
            for name, kind in (("paths_markers", MarkerArray), ("agents", PointCloud2), ("map", OccupancyGrid))
        }
        self._pending: dict[
            str, Callable[[], Any]
        ] = {}  # by name: makes the latest message, which nobody has asked for yet
        node.create_timer(0.2, self._look, clock=steady_clock())

    def show_path(self, path: Path) -> None:
        """Publish the path of a request for one, which belongs to no agent of the topics."""
        self._plan.publish(path)

    def show(self, plan: Plan, values: GridParameters) -> None:
        """Publish the paths of agents now, and pictures of them a little later."""
        agent = values.plan_agent
        if agent < len(plan.paths) and self._plan.get_subscription_count():
            self._plan.publish(plan.path(agent))
        for agent, publisher in enumerate(self._robots[: len(plan.paths)]):
            if publisher.get_subscription_count():
                publisher.publish(plan.path(agent))
        most_agents, width = values.marker_agents, values.marker_width or 0.5 * plan.grid.resolution
        self._pending["paths_markers"] = lambda: paths_markers(
            path_lines(plan.grid, plan.paths, most_agents), plan.header, width
        )
        self._pending["agents"] = lambda: agents_message(plan.starts.points[:, :2], plan.paths, plan.header)

    def show_map(self, grid: GridMap, header: Header) -> None:
        """Publish the map that is planned on a little later."""
        self._pending["map"] = lambda: map_message(grid, header)

    def _look(self):
        if self._wanted():
            self._worker.do(self._publish_pending)

    def _wanted(self):
        """Pictures that wait and that someone looks for."""
        return [name for name in list(self._pending) if self._latched[name].get_subscription_count()]

    def _publish_pending(self):
        for name in self._wanted():
            self._latched[name].publish(self._pending.pop(name)())
