"""Goals that are occupied, and the tiles near them that can be reached."""

import functools

import numpy as np
from scipy import ndimage

from ...grid import GridMap
from ..common import map_codes as codes
from ..common.map_messages import Poses
from ..common.request_error import RequestError


def near_goal(grid: GridMap, start: np.ndarray, goal: np.ndarray, tolerance: float) -> np.ndarray:
    """(1, 2) the goal, or where it is occupied the nearest tile within the tolerance that the start is joined to.

    start, goal: (1, 2) tiles; tolerance: metres
    """
    inside = [(0 <= tile[0]).all() and (tile[0] < grid.shape).all() for tile in (start, goal)]
    if not all(inside) or not grid.blocked[tuple(goal[0].astype(int))]:
        return goal
    parts = _parts(grid)
    part = parts[tuple(start[0].astype(int))]
    reach = min(tolerance / grid.resolution, max(grid.shape))
    low = np.maximum(goal[0] - np.ceil(reach), 0).astype(int)
    high = np.minimum(goal[0] + np.ceil(reach) + 1, grid.shape).astype(int)
    near = np.argwhere((parts[low[0] : high[0], low[1] : high[1]] == part) & (part > 0)) + low
    distance = np.linalg.norm(near - goal[0], axis=1)
    if not len(near) or distance.min() > reach:
        return goal
    return near[np.argmin(distance)][None].astype(float)


@functools.lru_cache(maxsize=1)
def _parts(grid):
    """(rows, cols) of tiles between which there are ways; of the map that was asked for last, since requests come often
    and maps do not. 4-connected parts serve 8-connected maps too: where a diagonal step is free, two straight ones
    beside it are"""
    return ndimage.label(~grid.blocked)[0]


def reached(grid: GridMap, ways: Poses, tolerance: float) -> tuple[Poses, list[str]]:
    """Move occupied goals to the centres of tiles near them that can be reached -> poses, a text for each moved.

    ways: start and goals in their order, in the map's frame

    tolerance: metres that a pose may be moved, from its tile's centre to the other's
    """
    if not tolerance >= 0:
        raise RequestError(codes.INVALID_REQUEST, f"tolerance is {tolerance}; allowed: 0 or more metres")
    points, texts = ways.points.copy(), []
    for k in range(1, len(points)) if tolerance else ():
        start, goal = grid.tiles_of(points[k - 1 : k, :2]), grid.tiles_of(points[k : k + 1, :2])
        near = near_goal(grid, start, goal, tolerance)
        if not np.array_equal(near, goal, equal_nan=True):
            points[k, :2] = grid.centres_of(near)[0]
            (x, y), (there, up) = ways.points[k, :2], points[k, :2]
            texts.append(f"goal ({x:.2f}, {y:.2f}) is occupied: the path ends at ({there:.2f}, {up:.2f})")
    return Poses(points, ways.quaternions, ways.frame), texts
