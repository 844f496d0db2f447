"""Topics of the node fleet_planner: what agents tell that comes; actions, paths and pictures that go out."""

import math
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import Pose
from nav_msgs.msg import OccupancyGrid, Path
from rclpy.exceptions import InvalidTopicNameException
from rclpy.validate_full_topic_name import validate_full_topic_name
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from gpu_planners_msgs.msg import AgentActions, AgentGoals, AgentPaths, AgentStates

from ...errors import GpuPlannersError, error_text, one_line
from ...fleet.arguments import MOST_SIZE
from ...fleet.execution.places import FleetStep, Places
from ...fleet.execution.running import RunningFleet
from ...grid import GridMap
from ..common.map_messages import as_poses, map_message
from ..common.map_scene import Frames
from ..common.pictures import Pictures, marker_of
from ..common.planner_node import PlannerNode
from ..common.ros import seconds
from .conversions import A_QUATERNION, actions_message, step_paths, yaws_of


class FleetPublishers:
    """All calls are made on the worker's thread. pictures: those of the agents and the map, for RViz"""

    def __init__(self, node: PlannerNode) -> None:
        self._node = node
        self._actions = node.create_publisher(AgentActions, "~/agent_actions", 10)
        self._paths = node.create_publisher(AgentPaths, "~/agent_paths", 10)
        self._agents: dict[str, Any] = {}  # publisher of each agent's path, or None where its id is no name
        topics = {"markers": MarkerArray, "map": OccupancyGrid}
        self.pictures = Pictures(node, topics, node.worker.do_aside, 1.0 / node.values.marker_rate)

    def show(self, step: FleetStep, places: Places, header: Header, all: bool) -> None:
        """Publish what agents do now, and a picture a little later where the step tells of `all` of them."""
        values = self._node.values
        self._actions.publish(actions_message(step, values.motion, header, values.step_s))
        wanted = self._paths.get_subscription_count()
        if wanted or values.agent_topics:
            paths = step_paths(step, places, header, values.step_s)
            if wanted:
                self._paths.publish(AgentPaths(header=header, step=step.number, ids=step.ids, paths=paths))
            if values.agent_topics:
                self._show_agents(step, paths, all)
        if not all:
            return
        self.pictures.show("markers", lambda: fleet_markers(step, places, header, values.marker_agents))

    def show_map(self, grid: GridMap, header: Header) -> None:
        self.pictures.show("map", lambda: map_message(grid, header))

    def _show_agents(self, step, paths, all):
        for id in self._agents.keys() - set(step.ids) if all else ():
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
    "LATE": (0.45, 0.40, 0.35),
}
SIDE = 0.7  # of an agent's cube, in an agent's size
HEIGHT = 0.4  # of the cube, in an agent's size
NOSE = 0.45  # length of the line that shows where the agent looks, in an agent's size


def fleet_markers(step: FleetStep, places: Places, header: Header, most_agents: int) -> MarkerArray:
    """Agents as cubes coloured by state, where they look, lines to their goals; at most so many, spread evenly."""
    shown = np.arange(len(step.ids))
    if len(shown) > most_agents:
        shown = np.linspace(0, len(shown) - 1, most_agents).astype(int)
    sizes = step.sizes[shown]
    points, yaws, states = (
        places.points(step.tiles[shown], sizes),
        places.yaws(step.headings[shown]),
        step.states[shown],
    )
    markers = []
    for size in sorted({places.size, *sizes.tolist()}):
        side = size * places.grid.resolution
        cube = SIDE * side, SIDE * side, HEIGHT * side
        of_size = "" if size == places.size else f" of size {size}"
        for name, colour in COLOURS.items():
            some = points[(states == getattr(AgentActions, name)) & (sizes == size)]
            markers.append(_marker(header, f"agents {name.lower()}{of_size}", Marker.CUBE_LIST, colour, cube, some))
    sides, side = sizes[:, None] * places.grid.resolution, places.size * places.grid.resolution
    noses = _pairs(points, points + NOSE * sides * np.stack([np.cos(yaws), np.sin(yaws)], axis=1))
    has = step.goals[shown, 0] >= 0
    to_goals = _pairs(points[has], places.points(step.goals[shown][has], sizes[has]))
    thin, thick = (0.06 * side, 0.0, 0.0), (0.15 * side, 0.0, 0.0)
    markers.append(_marker(header, "headings", Marker.LINE_LIST, (0.95, 0.95, 0.95), thick, noses, HEIGHT * side))
    markers.append(_marker(header, "goals", Marker.LINE_LIST, (0.93, 0.65, 0.15), thin, to_goals, opacity=0.5))
    return MarkerArray(markers=markers)


