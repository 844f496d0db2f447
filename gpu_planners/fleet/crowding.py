"""Agents that are far from their goals keep away from crowds.

In a room that is nearly full, goals draw agents together until nobody there can move, while other parts of the room
are empty. So agents of low priority, who would mostly stand, also mind how crowded it is around the tiles that their
options lead to: they go where there is room, and those that are near their goals get through.
"""

import numpy as np
from numba import prange

from ..device import lean_njit, njit
from .ranking import FIRST_TIE

REACH = 6  # tiles: how crowded it is around a tile is a mean over squares of squares of 2 REACH + 1 tiles
AVERSION = 200  # moves that agents would make to leave a place that is full for one that is empty
STEEPNESS = 4  # the power of the share of tiles that are taken: where there is room, it hardly counts


def around(counts: np.ndarray) -> np.ndarray:
    """(rows, cols) int32 -> the same shape: sums over squares around each tile, twice one after the other"""
    sums = np.empty_like(counts)
    across = np.empty_like(counts)
    for given in (counts, sums):
        _sums_across(given, across)
        _sums_down(across, sums)
    return sums


@njit(parallel=True)
def _sums_across(counts, sums):
    """Sums over the tiles of a row that are at most REACH away."""
    rows, cols = counts.shape
    for row in prange(rows):
        total = np.int32(0)
        for col in range(min(REACH, cols)):
            total += counts[row, col]
        for col in range(cols):
            if col + REACH < cols:
                total += counts[row, col + REACH]
            if col > REACH:
                total -= counts[row, col - REACH - 1]
            sums[row, col] = total


@njit(parallel=True)
def _sums_down(counts, sums):
    """The same over the tiles of a column."""
    rows = len(counts)
    for row in prange(rows):
        sums[row] = 0
        for other in range(max(0, row - REACH), min(rows, row + REACH + 1)):
            for col in range(counts.shape[1]):
                sums[row, col] += counts[other, col]


@njit(parallel=True)
def keep_away(minding, wish, taken, room, lanes, agents, options, ranked):
    """Let agents mind how crowded it is where their options end, and follow their wishes; sort their options again.

    minding: (N,) bool which agents mind crowds; wish: (N, 2) int32 what it costs to end a row down and a column right
    taken, room: (tiles,) int32 of `around`: tiles that are taken, and free ones
    """
    for a in prange(len(minding)):
        if minding[a] or wish[a, 0] != 0 or wish[a, 1] != 0:
            _sort_again(a, minding[a], wish[a], taken, room, lanes, agents, options, ranked)


@lean_njit
def _crowd(tile, taken, room, unit):
    """What it costs to be on a tile."""
    share = min(taken[tile] / room[tile], 1.0)
    return int(AVERSION * unit * share**STEEPNESS)


@lean_njit
def _sort_again(a, minding, wish, taken, room, lanes, agents, options, ranked):
    tile, heading, last = agents.tile[a], agents.heading[a], options.here.shape[2] - 1
    now = _crowd(tile, taken, room, lanes.unit)
    row, col = divmod(tile, lanes.width)
    for i in range(ranked.many[a]):
        option = ranked.option[a, i]
        end = tile + options.here[options.track[option], heading, last]
        down, right = divmod(end, lanes.width)
        more = wish[0] * (down - row) + wish[1] * (right - col)
        if minding:
            more += _crowd(end, taken, room, lanes.unit) - now
        cost = ranked.cost[a, i] + more * FIRST_TIE
        place = i
        while place > 0 and ranked.cost[a, place - 1] > cost:
            ranked.option[a, place], ranked.cost[a, place] = ranked.option[a, place - 1], ranked.cost[a, place - 1]
            place -= 1
        ranked.option[a, place], ranked.cost[a, place] = option, cost
