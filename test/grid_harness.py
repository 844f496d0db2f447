"""Runs the real grid_planner node on small maps, for tests; and paths checked by means of their own."""

import array

import numpy as np
import running_node
from geometry_msgs.msg import Point, Pose, PoseArray, PoseStamped, Quaternion
from nav_msgs.msg import OccupancyGrid
from running_node import LATCHED

from gpu_planners.nodes.grid_planner_node import GridPlannerNode
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
        parameters = {"device": "cpu", "algorithm": "exact"} | parameters
        super().__init__(GridPlannerNode, "grid_planner", (PlanAgents, "plan_agents"), parameters, threads=6)
        assert self.client.wait_for_service(10)
        self._map_publishers = {}
        if occupancy is not None:
            self.publish_map(map_message() if isinstance(occupancy, str) else occupancy)

    def publish_map(self, message, qos=LATCHED):
        """Publish a map, and return when it was looked at."""
        seen = []
        handled = self.node._change_map
        self.node._change_map = lambda *arguments: (handled(*arguments), seen.append(1))
        if qos.durability not in self._map_publishers:
            self._map_publishers[qos.durability] = self.publisher(OccupancyGrid, "/map", qos)
        self._map_publishers[qos.durability].publish(message)
        self.wait_until(lambda: seen)
        self.node._change_map = handled


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
        starts=poses([centre(*tile) for tile in starts], frame), goals=poses([centre(*tile) for tile in goals], frame), **fields
    )


def assert_is_path(tiles, free, start, goal, connectivity=8):
    """Every step goes to a free neighbour, no diagonal cuts a corner. free: (rows, cols) bool"""
    assert tiles[0].tolist() == list(start) and tiles[-1].tolist() == list(goal)
    assert all(free[row, col] for row, col in tiles)
    for (row, col), (dr, dc) in zip(tiles, np.diff(tiles, axis=0), strict=False):
        assert max(abs(dr), abs(dc)) == 1
        if dr and dc:
            assert connectivity == 8 and free[row + dr, col] and free[row, col + dc]


def dijkstra_costs(costs, goal, connectivity):
    """(rows, cols) cost to the goal [row, col] in tile lengths, by scipy on an explicit graph; inf where there is no path."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    costs = np.asarray(costs)
    free, number = costs > 0, np.arange(costs.size).reshape(costs.shape)
    begins, ends, weights = [], [], []
    for row, col in np.argwhere(free):
        for dr, dc in [(-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)][:connectivity]:
            r, c = row + dr, col + dc
            if not (0 <= r < costs.shape[0] and 0 <= c < costs.shape[1] and free[r, c]):
                continue
            if dr and dc and not (free[r, col] and free[row, c]):
                continue
            begins.append(number[r, c])  # reversed: from the goal outwards
            ends.append(number[row, col])
            weights.append(float(costs[r, c]) * np.hypot(dr, dc))
    graph = coo_array((weights, (begins, ends)), shape=(costs.size, costs.size)).tocsr()
    return dijkstra(graph, indices=number[tuple(goal)]).reshape(costs.shape)