def _pairs(one, other):
    return np.stack([one, other], axis=1).reshape(-1, 2)


def _marker(header, namespace, kind, colour, size, points, height=0.0, opacity=1.0):
    """size: x, y, z; points: (N, 2); height: of the points; metres"""
    red, green, blue = colour
    at = np.column_stack([points, np.full(len(points), height)])
    marker = marker_of(namespace, 0, kind, ColorRGBA(r=red, g=green, b=blue, a=opacity), size, at)
    marker.header, marker.action = header, Marker.ADD if len(points) else Marker.DELETE
    return marker


DEPTH = 1000  # of messages that come in a burst


class LatestReport(NamedTuple):
    """The latest on an agent. gone: it was said to be gone, before `pose` if there is one; now: when it came; stamp:
    when it was measured, 0: not known; battery: its charge, NaN: not known; size: its side in tiles, 0: fleet.size, -1:
    not told"""

    gone: bool
    pose: Pose | None
    frame: str
    now: float
    stamp: float
    battery: float = math.nan
    size: int = -1


def _batteries(message):
    """Charges of the ids of AgentStates or AgentGoals, NaN where none is told."""
    charges = list(getattr(message, "batteries", ()))
    if charges and len(charges) != len(message.ids):
        text = f"it has {len(message.ids)} ids and {len(charges)} batteries"
        raise GpuPlannersError(f"{text}; allowed: none, or one for each")
    for id, charge in zip(message.ids, charges):
        if not (math.isnan(charge) or 0.0 <= charge <= 1.0):
            raise GpuPlannersError(f"the battery of '{one_line(id)}' is {charge}; allowed: 0 to 1, or NaN")
    return charges or [math.nan] * len(message.ids)


def _sizes(message):
    """Sizes of the ids of AgentStates or AgentGoals, -1 where none is told."""
    sizes = np.asarray(getattr(message, "sizes", ()), np.int64)
    if len(sizes) not in (0, len(message.ids)):
        text = f"it has {len(message.ids)} ids and {len(sizes)} sizes"
        raise GpuPlannersError(f"{text}; allowed: none, or one for each")
    if (sizes > MOST_SIZE).any():
        k = int(np.argmax(sizes > MOST_SIZE))
        raise GpuPlannersError(
            f"the size of '{one_line(message.ids[k])}' is {sizes[k]}; allowed: 0 to {MOST_SIZE} tiles"
        )
    return sizes.tolist() or [-1] * len(message.ids)


def _check_ids(ids, poses, gone):
    if len(ids) != len(poses):
        raise GpuPlannersError(f"it has {len(ids)} ids and {len(poses)} poses; allowed: a pose for each id")
    if "" in ids:
        raise GpuPlannersError(f"the id of pose {ids.index('')} is empty; allowed: any other text")
    twice = next((id for id, times in Counter([*ids, *gone]).items() if times > 1), None)
    if twice is not None:
        raise GpuPlannersError(f"agent '{one_line(twice)}' comes twice; allowed: once")


TOPICS = (  # type, name, field of ids that have none any more
    (AgentStates, "agent_states", "removed"),
    (AgentGoals, "agent_goals", "cleared"),
    (AgentStates, "occupied", "removed"),
)


def _note_infinite(ids, points, faults):
    for k in np.flatnonzero(~np.isfinite(points).all(axis=1)):
        faults.setdefault(ids[k], f"its position is ({points[k, 0]}, {points[k, 1]}); allowed: finite numbers")


