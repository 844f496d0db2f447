"""`astar`: A* on the CPU, one agent after the other (Hart, Nilsson, Raphael 1968).

A binary heap with decrease-key. Heuristics: Manhattan distance on 4-connected maps, octile distance on 8-connected
ones, times the least tile cost; both are consistent, so that a tile is expanded once. Costs are the integers of
`exact.values`, thus exact. Of tiles with one f the one farther from the start goes first, then the one that comes first
in the map: a query always has the same path.
"""

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..device import lean_njit, njit
from ..settings import Described, time_limit
from .exact.values import DIAGONAL_8, STRAIGHT_8, unit_of
from .maps.grid_map import GridMap
from .paths import COL_STEP, NO_PATH, ROW_STEP, SOLVED, TIMED_OUT, PathSet, check_words, put_step, step_bits, word_count

TILES_A_CALL = 1 << 17  # expanded between two looks at the clock, about 20 ms; the last search goes on to its end
FIRST_WORDS = 1024  # room for packed steps to begin with, at least
CLOSED = -1  # in place of a tile's place in the heap


@dataclass(frozen=True)
class Settings(Described):
    """Settings of A*."""

    time_limit_s: float = time_limit("Longest plan: agents whose search has not begun by then are timed out")


class Terrain(NamedTuple):
    """costs: (rows, cols) uint8, 0 blocked;  connectivity: 4 or 8;  least: cost of a free tile"""

    costs: np.ndarray
    connectivity: int
    least: int


class TileMemory(NamedTuple):
    """What searches know, one after the other, of each tile row * cols + col.

    searched: int32 number of the search that last touched it
    came: uint8 move that entered it
    g: int64
    place: int32 in the heap, or CLOSED
    heap, heap_f: the open tiles, int32, and their f, int64, as a binary heap
    """

    searched: np.ndarray
    came: np.ndarray
    g: np.ndarray
    place: np.ndarray
    heap: np.ndarray
    heap_f: np.ndarray


class Queries(NamedTuple):
    """N agents and their answers.

    starts, goals: (N, 2) int32
    status: (N,) uint8;  g: (N,) int64 of the goals;  length: (N,) int32;  first: (N,) int64
    """

    starts: np.ndarray
    goals: np.ndarray
    status: np.ndarray
    g: np.ndarray
    length: np.ndarray
    first: np.ndarray


class Astar:
    """An algorithm of BlockPlanner.

    block_size does not matter; there is no GPU version: it runs on the CPU on any device.
    """

    def __init__(self, grid: GridMap, block_size: int, device: str, settings: Settings):
        self.settings = settings
        tiles = grid.rows * grid.cols
        self._search = 0  # the number of the latest one
        kinds = np.int32, np.uint8, np.int64, np.int32, np.int32, np.int64
        self._memory = TileMemory(*(np.zeros(tiles, kind) for kind in kinds))
        self.update(grid, np.zeros(0), np.zeros(0))

    def update(self, grid: GridMap, rows: np.ndarray, cols: np.ndarray):
        """The map has changed; nothing else is kept between plans."""
        self._grid = grid

    def plan(self, starts: np.ndarray, goals: np.ndarray) -> PathSet:
        """Paths of agents. starts, goals: (N, 2) int32 [row, col], free tiles"""
        n, connectivity = len(starts), self._grid.connectivity
        world = Terrain(self._grid.costs, connectivity, max(self._grid.least_cost, 1))
        status, g = np.full(n, TIMED_OUT, np.uint8), np.zeros(n, np.int64)
        length, first = np.zeros(n, np.int32), np.zeros(n, np.int64)
        agents = Queries(starts, goals, status, g, length, first)
        words, used = np.zeros(max(FIRST_WORDS, n), np.uint32), 0
        done, began = 0, time.perf_counter()
        if self._search + n >= np.iinfo(np.int32).max:
            self._memory.searched[:], self._search = 0, 0
        while done < n and time.perf_counter() - began < self.settings.time_limit_s:
            before = done
            done, words, used = _plan(agents, before, self._search, world, self._memory, words, used)
            self._search += done - before
            check_words(used)
        cost = np.where(status == SOLVED, g / unit_of(connectivity), np.inf)
        return PathSet(starts, status, cost, length, first, words[:used].copy(), step_bits(connectivity))


@njit
def _plan(agents, begin, search, world, memory, words, used):
    """Plan agents from `begin` on, until TILES_A_CALL tiles are expanded.

    search: number of the latest one; used: how many words are used
    -> the first agent that is left, words, grown where need be, how many of them are used
    """
    cols = world.costs.shape[1]
    i, expanded = begin, 0
    while i < len(agents.starts) and expanded < TILES_A_CALL:
        start = np.int64(agents.starts[i, 0]) * cols + agents.starts[i, 1]
        goal = np.int64(agents.goals[i, 0]) * cols + agents.goals[i, 1]
        search += 1
        found, count = _search(start, goal, search, world, memory)
        expanded += count
        agents.status[i] = NO_PATH
        if found:
            agents.status[i], agents.g[i], agents.first[i] = SOLVED, memory.g[goal], used
            agents.length[i], words, used = _write(start, goal, world, memory, words, used)
        i += 1
    return i, words, used


