"""Ways out of where only the footprint forbids to stand, for a robot that stands too near to an obstacle."""

import functools
import heapq
import math

import numpy as np
from scipy import ndimage

from ...grid import GridMap

STRAIGHT = [(0, 1), (1, 0), (0, -1), (-1, 0)]
DIAGONAL = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
ROUNDING = 1e-9  # tiles


@functools.lru_cache(maxsize=1)
def parts_of(grid: GridMap) -> np.ndarray:
    """(rows, cols) of the connected part that each tile belongs to, 0 for blocked ones; kept for the latest map.

    4-connected parts serve 8-connected maps too: where a diagonal step is free, two straight ones beside it are.
    """
    return ndimage.label(~grid.blocked)[0]


def ways_out(grid: GridMap, obstacles: np.ndarray, start: tuple[int, int], tolerance: float) -> list[np.ndarray]:
    """The shortest way to each part of the free floor that is near a tile which no obstacle blocks, nearest first.

    No tile of a way has an obstacle or is nearer to one than the start; no diagonal step passes an obstacle's corner.

    grid: as it is planned on; obstacles: (rows, cols) bool, what blocks its tiles without the footprint
    start: a blocked tile; tolerance: metres that a way may be long beyond the first step
    -> [(K, 2) tiles from the start on, all but the last blocked]
    """
    if obstacles[start]:
        return []
    limit = tolerance / grid.resolution + math.sqrt(2) + ROUNDING
    near = _to_obstacle(obstacles, start)
    low, window = _about(start, limit + (near if near < math.inf else 0), grid.shape)
    blocked, solid, parts = grid.blocked[window], obstacles[window], parts_of(grid)[window]
    clear = ndimage.distance_transform_edt(~solid) if solid.any() else np.full(solid.shape, math.inf)
    begin = start[0] - low[0], start[1] - low[1]
    open_ = clear >= clear[begin] - ROUNDING
    length, before, ends = {begin: 0.0}, {begin: begin}, dict[int, tuple[int, int]]()
    queue = [(0.0, begin)]
    while queue:
        gone, tile = heapq.heappop(queue)
        if gone > length[tile]:
            continue
        if not blocked[tile]:
            ends.setdefault(parts[tile], tile)
            continue
        for step in STRAIGHT + DIAGONAL if grid.connectivity == 8 else STRAIGHT:
            to, far = (tile[0] + step[0], tile[1] + step[1]), gone + math.hypot(*step)
            inside = 0 <= to[0] < solid.shape[0] and 0 <= to[1] < solid.shape[1]
            if not inside or not open_[to] or far > min(limit, length.get(to, math.inf) - ROUNDING):
                continue
            if not solid[tile[0], to[1]] and not solid[to[0], tile[1]]:
                length[to], before[to] = far, tile
                heapq.heappush(queue, (far, to))
    return [np.array(_back(before, end)) + low for end in ends.values()]


def _back(before, tile):
    """Tiles from the one that comes before itself to this one."""
    tiles = [tile]
    while before[tile] != tile:
        tile = before[tile]
        tiles.append(tile)
    return tiles[::-1]


def _to_obstacle(obstacles, tile):
    """How many tiles away the nearest obstacle is; infinity where there is none."""
    reach = 8.0
    while True:
        low, window = _about(tile, reach, obstacles.shape)
        near = np.argwhere(obstacles[window]) + low - tile
        distance = np.hypot(*near.T).min(initial=math.inf)
        if distance <= reach or reach > max(obstacles.shape):
            return float(distance)
        reach *= 2


def _about(tile, reach, shape):
    """The window within so many tiles of one -> its first tile (2,), two slices"""
    low = np.maximum(np.array(tile) - math.ceil(reach), 0)
    high = np.minimum(np.array(tile) + math.ceil(reach) + 1, shape)
    return low, (slice(low[0], high[0]), slice(low[1], high[1]))
