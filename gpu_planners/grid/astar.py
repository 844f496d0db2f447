"""`astar`: A* on the CPU, one agent after the other, as [CE12] compares with (Hart, Nilsson, Raphael 1968).

A binary heap with decrease-key. Heuristics: Manhattan distance on 4-connected maps, octile distance on 8-connected ones, times
the least tile cost; both are consistent, so that a tile is expanded once. Costs are the integers of `value_blocks`, thus exact.
Of tiles with one f the one farther from the start goes first, then the one that comes first in the map: a query always has the
same path.
"""

import math
import time
from dataclasses import dataclass

import numpy as np

from ..device import njit
from ..errors import SettingsError
from .agents import COL_STEP, ROW_STEP, AgentStatus, PathSet, check_words, put_step, step_bits, word_count
from .checks import number
from .packed_tiles import least_cost_between
from .value_blocks import DIAGONAL_8, STRAIGHT_8, unit_of

TILES_A_CALL = 1 << 17  # expanded between two looks at the clock, about 20 ms; the last search goes on to its end
FIRST_WORDS = 1024  # room for packed steps to begin with, at least
CLOSED = -1  # a tile's place in the heap
SOLVED, NO_PATH = int(AgentStatus.SOLVED), int(AgentStatus.NO_PATH)


@dataclass(frozen=True)
class Settings:
    """time_limit_s: of a whole plan; agents whose search has not begun by then are TIMED_OUT"""

    time_limit_s: float = float("inf")

    def __post_init__(self):
        number("time_limit_s", self.time_limit_s, math.ulp(0.0), math.inf, " (seconds)", SettingsError)


class Astar:
    """An algorithm of BlockPlanner. block_size does not matter; there is no GPU version: it runs on the CPU on any device."""

    def __init__(self, grid, block_size, device, settings):
        self.settings = settings
        tiles = grid.rows * grid.cols
        self._searched, self._search = np.zeros(tiles, np.int32), 0  # the number of the search that last touched a tile
        self._came = np.empty(tiles, np.uint8)  # the move that entered the tile
        self._g = np.empty(tiles, np.int64)
        self._place = np.empty(tiles, np.int32)  # in the heap, or CLOSED
        self._heap, self._heap_f = np.empty(tiles, np.int32), np.empty(tiles, np.int64)
        self.update(grid, (), ())

    def update(self, grid, rows, cols):
        """The map has changed; nothing else is kept between plans."""
        self._grid, self._least = grid, max(grid.least_cost, 1)

    def plan(self, starts, goals):
        """starts, goals: (N, 2) int32 free tiles -> PathSet"""
        n, connectivity = len(starts), self._grid.connectivity
        status, g = np.full(n, AgentStatus.TIMED_OUT, np.uint8), np.zeros(n, np.int64)
        length, first = np.zeros(n, np.int32), np.zeros(n, np.int64)
        words, used = np.zeros(max(FIRST_WORDS, n), np.uint32), 0
        done, began = 0, time.perf_counter()
        if self._search + n >= np.iinfo(np.int32).max:
            self._searched[:], self._search = 0, 0
        while done < n and time.perf_counter() - began < self.settings.time_limit_s:
            before = done
            done, words, used = _plan(
                self._grid.costs, connectivity, self._least, starts, goals, before, self._search, self._searched, self._came,
                self._g, self._place, self._heap, self._heap_f, status, g, length, first, words, used,
            )  # fmt: skip
            self._search += done - before
            check_words(used)
        cost = np.where(status == AgentStatus.SOLVED, g / unit_of(connectivity), np.inf)
        return PathSet(starts, status, cost, length, first, words[:used].copy(), step_bits(connectivity))


