"""P-RTAA*: Real-Time Adaptive A* (Koenig & Likhachev 2006) for many agents, one thread each, as [CE12] V compares with.

Each agent walks by itself; `rtaa_star_search` has the algorithm. It walks to the end of each search ("movements" of
Koenig & Likhachev has no bound), may pass a tile several times, and its walk is its path. It keeps what it learns in a
hash table of fixed size, which forgets when it is full, and may make so many moves (AgentStatus.STEP_LIMIT). An agent
that cannot reach its goal usually runs into this limit.

Ties of f are broken by greater g, then by the order of generation. On 8-connected maps the searches count in units of
2**-12 tile lengths; the costs of the answer are exact.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...grid.maps.grid_map import GridMap
from ...grid.paths import MOST_STEPS, OUT_OF_MEMORY, PathSet
from ...settings import Described, setting
from .answers import Answers
from .packed_tiles import check_sides, pack_all, units_of
from .rtaa_star_cpu import CpuWalks
from .rtaa_star_search import DIAGONALS, LENGTH, STATUS, STRAIGHT, World

MOST_LOOKAHEAD = 128
LENGTH_UNITS = 1 << 12  # of a tile length in 8-connected searches
MOVES_PER_SIDE = 16  # times rows + cols: the moves an agent may make, unless the settings say
TIMES = "upload", "search", "reconstruction", "transfer"


@dataclass(frozen=True)
class Settings(Described):
    """Settings of P-RTAA*."""

    lookahead: int = setting(3, "States that one search closes; 3 in the paper", 1, MOST_LOOKAHEAD)
    most_moves: int = setting(0, "Moves that an agent may make; 0: 16 times (rows + columns)", 0, MOST_STEPS)
    table_size: int = setting(
        512,
        "Tiles whose heuristics an agent remembers",
        16,
        65536,
        must=("a power of two", lambda size: size & (size - 1) == 0),
    )
    memory_mb: int = setting(
        4096, "Bound on the memory for tables and moves; agents beyond it go in batches", 1, 2**20, unit="MB"
    )


class RtaaStar:
    """RTAA* on one map. block_size has no meaning here.

    last_times: seconds of the last plan by step (`TIMES`)
    memory_bytes: what tables, moves and answers take on the device
    """

    def __init__(self, grid: GridMap, block_size: int = 8, device: str = "cpu", settings: Settings | None = None):
        self.settings = settings or Settings()
        self.last_times = dict.fromkeys(TIMES, 0.0)
        if device == "cpu":
            self._walks: Any = CpuWalks(self.settings.memory_mb)
        else:
            from .rtaa_star_cuda import CudaWalks

            self._walks = CudaWalks(device, self.settings.memory_mb)
        self._set_map(grid)

    @property
    def memory_bytes(self) -> int:
        return self._walks.memory_bytes

    def update(self, grid: GridMap, rows: np.ndarray, cols: np.ndarray):
        """Take a changed map. Nothing that depends on it is kept between plans."""
        self._set_map(grid)

    def _set_map(self, grid):
        check_sides(grid, "rtaa_star")
        settings = self.settings
        most_moves = int(settings.most_moves) or MOVES_PER_SIDE * (grid.rows + grid.cols)
        self._grid = grid
        units = units_of(grid.connectivity, LENGTH_UNITS)
        bounds = int(settings.lookahead), most_moves, int(settings.table_size).bit_length() - 1
        self._world = World(*grid.shape, grid.connectivity, *units, max(grid.least_cost, 1), *bounds)
        self._walks.set_map(grid.costs, self._world)

    def plan(self, starts: np.ndarray, goals: np.ndarray) -> PathSet:
        """Paths of agents. starts, goals: (N, 2) int32 [row, col], free tiles of the map"""
        self.last_times = dict.fromkeys(TIMES, 0.0)
        starts = np.ascontiguousarray(starts, np.int32)
        from_tile, to_tile = pack_all(starts), pack_all(np.asarray(goals, np.int32))
        left, at_once, answers = np.arange(len(starts)), len(starts), Answers(len(starts))
        while len(left):
            batch, rest = left[:at_once], left[at_once:]
            tiles = (from_tile, to_tile) if len(batch) == len(starts) else (from_tile[batch], to_tile[batch])
            record, first, words = self._walks.run(*tiles, self.last_times)
            status, length = record[:, STATUS].astype(np.uint8), record[:, LENGTH].astype(np.int32)
            answers.put(batch, status, length, record[:, STRAIGHT], record[:, DIAGONALS], first, words=words)
            failed = batch[status == OUT_OF_MEMORY]
            if len(failed):
                more = self._walks.grow()
                if len(failed) == len(batch) and not more:  # no progress: fewer at once; one alone had all there is
                    at_once = max(len(batch) // 2, 1)
                    if len(batch) == 1:
                        failed = failed[:0]
            left = np.concatenate([failed, rest])
        return answers.path_set(starts, self._grid.connectivity)
