"""A one-shot query of agents of unlike sizes, checked: where each fits, and who is too near to whom."""

import numpy as np

from ...grid.maps.grid_map import GridMap
from ..fields.lanes import footprint_free, parts_of, too_near
from .fleet_plan import FleetStatus
from .instance import Instance


def unlike(
    tiles: tuple, places: np.ndarray, ends: np.ndarray, sides: np.ndarray, grid: GridMap, apart: int
) -> Instance:
    """tiles: of ground_of the map for the smallest agents; places, ends: (N, 2) float64 starts and goals; sides: (N,)
    sizes; apart: tiles that stay free between agents"""
    instance = Instance(tiles, places, ends)
    start, goal, status = instance.start, instance.goal, instance.status
    for side in np.unique(sides).tolist():
        part = parts_of(footprint_free(grid.costs > 0, side))[tuple(instance.place.T)]
        own = sides == side
        bad = own & (start >= 0) & (part[start] == 0)
        status[bad], start[bad], goal[bad] = FleetStatus.START_BLOCKED, -1, -1
        bad = own & (goal >= 0) & (part[goal] == 0)
        status[bad], goal[bad] = FleetStatus.GOAL_BLOCKED, -1
        bad = own & (goal >= 0) & (part[start] != part[goal])
        status[bad], goal[bad] = FleetStatus.NO_PATH, -1
    _first_only(instance, start, sides, apart, FleetStatus.SAME_START)
    goal[start < 0] = -1
    _first_only(instance, goal, sides, apart, FleetStatus.SAME_GOAL)
    return instance


def _first_only(instance, tiles, sides, apart, why):
    """Of agents that are too near to each other only the first one keeps its tile."""
    sizes = np.unique(sides).tolist()
    near = max(too_near(one, other, apart) for one in sizes for other in sizes)
    kept = np.zeros(np.add(instance.number.shape, 2 * near), np.int32)  # sizes
    for agent in np.flatnonzero(tiles >= 0).tolist():
        row, col = np.add(instance.place[tiles[agent]], near).tolist()
        side = int(sides[agent])
        for other in sizes:
            low, high = too_near(other, side, apart), too_near(side, other, apart)
            if (kept[row - low : row + high + 1, col - low : col + high + 1] == other).any():
                instance.status[agent], tiles[agent] = why, -1
                break
        else:
            kept[row, col] = side
