"""BlockPlanner: paths of many agents on one map, by the algorithm that is named."""

import importlib
import numbers
import time
from dataclasses import replace

import numpy as np
from numba import prange

from ..device import refuse_forked, resolve_device
from ..errors import GridMapError, SettingsError, shown
from .agents import AgentStatus, PathSet, step_bits, with_threads
from .blocks import BLOCK_SIZES
from .checks import array_of
from .grid_map import GridMap, WorkingMap

ALGORITHMS = {
    "exact": ("block_field", "Exact"),
    "pba_star": ("pba_star", "PbaStar"),
    "rtaa_star": ("rtaa_star", "RtaaStar"),
    "astar": ("astar", "Astar"),
}
TILE_TYPES = np.int32, np.int64, np.float32, np.float64  # for which code is compiled; others convert to one of them
SOLVED = int(AgentStatus.SOLVED)  # for compiled code
NOT_FINITE, OUTSIDE, BLOCKED = (int(s) for s in (AgentStatus.START_NOT_FINITE, AgentStatus.START_OUTSIDE, AgentStatus.START_BLOCKED))


class BlockPlanner:
    """Plans many agents at once; keeps what does not change between plans.

    grid: GridMap
    algorithm: "exact" (complete, optimal; the default), "pba_star" and "rtaa_star" ([CE12]), "astar" (sequential, CPU)
    block_size: side of a planning block in tiles: 4, 8, 16 or 32
    device: "auto", "cpu", "cuda" or "cuda:N"
    settings: the `Settings` of the algorithm's module; None: its defaults

    Raises GridMapError, SettingsError, DeviceError. Not for several threads at once, nor in a child forked after planning (see device.py).
    """

    def __init__(self, grid, algorithm="exact", block_size=32, device="auto", settings=None):
        if not isinstance(grid, GridMap):
            raise GridMapError(f"grid is a {type(grid).__name__}; allowed: a GridMap")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise SettingsError(f"algorithm is {shown(algorithm)}: use one of {', '.join(ALGORITHMS)}")
        if not isinstance(block_size, numbers.Real) or block_size not in BLOCK_SIZES:
            raise SettingsError(f"block_size is {shown(block_size)}: use one of {', '.join(map(str, BLOCK_SIZES))}")
        self.algorithm, self.device = algorithm, resolve_device(device)
        self._map, self._snapshot = grid, grid  # the map that is planned on, and a GridMap like it, None where there is none yet
        module, name = ALGORITHMS[algorithm]
        module = importlib.import_module(f".{module}", __package__)
        if settings is not None and not isinstance(settings, module.Settings):
            raise SettingsError(f"settings of {algorithm} are a {module.__name__}.Settings, not a {type(settings).__name__}")
        self._engine = getattr(module, name)(grid, int(block_size), self.device, settings or module.Settings())

    @property
    def grid(self):
        """The map that is planned on, a GridMap. After an update it is copied, once."""
        if self._snapshot is None:
            self._snapshot = self._map.snapshot()
        return self._snapshot

    def plan(self, starts, goals):
        """Paths from starts to goals.

        starts: (N, 2) [row, col]; goals: (2,) for all, or (N, 2). Numbers that are not whole are rounded down.
        -> PathSet of N agents; one that cannot be answered has a status that says why, and does not disturb the others

        Raises GridMapError for starts or goals of another shape or type; MemoryError where all paths take more than MOST_WORDS.
        """
        refuse_forked()
        began = time.perf_counter()
        starts = _as_tiles(starts, "starts")
        goals = _as_tiles(goals, "goals")
        if len(goals) not in (1, len(starts)):
            raise GridMapError(f"goals has {len(goals)} rows; allowed: one goal (2,), or {len(starts)}, one for each start")
        starts, status, starts_good = self._checked(starts)
        goals, goal_fault, goals_good = self._checked(goals)
        if starts_good and goals_good:
            paths = self._engine.plan(starts, np.broadcast_to(goals, starts.shape))
        else:
            of_goal = np.where(goal_fault == SOLVED, SOLVED, goal_fault + 1)  # the statuses of a goal follow those of a start
            paths = self._plan_valid(starts, goals, np.where(status == SOLVED, of_goal, status).astype(np.uint8))
        return replace(paths, time_s=time.perf_counter() - began)

    def _checked(self, tiles):
        """-> whole tiles (N, 2) int32, what is wrong with them (N,) uint8 as the status of a start, whether nothing is"""
        whole, fault = np.empty((len(tiles), 2), np.int32), np.empty(len(tiles), np.uint8)
        good = _check(tiles, self._map.costs, fault, whole)
        return whole, fault, good

    def _plan_valid(self, starts, goals, status):
        """The paths of agents of which some have a status already that says why they cannot be planned."""
        n, valid = len(status), np.flatnonzero(status == SOLVED)
        some = self._engine.plan(starts[valid], goals[valid] if len(goals) > 1 else np.broadcast_to(goals, (len(valid), 2)))
        cost, length, first = np.full(n, np.inf), np.zeros(n, np.int32), np.zeros(n, np.int64)
        status[valid], cost[valid], length[valid], first[valid] = some.status, some.cost, some.length, some.first
        return PathSet(starts, status, cost, length, first, some.words, step_bits(self._map.connectivity))

    def update(self, rows, cols, costs):
        """Tiles that have changed. rows, cols: (M,) int; costs: (M,) or one, 0 blocked; the last one of a tile counts. `plan` then
        equals planning from scratch; `exact` repairs a field when it is needed again.

        Leaves all as it was and raises GridMapError where a tile lies outside or a cost is not allowed, SettingsError where the
        costs do not stay uniform and the memory limit of `exact` is too low for weighted ones.
        """
        refuse_forked()
        changed = self._map if isinstance(self._map, WorkingMap) else WorkingMap(self._map)
        rows, cols, before = changed.change(rows, cols, costs)
        if len(rows):
            try:
                self._engine.update(changed, rows, cols)
            except Exception:
                changed.change(rows, cols, before)
                raise
            self._map, self._snapshot = changed, None

    def prepare(self, goals):
        """Plan the fields of goals (2,) or (G, 2) now, by `exact`, so that `plan` has only to follow them.

        Goals that are no free tiles are passed over. Raises SettingsError for another algorithm.
        """
        self._needs_fields()
        goals, fault, _ = self._checked(_as_tiles(goals, "goals"))
        self._engine.prepare(goals[fault == SOLVED])

    def field(self, goal):
        """Cost-to-go of every tile to a goal (row, col), by `exact`: (rows, cols) float64 in tile lengths, inf without a path.

        Raises SettingsError for another algorithm, GridMapError for a goal that is no free tile of the map.
        """
        self._needs_fields()
        tiles, _, good = self._checked(_as_tiles(goal, "goal"))
        if len(tiles) != 1 or not good:
            raise GridMapError(f"goal {shown(goal)} is not a free tile (row, col) of the {self._map.rows} x {self._map.cols} map")
        return self._engine.field(tuple(tiles[0].tolist()))

    def _needs_fields(self):
        refuse_forked()
        if self.algorithm != "exact":
            raise SettingsError(f"algorithm is {self.algorithm!r}: only 'exact' has fields")


