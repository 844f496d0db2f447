"""Oracles for paths on grids, in plain Python: moves, Dijkstra, whether a path may be walked and what it costs."""

import heapq
from math import sqrt

import numpy as np

STEPS = [(-1, 0), (0, 1), (1, 0), (0, -1), (-1, 1), (1, 1), (1, -1), (-1, -1)]


def steps_from(costs, connectivity, row, col):
    """Allowed moves from a tile: (move code, row, col, cost of the entered tile)."""
    rows, cols = costs.shape
    for k, (down, right) in enumerate(STEPS[:connectivity]):
        r, c = row + down, col + right
        if 0 <= r < rows and 0 <= c < cols and costs[r, c] and (k < 4 or (costs[r, col] and costs[row, c])):
            yield k, r, c, int(costs[r, c])


def distances_to(costs, connectivity, goal):
    """(rows, cols) float64 cost to the goal in tile lengths, inf where there is no way."""
    costs = np.asarray(costs)
    distance = np.full(costs.shape, np.inf)
    distance[tuple(goal)] = 0
    queue = [(0.0, *goal)]
    while queue:
        d, row, col = heapq.heappop(queue)
        if d > distance[row, col]:
            continue
        entered = int(costs[row, col])  # backward: the step enters this tile
        for k, r, c, _ in steps_from(costs, connectivity, row, col):
            new = d + entered * (sqrt(2) if k >= 4 else 1)
            if new < distance[r, c]:
                distance[r, c] = new
                heapq.heappush(queue, (new, r, c))
    return distance


def check_paths(paths, costs, connectivity, starts, goals):
    """Every solved agent's path leads from its start to its goal by allowed moves and costs what it says."""
    for i in range(len(paths)):
        path = paths.path(i)
        if not paths.solved[i]:
            assert len(path) == 0 and paths.length[i] == 0 and np.isinf(paths.cost[i])
            continue
        assert tuple(path[0]) == tuple(starts[i]) and tuple(path[-1]) == tuple(goals[i]) and len(path) == paths.length[i] + 1
        cost = 0.0
        for (row, col), (r, c) in zip(path[:-1], path[1:]):
            step = {(a, b): w * (sqrt(2) if k >= 4 else 1) for k, a, b, w in steps_from(costs, connectivity, row, col)}
            assert (r, c) in step, f"agent {i} moves from {row, col} to {r, c}"
            cost += step[r, c]
        assert abs(cost - paths.cost[i]) <= 1e-9 * max(cost, 1)


def random_costs(rng, shape, obstacles, weights=1):
    """(rows, cols) uint8: 0 with probability `obstacles`, else 1..weights"""
    return np.where(rng.random(shape) < obstacles, 0, rng.integers(1, weights + 1, shape)).astype(np.uint8)


def random_tiles(rng, costs, count):
    """(count, 2) int32 free tiles"""
    free = np.argwhere(np.asarray(costs) > 0)
    return free[rng.integers(len(free), size=count)].astype(np.int32)


def same_paths(one, other):
    """Two PathSets give every agent the same answer."""
    for name in ("status", "cost", "length"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_array_equal(one.paths()[0], other.paths()[0])
