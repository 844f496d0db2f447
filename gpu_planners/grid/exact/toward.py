"""Answers without a field: A* from a goal toward a start (Hart, Nilsson, Raphael 1968), which stops early.

It settles every tile whose cost-to-go and bound from the start are together no more than the path's cost. All tiles of
all paths of least cost are among them, and have the values that the goal's field has. So the descent of these values
takes the same directions as that of the field: whichever answers, the path is the same, to the step.

Open tiles wait in buckets by f, the last one first. Blocked tiles, and a ring of them around the map, have a value
below all others, so that one look at a neighbour tells whether it may get better.
"""

import math

import numpy as np

from ...device import njit
from ..maps.grid_map import HIGHEST_COST, GridMap, WorkingMap
from ..paths import COL_STEP, NO_PATH, ROW_STEP, SOLVED, PathSet, put_step, step_bits, word_count
from .values import DIAGONAL_8, INFINITE, SHIFT_8, STRAIGHT_8, unit_of

WALL = np.int64(-1)
FINER = 4  # bits: a bucket of an 8-connected map spans a 2^FINER-th of the shortest step or less
MOST_OPENED = 1 / 4  # of a map's tiles: beyond it a field takes less time than the search would
LEAST_OPENED = 1 / 64  # so many where searches before went beyond it: each halves the share, and success doubles it
FIRST_ROOM = 1 << 16
BYTES = 8 + 2 * 4 * MOST_OPENED  # a tile


class TowardStart:
    """Searches one after the other on one map, which the caller changes."""

    def __init__(self, grid: GridMap | WorkingMap):
        self._grid, self._wide, self._share = grid, grid.cols + 2, MOST_OPENED
        self.opened = 0  # tiles, by the latest search
        value = np.full((grid.rows + 2, self._wide), WALL)
        value[1:-1, 1:-1][grid.costs > 0] = INFINITE
        self._value = value.reshape(-1)
        self._tiles, self._after = (np.empty(FIRST_ROOM, np.int32) for _ in range(2))

    @staticmethod
    def fits(grid: GridMap | WorkingMap, limit: float) -> bool:
        """Is there memory for a map's searches, and a number for each of its tiles?"""
        tiles = (grid.rows + 2) * (grid.cols + 2)
        return tiles < 2**31 and tiles * BYTES <= limit

    def update(self, grid: GridMap | WorkingMap, rows: np.ndarray, cols: np.ndarray):
        """The map has changed at some tiles (N,)."""
        self._grid = grid
        self._value[(rows + 1) * self._wide + cols + 1] = np.where(grid.costs[rows, cols] > 0, INFINITE, WALL)

    def find(self, start: np.ndarray, goal: np.ndarray) -> PathSet | None:
        """The path between free tiles (2,) [row, col]; None: it is so far that a field shall answer."""
        grid = self._grid
        eight = grid.connectivity == 8
        longest = HIGHEST_COST if not grid.uniform_cost else grid.uniform_cost
        shift = SHIFT_8 - FINER if eight else 0
        buckets = 1 << (2 * longest * (DIAGONAL_8 if eight else 1) + 1 >> shift).bit_length()
        most = max(math.floor(self._share * grid.rows * grid.cols), 1000)
        ends = (int(n) for n in (*start, *goal))
        found, units, codes, self._tiles, self._after, self.opened = _search(
            *ends,
            grid.costs,
            self._value,
            grid.connectivity,
            max(grid.least_cost, 1),
            shift,
            np.full(buckets, -1, np.int32),
            most,
            self._tiles,
            self._after,
        )
        self._share = min(max(self._share * (0.5 if found < 0 else 2.0), LEAST_OPENED), MOST_OPENED)
        if found < 0:
            return None
        cost = units / unit_of(grid.connectivity) if found == SOLVED else math.inf
        bits = step_bits(grid.connectivity)
        words = np.zeros(word_count(len(codes), bits), np.uint32)
        _pack(codes, words, bits)
        lengths, first = np.array([len(codes)], np.int32), np.zeros(1, np.int64)
        return PathSet(start[None], np.array([found], np.uint8), np.array([cost]), lengths, first, words, bits)


@njit
def _pack(codes, words, bits):
    for k in range(len(codes)):
        put_step(words, 0, len(codes) - 1 - k, codes[k], bits)


