"""Maps, fields and paths of a PoseGrid on the CPU's threads."""

import os

import numpy as np

from ...device import njit
from ...parallel.team import Worker, run_team
from ..exact import rounds
from ..exact.blocks import QUEUE_ROWS
from .descent import walk
from .free_cpu import free_rows, widen_rows
from .pose_grid import Table
from .relax import NEW, REPAIR, PoseField, PoseOrders, PoseWork, update_poses
from .shape import HEIGHT, Layout, Runs, blocked_words, padded_costs

MOST_THREADS = 8
SPAN = 400  # units of cost that a round of `relax` goes ahead
NO_GOALS = np.zeros((0, 4), np.int32)


def new_box(layout: Layout) -> np.ndarray:
    """(4,) int32 rows and words of the whole map."""
    border, words = layout.border, layout.border // 32
    return np.array([border, layout.rows - border, words, layout.words - words], np.int32)


def box_about(layout: Layout, rows: np.ndarray, cols: np.ndarray, reach: int) -> np.ndarray:
    """(4,) int32 rows and words of the states that changed tiles (N,) may touch."""
    border, whole = layout.border, new_box(layout)
    up, down = border + rows.min() - reach, border + rows.max() + reach + 1
    left, right = (border + cols.min() - reach) // 32, (border + cols.max() + reach) // 32 + 1
    return np.array([max(up, whole[0]), min(down, whole[1]), max(left, whole[2]), min(right, whole[3])], np.int32)


def box_of_both(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The box about two boxes."""
    return np.array([min(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), max(a[3], b[3])], np.int32)


class CpuMap:
    """A map's costs, and which states and moves are free. costs: (rows, cols) uint8 as of `PoseGrid`

    cost: (rows, cols) uint8, free: (planes, rows, words) uint32, with the border
    """

    def __init__(self, layout: Layout, runs: Runs, costs: np.ndarray):
        self.layout, self._runs = layout, runs
        self.cost = padded_costs(costs, layout)
        self._near = np.zeros((layout.levels, layout.rows, layout.words), np.uint32)
        self.free = np.zeros((layout.planes, layout.rows, layout.words), np.uint32)
        self._fill(0, layout.rows, new_box(layout))

    def change(self, rows: np.ndarray, cols: np.ndarray, costs: np.ndarray, box: np.ndarray):
        """Tiles (N,) have other costs. box: of `box_about`"""
        border = self.layout.border
        self.cost[border + rows, border + cols] = costs
        self._fill(border + int(rows.min()), border + int(rows.max()) + 1, box)

    def _fill(self, first, last, box):
        self._near[0, first:last] = blocked_words(self.cost[first:last])
        widen_rows(self._near, first, last)
        free_rows(self._near, self._runs.runs, self._runs.first, tuple(int(n) for n in box), self.free)

    def words_at(self, planes: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """(N,) bool: are the bits of planes at cells, counted with the border, set?"""
        return (self.free[planes, rows, cols >> 5] >> (cols & 31).astype(np.uint32) & 1).astype(bool)


class CpuField:
    """The field of one goal."""

    def __init__(self, on: CpuMap, table: Table):
        layout = on.layout
        self._layout, self._table = layout, table
        self._members = min(MOST_THREADS, len(os.sched_getaffinity(0)))
        blocks = layout.blocks
        self._value = np.empty(layout.states, np.int32)
        self._dirty = np.zeros(3 * blocks * layout.layers, np.int32)
        self._queue = np.zeros((QUEUE_ROWS, blocks), np.int32)
        self._memory = np.zeros(rounds.MEMORY, np.int32)
        self._least = np.zeros(4, np.int32)
        self._own = np.zeros(self._members * layout.layers, np.int32)
        self._record = field_record(layout, on.cost, on.free, self._value, self._dirty)

    def make(self, seeds: np.ndarray):
        """Make it for goal states (n,), numbers in `value`."""
        self._update(PoseOrders(NO_GOALS.ravel(), NEW, np.asarray(seeds, np.int32), new_box(self._layout)))

    def repair(self, box: np.ndarray):
        """Bring it up to date where the map has changed."""
        self._update(PoseOrders(NO_GOALS.ravel(), REPAIR, np.zeros(0, np.int32), box))

    def _update(self, orders):
        def work(member):
            worker = Worker(member, self._members, 0, member, self._members, self._memory, self._memory)
            update_poses(
                orders, PoseWork(self._record, self._table, NO_GOALS, self._queue, worker, self._least, self._own)
            )

        def stop():
            self._memory[rounds.STOP] = 1

        try:
            run_team(self._members, work, stop)
        finally:
            self._memory[rounds.STOP] = 0

    def highest(self) -> int:
        """No state has a value above it."""
        return int(self._least[3])

    def values(self) -> np.ndarray:
        """(layers, rows, cols) int32 of the map, in units of cost; INFINITE: no way"""
        return without_border(self._value, self._layout)

    def values_at(self, states: np.ndarray) -> np.ndarray:
        """(N,) int32 of states, numbers in `value`."""
        return self._value[states]

    def follow(self, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Moves from states (N, 3) int32 layer, row, column, with the border, to the goal

        -> (N + 1,) int64 where each one's begin; (M,) int32 numbers of moves
        """
        first = np.zeros(len(starts) + 1, np.int64)
        np.cumsum(_count(starts, self._record, self._table), out=first[1:])
        moves = np.empty(first[-1], np.int32)
        _write(starts, self._record, self._table, moves, first)
        return first, moves


def field_record(layout: Layout, cost, free, value, dirty) -> PoseField:
    """The arrays of a field as compiled code takes them."""
    shift = HEIGHT.bit_length() - 1
    sizes = layout.rows, layout.cols, layout.words, layout.layers, shift, SPAN
    return PoseField(*sizes, cost.reshape(-1), free, value, dirty)


def without_border(value: np.ndarray, layout: Layout) -> np.ndarray:
    """(layers, rows, cols) of the map."""
    border = layout.border
    shaped = value.reshape(layout.layers, layout.rows, layout.cols)
    return shaped[:, border : border + layout.map_rows, border : border + layout.map_cols]


@njit
def _count(starts, field, table):
    counts, none = np.zeros(len(starts), np.int64), np.zeros(0, np.int32)
    for i in range(len(starts)):
        counts[i] = max(
            walk(np.int64(starts[i, 0]), np.int64(starts[i, 1]), np.int64(starts[i, 2]), field, table, none, -1), 0
        )
    return counts


@njit
def _write(starts, field, table, moves, first):
    for i in range(len(starts)):
        if first[i + 1] > first[i]:
            walk(np.int64(starts[i, 0]), np.int64(starts[i, 1]), np.int64(starts[i, 2]), field, table, moves, first[i])
