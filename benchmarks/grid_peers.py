"""Peers on grid maps, each on one thread: two searches in Numba, scipy's Dijkstra, scikit-image's MCP.

The breadth-first search is the one that a programmer writes first: a queue in an array, one int32 distance a tile. It
serves uniform, 4-connected maps; its paths step to a neighbour that is nearer. Dial's bucket queue serves all maps. Its
costs are `exact`'s integers, so that its fields equal those bit for bit.
"""

import numpy as np
from numba import njit

from gpu_planners.grid.exact.values import DIAGONAL_8, unit_of
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


@njit(cache=True)
def bucket_search(cost, steps, goal, value, buckets, count):
    """Cost-to-go of all tiles to `goal` by a bucket queue -> was there room in the buckets?

    cost: (T,) uint8 of the tiles row by row, with a ring of blocked ones
    steps: tiles in a row; units of a step; units of a diagonal, 0 without them; a bucket holds 2^steps[3] units, no
        more than a step
    value: (T,) int32 or int64 units; -1 of blocked tiles, the highest number of tiles not reached
    buckets: (N, room) int32 tiles, N a power of two; count: (N,) int64
    """
    wide, straight, diagonal, shift = steps
    mask, room, far = len(buckets) - 1, buckets.shape[1] - 4, (1 << (8 * value.itemsize - 1)) - 1
    for tile in range(len(cost)):
        value[tile] = far if cost[tile] else -1
    count[:] = 0
    value[goal], buckets[0, 0], count[0] = 0, goal, 1
    bucket, empty = 0, 0
    while empty <= mask:
        slot = bucket & mask
        empty = empty + 1 if count[slot] == 0 else 0
        for i in range(count[slot]):
            tile = buckets[slot, i]
            reached = np.int64(value[tile])
            if reached >> shift != bucket:
                continue  # it has got a lower value since
            by = reached + straight * cost[tile]
            to = (by >> shift) & mask
            if count[to] > room:
                return False
            for beside in (tile - wide, tile + 1, tile + wide, tile - 1):
                if by < value[beside]:
                    value[beside] = by
                    buckets[to, count[to]] = beside
                    count[to] += 1
            if diagonal > 0:
                by = reached + diagonal * cost[tile]
                to = (by >> shift) & mask
                if count[to] > room:
                    return False
                for down, across in ((-wide, 1), (wide, 1), (wide, -1), (-wide, -1)):
                    beside = tile + down + across
                    if by < value[beside] and cost[tile + down] and cost[tile + across]:
                        value[beside] = by
                        buckets[to, count[to]] = beside
                        count[to] += 1
        count[slot] = 0
        bucket += 1
    return True


class BucketQueue:
    """name; field(goal) -> (rows, cols) costs in units, negative where there is no way.

    Fields of 4-connected maps have 32 bits a tile, those of 8-connected ones 64.
    """

    name = "bucket queue in Numba, one thread"

    def __init__(self, grid):
        self.grid, unit = grid, unit_of(grid.connectivity)
        self._cost = np.zeros((grid.rows + 2, grid.cols + 2), np.uint8)
        self._cost[1:-1, 1:-1] = grid.costs
        diagonal = DIAGONAL_8 if grid.connectivity == 8 else 0
        shift = unit.bit_length() - 1
        self._steps = grid.cols + 2, unit, diagonal, shift
        self._buckets = np.zeros((self._power(int(grid.costs.max()) * max(unit, diagonal) >> shift), 4096), np.int32)
        self._count = np.zeros(len(self._buckets), np.int64)
        self._value = np.zeros(self._cost.shape, np.int32 if grid.connectivity == 4 else np.int64)

    @staticmethod
    def _power(highest):
        """Buckets for delays of up to so many."""
        return 1 << (highest + 1).bit_length()

    def search(self, goal):
        """Find the costs; `field` gives them as well."""
        tile = (int(goal[0]) + 1) * (self.grid.cols + 2) + int(goal[1]) + 1
        arguments = self._cost.ravel(), self._steps, tile, self._value.ravel()
        while not bucket_search(*arguments, self._buckets, self._count):
            self._buckets = np.zeros((len(self._buckets), 2 * self._buckets.shape[1]), np.int32)

    def field(self, goal):
        self.search(goal)
        found = self._value[1:-1, 1:-1]
        return np.where(found < np.iinfo(found.dtype).max, found, -1)


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
