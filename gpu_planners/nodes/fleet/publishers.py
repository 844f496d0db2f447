"""What the node fleet_planner publishes: actions and paths as a step begins, and pictures where someone looks."""

from typing import Any

import numpy as np
from geometry_msgs.msg import Point
from nav_msgs.msg import OccupancyGrid, Path
from rclpy.exceptions import InvalidTopicNameException
from rclpy.validate_full_topic_name import validate_full_topic_name
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from gpu_planners_msgs.msg import AgentActions, AgentPaths

from ...grid import GridMap
from ..common.map_messages import map_message
from ..common.pictures import Pictures
from ..common.planner_node import PlannerNode
from .conversions import actions_message, step_paths
from .places import Places
from .step import FleetStep


class FleetPublishers:
    """All calls are made on the worker's thread."""

    def __init__(self, node: PlannerNode) -> None:
        self._node = node
        self._actions = node.create_publisher(AgentActions, "~/agent_actions", 10)
        self._paths = node.create_publisher(AgentPaths, "~/agent_paths", 10)
        self._agents: dict[str, Any] = {}  # publisher of each agent's path, or None where its id is no name
        topics = {"markers": MarkerArray, "map": OccupancyGrid}
        self._pictures = Pictures(node, topics, node.worker.do_aside, 1.0 / node.values.marker_rate)

    def configure(self) -> None:
        """The node's parameters have changed."""
        self._pictures.look_every(1.0 / self._node.values.marker_rate)

    def show(self, step: FleetStep, places: Places, header: Header) -> None:
        """Publish a step now, and a picture of it a little later."""
        values = self._node.values
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


COLOURS = {  # of agents, by state of AgentActions: red, green, blue
    "MOVING": (0.13, 0.45, 0.85),
    "AT_GOAL": (0.20, 0.65, 0.32),
    "NO_GOAL": (0.55, 0.57, 0.62),
    "STUCK": (0.93, 0.55, 0.10),
    "SILENT": (0.20, 0.20, 0.22),
    "BAD_STATE": (0.85, 0.15, 0.20),
    "BAD_GOAL": (0.60, 0.25, 0.70),
}
SIDE, HEIGHT, NOSE = 0.7, 0.4, 0.45  # of a cube, and of the line that shows where it looks, in an agent's size


def fleet_markers(step: FleetStep, places: Places, header: Header, size: int, most_agents: int) -> MarkerArray:
    """MarkerArray of at most so many agents, spread evenly. size: side of an agent in tiles"""
    shown = np.arange(len(step.ids))
    if len(shown) > most_agents:
        shown = np.linspace(0, len(shown) - 1, most_agents).astype(int)
    side = size * places.grid.resolution
    points, states = places.points(step.tiles[shown]), step.states[shown]
    markers = []
    for name, colour in COLOURS.items():
        of_state = points[states == getattr(AgentActions, name)]
        marker = _marker(header, f"agents {name.lower()}", Marker.CUBE_LIST, colour, of_state)
        marker.scale.x = marker.scale.y = SIDE * side
        marker.scale.z = HEIGHT * side
        markers.append(marker)
    yaws = places.yaws(step.headings[shown])
    noses = _pairs(points, points + NOSE * side * np.stack([np.cos(yaws), np.sin(yaws)], axis=1))
    headings = _marker(header, "headings", Marker.LINE_LIST, (0.95, 0.95, 0.95), noses, HEIGHT * side)
    tiles = step.goals[shown]
    has = tiles[:, 0] >= 0
    ways = _pairs(points[has], places.points(tiles[has]))
    goals = _marker(header, "goals", Marker.LINE_LIST, (0.93, 0.65, 0.15), ways, opacity=0.5)
    headings.scale.x, goals.scale.x = 0.15 * side, 0.06 * side
    return MarkerArray(markers=[*markers, headings, goals])


def _pairs(one, other):
    return np.stack([one, other], axis=1).reshape(-1, 2)


def _marker(header, namespace, kind, colour, points, height=0.0, opacity=1.0):
    red, green, blue = colour
    at = [Point(x=x, y=y, z=height) for x, y in points.tolist()]
    marker = Marker(header=header, ns=namespace, type=kind, points=at)
    marker.color = ColorRGBA(r=red, g=green, b=blue, a=opacity)
    marker.pose.orientation.w = 1.0
    marker.action = Marker.ADD if len(points) else Marker.DELETE
    return marker
