"""P-RTAA*: Real-Time Adaptive A* (Koenig & Likhachev 2006) for many agents, one thread each, as [CE12] V compares with.

Each agent walks on its own; `rtaa_search.py` has the algorithm. It walks the whole way to the end of each search ("movements" of
Koenig & Likhachev is not bounded), may pass a tile several times, and its walk is its path. An agent's memory is bounded:
what it learns is kept in a hash table of fixed size, which forgets when it is full, and its moves are bounded
(AgentStatus.STEP_LIMIT). An agent that cannot reach its goal usually finds that out only by its limit.

Ties of f are broken by greater g, then by the order of generation. On 8-connected maps the searches count in units of 2**-12
tile lengths; the costs of the answer are exact.
"""

import time
from dataclasses import dataclass

import numpy as np
from numba import prange

from ..device import njit
from ..errors import SettingsError
from .agents import MOST_STEPS, check_words, first_words, step_bits
from .answers import Answers
from .checks import whole
from .packed_tiles import check_sides, pack_all
from .rtaa_search import (
    CHUNK,
    DIAGONALS,
    LENGTH,
    OUT_OF_MEMORY,
    RECORD,
    STATUS,
    STRAIGHT,
    World,
    state_count,
    units_of,
    walk,
    write_moves,
)

MOST_LOOKAHEAD = 128
WORKERS = 64  # on the CPU; each has its page of the arena
MOVES_PER_SIDE = 16  # times rows + cols: the moves an agent may make, unless the settings say
CHUNKS_OF_AGENT = 4  # to begin with
MOST_CHUNKS = 2**32 - 1  # a chunk's number is a uint32, 0 is none
TIMES = "upload", "search", "reconstruction", "transfer"


@dataclass(frozen=True)
class Settings:
    """lookahead: states that one search closes, 1..128; 3 in the paper
    most_moves: an agent may make; 0: 16 times (rows + cols)
    table_size: tiles whose heuristics an agent remembers, a power of two, 16..65536
    memory_mb: bound on the memory for tables and moves, MB; agents that do not fit go in batches
    """

    lookahead: int = 3
    most_moves: int = 0
    table_size: int = 512
    memory_mb: int = 4096

    def __post_init__(self):
        for name, low, high in (("lookahead", 1, MOST_LOOKAHEAD), ("most_moves", 0, MOST_STEPS), ("table_size", 16, 65536),
                                ("memory_mb", 1, 2**20)):
            whole(name, getattr(self, name), low, high)
        if self.table_size & (self.table_size - 1):
            raise SettingsError(f"table_size is {self.table_size}; allowed: a power of two")


class RtaaStar:
    """RTAA* on one map. block_size has no meaning here.

    last_times: seconds of the last plan by step (`TIMES`)
    memory_bytes: what tables, moves and answers take on the device
    """

    def __init__(self, grid, block_size=8, device="cpu", settings=None):
        self.settings = settings or Settings()
        self.last_times = dict.fromkeys(TIMES, 0.0)
        if device == "cpu":
            self._walks = CpuWalks(self.settings.memory_mb)
        else:
            from .rtaa_star_kernels import CudaWalks

            self._walks = CudaWalks(device, self.settings.memory_mb)
        self._set_map(grid)

    @property
    def memory_bytes(self):
        return self._walks.memory_bytes

    def update(self, grid, rows, cols):
        """Some tiles have changed. Nothing is kept between plans that depends on them."""
        self._set_map(grid)

    def _set_map(self, grid):
        check_sides(grid, "rtaa_star")
        settings = self.settings
        most_moves = int(settings.most_moves) or MOVES_PER_SIDE * (grid.rows + grid.cols)
        self._grid = grid
        self._world = World(grid.rows, grid.cols, grid.connectivity, *units_of(grid.connectivity), max(grid.least_cost, 1),
                            int(settings.lookahead), most_moves, int(settings.table_size).bit_length() - 1)
        self._walks.set_map(grid.costs, self._world)

    def plan(self, starts, goals):
        """starts, goals: (N, 2) int32 [row, col], free tiles of the map -> PathSet"""
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


def chunk_count(agents, most):
    """Chunks of moves to begin with for some agents."""
    return max(1, min(CHUNKS_OF_AGENT * agents, most))


class CpuWalks:
    """Walks on the CPU's threads; `CudaWalks` has the same methods."""

    def __init__(self, memory_mb):
        self._most = max(min(int(memory_mb) * 2**20 // (4 * CHUNK), MOST_CHUNKS), WORKERS)
        self._chunks, self._enough = np.empty(0, np.uint32), 0
        self.memory_bytes = 0

    def set_map(self, costs, world):
        self._costs, self._world = costs.reshape(-1), world

    def grow(self):
        """More room for moves from now on -> whether the bound allows it."""
        before = len(self._chunks) // CHUNK
        self._enough = min(2 * before, self._most)
        return self._enough > before

    def run(self, starts, goals, times):
        """starts, goals: (N,) int32 packed tiles -> records (N, RECORD) int64, first (N,) int64, words"""
        began, W = time.perf_counter(), self._world
        count = max(WORKERS, chunk_count(len(starts), self._most), self._enough) // WORKERS * WORKERS
        if len(self._chunks) < count * CHUNK:
            self._chunks = np.empty(count * CHUNK, np.uint32)
        used, record = np.zeros(WORKERS, np.int32), np.empty((len(starts), RECORD), np.int64)
        _walk_all(starts, goals, self._costs, W, self._chunks, used, record)
        walked = time.perf_counter()
        first, total = first_words(record[:, LENGTH], step_bits(W.moves))
        check_words(total)
        words = np.empty(total, np.uint32)
        _write_all(record, self._chunks, W.moves, words, first)
        times["search"] += walked - began
        times["reconstruction"] += time.perf_counter() - walked
        self.memory_bytes = self._chunks.nbytes + record.nbytes + words.nbytes + WORKERS * (8 << W.table_bits)
        return record, first, words


@njit(parallel=True)
def _walk_all(starts, goals, costs, W, chunks, used, record):
    flat = record.reshape(-1)
    page_chunks = len(chunks) // (CHUNK * WORKERS)
    states = state_count(W.lookahead, W.moves)
    for worker in prange(WORKERS):
        table = np.empty(1 << W.table_bits, np.int64)
        F, G = np.empty(states, np.int64), np.empty(states, np.int64)
        T, P = np.empty(states, np.int32), np.empty(states, np.int32)
        for i in range(worker, len(starts), WORKERS):
            table[:] = 0
            walk(starts[i], goals[i], costs, table, 0, W, F, G, T, P, chunks, used, worker, page_chunks, flat, i * RECORD)


@njit(parallel=True)
def _write_all(record, chunks, moves, words, first):
    flat = record.reshape(-1)
    for i in prange(len(first)):
        write_moves(flat, i * RECORD, chunks, moves, words, first[i])
