"""What RViz shows of a fleet: agents as cubes coloured by state, where they look, lines to their goals."""

import numpy as np
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from gpu_planners_msgs.msg import AgentActions

from .places import Places
from .step import FleetStep

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
