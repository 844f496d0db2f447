"""Single agents by the real grid_planner node, while its map changes many times a second."""

import argparse
import importlib
import os
import threading
import time
from typing import NamedTuple

import numpy as np

from gpu_planners.grid import BlockPlanner, GridMap, PoseGrid, PosePlanner

from .harness import Row, median, percentile, progress, told

PATCH = 100  # tiles a side
PATCH_S = 0.1  # from one patch to the next; with every tenth a whole map comes in its place
WHOLE = 10
ASK_S = 0.037  # from an answer to the next question: they fall anywhere between two changes
RESOLUTION = 0.05  # metres
FOOTPRINT = ((0.45, 0.31), (-0.45, 0.31), (-0.45, -0.31), (0.45, -0.31))
DOMAIN = 87  # of ROS


class Moving(NamedTuple):
    """A map and how it changes. share: of a patch's tiles that are blocked; whole: of all tiles that are drawn anew
    when a whole map comes; ends: (K, 2) tiles that no change blocks, nor those up to `room` around them"""

    grid: GridMap
    share: float
    whole: float
    ends: np.ndarray
    room: int


class Asked(NamedTuple):
    """A question and its answer. between: numbers of the changes that were published when it was asked, and when the
    answer came"""

    start: np.ndarray
    goal: np.ndarray
    seconds: float
    between: tuple[int, int]
    answer: object


def changes(moving, count):
    """[(first row, first col, tiles (rows, cols) uint8)], the first of which is the whole map; likewise every tenth"""
    rng, now = np.random.default_rng(3), moving.grid.costs.copy()
    found = [(0, 0, now.copy())]
    for k in range(1, count):
        if k % WHOLE:
            row, col = rng.integers(0, len(now) - PATCH, 2)
            window = slice(row, row + PATCH), slice(col, col + PATCH)
            now[window] = rng.random((PATCH, PATCH)) >= moving.share
        else:
            row, col, window = 0, 0, (slice(None), slice(None))
            some = rng.integers(0, len(now), (2, int(now.size * moving.whole)))
            now[some[0], some[1]] = rng.random(some.shape[1]) >= moving.share
        for r, c in moving.ends:
            now[max(0, r - moving.room) : r + moving.room + 1, max(0, c - moving.room) : c + moving.room + 1] = 1
        found.append((row, col, now[window].copy()))
    return found


def rows(discs, halls, seconds):
    """Rows of a disc on maps {case: GridMap}, and of a robot with a footprint on another one."""
    try:
        for name in ("rclpy", "map_msgs.msg", "gpu_planners_msgs.srv"):
            importlib.import_module(name)
    except ImportError as error:
        return [Row("by the node", "grid_planner, cpu", note=f"needs ROS 2, map_msgs and gpu_planners_msgs: {error}")]
    found = []
    for case, grid in discs.items():
        found.append(told(_row(case, _with_ends(grid, 0, 0.2, 0.01), seconds, None)))
    side = f"{halls.rows}x{halls.cols}"
    case = f"{side}, halls, a footprint of 0.62 x 0.9 m, by the node"
    found.append(told(_row(case, _with_ends(halls, 20, 0.005, 1e-5), seconds, FOOTPRINT)))
    return found


