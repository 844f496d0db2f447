"""A* over place and heading, for a single query, on the CPU (Hart, Nilsson, Raphael 1968).

The open states wait in buckets by f, the last one first: most of those that are as good lie on one way. The bound is
consistent (`bound`), so a state that leaves its bucket with its last g is not opened again where a bucket holds one
value; where prices are so high that it spans several, the search ends with the bucket after which nothing can be
better. What earlier searches wrote is told by their numbers, so that a search clears nothing.
"""

from typing import NamedTuple

import numpy as np

from ...device import njit
from .pose_grid import INFINITE, Table
from .shape import Layout

MOST_BUCKETS = 1 << 16
FIRST_ROOM = 1 << 16


class Bound(NamedTuple):
    """What is still to pay at least: max(0, min(values[place], most) - less) * times, a value of INFINITE: no way.

    values: (rows * cols,) int32 of the point robot's field, (0,): nothing is known; most: below it values are exact
    """

    values: np.ndarray
    most: int
    less: int
    times: int


class Memory(NamedTuple):
    """Of each state, written by the searches one after the other: (states,) int64 number of the search and g; (states,)
    uint8 which of the moves into its layer it came by."""

    known: np.ndarray
    came: np.ndarray


class Sizes(NamedTuple):
    rows: int
    cols: int


class Search:
    """Searches one after the other on one map's arrays. cost, free: of `CpuMap`"""

    def __init__(self, layout: Layout, table: Table):
        self._table, self._number = table, 0
        self._memory = Memory(np.zeros(layout.states, np.int64), np.zeros(layout.states, np.uint8))
        self._sizes = Sizes(layout.rows, layout.cols)
        self._place = np.empty(len(table.into), np.int32)
        moves = np.arange(len(table.into), dtype=np.int32)
        self._place[table.into] = moves - table.into_first[table.to[table.into]]

    def find(
        self, cost: np.ndarray, free: np.ndarray, starts: np.ndarray, seeds: np.ndarray, bound: Bound
    ) -> tuple[int, np.ndarray, int]:
        """From the best of some states to the nearest of some. starts, seeds: (n,) int64 numbers of free states

        -> cost in units, INFINITE: there is no way; numbers of moves (M,) int32; the state where they begin
        """
        self._number += 1
        highest = int(cost.max()) if len(np.unique(cost[::37, ::31])) > 2 else 255
        jump = 2 * int(self._table.price.max()) * highest + 2
        shift = max(0, (jump // (MOST_BUCKETS - 2)).bit_length())
        buckets = 1 << ((jump >> shift) + 2).bit_length()
        g, goal, _ = _search(
            starts,
            np.sort(seeds),
            bound,
            cost,
            free,
            self._table,
            self._place,
            self._memory,
            self._number,
            self._sizes,
            shift,
            buckets,
        )
        if goal < 0:
            return INFINITE, np.zeros(0, np.int32), -1
        moves, start = _way_back(goal, np.asarray(starts), self._table, self._memory, self._sizes)
        return int(g), moves[::-1].copy(), int(start)


@njit
def _bound_at(place, bound):
    """-> the least that is still to pay from a cell on, in units; INFINITE: there is no way"""
    if len(bound.values) == 0:
        return np.int64(0)
    value = np.int64(bound.values[place])
    if value >= INFINITE and bound.most >= INFINITE:
        return value
    return max(min(value, np.int64(bound.most)) - bound.less, 0) * bound.times


@njit
def _search(starts, seeds, bound, cost, free, table, place, memory, number, sizes, shift, buckets):
    """-> g and number of the best goal state, -1: none; how many states were opened"""
    known, came = memory
    rows, cols = sizes
    head, mask = np.full(buckets, -1, np.int64), buckets - 1
    states, gs, after = np.empty(FIRST_ROOM, np.int64), np.empty(FIRST_ROOM, np.int32), np.empty(FIRST_ROOM, np.int64)
    used, spare, waiting, opened = 0, np.int64(-1), 0, 0
    stamp = np.int64(number) << 32
    best, goal, bucket = np.int64(INFINITE), np.int64(-1), np.int64(1) << 60
    for state in starts:
        h = _bound_at(state % (rows * cols), bound)
        if h < INFINITE:
            known[state] = stamp
            states[used], gs[used], after[used] = state, 0, head[h >> shift & mask]
            head[h >> shift & mask] = used
            used, waiting, bucket = used + 1, waiting + 1, min(bucket, h >> shift)
            came[state] = 255
    while waiting > 0 and bucket <= best >> shift:
        entry = head[bucket & mask]
        if entry < 0:
            bucket += 1
            continue
        head[bucket & mask] = after[entry]
        state, g = states[entry], np.int64(gs[entry])
        after[entry], spare, waiting = spare, entry, waiting - 1
        if known[state] != stamp | g:
            continue
        opened += 1
        at = np.searchsorted(seeds, state)
        if at < len(seeds) and seeds[at] == state:
            if g < best:
                best, goal = g, state
            continue
        layer, row, col = state // (rows * cols), state // cols % rows, state % cols
        word, bit = col >> 5, np.uint32(col & 31)
        for move in range(table.first[layer], table.first[layer + 1]):
            if free[table.plane[move], row, word] >> bit & np.uint32(1) == 0:
                continue
            down, right = row + table.down[move], col + table.right[move]
            new = g + np.int64(table.price[move]) * cost[down, right]
            to = (np.int64(table.to[move]) * rows + down) * cols + right
            seen = known[to]
            if (seen >> 32 == number and seen & 0xFFFFFFFF <= new) or new >= best:
                continue
            h = _bound_at(down * cols + right, bound)
            if new + h >= INFINITE or new + h >= best:
                continue
            known[to], came[to] = stamp | new, place[move]
            if spare < 0:
                if used == len(states):
                    states, gs, after = _grown(states), _grown(gs), _grown(after)
                entry, used = used, used + 1
            else:
                entry, spare = spare, after[spare]
            slot = (new + h) >> shift & mask
            states[entry], gs[entry], after[entry] = to, new, head[slot]
            head[slot] = entry
            waiting += 1
    return best, goal, opened


@njit
def _grown(array):
    larger = np.empty(2 * len(array), array.dtype)
    larger[: len(array)] = array
    return larger


@njit
def _way_back(goal, starts, table, memory, sizes):
    """-> moves from the goal's state back (M,) int32, the state where they begin"""
    rows, cols = sizes
    moves, count, state = np.empty(256, np.int32), 0, np.int64(goal)
    while memory.came[state] != 255:
        layer, row, col = state // (rows * cols), state // cols % rows, state % cols
        move = table.into[table.into_first[layer] + memory.came[state]]
        if count == len(moves):
            moves = _grown(moves)
        moves[count] = move
        count += 1
        state = (np.int64(table.source[move]) * rows + row - table.down[move]) * cols + col - table.right[move]
    return moves[:count], state
