"""BlockPlanner: paths of many agents on one map, by the algorithm that is named."""

import importlib
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numba import prange
from numpy.typing import ArrayLike

from ..arguments import instance
from ..device import refuse_forked, resolve_device
from ..distributed.progress import Progress
from ..errors import GridMapError, SettingsError, shown
from .exact import fields
from .exact.blocks import checked_size
from .maps.grid_map import GridMap, WorkingMap
from .paths import SOLVED, START_BLOCKED, START_NOT_FINITE, START_OUTSIDE, PathSet, joined, with_threads
from .tiles import as_tiles


class Algorithm(NamedTuple):
    """An algorithm of BlockPlanner, by the names of its module and of a class there. The module is imported when the
    algorithm is first asked for, so that nobody loads one to compare with but who asks for it.

    The class: (grid, block_size, device, settings) -> an object with plan(starts, goals) -> PathSet and
    update(grid, rows, cols). Beside it stands `Settings`, a dataclass whose defaults can be planned with.
    """

    module: str
    name: str

    @property
    def engine(self) -> Any:
        return getattr(importlib.import_module(self.module), self.name)

    @property
    def settings(self) -> Any:
        return importlib.import_module(self.module).Settings


ALGORITHMS = MappingProxyType(
    {
        "exact": Algorithm("gpu_planners.grid.exact.fields", "Exact"),
        "pba_star": Algorithm("gpu_planners.papers.ce12.pba_star", "PbaStar"),
        "rtaa_star": Algorithm("gpu_planners.papers.ce12.rtaa_star", "RtaaStar"),
        "astar": Algorithm("gpu_planners.grid.astar", "Astar"),
    }
)