def _with_ends(grid, room, share, whole):
    """The map with free ends, which stay free."""
    rng, costs = np.random.default_rng(2), grid.costs.copy()
    free = np.argwhere(costs > 0)
    ends = free[rng.choice(len(free), min(64, len(free) // 8), replace=False)]
    ends = ends[((ends >= room) & (ends < np.array(grid.shape) - room)).all(axis=1)]
    for r, c in ends:
        costs[r - room : r + room + 1, c - room : c + room + 1] = 1
    return Moving(GridMap(costs, grid.connectivity, RESOLUTION), share, whole, ends, room)


def _row(case, moving, seconds, footprint):
    stream = changes(moving, round(seconds / PATCH_S))
    asked = _asked(moving, stream, footprint)
    check = _right_for_shape if footprint else _right
    right = check(moving, stream, asked, footprint, case)
    taken = [one.seconds for one in asked]
    figures = {
        "query_ms": 1e3 * median(taken),
        "query_p95_ms": 1e3 * percentile(taken, 95),
        "identical": "yes" if all(right) else f"no: {len(right) - sum(right)} of {len(right)}",
    }
    return Row(case, "grid_planner, cpu", figures, taken, f"{len(asked)} questions")


# ---- the node ----


def _asked(moving, stream, footprint):
    """Publish the changes, and ask one question after the other meanwhile -> [Asked]"""
    import rclpy

    before = os.environ.get("ROS_DOMAIN_ID")
    os.environ["ROS_DOMAIN_ID"] = str(DOMAIN)
    rclpy.init()
    try:
        with _client(moving, footprint) as client:
            return client.run(stream)
    finally:
        rclpy.try_shutdown()
        if before is None:
            del os.environ["ROS_DOMAIN_ID"]
        else:
            os.environ["ROS_DOMAIN_ID"] = before


def _client(moving, footprint):
    from builtin_interfaces.msg import Time
    from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion
    from map_msgs.msg import OccupancyGridUpdate
    from nav_msgs.srv import GetPlan
    from rclpy.qos import QoSProfile
    from std_msgs.msg import Header

    from gpu_planners.demo.node import MapClient
    from gpu_planners.nodes.common.map_messages import as_array, map_message
    from gpu_planners_msgs.srv import PlanAgents

    class Client(MapClient):
        def __init__(self):
            kind, service = (GetPlan, "get_plan") if footprint else (PlanAgents, "plan_agents")
            given = {"connectivity": moving.grid.connectivity}
            if footprint:
                outline = [list(corner) for corner in footprint]
                given["footprint"] = f'"{outline}"'  # else YAML takes it for a list
            super().__init__("grid", kind, service, given, argparse.Namespace(device="cpu", no_node=False))
            self.updates = self.node.create_publisher(OccupancyGridUpdate, "map_updates", QoSProfile(depth=1000))
            self.published = 0

        def message(self, number, row, col, tiles):
            """As it goes out; the stamp tells its number."""
            header = Header(frame_id="map", stamp=Time(sec=number + 1))
            if number % WHOLE == 0:
                return map_message(GridMap(tiles, moving.grid.connectivity, RESOLUTION), header)
            data = as_array(np.where(tiles, 0, 100), np.int8)
            return OccupancyGridUpdate(
                header=header, x=int(col), y=int(row), width=tiles.shape[1], height=tiles.shape[0], data=data
            )

        def question(self, start, goal):
            if footprint:
                return GetPlan.Request(start=stamped(start), goal=stamped(goal))
            places = (moving.grid.centres_of(tile[None])[:, :2].ravel() for tile in (start, goal))
            starts, goals = (as_array(place, float) for place in places)
            return PlanAgents.Request(start_points=starts, goal_points=goals)

        def answer(self, request):
            began = time.perf_counter()
            future = self._client.call_async(request)
            while not future.done():
                rclpy_spin(self.node)
            return future.result(), time.perf_counter() - began

        def run(self, stream):
            self.wait_for_service()
            messages = [self.message(k, *change) for k, change in enumerate(stream)]
            rng = np.random.default_rng(1)
            self._maps.publish(messages[0])
            is_ready = (lambda answer: answer.plan.poses) if footprint else (lambda answer: not answer.code)
            self.wait_for(
                lambda: is_ready(self.answer(self.question(moving.ends[0], moving.ends[1]))[0]), "the node has no map"
            )
            publisher = threading.Thread(target=self.publish, args=(messages,), daemon=True)
            publisher.start()
            asked = []
            while publisher.is_alive():
                start, goal = moving.ends[rng.choice(len(moving.ends), 2, replace=False)]
                request, before = self.question(start, goal), self.published
                answer, seconds = self.answer(request)
                asked.append(Asked(start, goal, seconds, (before, self.published), told_by(answer)))
                time.sleep(ASK_S)
            return asked

        def publish(self, messages):
            began = time.perf_counter()
            for k, message in enumerate(messages[1:], 1):
                time.sleep(max(0.0, began + k * PATCH_S - time.perf_counter()))
                (self.updates if k % WHOLE else self._maps).publish(message)
                self.published = k

    def told_by(answer):
        """Of a disc its cost, and the number of the map that it is of; else the poses of the path."""
        if footprint:
            return np.array([(each.pose.position.x, each.pose.position.y) for each in answer.plan.poses])
        return answer.map.map_load_time.sec - 1, answer.costs[0]

    def stamped(tile):
        (x, y), *_ = moving.grid.centres_of(tile[None])[:, :2]
        pose = Pose(position=Point(x=x, y=y, z=0.0), orientation=Quaternion(x=0.0, y=0.0, z=0.0, w=1.0))
        return PoseStamped(header=Header(frame_id="map"), pose=pose)

    def rclpy_spin(node):
        import rclpy

        rclpy.spin_once(node, timeout_sec=0.1)

    return Client()


# ---- what is right ----


def _replayed(stream):
    """(number, rows, cols, tiles) of each change but the first"""
    for k, (row, col, tiles) in enumerate(stream[1:], 1):
        rows, cols = np.indices(tiles.shape).reshape(2, -1)
        yield k, rows + row, cols + col, tiles.ravel()


def _right(moving, stream, asked, _, case):
    """Is each cost the least one, by A*, on the map that the answer is of, and is that none of before the question?"""
    planner, right = BlockPlanner(moving.grid, "astar", device="cpu"), []

    def look(k):
        for one in asked:
            number, cost = one.answer
            if number == k:
                least = planner.plan(one.start[None], one.goal).cost[0]
                right.append(bool(cost == least) and number >= one.between[0] - 1)

    look(0)
    for k, *change in progress(_replayed(stream), f"checking {case}"):
        planner.update(*change)
        look(k)
    return right + [False] * (len(asked) - len(right))


def _right_for_shape(moving, stream, asked, footprint, case):
    """Is each path that of the library, on a map that was there between question and answer?"""
    poses = PoseGrid(moving.grid.costs, footprint, turning_radius=0.4, resolution=RESOLUTION)
    planner, right = PosePlanner(poses, "astar", "cpu"), np.zeros(len(asked), bool)

    def look(k):
        for i, one in enumerate(asked):
            if not right[i] and one.between[0] - 1 <= k <= one.between[1]:
                start, goal = (np.append(moving.grid.centres_of(tile[None])[0, :2], 0.0) for tile in one[:2])
                found = planner.plan(start, goal)
                path = found.path(0)[:, :2] if found.solved[0] else np.zeros((0, 2))
                right[i] = path.shape == one.answer.reshape(-1, 2).shape and np.allclose(path, one.answer, atol=1e-6)

    look(0)
    for k, *change in progress(_replayed(stream), f"checking {case}"):
        planner.update(*change)
        look(k)
    return right.tolist()
