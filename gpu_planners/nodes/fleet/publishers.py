"""What the node fleet_planner publishes: actions and paths as a step begins, and pictures where someone looks."""

from typing import Any

from nav_msgs.msg import OccupancyGrid, Path
from rclpy.exceptions import InvalidTopicNameException
from rclpy.node import Node
from rclpy.validate_full_topic_name import validate_full_topic_name
from std_msgs.msg import Header
from visualization_msgs.msg import MarkerArray

from gpu_planners_msgs.msg import AgentActions, AgentPaths

from ...grid import GridMap
from ..common.diagnostics import steady_clock
from ..common.map_messages import map_message
from ..common.qos import LATCHED
from ..common.worker import Worker
from .conversions import actions_message, step_paths
from .markers import fleet_markers
from .parameters import FleetParameters
from .places import Places
from .step import FleetStep


class FleetPublishers:
    """All calls are made on the worker's thread."""

    def __init__(self, node: Node, values: FleetParameters, worker: Worker) -> None:
        self._node, self._worker, self._values = node, worker, values
        self._actions = node.create_publisher(AgentActions, "~/agent_actions", 10)
        self._paths = node.create_publisher(AgentPaths, "~/agent_paths", 10)
        self._markers = node.create_publisher(MarkerArray, "~/markers", LATCHED)
        self._map = node.create_publisher(OccupancyGrid, "~/map", LATCHED)
        self._agents: dict[str, Any] = {}  # publisher of each agent's path, or None where its id is no name
        self._picture: tuple[FleetStep, Places, Header] | None = None
        self._pending_map: tuple[GridMap, Header] | None = None
        self._timer = node.create_timer(1.0 / values.marker_rate, self._look, clock=steady_clock())

    def configure(self, values: FleetParameters) -> None:
        """Take other parameters."""
        self._values = values
        self._timer.timer_period_ns = round(1e9 / values.marker_rate)

    def show(self, step: FleetStep, places: Places, header: Header) -> None:
        """Publish a step now, and a picture of it a little later."""
        values = self._values
        self._actions.publish(actions_message(step, values.motion, header, values.step_s))
        wanted = self._paths.get_subscription_count()
        if wanted or values.agent_topics:
            paths = step_paths(step, places, header, values.step_s)
            if wanted:
                self._paths.publish(AgentPaths(header=header, step=step.number, ids=step.ids, paths=paths))
            if values.agent_topics:
                self._show_agents(step, paths)
        self._picture = step, places, header

    def show_map(self, grid: GridMap, header: Header) -> None:
        """Publish the map a little later."""
        self._pending_map = grid, header

    def _show_agents(self, step, paths):
        for id in self._agents.keys() - set(step.ids):
            publisher = self._agents.pop(id)
            if publisher is not None:
                self._node.destroy_publisher(publisher)
        for id, path in zip(step.ids, paths):
            if id not in self._agents:
                self._agents[id] = self._publisher_of(id)
            publisher = self._agents[id]
            if publisher is not None and publisher.get_subscription_count():
                publisher.publish(path)

    def _publisher_of(self, id):
        topic = f"/{id.strip('/')}/plan"
        try:
            validate_full_topic_name(topic)
        except InvalidTopicNameException as error:
            self._node.get_logger().warning(f"agent '{id}' has no topic of its own: {error}")
            return None
        return self._node.create_publisher(Path, topic, 10)

    def _look(self):
        if self._wants_markers() or self._wants_map():
            self._worker.do_aside(self._publish_pending)

    def _wants_markers(self):
        return self._picture is not None and self._markers.get_subscription_count()

    def _wants_map(self):
        return self._pending_map is not None and self._map.get_subscription_count()

    def _publish_pending(self):
        if self._wants_markers():
            picture, self._picture = self._picture, None
            self._markers.publish(fleet_markers(*picture, self._values.fleet.size, self._values.marker_agents))
        if self._wants_map():
            told, self._pending_map = self._pending_map, None
            self._map.publish(map_message(*told))
