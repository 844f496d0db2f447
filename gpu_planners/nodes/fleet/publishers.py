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
from ..common.map_messages import map_message
from ..common.pictures import Pictures
from ..common.worker import Worker
from .conversions import actions_message, step_paths
from .markers import fleet_markers
from .parameters import FleetParameters
from .places import Places
from .step import FleetStep


class FleetPublishers:
    """All calls are made on the worker's thread."""

    def __init__(self, node: Node, values: FleetParameters, worker: Worker) -> None:
        self._node, self._values = node, values
        self._actions = node.create_publisher(AgentActions, "~/agent_actions", 10)
        self._paths = node.create_publisher(AgentPaths, "~/agent_paths", 10)
        self._agents: dict[str, Any] = {}  # publisher of each agent's path, or None where its id is no name
        topics = {"markers": MarkerArray, "map": OccupancyGrid}
        self._pictures = Pictures(node, topics, worker.do_aside, 1.0 / values.marker_rate)

    def configure(self, values: FleetParameters) -> None:
        """Take other parameters."""
        self._values = values
        self._pictures.look_every(1.0 / values.marker_rate)

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
        size, most = values.fleet.size, values.marker_agents
        self._pictures.show("markers", lambda: fleet_markers(step, places, header, size, most))

    def show_map(self, grid: GridMap, header: Header) -> None:
        """Publish the map a little later."""
        self._pictures.show("map", lambda: map_message(grid, header))

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
