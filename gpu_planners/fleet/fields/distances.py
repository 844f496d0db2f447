"""Distances of pairs, by the fields of their goals."""

import numpy as np
from numba import prange

from ...device import njit
from .cost_to_go import FAR, downhill, exits, leaving
from .lanes import Lanes

ANY = -1  # for a heading: the best one


@njit(parallel=True)
def pair_costs(
    tiles: np.ndarray,
    headings: np.ndarray,
    goals: np.ndarray,
    slots: np.ndarray,
    values: np.ndarray,
    lanes: Lanes,
    crowd: np.ndarray,
    cost: np.ndarray,
    met: np.ndarray,
):
    """Costs of the cheapest paths of K pairs, FAR where there is none, and how many of a crowd stand on them.

    tiles, headings, goals, slots: (K,), slots of the goals' fields; values: fields (slots, states)
    crowd: (tiles,) how many stand on each; cost, met: (K,) int64 are written
    """
    for k in prange(len(tiles)):
        first = max(headings[k], 0) % lanes.headings
        last = lanes.headings if headings[k] == ANY else first + 1
        cost[k], met[k] = FAR, 0
        for heading in range(first, last):
            found, others = _way(tiles[k], heading, goals[k], slots[k], values, lanes, crowd)
            if found < cost[k]:
                cost[k], met[k] = found, others


@njit
def _way(tile, heading, goal, slot, values, lanes, crowd):
    """-> cost of a path, how many it meets"""
    if not lanes.free[tile]:
        return leaving(heading, exits(tile, goal, slot, values, lanes), lanes), np.int64(0)
    field, cost, met = values[slot], np.int64(0), np.int64(0)
    for _ in range(len(field)):
        if tile == goal:
            return cost, met
        down, there, heading = downhill(tile, heading, field, lanes)
        if down == 0:
            break
        cost -= down
        if there != tile:
            met += crowd[there]
        tile = there
    return np.int64(FAR), np.int64(0)
