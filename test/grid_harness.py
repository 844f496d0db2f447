"""Runs the real grid_planner node on small maps, for tests."""

import array

import numpy as np
import running_node
from geometry_msgs.msg import Point, Pose, PoseArray, PoseStamped, Quaternion
from nav_msgs.msg import OccupancyGrid
from running_node import LATCHED

from gpu_planners.nodes.grid.node import GridPlannerNode
from gpu_planners_msgs.srv import PlanAgents

RESOLUTION = 0.5
# . free, # occupied, ? unknown; the first line is the highest y, as one looks at the map
ROOMS = """
..........
..######..
..#....#..
..#....#..
..#....#..
..######..
....??....
.......###
.......#.#
.......###
"""


class RunningNode(running_node.RunningNode):
    def __init__(self, occupancy="ROOMS", **parameters):
        parameters = {"device": running_node.DEVICE, "algorithm": "exact"} | parameters
        super().__init__(GridPlannerNode, "grid_planner", (PlanAgents, "plan_agents"), parameters)
        assert self.client.wait_for_service(10)
        self._map = map_message() if isinstance(occupancy, str) else occupancy
        self._map_changed = False
        if occupancy is not None:
            self.publish_map(self._map)

    def publish_map(self, message, qos=LATCHED):
        """Publish a map, and return when it was looked at."""
        publisher, taken = self.publisher(OccupancyGrid, "/map", qos), int(self.facts["map messages"])
        publisher.publish(message)
        self.wait_until(lambda: int(self.facts["map messages"]) > taken)
        self._map_changed = message is not self._map

    def restore(self):
        """Publish the first map again where another one was published."""
        super().restore()
        if self._map_changed:
            self.publish_map(self._map)


def cells(text=ROOMS):
    """(rows, cols) int8 occupancy of a drawn map"""
    rows = text.split()[::-1]
    return np.array([[{".": 0, "#": 100, "?": -1}[letter] for letter in row] for row in rows], np.int8)


def map_message(data=None, resolution=RESOLUTION, origin=(0.0, 0.0, 0.0), frame="map"):
    data = cells() if data is None else np.asarray(data, np.int8)
    message = OccupancyGrid(data=array.array("b", data.tobytes()))
    message.header.frame_id = frame
    message.info.height, message.info.width = data.shape
    message.info.resolution = resolution
    x, y, yaw = origin
    message.info.origin = pose(x, y, yaw)
    return message


def pose(x, y, yaw=None):
    """A pose in the plane; without a yaw its orientation is all zeros."""
    z, w = (0.0, 0.0) if yaw is None else (float(np.sin(yaw / 2)), float(np.cos(yaw / 2)))
    return Pose(position=Point(x=float(x), y=float(y), z=0.0), orientation=Quaternion(x=0.0, y=0.0, z=z, w=w))


def poses(points, frame="map", yaw=None):
    message = PoseArray(poses=[pose(x, y, yaw) for x, y in points])
    message.header.frame_id = frame
    return message


def stamped(x, y, yaw=None, frame="map"):
    message = PoseStamped(pose=pose(x, y, yaw))
    message.header.frame_id = frame
    return message


def centre(row, col):
    """Centre of a tile of a map at the origin, metres."""
    return (col + 0.5) * RESOLUTION, (row + 0.5) * RESOLUTION


def request(starts=((0, 0),), goals=((9, 9),), frame="map", **fields):
    """A PlanAgents request between tiles [row, col]."""
    return PlanAgents.Request(
        starts=poses([centre(*tile) for tile in starts], frame),
        goals=poses([centre(*tile) for tile in goals], frame),
        **fields,
    )
