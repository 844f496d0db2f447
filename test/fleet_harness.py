"""Runs the real fleet_planner node, with agents that do what it says, for tests."""

import numpy as np
import running_node
from geometry_msgs.msg import Point, Pose, Quaternion
from grid_harness import map_message
from nav_msgs.msg import OccupancyGrid
from running_node import LATCHED
from std_msgs.msg import Header

from gpu_planners.nodes.fleet.node import FleetPlannerNode
from gpu_planners_msgs.msg import AgentActions, AgentGoals, AgentPaths, AgentStates
from gpu_planners_msgs.srv import PlanFleet

RESOLUTION = 0.5
HALL = np.zeros((8, 10), np.int8)


class RunningNode(running_node.RunningNode):
    def __init__(self, occupancy=HALL, **parameters):
        parameters = {"device": running_node.DEVICE, "lockstep": True, "silent_after_s": 30.0} | parameters
        super().__init__(FleetPlannerNode, "fleet_planner", (PlanFleet, "plan_fleet"), parameters)
        assert self.client.wait_for_service(10)
        if occupancy is not None:
            self.publish_map(occupancy)

    def forget_status(self):
        """Wait for a status that is newer than what has been done until now."""
        self._statuses.clear()

    def publish_map(self, occupancy):
        """Publish a map, and return when it was looked at."""
        message = occupancy if isinstance(occupancy, OccupancyGrid) else map_message(occupancy, RESOLUTION)
        publisher, taken = self.publisher(OccupancyGrid, "/map", LATCHED), int(self.facts["map messages"])
        publisher.publish(message)
        self.wait_until(lambda: int(self.facts["map messages"]) > taken, 300)


class Agents:
    """Agents that do what ~/agent_paths says, all at once. tiles: {id: [row, col, quarter turns]}"""

    def __init__(self, running, tiles, goals=(), frame="map"):
        self._running, self._frame = running, frame
        self.tiles = {id: list(tile) for id, tile in tiles.items()}
        self.silent = set()  # ids of agents that do not tell where they are
        self.walked = []  # tiles of all agents after each step
        self._done = 0  # number of the last step that was done
        self._paths = running.received(AgentPaths, "/fleet_planner/agent_paths")
        self._actions = running.received(AgentActions, "/fleet_planner/agent_actions")
        self._states = running.publisher(AgentStates, "/fleet_planner/agent_states", 1000)
        self._goals = running.publisher(AgentGoals, "/fleet_planner/agent_goals", 1000)
        if goals:
            self.go(goals)

    def go(self, goals):
        """Give goals {id: tile}."""
        message = AgentGoals(header=Header(frame_id=self._frame), ids=list(goals))
        message.poses = [pose_at(*tile) for tile in goals.values()]
        self._goals.publish(message)

    def tell(self, removed=()):
        """Tell where all are that are not silent."""
        telling = {id: tile for id, tile in self.tiles.items() if id not in self.silent}
        message = AgentStates(header=Header(frame_id=self._frame), ids=list(telling), removed=list(removed))
        message.poses = [pose_at(*tile) for tile in telling.values()]
        self._states.publish(message)

    def remove(self, *ids):
        """Agents leave."""
        for id in ids:
            del self.tiles[id]
        self.tell(ids)

    def leave(self):
        """All leave; returns when the node knows it."""
        self.remove(*self.tiles)
        self._running.forget_status()
        self._running.wait_until(lambda: self._running.facts["agents"] == "0", 30)

    def do_step(self, timeout=600):
        """Tell, wait for a step, do it, and any other that has begun since the last one -> AgentActions of the last"""
        self.tell()
        self._running.wait_until(self._next, timeout)
        while found := self._next():
            self.paths, actions = found
            assert self.paths.ids == actions.ids
            starts = np.reshape(actions.start_tiles, (-1, 2)).tolist()
            for id, path, *start in zip(actions.ids, self.paths.paths, starts, actions.start_headings):
                here = [*self.tiles.get(id, ())] == [*start[0], start[1]]
                if here and id not in self.silent:  # who is not where its orders begin stays
                    self.tiles[id] = tile_of(path.poses[-1].pose)
            self.walked.append({id: tuple(tile) for id, tile in self.tiles.items()})
            self._done = actions.step
        return actions

    def _next(self):
        """AgentPaths and AgentActions of the first step that has not been done, or nothing."""
        first = [
            min((m for m in list(messages) if m.step > self._done), key=lambda m: m.step, default=None)
            for messages in (self._paths, self._actions)
        ]
        return first if None not in first and first[0].step == first[1].step else None

    @property
    def steps_begun(self):
        """How many steps the node has told of."""
        return len(self._paths)

    def positions(self):
        """(steps, N, 2) tiles after each step of all agents that ever were; -1 while they are not there"""
        ids = sorted({id for tiles in self.walked for id in tiles})
        return np.array([[tiles.get(id, (-1, -1))[:2] for id in ids] for tiles in self.walked])


def pose_at(row, col, heading=0):
    """The pose of an agent on a tile of a map at the origin. heading: quarter turns to the left"""
    angle = heading * np.pi / 4
    return Pose(
        position=Point(x=(col + 0.5) * RESOLUTION, y=(row + 0.5) * RESOLUTION, z=0.0),
        orientation=Quaternion(x=0.0, y=0.0, z=float(np.sin(angle)), w=float(np.cos(angle))),
    )


def tile_of(pose):
    """[row, col, quarter turns] of a pose."""
    yaw = 2 * np.arctan2(pose.orientation.z, pose.orientation.w)
    return [
        int(np.floor(pose.position.y / RESOLUTION)),
        int(np.floor(pose.position.x / RESOLUTION)),
        int(np.rint(yaw / (np.pi / 2))) % 4,
    ]
