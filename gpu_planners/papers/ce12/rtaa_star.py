"""P-RTAA*: Real-Time Adaptive A* (Koenig & Likhachev 2006) for many agents, one thread each, as [CE12] V compares with.

Each agent walks by itself; `rtaa_star_search` has the algorithm. It walks to the end of each search ("movements" of
Koenig & Likhachev has no bound), may pass a tile several times, and its walk is its path. It keeps what it learns in a
hash table of fixed size, which forgets when it is full, and may make so many moves (AgentStatus.STEP_LIMIT). An agent
that cannot reach its goal usually runs into this limit.

Ties of f are broken by greater g, then by the order of generation. On 8-connected maps the searches count in units of
2**-12 tile lengths; the costs of the answer are exact.
"""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba import prange

from ...device import njit
from ...grid.maps.grid_map import GridMap
from ...grid.paths import MOST_STEPS, OUT_OF_MEMORY, PathSet, check_words, first_words, joined, step_bits
from ...settings import Described, setting
from .rtaa_star_search import CHUNK, LENGTH, RECORD, MetStates, Quest, World, state_count, walk, write_moves
from .shared import PAGES, Arena, check_sides, pack_all, path_set, units_of

LENGTH_UNITS = 1 << 12  # of a tile length in 8-connected searches
CHUNKS_OF_AGENT = 4  # room for moves to begin with
MOST_CHUNKS = 2**32 - PAGES  # a chunk's number is a uint32, 0 is none
MOVES_PER_SIDE = 16  # times rows + cols: the moves an agent may make, unless the settings say
TIMES = "upload", "search", "reconstruction", "transfer"


@dataclass(frozen=True)
class Settings(Described):
    """Settings of P-RTAA*."""

    lookahead: int = setting(3, "States that one search closes; 3 in the paper", 1, 128)
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
        memory = int(self.settings.memory_mb) * 2**20
        if device == "cpu":
            self._walks: Any = CpuWalks()
        else:
            from .rtaa_star_cuda import CudaWalks

            memory //= 2  # the other half is for tables
            self._walks = CudaWalks(device, memory)
        self._most = max(PAGES, min(memory // (4 * CHUNK), MOST_CHUNKS) // PAGES * PAGES)
        self._enough = 0  # chunks that were enough for the agents before
        self.update(grid, np.zeros(0), np.zeros(0))

    @property
    def memory_bytes(self) -> int:
        return self._walks.memory_bytes

    def update(self, grid: GridMap, rows: np.ndarray, cols: np.ndarray):
        """Take a changed map. Nothing that depends on it is kept between plans."""
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
        left, at_once, order = np.arange(len(starts)), len(starts), [np.zeros(0, int)]
        parts: list[PathSet] = []
        while len(left):
            batch, rest = left[:at_once], left[at_once:]
            tiles = (from_tile, to_tile) if len(batch) == len(starts) else (from_tile[batch], to_tile[batch])
            chunks = max(PAGES, min(CHUNKS_OF_AGENT * len(batch), self._most), self._enough) // PAGES * PAGES
            record, first, words = self._walks.run(*tiles, chunks, self.last_times)
            status, length, straight, diagonals, _ = record.T
            columns = status.astype(np.uint8), length.astype(np.int32), straight, diagonals, first
            part = path_set(starts[batch], self._grid.connectivity, *columns, words)
            failed = batch[status == OUT_OF_MEMORY]
            if len(batch) == len(starts) and not len(failed):
                return part
            parts.append(replace(part, words=words.copy()))  # page-locked memory is scarce
            order.append(batch)
            if len(failed):
                self._enough = min(2 * chunks, self._most)
                if len(failed) == len(batch) and chunks == self._most:  # fewer at once; one alone had all there is
                    at_once = max(len(batch) // 2, 1)
                    if len(batch) == 1:
                        failed = failed[:0]
            left = np.concatenate([failed, rest])
        return joined(parts, starts, np.concatenate(order), self._grid.connectivity)


class CpuWalks:
    """Walks on the CPU's threads; `CudaWalks` has the same methods. There are as many workers as an arena has pages."""

    def __init__(self):
        self._chunks, self.memory_bytes = np.empty(0, np.uint32), 0

    def set_map(self, costs: np.ndarray, world: World):
        """costs: (rows, cols) uint8"""
        self._costs, self._world = costs.reshape(-1), world

    def run(self, starts: np.ndarray, goals: np.ndarray, count: int, times: dict) -> tuple[np.ndarray, ...]:
        """Let agents walk from starts to goals, (N,) int32 packed tiles.

        count: chunks for their moves, a multiple of PAGES; times: gets the seconds taken
        -> records (N, RECORD) int64, first (N,) int64, words
        """
        began, world = time.perf_counter(), self._world
        if len(self._chunks) < count * CHUNK:
            self._chunks = np.empty(count * CHUNK, np.uint32)
        arena = Arena(self._chunks, np.zeros(PAGES, np.int32), 0, count // PAGES)
        record = np.empty((len(starts), RECORD), np.int64)
        _walk_all(starts, goals, self._costs, world, arena, record)
        walked = time.perf_counter()
        first, total = first_words(record[:, LENGTH], step_bits(world.moves))
        check_words(total)
        words = np.empty(total, np.uint32)
        _write_all(record, self._chunks, world.moves, words, first)
        times["search"] += walked - began
        times["reconstruction"] += time.perf_counter() - walked
        self.memory_bytes = self._chunks.nbytes + record.nbytes + words.nbytes + PAGES * (8 << world.table_bits)
        return record, first, words


@njit(parallel=True)
def _walk_all(starts, goals, costs, world, arena, record):
    flat, count = record.reshape(-1), state_count(world.lookahead, world.moves)
    for worker in prange(PAGES):  # each its share of the agents
        f, g = np.empty(count, np.int64), np.empty(count, np.int64)
        states = MetStates(f, g, np.empty(count, np.int32), np.empty(count, np.int32))
        table, page = np.empty(1 << world.table_bits, np.int64), Arena(arena.words, arena.used, worker, arena.room)
        for i in range(worker, len(starts), PAGES):
            table[:] = 0
            walk(starts[i], Quest(goals[i], costs, table, 0, world), states, page, flat, i * RECORD)


@njit(parallel=True)
def _write_all(record, chunks, moves, words, first):
    flat = record.reshape(-1)
    for i in prange(len(first)):
        write_moves(flat, i * RECORD, chunks, moves, words, first[i])
