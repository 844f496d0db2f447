"""Independent checks of paths on grid maps. Nothing here comes from gpu_planners.

A cost is a pair (straight, diagonal): the sums of entered tiles' costs over straight and over diagonal steps. Pairs are
exact integers; they are compared as straight + diagonal * sqrt(2).
"""

import heapq
from math import sqrt

import numpy as np

STRAIGHT = ((-1, 0), (0, 1), (1, 0), (0, -1))
DIAGONAL = ((-1, 1), (1, 1), (1, -1), (-1, -1))


def cost_of(straight, diagonal):
    """Tile lengths of a cost pair."""
    return straight + diagonal * sqrt(2)


def dijkstra(costs, connectivity, goal):
    """Cost-to-go of every tile, a plain heap. costs: (rows, cols), 0 blocked; goal: (row, col)

    -> (rows, cols, 2) int64 pairs, (rows, cols) float64 tile lengths, inf where the goal is not reached
    """
    costs = np.asarray(costs).astype(int).tolist()
    rows, cols = len(costs), len(costs[0])
    pairs, lengths = np.zeros((rows, cols, 2), np.int64), np.full((rows, cols), np.inf)
    heap, done = [(0.0, 0, 0, *(int(x) for x in goal))], set()
    while heap:
        length, straight, diagonal, row, col = heapq.heappop(heap)
        if (row, col) in done:
            continue
        done.add((row, col))
        pairs[row, col], lengths[row, col] = (straight, diagonal), length
        entered = costs[row][col]  # by whoever steps from a neighbour into this tile
        for step, moves in enumerate((STRAIGHT, DIAGONAL if connectivity == 8 else ())):
            for down, across in moves:
                r, c = row + down, col + across
                if not (0 <= r < rows and 0 <= c < cols) or costs[r][c] == 0 or (r, c) in done:
                    continue
                if step and (costs[row][c] == 0 or costs[r][col] == 0):
                    continue
                a, b = straight + entered * (step == 0), diagonal + entered * (step == 1)
                heapq.heappush(heap, (cost_of(a, b), a, b, r, c))
    return pairs, lengths


def check_path(costs, connectivity, path, start, goal):
    """Assert that a path (K, 2) [row, col] leads from start to goal by allowed moves -> its cost in tile lengths"""
    costs, path = np.asarray(costs), np.asarray(path)
    assert path.ndim == 2 and path.shape[1] == 2 and len(path) > 0
    assert tuple(path[0]) == tuple(start) and tuple(path[-1]) == tuple(goal)
    assert (path >= 0).all() and (path < costs.shape).all()
    assert (costs[path[:, 0], path[:, 1]] > 0).all()
    straight = diagonal = 0
    for (row, col), (r, c) in zip(path[:-1].tolist(), path[1:].tolist(), strict=True):
        down, across = abs(r - row), abs(c - col)
        if connectivity == 8 and (down, across) == (1, 1):
            assert costs[row, c] > 0 and costs[r, col] > 0, f"a corner is cut between ({row}, {col}) and ({r}, {c})"
            diagonal += int(costs[r, c])
        else:
            assert down + across == 1, f"({row}, {col}) and ({r}, {c}) are no neighbours"
            straight += int(costs[r, c])
    return cost_of(straight, diagonal)


def check_paths(grid, paths, starts, goals, agents=None):
    """Every solved agent's path, or those of `agents`, by check_path; its stated cost and length are its path's."""
    starts = np.asarray(starts)
    goals = np.broadcast_to(goals, starts.shape)
    agents = np.arange(len(starts)) if agents is None else np.asarray(agents)
    tiles, offsets = paths.paths(agents)
    for i, begin, end in zip(agents, offsets[:-1], offsets[1:], strict=True):
        if not paths.solved[i]:
            assert begin == end and paths.length[i] == 0 and np.isinf(paths.cost[i])
            continue
        cost = check_path(grid.costs, grid.connectivity, tiles[begin:end], starts[i], goals[i])
        assert abs(cost - paths.cost[i]) <= 1e-9 * max(1, cost) and paths.length[i] == end - begin - 1


def random_costs(rng, rows, cols, blocked, highest):
    """(rows, cols) uint8: a share `blocked` of obstacles, else costs 1 .. highest."""
    return np.where(rng.random((rows, cols)) < blocked, 0, rng.integers(1, highest + 1, (rows, cols))).astype(np.uint8)