class BlockPlanner:
    """Plans many agents at once; keeps what does not change between plans.

    grid: GridMap
    algorithm: "exact" (complete, optimal; the default), "pba_star" and "rtaa_star" ([CE12]), "astar" (sequential, CPU)
    block_size: side of a planning block in tiles: 4, 8, 16 or 32
    device: "auto", "cpu", "cuda" or "cuda:N"
    settings: the `Settings` of the algorithm's module; None: its defaults

    Raises GridMapError, SettingsError, DeviceError. Not for several threads at once, nor in a child forked after
    planning (see device.py).
    """

    def __init__(
        self, grid: GridMap, algorithm: str = "exact", block_size: int = 32, device: str = "auto", settings: Any = None
    ):
        instance("grid", grid, GridMap, "a GridMap", GridMapError)
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise SettingsError(f"algorithm is {shown(algorithm)}: use one of {', '.join(ALGORITHMS)}")
        block_size = checked_size(block_size)
        self.algorithm: str = algorithm
        self.device: str = resolve_device(device)
        self._map: Any = grid  # that is planned on, a GridMap or WorkingMap
        self._snapshot: GridMap | None = grid  # one like it; None where there is none yet
        engine, kind = ALGORITHMS[algorithm].engine, ALGORITHMS[algorithm].settings
        if settings is not None and not isinstance(settings, kind):
            raise SettingsError(
                f"settings of {algorithm} are a {kind.__module__}.Settings, not a {type(settings).__name__}"
            )
        self._engine: Any = engine(grid, block_size, self.device, settings or kind())

    @property
    def grid(self) -> GridMap:
        """The map that is planned on, a GridMap. After an update it is copied, once."""
        if self._snapshot is None:
            self._snapshot = self._map.snapshot()
        return self._snapshot

    def plan(
        self,
        starts: ArrayLike,
        goals: ArrayLike,
        executor: Executor | None = None,
        devices: str | Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> PathSet:
        """Paths from starts to goals.

        starts: (N, 2) [row, col]; goals: (2,) for all, or (N, 2). Numbers that are not whole are rounded down.
        executor, devices, progress: with one of the first two, workers share the goals of a plan by `exact`, as those
            of `rrt_connect.solve_batch` share problems. The answer is the same; each keeps fields of its own, and the
            settings' time limit is for each piece that one of them gets

        -> PathSet of N agents; one that cannot be answered has a status that says why, and does not disturb the others

        Raises GridMapError for starts or goals of another shape or type; MemoryError where all paths take more than
        MOST_WORDS; SettingsError for another algorithm with workers; WorkerError where one died.
        """
        refuse_forked()
        began = time.perf_counter()
        given_starts, given_goals = as_tiles("starts", starts), as_tiles("goals", goals)
        n = len(given_starts)
        if len(given_goals) not in (1, n):
            raise GridMapError(f"goals has {len(given_goals)} rows; allowed: one goal (2,), or {n}, one for each start")
        plan = self._planning(executor, devices, progress)
        whole_starts, status, starts_good = self._checked(given_starts)
        whole_goals, goal_fault, goals_good = self._checked(given_goals)
        if starts_good and goals_good:
            paths = plan(whole_starts, np.broadcast_to(whole_goals, whole_starts.shape))
        else:
            of_goal = np.where(goal_fault == SOLVED, SOLVED, goal_fault + 1)  # a goal's status follows a start's
            status = np.where(status == SOLVED, of_goal, status).astype(np.uint8)
            paths = self._plan_valid(plan, whole_starts, whole_goals, status)
        return replace(paths, time_s=time.perf_counter() - began)

    def _checked(self, tiles):
        """-> whole tiles (N, 2) int32, what is wrong with each (N,) uint8 as the status of a start, are all good?"""
        whole, fault = np.empty((len(tiles), 2), np.int32), np.empty(len(tiles), np.uint8)
        good = _check(tiles, self._map.costs, fault, whole)
        return whole, fault, good

    def _planning(self, executor, devices, progress):
        """What plans the paths of agents between free tiles: the engine, or workers."""
        if executor is None and devices is None:
            return self._engine.plan
        if self.algorithm != "exact":
            raise SettingsError(f"algorithm is {self.algorithm!r}: only the goals of 'exact' are shared by workers")
        workers = executor, devices, progress
        return lambda starts, goals: fields.plan_spread(self._engine, self.grid, starts, goals, *workers)

    def _plan_valid(self, plan, starts, goals, status):
        """The paths of agents; those with a status other than SOLVED are not planned."""
        bad, valid = status != SOLVED, np.flatnonzero(status == SOLVED)
        some = plan(starts[valid], goals[valid] if len(goals) > 1 else np.broadcast_to(goals, (len(valid), 2)))
        paths = joined([some], starts, valid, self._map.connectivity)
        paths.status[bad] = status[bad]
        return paths

    def update(self, rows: ArrayLike, cols: ArrayLike, costs: ArrayLike):
        """Change tiles. `plan` then equals planning from scratch; `exact` repairs a field when it is needed again.

        rows, cols: (M,) int; costs: (M,) or one, 0 blocked; the last one of a tile counts

        Leaves all as it was and raises GridMapError where a tile lies outside or a cost is not allowed, SettingsError
        where the costs do not stay uniform and the memory limit of `exact` is too low for weighted ones.
        """
        refuse_forked()
        changed = self._map if isinstance(self._map, WorkingMap) else WorkingMap(self._map)
        row, col, before = changed.change(rows, cols, costs)
        if len(row):
            try:
                self._engine.update(changed, row, col)
            except Exception:
                changed.change(row, col, before)
                raise
            self._map, self._snapshot = changed, None

    def prepare(self, goals: ArrayLike):
        """Plan the fields of goals (2,) or (G, 2) now, by `exact`, so that `plan` has only to follow them.

        Goals that are no free tiles are passed over. Raises SettingsError for another algorithm.
        """
        self._needs_fields()
        tiles, fault, _ = self._checked(as_tiles("goals", goals))
        self._engine.prepare(tiles[fault == SOLVED])

    def field(self, goal: ArrayLike) -> np.ndarray:
        """Cost-to-go of every tile to a goal (row, col), by `exact`: (rows, cols) float64 in tile lengths, inf without
        a path.

        Raises SettingsError for another algorithm, GridMapError for a goal that is no free tile of the map.
        """
        self._needs_fields()
        tiles, _, good = self._checked(as_tiles("goal", goal))
        if len(tiles) != 1 or not good:
            raise GridMapError(
                f"goal {shown(goal)} is not a free tile (row, col) of the {self._map.rows} x {self._map.cols} map"
            )
        return self._engine.field(tuple(tiles[0].tolist()))

    def _needs_fields(self):
        refuse_forked()
        if self.algorithm != "exact":
            raise SettingsError(f"algorithm is {self.algorithm!r}: only 'exact' has fields")


@with_threads
def _check(tiles, costs, fault, whole):
    """Are all tiles (N, 2) free tiles of the map?

    fault: (N,) gets what is wrong, as the status of a start: SOLVED nothing, START_NOT_FINITE, START_OUTSIDE,
        START_BLOCKED
    whole: (N, 2) int32 gets the tiles where they lie on the map, else 0
    """
    (rows, cols), bad = costs.shape, 0
    for i in prange(len(tiles)):
        row, col, wrong = tiles[i, 0], tiles[i, 1], SOLVED
        if 0 <= row < rows and 0 <= col < cols:
            r, c = np.int32(row), np.int32(col)
            whole[i, 0], whole[i, 1] = r, c
            if costs[np.uintp(r), np.uintp(c)] == 0:
                wrong = START_BLOCKED
        else:
            whole[i, 0], whole[i, 1] = 0, 0
            wrong = START_OUTSIDE if np.isfinite(row) and np.isfinite(col) else START_NOT_FINITE
        fault[i] = wrong
        bad += wrong != SOLVED
    return bad == 0