@njit
def _grown(array):
    larger = np.empty(2 * len(array), array.dtype)
    larger[: len(array)] = array
    return larger


@njit
def _search(
    start_row, start_col, goal_row, goal_col, costs, value, moves, least, shift, head, most, tiles, after
):  # fmt: skip
    """-> SOLVED, NO_PATH or -1: more than `most` tiles were opened; cost in units; codes (L,) uint8 from the start on;
    tiles and after, grown where need be; how many tiles were opened

    value: (tiles,) int64 with a ring, WALL or INFINITE, and so again afterwards
    head: (buckets,) int32 -1;  tiles, after: (n,) int32 what was opened, and what waits in the same bucket
    """
    wide, mask = costs.shape[1] + 2, len(head) - 1
    unit = np.int64(unit_of(moves))
    start, goal = (start_row + 1) * wide + start_col + 1, (goal_row + 1) * wide + goal_col + 1
    step = ROW_STEP.astype(np.int64) * wide + COL_STEP
    most_f, used, waiting = np.int64(0 if start == goal else INFINITE), 1, 1
    value[goal] = 0
    f = least * _distance(goal_row - start_row, goal_col - start_col, moves)
    bucket = f >> shift
    tiles[0], after[0], head[bucket & mask] = goal, -1, 0
    while waiting > 0 and bucket <= most_f >> shift and used <= most:
        entry = head[bucket & mask]
        if entry < 0:
            bucket += 1
            continue
        head[bucket & mask] = after[entry]
        waiting -= 1
        tile = np.int64(tiles[entry])
        row = np.int64(np.uint32(tile) // np.uint32(wide)) - 1
        col = tile - (row + 1) * wide - 1
        here = value[tile]
        f = here + least * _distance(row - start_row, col - start_col, moves)
        if f > most_f or f >> shift != bucket:  # or it has been opened again since
            continue
        price = np.int64(costs[row, col])
        for code in range(moves):
            near = tile + step[code]
            new = here + price * (DIAGONAL_8 if code >= 4 else unit)
            if new >= value[np.uint64(near)]:
                continue
            down, right = np.int64(ROW_STEP[code]), np.int64(COL_STEP[code])
            if code >= 4 and (value[tile + right] < 0 or value[tile + down * wide] < 0):
                continue
            f = new + least * _distance(row + down - start_row, col + right - start_col, moves)
            if f > most_f:
                continue
            value[np.uint64(near)] = new
            if near == start:
                most_f = new
            if used == len(tiles):
                tiles, after = _grown(tiles), _grown(after)
            slot = f >> shift & mask
            tiles[used], after[used], head[slot] = near, head[slot], used
            used, waiting = used + 1, waiting + 1
    found, units, codes = -1, value[start], np.zeros(0, np.uint8)
    if used <= most:
        found = SOLVED if units < INFINITE else NO_PATH
    if found == SOLVED:
        codes = _descent(start, goal, costs, value, moves, unit)
    for entry in range(used):
        value[tiles[entry]] = INFINITE
    return found, units, codes, tiles, after, used


@njit
def _distance(down, right, moves):
    """Units of a path on a map of free tiles that cost 1."""
    down, right = abs(down), abs(right)
    if moves == 4:
        return np.int64(down + right)
    return np.int64(max(down, right)) * STRAIGHT_8 + np.int64(min(down, right)) * (DIAGONAL_8 - STRAIGHT_8)


@njit
def _descent(tile, goal, costs, value, moves, unit):
    """Codes from a tile to the goal: of each tile the first of its best moves, as `operations.direct` writes them."""
    wide = costs.shape[1] + 2
    codes, length = np.empty(256, np.uint8), 0
    while tile != goal:
        for code in range(moves):
            down, right = np.int64(ROW_STEP[code]), np.int64(COL_STEP[code])
            near = tile + down * wide + right
            if value[near] < 0 or value[near] >= value[tile]:
                continue
            if code >= 4 and (value[tile + right] < 0 or value[tile + down * wide] < 0):
                continue
            price = np.int64(costs[near // wide - 1, near % wide - 1])
            if value[near] + price * (DIAGONAL_8 if code >= 4 else unit) == value[tile]:
                break
        if length == len(codes):
            codes = _grown(codes)
        codes[length] = code
        tile, length = near, length + 1
    return codes[:length].copy()
