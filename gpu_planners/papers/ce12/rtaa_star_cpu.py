"""RTAA* on the CPU's threads."""

import time

import numpy as np
from numba import prange

from ...device import lean_njit, njit
from ...grid.paths import check_words, first_words, step_bits
from .arena import PAGES, Arena, page_of
from .rtaa_star_search import CHUNK, LENGTH, RECORD, MetStates, Quest, World, state_count, walk, write_moves

CHUNKS_OF_AGENT = 4  # to begin with
MOST_CHUNKS = 2**32 - 1  # a chunk's number is a uint32, 0 is none


def chunk_count(agents: int, most: int) -> int:
    """Chunks of moves to begin with for some agents."""
    return max(1, min(CHUNKS_OF_AGENT * agents, most))


class CpuWalks:
    """Walks on the CPU's threads; `CudaWalks` has the same methods. There are as many workers as an arena has pages."""

    def __init__(self, memory_mb: int):
        self._most = max(min(int(memory_mb) * 2**20 // (4 * CHUNK), MOST_CHUNKS), PAGES)
        self._chunks, self._enough = np.empty(0, np.uint32), 0
        self.memory_bytes = 0

    def set_map(self, costs: np.ndarray, world: World):
        """costs: (rows, cols) uint8"""
        self._costs, self._world = costs.reshape(-1), world

    def grow(self) -> bool:
        """Have more room for moves from now on -> does the bound allow it?"""
        before = len(self._chunks) // CHUNK
        self._enough = min(2 * before, self._most)
        return self._enough > before

    def run(self, starts: np.ndarray, goals: np.ndarray, times: dict) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """starts, goals: (N,) int32 packed tiles; times: gets the seconds taken

        -> records (N, RECORD) int64, first (N,) int64, words
        """
        began, world = time.perf_counter(), self._world
        count = max(PAGES, chunk_count(len(starts), self._most), self._enough) // PAGES * PAGES
        if len(self._chunks) < count * CHUNK:
            self._chunks = np.empty(count * CHUNK, np.uint32)
        arena = Arena(self._chunks, np.zeros(PAGES, np.int32), 0, len(self._chunks) // (CHUNK * PAGES))
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


@njit
def _walk_share(worker, starts, goals, costs, world, arena, record):
    """A worker's share of the agents."""
    count = state_count(world.lookahead, world.moves)
    f, g = np.empty(count, np.int64), np.empty(count, np.int64)
    states = MetStates(f, g, np.empty(count, np.int32), np.empty(count, np.int32))
    table = np.empty(1 << world.table_bits, np.int64)
    for i in range(worker, len(starts), PAGES):
        table[:] = 0
        _walk_one(starts[i], Quest(goals[i], costs, table, 0, world), states, arena, worker, record, i * RECORD)


@lean_njit
def _walk_one(start, quest, states, arena, worker, record, at):
    """One agent, which takes chunks from its worker's page."""
    walk(start, quest, states, page_of(arena, worker), record, at)


@njit(parallel=True)
def _walk_all(starts, goals, costs, world, arena, record):
    flat = record.reshape(-1)
    for worker in prange(PAGES):
        _walk_share(worker, starts, goals, costs, world, arena, flat)


@njit(parallel=True)
def _write_all(record, chunks, moves, words, first):
    flat = record.reshape(-1)
    for i in prange(len(first)):
        write_moves(flat, i * RECORD, chunks, moves, words, first[i])
