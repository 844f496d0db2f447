"""Where two agents cannot pass each other.

A tile is narrow where the free tiles around it touch each other only by way of it, or where it is a dead end: lanes,
doors, teeth of combs, branches of trees.
"""

import numpy as np

from ...device import njit
from ..fields.lanes import parts_of
from ..fields.next_hops import Ground
from .feasibility import survey_of

LEAST_SIDE = 10  # tiles on either side of a bridge, more on larger maps, or a quarter of a smaller part of the map
SIDE = 16  # part of a part of the map that lies on either side of a bridge: pockets among obstacles are smaller
LEAST_LANE, MOST_LANE = 6, 12  # tiles of a lane that is no bridge: shorter ones are as frequent among random obstacles,
LANES = 100  # the more the larger the map, where there are ways around them: one of so many tiles


def narrow_tiles(ground: Ground) -> np.ndarray:
    """(T + 1,) bool"""
    neighbour, blocked = ground.neighbour, len(ground.neighbour) - 1
    free = neighbour < blocked
    degree = free.sum(axis=1)
    joined = np.zeros(len(neighbour), np.int64)  # neighbours that the tile diagonally between them joins
    for direction in range(4):
        beside = (direction + 1) % 4
        diagonal = neighbour[neighbour[:, direction], beside]
        joined += free[:, direction] & free[:, beside] & (diagonal < blocked)
    return (degree == 1) | (degree - joined > 1)


def lanes_of(ground: Ground, place: np.ndarray, shape: tuple) -> np.ndarray:
    """Tiles of long lanes, and those at bridges, by which alone two parts of the map are joined -> (T + 1,) bool

    place: (T, 2) int32 [row, col]; shape: of the map
    """
    neighbour, narrow = ground.neighbour, narrow_tiles(ground)
    lane = np.zeros(shape, bool)
    lane[tuple(place.T)] = (narrow & ((neighbour < len(place)).sum(axis=1) == 2))[:-1]
    runs = parts_of(lane)
    found = np.zeros(len(neighbour), bool)
    least = np.clip(len(place) // LANES, LEAST_LANE, MOST_LANE)
    found[:-1] = ((np.bincount(runs.ravel()) >= least)[runs] & lane)[tuple(place.T)]
    roots, counts = (np.unique(ground.part[:-1], return_index=True, return_counts=True))[1:]
    for root, count in zip(roots, counts, strict=True):
        survey = survey_of(root, count, neighbour)
        less = np.minimum(survey.size, count - survey.size)
        least = min(max(LEAST_SIDE, count // SIDE), count // 4)
        bridge = np.flatnonzero((survey.low == np.arange(count)) & (less >= least))
        found[survey.tile[bridge]] = found[survey.tile[survey.parent[bridge]]] = True
    return found


@njit
def nearest(tile, occupant, neighbour, most):
    """The agents that are nearest to a tile, at most so many. occupant: (T + 1,) int32 agents or -1 -> (K,) int64"""
    seen, queue = np.zeros(len(neighbour), np.bool_), np.empty(len(neighbour), np.int32)
    found, many = np.empty(most, np.int64), 0
    seen[len(neighbour) - 1] = seen[tile] = True
    queue[0], at, count = tile, 0, 1
    while at < count and many < most:
        here = queue[at]
        at += 1
        if occupant[here] >= 0:
            found[many] = occupant[here]
            many += 1
        for direction in range(4):
            there = neighbour[here, direction]
            if not seen[there]:
                seen[there], queue[count] = True, there
                count += 1
    return found[:many]
