"""What RViz shows of a fleet: agents as cubes coloured by state, where they look, lines to their goals."""

import numpy as np
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from gpu_planners_msgs.msg import AgentActions

from ..common.map_messages import point_list
from .places import Places
from .step import Step

COLOURS = {  # of agents, by state: red, green, blue
    AgentActions.MOVING: (0.13, 0.45, 0.85),
    AgentActions.AT_GOAL: (0.20, 0.65, 0.32),
    AgentActions.NO_GOAL: (0.55, 0.57, 0.62),
    AgentActions.STUCK: (0.93, 0.55, 0.10),
    AgentActions.SILENT: (0.20, 0.20, 0.22),
    AgentActions.BAD_STATE: (0.85, 0.15, 0.20),
    AgentActions.BAD_GOAL: (0.60, 0.25, 0.70),
}
NAMES = {
    value: name.lower()
    for name, value in (
        (name, getattr(AgentActions, name))
        for name in ("MOVING", "AT_GOAL", "NO_GOAL", "STUCK", "SILENT", "BAD_STATE", "BAD_GOAL")
    )
}
SIDE, HEIGHT, NOSE = 0.7, 0.4, 0.45  # of an agent's cube, of the line that shows where it looks, in its size


def fleet_markers(step: Step, places: Places, header: Header, size: int, most_agents: int) -> MarkerArray:
    """MarkerArray of at most so many agents, spread evenly. size: side of an agent in tiles"""
    shown = np.arange(len(step.ids))
    if len(shown) > most_agents:
        shown = np.linspace(0, len(shown) - 1, most_agents).astype(int)
    side = size * places.grid.resolution
    points, states = places.points(step.tiles[shown]), step.states[shown]
    markers = []
    for state, colour in COLOURS.items():
        marker = _marker(header, f"agents {NAMES[state]}", Marker.CUBE_LIST, colour, points[states == state])
        marker.scale.x = marker.scale.y = SIDE * side
        marker.scale.z = HEIGHT * side
        markers.append(marker)
    yaws = places.yaws(step.headings[shown])
    nose = points + NOSE * side * np.stack([np.cos(yaws), np.sin(yaws)], axis=1)
    markers.append(
        _marker(header, "headings", Marker.LINE_LIST, (0.95, 0.95, 0.95), _pairs(points, nose), HEIGHT * side)
    )
    goals = step.goals[shown]
    has = goals[:, 0] >= 0
    lines = _pairs(points[has], places.points(goals[has]))
    markers.append(_marker(header, "goals", Marker.LINE_LIST, (0.93, 0.65, 0.15), lines, 0.0, 0.5))
    for marker, width in zip(markers[-2:], (0.15, 0.06)):
        marker.scale.x = width * side
    return MarkerArray(markers=markers)


def _pairs(one, other):
    return np.stack([one, other], axis=1).reshape(-1, 2)


def _marker(header, namespace, kind, colour, points, height=0.0, opacity=1.0):
    marker = Marker(header=header, ns=namespace, id=0, type=kind)
    marker.color = ColorRGBA(r=colour[0], g=colour[1], b=colour[2], a=opacity)
    marker.pose.orientation.w = 1.0
    marker.action = Marker.ADD if len(points) else Marker.DELETE
    marker.points = point_list(points, height)
    return marker