class TopicFleet:
    """The topics ~/agent_states, ~/agent_goals and ~/occupied. The latest report on each agent waits until the worker
    takes it: nothing is lost, nothing piles up. The latest one is that with the latest stamp, or that came last.

    batteries: {id: charge}, filled on the worker; taken: called on the worker after the fleet was told
    """

    def __init__(
        self,
        node: PlannerNode,
        fleet: RunningFleet,
        batteries: dict[str, float],
        frames: Frames,
        map_frame: Callable[[], str],
        taken: Callable[[], None],
    ) -> None:
        self._node, self._fleet, self._batteries = node, fleet, batteries
        self._frames, self._map_frame, self._taken = frames, map_frame, taken
        self._latest: dict[str, dict[str, LatestReport]] = {topic: {} for _, topic, _ in TOPICS}  # and by id
        self._lock, self._queued = threading.Lock(), False
        for kind, topic, gone in TOPICS:
            node.create_subscription(kind, f"~/{topic}", partial(self._receive, topic, gone), DEPTH)

    def _receive(self, topic, gone, message):
        with self._node.state.watched(topic, f"a message on ~/{topic} was refused"):
            left, frame, now = getattr(message, gone), message.header.frame_id, self._node.now()
            stamp = seconds(message.header.stamp) if topic == "agent_states" else 0.0
            _check_ids(message.ids, message.poses, left)
            charges, sizes = _batteries(message), _sizes(message)
            with self._lock:
                latest = self._latest[topic]
                for id, pose, *more in zip(message.ids, message.poses, charges, sizes):
                    before = latest.get(id)
                    if before is None or before.pose is None or not 0 < stamp <= before.stamp:
                        gone = before is not None and before.gone
                        latest[id] = LatestReport(gone, pose, frame, now, stamp, *more)
                latest |= dict.fromkeys(left, LatestReport(True, None, frame, now, stamp))
            if not self._queued:
                self._queued = True
                self._node.worker.do_aside(self._take)

    def _take(self):
        self._queued = False
        self.take()
        self._taken()

    def take(self):
        with self._node.state.watched("topics", "what agents told was not taken"):
            self._take_states(self._reports("agent_states"))
            self._take_goals(self._reports("agent_goals"))
            self._take_occupied(self._reports("occupied"))

    def _reports(self, topic):
        with self._lock:
            reports, self._latest[topic] = self._latest[topic], {}
            return reports

    def _take_states(self, latest):
        self._fleet.remove([id for id, report in latest.items() if report.gone])
        told = ((id, report.battery) for id, report in latest.items() if not math.isnan(report.battery))
        self._batteries.update(told)
        for ids, poses, times, stamps, faults in self._by_frame(latest, "its pose"):
            yaws, turned = yaws_of(poses)
            points = poses.points[:, :2]
            for k in np.flatnonzero(turned):
                faults.setdefault(ids[k], f"its orientation is {poses.quaternions[k].tolist()}; {A_QUATERNION}")
            _note_infinite(ids, points, faults)
            sizes = np.array([latest[id].size for id in ids], np.int64)
            self._fleet.take_states(ids, points, yaws, times, faults, stamps, sizes)

    def _take_goals(self, latest):
        self._fleet.clear_goals([id for id, report in latest.items() if report.gone])
        for ids, poses, *_, faults in self._by_frame(latest, "its goal"):
            self._fleet.take_goals(ids, poses.points[:, :2], faults)

    def _take_occupied(self, latest):
        if not latest:
            return
        self._fleet.free([id for id, report in latest.items() if report.gone])
        for ids, poses, *_, faults in self._by_frame(latest, "its pose"):
            points = poses.points[:, :2]
            _note_infinite(ids, points, faults)
            self._fleet.take_occupied(ids, points, faults, np.array([latest[id].size for id in ids], np.int64))
        self._fleet.keep()

    def _by_frame(self, latest, what):
        """(ids, Poses in the map's frame, times, stamps, {id: what is wrong}) of the poses in each frame"""
        groups: dict[str, list[str]] = {}
        for id, report in latest.items():
            if report.pose is not None:
                groups.setdefault(report.frame, []).append(id)
        for frame, ids in groups.items():
            poses, faults = as_poses([latest[id].pose for id in ids], frame), {}
            try:
                poses = self._frames.to_map(poses, self._map_frame(), what)
            except Exception as error:  # of this frame; agents in others go on
                faults = dict.fromkeys(ids, error_text(error))
            times, stamps = (np.array([getattr(latest[id], name) for id in ids]) for name in ("now", "stamp"))
            yield ids, poses, times, stamps, faults
