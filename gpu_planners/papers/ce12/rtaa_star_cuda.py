"""CUDA: the kernels of RTAA* and their buffers, which are kept between plans. A thread walks for an agent.

Each thread has a table and takes a page's chunks by an atomic counter; paths are then written one after the other.
"""

import functools
from types import SimpleNamespace

import numpy as np
from numba import cuda, int32, int64

from ...device import cuda_jit
from ...grid.paths import MOST_WORDS, check_words, step_bits, word_count
from ...parallel.buffers import DeviceBuffers
from ...parallel.pinned import PinnedPool
from ...parallel.team_cuda import WARP
from .prefix_cuda import SUM_THREADS, clear, place_in_block, scan
from .rtaa_star_search import CHUNK, LENGTH, RECORD, MetStates, Quest, World, state_count, walk, write_moves
from .shared import PAGES, Arena

THREADS = 4 * WARP
CLEAR_THREADS = 256  # of a thread block that clears
CLEAR_BLOCKS = 8  # of them on each multiprocessor
# places in the int32 buffer `state`
TOTAL = 0
USED = 8  # from here on: chunks taken of each page


class CudaWalks:
    """As CpuWalks, on a CUDA device. One plan at a time."""

    def __init__(self, device: str, table_bytes: int):
        self._index, self._table_bytes = int(device.partition(":")[2]), table_bytes
        self._buffers = DeviceBuffers(cuda.device_array)
        with cuda.gpus[self._index]:
            self._stream, self._pool = cuda.stream(), PinnedPool(cuda.pinned_array)
            self._multiprocessors = cuda.get_current_device().MULTIPROCESSOR_COUNT
            self._events = [cuda.event() for _ in range(5)]
            self._head = cuda.pinned_array(USED + PAGES, np.int32)

    @property
    def memory_bytes(self) -> int:
        return self._buffers.nbytes

    def set_map(self, costs: np.ndarray, world: World):
        self._world, self._kernels = world, _kernels(world.moves, world.lookahead)
        with cuda.gpus[self._index]:
            buffer = self._buffers.room("costs", costs.size, np.uint8)[: costs.size]
            buffer.copy_to_device(np.ascontiguousarray(costs.reshape(-1)), self._stream)
            self._stream.synchronize()

    def run(self, starts: np.ndarray, goals: np.ndarray, count: int, times: dict) -> tuple[np.ndarray, ...]:
        n, world, kernels, room = len(starts), self._world, self._kernels, self._buffers.room
        threads = max(1, min(n, self._table_bytes >> (world.table_bits + 3)))
        sum_blocks = -(-n // SUM_THREADS)
        with cuda.gpus[self._index]:
            agents, staged = room("agents", 2 * n, np.int32)[: 2 * n], self._pool.take(2 * n, np.int32)
            tables = room("tables", threads << world.table_bits, np.int64)[: threads << world.table_bits]
            chunks, state = room("chunks", count * CHUNK, np.uint32), room("state", USED + PAGES, np.int32)
            answers, sums = room("answers", n * (RECORD + 1), np.int64), room("sums", sum_blocks, np.int64)
            staged[:n], staged[n:], self._head[:] = starts, goals, 0
            self._events[0].record(self._stream)
            agents.copy_to_device(staged, self._stream)
            state.copy_to_device(self._head, self._stream)
            self._events[1].record(self._stream)
            clear[self._multiprocessors * CLEAR_BLOCKS, CLEAR_THREADS, self._stream](tables)
            kernels.walks[-(-threads // THREADS), THREADS, self._stream](
                agents, self._buffers["costs"], tables, chunks, state, answers, n, threads, count // PAGES, world
            )
            self._events[2].record(self._stream)
            kernels.places[sum_blocks, SUM_THREADS, self._stream](answers, sums, n)
            scan[1, SUM_THREADS, self._stream](sums, state, TOTAL, sum_blocks)

            def write(words):
                kernels.write[sum_blocks, SUM_THREADS, self._stream](answers, chunks, state, sums, words, n)
                state.copy_to_host(self._head, self._stream)
                self._stream.synchronize()
                return int(self._head[TOTAL])

            total = self._buffers.filled("words", np.uint32, write, check_words)
            self._events[3].record(self._stream)
            record, words = self._pool.take(n * (RECORD + 1), np.int64), self._pool.take(total, np.uint32)
            answers[: n * (RECORD + 1)].copy_to_host(record, self._stream)
            if total:
                self._buffers["words"][:total].copy_to_host(words, self._stream)
            self._events[4].record(self._stream)
            self._events[4].synchronize()
        for i, name in enumerate(("upload", "search", "reconstruction", "transfer")):
            times[name] += cuda.event_elapsed_time(self._events[i], self._events[i + 1]) / 1e3
        return record[: n * RECORD].reshape(n, RECORD), record[n * RECORD :], words


@functools.cache
def _kernels(moves, lookahead):
    """The kernels for a number of moves and a lookahead."""
    count, bits = state_count(lookahead, moves), step_bits(moves)

    @cuda_jit
    def walks(agents, costs, tables, chunks, state, record, n, threads, page_chunks, world):
        """tables: (threads << world.table_bits,) int64, all 0; record: (n * RECORD,) int64"""
        f, g = cuda.local.array(count, int64), cuda.local.array(count, int64)
        states = MetStates(f, g, cuda.local.array(count, int32), cuda.local.array(count, int32))
        arena = Arena(chunks, state[USED : USED + PAGES], cuda.blockIdx.x % PAGES, page_chunks)
        own = cuda.grid(1)
        if own < threads:
            table_at = int64(own) << world.table_bits
            for i in range(own, n, threads):
                if i > own:
                    for k in range(1 << world.table_bits):
                        tables[table_at + k] = 0
                quest = Quest(agents[n + i], costs, tables, table_at, world)
                walk(agents[i], quest, states, arena, record, int64(i) * RECORD)

    @cuda_jit
    def places(record, sums, n):
        """record[n * RECORD + i]: words of the agents before i in its thread block"""
        i, words = cuda.grid(1), 0
        if i < n:
            words = word_count(record[int64(i) * RECORD + LENGTH], bits)
        place = place_in_block(words, sums)
        if i < n:
            record[int64(n) * RECORD + i] = place

    @cuda_jit
    def write(record, chunks, state, sums, words, n):
        i = cuda.grid(1)
        if i < n and state[TOTAL] <= min(len(words), MOST_WORDS):
            first = record[int64(n) * RECORD + i] + sums[cuda.blockIdx.x]
            record[int64(n) * RECORD + i] = first
            write_moves(record, int64(i) * RECORD, chunks, moves, words, first)

    return SimpleNamespace(walks=walks, places=places, write=write)