def _as_tiles(tiles, name):
    """tiles as (N, 2), contiguous, of one of TILE_TYPES"""
    array = array_of(tiles, name)
    if array.dtype.kind == "b":
        raise GridMapError(f"{name} has the type bool; allowed: numbers [row, col]")
    if array.shape == (0,):
        array = array.reshape(0, 2)
    array = array[None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[1] != 2:
        raise GridMapError(f"{name} has shape {array.shape}; allowed: (N, 2) [row, col]")
    kind = array.dtype.newbyteorder("=")
    if kind not in TILE_TYPES:
        kind = np.int64 if np.can_cast(kind, np.int64) else np.float64
    return np.ascontiguousarray(array, kind)


@with_threads
def _check(tiles, costs, fault, whole):
    """What is wrong with tiles (N, 2): fault (N,): SOLVED nothing, NOT_FINITE, OUTSIDE, BLOCKED. whole (N, 2) int32: the tiles where they
    lie on the map, else 0. -> are all in order?"""
    (rows, cols), bad = costs.shape, 0
    for i in prange(len(tiles)):
        row, col, wrong = tiles[i, 0], tiles[i, 1], SOLVED
        if 0 <= row < rows and 0 <= col < cols:
            r, c = np.int32(row), np.int32(col)
            whole[i, 0], whole[i, 1] = r, c
            if costs[np.uintp(r), np.uintp(c)] == 0:
                wrong = BLOCKED
        else:
            whole[i, 0], whole[i, 1] = 0, 0
            wrong = OUTSIDE if np.isfinite(row) and np.isfinite(col) else NOT_FINITE
        fault[i] = wrong
        bad += wrong != SOLVED
    return bad == 0
