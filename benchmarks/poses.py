"""Fields over place and heading, their repair, and single queries by A*, beside a plain Dijkstra and a plain A*."""

import heapq
import math
import time

import numpy as np

from gpu_planners.grid import PoseGrid, PosePlanner
from gpu_planners.grid.maps.grid_map import GridMap

from .harness import Benchmark, Row, median, percentile, told

FOOTPRINT = [(0.45, 0.31), (-0.45, 0.31), (-0.45, -0.31), (0.45, -0.31)]
PATCH = 100  # tiles a side


def warehouse(side, seed=0):
    """Halls of shelves and clutter: (side, side) uint8"""
    rng = np.random.default_rng(seed)
    tiles = np.ones((side, side), np.uint8)
    for _ in range(side * side // 8000):
        row, col = rng.integers(0, side, 2)
        down, right = rng.integers(4, 40, 2)
        tiles[row : row + down, col : col + right] = 0
    return tiles


def run(context):
    """Rows of a differential drive that turns in curves of 0.4 m, 16 headings, tiles of 0.05 m."""
    rows = []
    for side in (300,) if context.quick else (500, 2000):
        tiles = warehouse(side)
        poses = PoseGrid(tiles, FOOTPRINT, turning_radius=0.4, resolution=0.05)
        for device, missing in context.asked_for():
            if missing:
                rows.append(Row(f"{side}x{side}x16", f"gpu_planners, {device}", note=missing))
            else:
                rows.append(told(_ours(tiles, poses, device, context)))
        if any(device == "cpu" for device in context.devices):
            rows += [told(row) for row in _queries(poses, context)]
    return rows


def _ends(planner, count, seed):
    rng = np.random.default_rng(seed)
    side = planner.poses.map.rows * planner.poses.resolution
    given = np.column_stack([rng.uniform(0, side, (40 * count, 2)), rng.uniform(-math.pi, math.pi, 40 * count)])
    return given[planner.states_free(given)][:count]


def _ours(tiles, poses, device, context):
    began = time.perf_counter()
    planner = PosePlanner(poses, "exact", device)
    opened = time.perf_counter() - began
    goals = _ends(planner, 3 if context.quick or device == "cpu" else 8, 1)
    planner.prepare(goals[0])
    fields, repairs = [], []
    for goal in goals[1:]:
        began = time.perf_counter()
        planner.prepare(goal)
        fields.append(time.perf_counter() - began)
    rng, goal, new = np.random.default_rng(2), goals[-1], tiles.copy()
    for _ in range(4 if device == "cpu" else 20):
        row, col = rng.integers(0, len(tiles) - PATCH, 2)
        rows, cols = (each.ravel() for each in np.mgrid[row : row + PATCH, col : col + PATCH])
        costs = (rng.random(len(rows)) < 0.995).astype(np.uint8)
        costs[np.hypot(rows - goal[1] / 0.05, cols - goal[0] / 0.05) < 30] = 1
        new[rows, cols] = costs
        began = time.perf_counter()
        planner.update(rows, cols, costs)
        planner.prepare(goal)
        repairs.append(time.perf_counter() - began)
    same = ""
    if len(tiles) <= 500 or context.full:
        other = PosePlanner(PoseGrid(new, FOOTPRINT, turning_radius=0.4, resolution=0.05), "exact", device)
        same = "yes" if np.array_equal(other.field(goal), planner.field(goal)) else "no"
    figures = {
        "open_ms": 1e3 * opened,
        "field_ms": 1e3 * median(fields),
        "repair_ms": 1e3 * median(repairs),
        "identical": same,
    }
    return Row(f"{len(tiles)}x{len(tiles)}x16", f"gpu_planners, {device}", figures, fields)


def _queries(poses, context):
    planner = PosePlanner(poses, "astar")
    ends = _ends(planner, 12 if context.quick else 42, 3)
    planner.plan(ends[:1], ends[1])
    taken, costs = [], []
    for start, goal in zip(ends[2::2], ends[3::2]):
        began = time.perf_counter()
        costs.append(planner.plan(start, goal).cost[0])
        taken.append(time.perf_counter() - began)
    case = f"{poses.map.rows}x{poses.map.cols}x16, single queries"
    figures = {"query_ms": 1e3 * median(taken), "query_p95_ms": 1e3 * percentile(taken, 95)}
    rows = [Row(case, "gpu_planners, astar, cpu", figures | {"solved": float(np.isfinite(costs).mean())}, taken)]
    if poses.map.rows <= 500:
        taken, theirs = [], []
        for start, goal in list(zip(ends[2::2], ends[3::2]))[: 1 if context.quick else 3]:
            began = time.perf_counter()
            theirs.append(plain_dijkstra(planner, start, goal))
            taken.append(time.perf_counter() - began)
        same = "yes" if np.allclose(theirs, costs[: len(theirs)], rtol=1e-9) else "no"
        figures = {"query_ms": 1e3 * median(taken), "identical": same}
        rows.append(Row(case, "Dijkstra, heapq in Python", figures, taken, f"{len(theirs)} of them; costs compared"))
    return rows


def plain_dijkstra(planner, start, goal):
    """Cost in metres by a heap, from the goal's state back to the start's."""
    poses, on = planner.poses, planner._on
    table, border = poses.table, planner._layout.border
    (s_layer, *s_place), (g_layer, *g_place) = (
        (int(poses.headings_of([p[2]])[0]), *(int(n) + border for n in GridMap.places_of(poses.map, [p[:2]])[0]))
        for p in (start, goal)
    )
    target, value = (s_layer, *s_place), {(g_layer, *g_place): 0}
    queue, done = [(0, (g_layer, *g_place))], set()
    while queue:
        known, state = heapq.heappop(queue)
        if state == target:
            return known * poses.resolution / 100
        if state in done:
            continue
        done.add(state)
        layer, row, col = state
        first, last = table.into_first[layer], table.into_first[layer + 1]
        for move in table.into[first:last].tolist():
            up, left = row - int(table.down[move]), col - int(table.right[move])
            if on.free[table.plane[move], up, left >> 5] >> (left & 31) & 1:
                before, new = (
                    (int(table.source[move]), up, left),
                    known + int(table.price[move]) * int(on.cost[row, col]),
                )
                if new < value.get(before, math.inf):
                    value[before] = new
                    heapq.heappush(queue, (new, before))
    return math.inf


BENCHMARKS = (
    Benchmark(
        "poses",
        "Robots with a shape: fields over place and heading",
        "A robot of 0.62 x 0.9 m, 16 headings, curves of 0.4 m, turning on the spot, tiles of 0.05 m, clutter. "
        "Open: until all states and moves of a map are checked. Field: made anew for a goal. "
        f"Repair: `update` and the field, after a patch of {PATCH}x{PATCH} tiles changed. Identical: the repaired "
        "field beside one made anew, or the costs of another search. Query: one start, one goal.",
        {
            "open_ms": "ms",
            "field_ms": "ms",
            "repair_ms": "ms",
            "query_ms": "ms",
            "query_p95_ms": "ms",
            "solved": "share",
            "identical": "text",
        },
        run,
    ),
)