@njit
def _plan(
    costs, connectivity, least, starts, goals, begin, search, searched, came, g, place, heap, heap_f, status, reached, length,
    first, words, used,
):  # fmt: skip
    """Agents from `begin` on, until TILES_A_CALL tiles are expanded -> the first agent that is left, words, grown where need be,
    how many of them are used"""
    cols, bits = costs.shape[1], step_bits(connectivity)
    i, expanded = begin, 0
    while i < len(starts) and expanded < TILES_A_CALL:
        start = np.int64(starts[i, 0]) * cols + starts[i, 1]
        goal = np.int64(goals[i, 0]) * cols + goals[i, 1]
        search += 1
        found, count = _search(costs, connectivity, least, start, goal, search, searched, came, g, place, heap, heap_f)
        expanded += count
        status[i] = NO_PATH
        if found:
            status[i], reached[i], first[i] = SOLVED, g[goal], used
            tile, steps = goal, 0
            while tile != start:
                steps += 1
                used = first[i] + word_count(steps, bits)
                if used > len(words):
                    more = np.zeros(2 * len(words), np.uint32)
                    more[: len(words)] = words
                    words = more
                code = came[tile]
                put_step(words, first[i], steps - 1, code, bits)
                tile -= ROW_STEP[code] * cols + COL_STEP[code]
            length[i] = steps
        i += 1
    return i, words, used


@njit
def _search(costs, connectivity, least, start, goal, search, searched, came, g, place, heap, heap_f):
    """A* from tile start to tile goal, row * cols + col

    -> is there a path, and g and came lead back from the goal; how many tiles the search has looked at
    """
    rows, cols = costs.shape
    goal_row, goal_col = goal // cols, goal % cols
    straight = np.int64(1) if connectivity == 4 else np.int64(STRAIGHT_8)
    searched[start], g[start] = search, 0
    size, expanded = _push(start, 0, g, place, heap, heap_f, 0), 0  # the only one: its f does not matter
    while size > 0:
        tile = np.int64(heap[0])
        expanded += 1
        if tile == goal:
            return True, expanded
        size = _pop(g, place, heap, heap_f, size)
        row, col = tile // cols, tile % cols
        for code in range(connectivity):
            r, c = row + ROW_STEP[code], col + COL_STEP[code]
            if r < 0 or c < 0 or r >= rows or c >= cols or costs[r, c] == 0:
                continue
            if code >= 4 and (costs[row, c] == 0 or costs[r, col] == 0):
                continue
            near = r * cols + c
            known = searched[near] == search
            if known and place[near] == CLOSED:
                continue
            new = g[tile] + np.int64(costs[r, c]) * (DIAGONAL_8 if code >= 4 else straight)
            if known and new >= g[near]:
                continue
            g[near], came[near] = new, code
            f = new + least_cost_between(goal_row - r, goal_col - c, connectivity, straight, DIAGONAL_8) * least
            if known:
                heap_f[place[near]] = f
                _rise(place[near], g, place, heap, heap_f)
            else:
                searched[near] = search
                size = _push(near, f, g, place, heap, heap_f, size)
    return False, expanded


@njit
def _before(i, j, g, heap, heap_f):
    """Does place i of the heap come before place j?"""
    if heap_f[i] != heap_f[j]:
        return heap_f[i] < heap_f[j]
    a, b = heap[i], heap[j]
    return g[a] > g[b] or (g[a] == g[b] and a < b)


@njit
def _swap(i, j, place, heap, heap_f):
    heap[i], heap[j] = heap[j], heap[i]
    heap_f[i], heap_f[j] = heap_f[j], heap_f[i]
    place[heap[i]], place[heap[j]] = i, j


@njit
def _rise(i, g, place, heap, heap_f):
    while i > 0 and _before(i, (i - 1) >> 1, g, heap, heap_f):
        _swap(i, (i - 1) >> 1, place, heap, heap_f)
        i = (i - 1) >> 1


@njit
def _push(tile, f, g, place, heap, heap_f, size):
    """-> the heap's new size"""
    heap[size], heap_f[size], place[tile] = tile, f, size
    _rise(size, g, place, heap, heap_f)
    return size + 1


@njit
def _pop(g, place, heap, heap_f, size):
    """Close the tile on top -> the heap's new size"""
    size -= 1
    closed = heap[0]
    _swap(0, size, place, heap, heap_f)
    place[closed] = CLOSED
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and _before(child + 1, child, g, heap, heap_f):
            child += 1
        if not _before(child, i, g, heap, heap_f):
            break
        _swap(i, child, place, heap, heap_f)
        i = child
    return size
