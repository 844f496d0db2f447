"""CUDA: the kernels of RTAA* and their buffers, which are kept between plans. A thread walks for an agent.

Each thread has a table and takes a page's chunks by an atomic counter; paths are then written one after the other.
"""

import functools
from typing import NamedTuple

import numpy as np
from numba import cuda, int32, int64

from .. import team_kernels  # `add` for kernels
from ..device import cuda_jit
from .agents import MOST_WORDS, step_bits, word_count
from .device_buffers import DeviceBuffers
from .pinned import PinnedPool
from .prefix_kernels import SCAN_THREADS, SUM_THREADS, clear_kernel, place_in_block, scan_kernel
from .rtaa_search import CHUNK, LENGTH, RECORD, state_count, walk, write_moves
from .rtaa_star import MOST_CHUNKS, chunk_count

PAGES = 64  # of the arena of chunks
THREADS = 128
CLEAR_THREADS, CLEAR_BLOCKS = 256, 8  # of a block, blocks on each multiprocessor
del team_kernels
TOTAL, USED = 0, 8  # places in the int32 buffer N; from USED on, chunks taken of each page


class CudaWalks:
    """As CpuWalks, on a CUDA device. One plan at a time."""

    def __init__(self, device, memory_mb):
        self._index = int(device.partition(":")[2])
        self._memory = int(memory_mb) * 2**20
        self._most = max(min(self._memory // 2 // (4 * CHUNK), MOST_CHUNKS), PAGES)  # the other half is for tables
        self._buffers, self._enough, self._count = DeviceBuffers(cuda.device_array), 0, 0
        with cuda.gpus[self._index]:
            self._stream, self._pool = cuda.stream(), PinnedPool(cuda.pinned_array)
            self._multiprocessors = cuda.get_current_device().MULTIPROCESSOR_COUNT
            self._events = [cuda.event() for _ in range(5)]
            self._head = cuda.pinned_array(USED + PAGES, np.int32)

    @property
    def memory_bytes(self):
        return self._buffers.nbytes

    def set_map(self, costs, world):
        self._world, self._kernels = world, _kernels(world.moves, world.lookahead)
        with cuda.gpus[self._index]:
            buffer = self._buffers.room("costs", costs.size, np.uint8)[:costs.size]
            buffer.copy_to_device(np.ascontiguousarray(costs.reshape(-1)), self._stream)
            self._stream.synchronize()

    def grow(self):
        """More room for moves from now on -> whether the bound allows it."""
        self._enough = min(2 * self._count, self._most)
        return self._enough > self._count

    def run(self, starts, goals, times):
        n, W, K, room = len(starts), self._world, self._kernels, self._buffers.room
        self._count = max(PAGES, chunk_count(n, self._most), self._enough) // PAGES * PAGES
        threads = max(1, min(n, (self._memory // 2) >> (W.table_bits + 3)))
        sum_blocks = -(-n // SUM_THREADS)
        with cuda.gpus[self._index]:
            agents, staged = room("agents", 2 * n, np.int32)[:2 * n], self._pool.take(2 * n, np.int32)
            tables = room("tables", threads << W.table_bits, np.int64)[:threads << W.table_bits]
            chunks, N = room("chunks", self._count * CHUNK, np.uint32), room("N", USED + PAGES, np.int32)
            answers, sums = room("answers", n * (RECORD + 1), np.int64), room("sums", sum_blocks, np.int64)
            staged[:n], staged[n:], self._head[:] = starts, goals, 0
            self._events[0].record(self._stream)
            agents.copy_to_device(staged, self._stream)
            N.copy_to_device(self._head, self._stream)
            self._events[1].record(self._stream)
            K.clear[self._multiprocessors * CLEAR_BLOCKS, CLEAR_THREADS, self._stream](tables)
            K.walks[-(-threads // THREADS), THREADS, self._stream](agents, self._buffers["costs"], tables, chunks, N, answers, n,
                                                                   threads, self._count // PAGES, W)
            self._events[2].record(self._stream)
            K.places[sum_blocks, SUM_THREADS, self._stream](answers, sums, n)
            K.scan[1, SCAN_THREADS, self._stream](sums, N, TOTAL, sum_blocks)

            def write(words):
                K.write[sum_blocks, SUM_THREADS, self._stream](answers, chunks, N, sums, words, n)
                N.copy_to_host(self._head, self._stream)
                self._stream.synchronize()
                return int(self._head[TOTAL])

            total = self._buffers.filled("words", np.uint32, write)
            self._events[3].record(self._stream)
            record, words = self._pool.take(n * (RECORD + 1), np.int64), self._pool.take(total, np.uint32)
            answers[:n * (RECORD + 1)].copy_to_host(record, self._stream)
            if total:
                self._buffers["words"][:total].copy_to_host(words, self._stream)
            self._events[4].record(self._stream)
            self._events[4].synchronize()
        for i, name in enumerate(("upload", "search", "reconstruction", "transfer")):
            times[name] += cuda.event_elapsed_time(self._events[i], self._events[i + 1]) / 1e3
        return record[:n * RECORD].reshape(n, RECORD), record[n * RECORD:], words


class Kernels(NamedTuple):
    walks: object
    places: object
    scan: object
    write: object
    clear: object


@functools.cache
def _kernels(moves, lookahead):
    """The kernels for a number of moves and a lookahead."""
    states, bits = state_count(lookahead, moves), step_bits(moves)

    @cuda_jit
    def walks(agents, costs, tables, chunks, N, record, n, threads, page_chunks, W):
        """tables: (threads << W.table_bits,) int64, all 0; record: (n * RECORD,) int64"""
        F, G = cuda.local.array(states, int64), cuda.local.array(states, int64)
        T, P = cuda.local.array(states, int32), cuda.local.array(states, int32)
        own = cuda.grid(1)
        if own < threads:
            table_at = int64(own) << W.table_bits
            for i in range(own, n, threads):
                if i > own:
                    for k in range(1 << W.table_bits):
                        tables[table_at + k] = 0
                walk(agents[i], agents[n + i], costs, tables, table_at, W, F, G, T, P, chunks, N[USED:USED + PAGES],
                     cuda.blockIdx.x % PAGES, page_chunks, record, int64(i) * RECORD)

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
    def write(record, chunks, N, sums, words, n):
        i = cuda.grid(1)
        if i < n and N[TOTAL] <= min(len(words), MOST_WORDS):
            first = record[int64(n) * RECORD + i] + sums[cuda.blockIdx.x]
            record[int64(n) * RECORD + i] = first
            write_moves(record, int64(i) * RECORD, chunks, moves, words, first)

    return Kernels(walks, places, scan_kernel(), write, clear_kernel())
