"""Single agents on a map that changes many times a second."""

import time

import numpy as np

from gpu_planners.grid import BlockPlanner, GridMap
from gpu_planners.grid.maps.generated import random_free_tiles, random_map

from . import grid_moving_node
from .harness import Benchmark, Row, median, percentile, progress, told
from .poses import warehouse

SIDE = 2000
PATCH = 100  # tiles a side
PATCHES = 10  # a second; with every tenth the whole map comes, of which one tile in a hundred is another
DENSITY = 0.2
HIGHEST = 10  # cost of a tile beside obstacles
ALGORITHMS = "exact", "astar"


def run(context):
    """Rows of both algorithms, which answer the same questions in turn, and of the node."""
    side, seconds = (300, 1) if context.quick else (SIDE, 6)
    rows = []
    for case, grid in _maps(side):
        if "cpu" not in context.devices:
            rows.append(Row(case, "gpu_planners, cpu", note="only on the CPU: a GPU makes a field in milliseconds"))
            continue
        taken, costs = _answered(case, grid, seconds * PATCHES)
        for name in ALGORITHMS:
            same = np.array_equal(costs[name], costs["astar"])
            figures = {
                "query_ms": 1e3 * median(taken[name]),
                "query_p95_ms": 1e3 * percentile(taken[name], 95),
                "identical": "yes" if same else "no",
            }
            rows.append(told(Row(case, f"gpu_planners, {name}, cpu", figures, taken[name])))
    if "cpu" in context.devices:
        halls = GridMap(warehouse(side), 8)
        discs = {
            f"{side}x{side}, random, by the node": random_map(side, side, DENSITY, 1),
            f"{side}x{side}, halls, by the node": halls,
        }
        rows += grid_moving_node.rows(discs, halls, 5 * seconds)
    return rows


def _maps(side):
    """Name and map of each case."""
    for connectivity in (4, 8):
        yield f"{side}x{side}, random, {connectivity}-connected", random_map(side, side, DENSITY, 1, connectivity)
    halls = warehouse(side)
    yield f"{side}x{side}, halls, 8-connected", GridMap(halls, 8)
    near = GridMap(halls, 8).inflated(8.0).blocked
    dear = np.where(near & (halls > 0), HIGHEST, halls).astype(np.uint8)
    yield f"{side}x{side}, halls with dear tiles beside obstacles, 8-connected", GridMap(dear, 8)


def _answered(case, grid, count):
    """-> {algorithm: seconds of each answer}, {algorithm: its costs}; an answer waits for the change before it"""
    rng = np.random.default_rng(3)
    planners = {name: BlockPlanner(grid, name, device="cpu") for name in ALGORITHMS}
    ends = random_free_tiles(grid, 2 * count + 2, seed=2)
    for planner in planners.values():
        planner.plan(ends[-2:-1], ends[-1])
    planners["exact"].prepare(ends[-1])
    taken, costs = ({name: [] for name in ALGORITHMS} for _ in range(2))
    values = np.unique(grid.costs[grid.costs > 0])
    for k in progress(range(count), case):
        new = planners["exact"].grid.costs.copy()
        if k % PATCHES:
            row, col = rng.integers(0, len(new) - PATCH, 2)
            window = slice(row, row + PATCH), slice(col, col + PATCH)
            new[window] = np.where(rng.random((PATCH, PATCH)) < DENSITY, 0, rng.choice(values, (PATCH, PATCH)))
        else:
            window = slice(None), slice(None)
            some = rng.integers(0, len(new), (2, new.size // 100))
            new[some[0], some[1]] = np.where(rng.random(some.shape[1]) < DENSITY, 0, rng.choice(values, some.shape[1]))
        start, goal = ends[2 * k], ends[2 * k + 1]
        new[tuple(start)], new[tuple(goal)] = np.maximum(new[[start[0], goal[0]], [start[1], goal[1]]], 1)
        old = planners["exact"].grid.costs
        for name, planner in planners.items():
            began = time.perf_counter()
            rows, cols = np.nonzero(old[window] != new[window])
            rows, cols = rows + (window[0].start or 0), cols + (window[1].start or 0)
            planner.update(rows, cols, new[rows, cols])
            costs[name].append(planner.plan(start[None], goal).cost[0])
            taken[name].append(time.perf_counter() - began)
    return taken, costs


BENCHMARKS = (
    Benchmark(
        "grid_moving",
        "Single agents on a map that changes",
        "By the library: from a change of the map until the path of an agent with another goal is there, on the "
        "changed map. Ten changes follow each other: a whole map, of which one tile in a hundred is another, then nine "
        f"patches of {PATCH}x{PATCH} tiles. Both algorithms answer in turn. Identical: all costs equal `astar`'s. By "
        "the node, a process of its own: from a question to its answer, at any time, while ten such changes a second "
        "come as messages; its default algorithm. Identical: each cost is the least one on the map that the answer "
        "says it is of, or each path with a footprint is the library's on a map of that moment.",
        {"query_ms": "ms", "query_p95_ms": "ms", "identical": "text"},
        run,
    ),
)