@njit
def _write(start, goal, world, memory, words, used):
    """Write the path of the latest search -> its steps, words, how many of them are used"""
    cols, bits = world.costs.shape[1], step_bits(world.connectivity)
    tile, steps, first = goal, 0, used
    while tile != start:
        steps += 1
        used = first + word_count(steps, bits)
        if used > len(words):
            more = np.zeros(2 * len(words), np.uint32)
            more[: len(words)] = words
            words = more
        code = memory.came[tile]
        put_step(words, first, steps - 1, code, bits)
        tile -= ROW_STEP[code] * cols + COL_STEP[code]
    return steps, words, used


@njit
def least_cost_between(down, right, moves, one, diagonal):
    """Cost of the way to a tile some rows and columns off where all tiles are free and cost 1.

    one, diagonal: cost of a straight step, of a diagonal one. The Manhattan distance, as in [CE12] III-A; the octile
        distance where there are 8 moves.
    """
    down, right = np.int64(abs(down)), np.int64(abs(right))
    if moves == 4:
        return (down + right) * one
    return max(down, right) * one + min(down, right) * (diagonal - one)


@lean_njit
def _search(start, goal, search, world, memory):
    """A* from tile start to tile goal, row * cols + col. search: its number

    -> is there a path, and g and came lead back from the goal; how many tiles the search has looked at
    """
    costs, g = world.costs, memory.g
    rows, cols = costs.shape
    goal_row, goal_col = goal // cols, goal % cols
    straight = np.int64(1) if world.connectivity == 4 else np.int64(STRAIGHT_8)
    memory.searched[start], g[start] = search, 0
    size, expanded = _push(start, 0, memory, 0), 0  # the only one: its f does not matter
    while size > 0:
        tile = np.int64(memory.heap[0])
        expanded += 1
        if tile == goal:
            return True, expanded
        size = _pop(memory, size)
        row, col = tile // cols, tile % cols
        for code in range(world.connectivity):
            r, c = row + ROW_STEP[code], col + COL_STEP[code]
            if r < 0 or c < 0 or r >= rows or c >= cols or costs[r, c] == 0:
                continue
            if code >= 4 and (costs[row, c] == 0 or costs[r, col] == 0):
                continue
            near = r * cols + c
            known = memory.searched[near] == search
            if known and memory.place[near] == CLOSED:
                continue
            new = g[tile] + np.int64(costs[r, c]) * (DIAGONAL_8 if code >= 4 else straight)
            if known and new >= g[near]:
                continue
            g[near], memory.came[near] = new, code
            least = least_cost_between(goal_row - r, goal_col - c, world.connectivity, straight, DIAGONAL_8)
            f = new + least * world.least
            if known:
                memory.heap_f[memory.place[near]] = f
                _rise(memory.place[near], memory)
            else:
                memory.searched[near] = search
                size = _push(near, f, memory, size)
    return False, expanded


@lean_njit
def _before(i, j, memory):
    """Does place i of the heap come before place j?"""
    if memory.heap_f[i] != memory.heap_f[j]:
        return memory.heap_f[i] < memory.heap_f[j]
    a, b = memory.heap[i], memory.heap[j]
    return memory.g[a] > memory.g[b] or (memory.g[a] == memory.g[b] and a < b)


@lean_njit
def _swap(i, j, memory):
    heap, heap_f = memory.heap, memory.heap_f
    heap[i], heap[j] = heap[j], heap[i]
    heap_f[i], heap_f[j] = heap_f[j], heap_f[i]
    memory.place[heap[i]], memory.place[heap[j]] = i, j


@lean_njit
def _rise(i, memory):
    while i > 0 and _before(i, (i - 1) >> 1, memory):
        _swap(i, (i - 1) >> 1, memory)
        i = (i - 1) >> 1


@lean_njit
def _push(tile, f, memory, size):
    """-> the heap's new size"""
    memory.heap[size], memory.heap_f[size], memory.place[tile] = tile, f, size
    _rise(size, memory)
    return size + 1


@lean_njit
def _pop(memory, size):
    """Close the tile on top -> the heap's new size"""
    size -= 1
    closed = memory.heap[0]
    _swap(0, size, memory)
    memory.place[closed] = CLOSED
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and _before(child + 1, child, memory):
            child += 1
        if not _before(child, i, memory):
            break
        _swap(i, child, memory)
        i = child
    return size
