"""Peers on grid maps, each on one thread: a breadth-first search in Numba, scipy's Dijkstra, scikit-image's MCP.

The search is the one that a programmer writes first: a queue in an array, one int32 distance a tile. It serves uniform,
4-connected maps; its paths step to a neighbour that is nearer.
"""

import numpy as np
from numba import njit

from gpu_planners.grid.paths import COL_STEP, ROW_STEP


@njit(cache=True)
def bfs(free, row, col, distance, queue):
    """Distances in steps to (row, col); -1 where there is no way. free: (rows, cols) bool; distance (rows * cols,),
    queue: int32"""
    rows, cols = free.shape
    distance[:] = -1
    queue[0] = row * cols + col
    distance[queue[0]] = 0
    head, tail = 0, 1
    while head < tail:
        tile = queue[head]
        head += 1
        row, col = tile // cols, tile % cols
        for move in range(4):
            r, c = row + ROW_STEP[move], col + COL_STEP[move]
            if 0 <= r < rows and 0 <= c < cols and free[r, c] and distance[r * cols + c] < 0:
                distance[r * cols + c] = distance[tile] + 1
                queue[tail] = r * cols + c
                tail += 1


@njit(cache=True)
def bfs_paths(shape, distance, starts, first, moves):
    """Move codes of all paths, agent i's from first[i] on. starts: (N, 2); first: (N,) int64; moves: uint8"""
    rows, cols = shape
    for i in range(len(starts)):
        row, col = starts[i, 0], starts[i, 1]
        left, at = distance[row * cols + col], first[i]
        while left > 0:
            for move in range(4):
                r, c = row + ROW_STEP[move], col + COL_STEP[move]
                if 0 <= r < rows and 0 <= c < cols and distance[r * cols + c] == left - 1:
                    break
            moves[at] = move
            row, col, left, at = r, c, left - 1, at + 1


class Bfs:
    """name, and the two steps: field(goal), paths(starts) after it."""

    name = "BFS in Numba, one thread"

    def __init__(self, grid):
        self._free = ~grid.blocked
        self._distance, self._queue = np.empty(self._free.size, np.int32), np.empty(self._free.size, np.int32)

    def field(self, goal):
        bfs(self._free, *goal, self._distance, self._queue)
        return self._distance.reshape(self._free.shape)

    def paths(self, starts):
        length = np.maximum(self._distance[starts[:, 0] * self._free.shape[1] + starts[:, 1]], 0).astype(np.int64)
        ends = np.cumsum(length)
        moves = np.empty(ends[-1], np.uint8)
        bfs_paths(self._free.shape, self._distance, starts, ends - length, moves)
        return moves


def scipy_dijkstra(grid):
    """-> function of a goal that gives its field. The graph is built before; an edge costs what its end costs to
    enter."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    graph = csr_matrix(_edges(grid), shape=(grid.costs.size, grid.costs.size))

    def field(goal):
        return dijkstra(graph, indices=goal[0] * grid.cols + goal[1]).reshape(grid.shape)

    return field


def _edges(grid):
    """(costs, (from, to)) of the graph whose edges lead away from the goal: an edge into a tile costs its neighbour's
    step."""
    tile, free = np.arange(grid.costs.size, dtype=np.int32).reshape(grid.shape), ~grid.blocked
    values, sources, targets = [], [], []
    for down, across in ((0, 1), (1, 0), (1, 1), (1, -1))[: 2 if grid.connectivity == 4 else 4]:
        a = (slice(0, grid.rows - down), slice(max(0, -across), grid.cols - max(0, across)))
        b = (slice(down, None), slice(max(0, across), grid.cols + min(0, across)))
        open_ = free[a] & free[b]
        if down and across:
            open_ = open_ & free[a[0], b[1]] & free[b[0], a[1]]
        one, other, length = tile[a][open_], tile[b][open_], 2**0.5 if down and across else 1.0
        for source, target in ((one, other), (other, one)):
            sources.append(source)
            targets.append(target)
            values.append(grid.costs.ravel()[source] * length)
    return np.concatenate(values), (np.concatenate(sources), np.concatenate(targets))


def skimage_mcp(grid):
    """-> function of a goal that gives costs of 4-connected paths on a uniform map, or None where scikit-image is
    missing."""
    try:
        from skimage.graph import MCP
    except ImportError:
        return None
    weights = np.where(grid.blocked, -1.0, 1.0)

    def field(goal):
        return MCP(weights, fully_connected=False).find_costs([tuple(int(x) for x in goal)])[0] - 1

    return field
