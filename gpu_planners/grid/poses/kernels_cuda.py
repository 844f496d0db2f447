"""CUDA: thin kernels of `free`, `relax` and `descent`."""

import functools
from typing import NamedTuple

import numpy as np
from numba import cuda, int32, int64

from ...device import cuda_jit
from ...parallel.team import Worker
from ...parallel.team_cuda import WARP
from .descent import walk
from .free import free_word, widen
from .pose_grid import Table
from .relax_cuda import LENGTHS, Field, update_field

WARPS = 16  # of a CUDA block
THREADS = 128  # of the other kernels
REGISTERS = 64


class Placed(NamedTuple):
    """What `descent.walk` reads of a `relax.PoseField`."""

    rows: int
    cols: int
    cost: np.ndarray
    free: np.ndarray
    value: np.ndarray


@cuda.jit(device=True, inline=True)
def table_of(numbers, moves, layers):
    """A packed table: its arrays one after the other."""
    first, into = 6 * moves, 6 * moves + layers + 1
    return Table(
        numbers[:moves],
        numbers[moves : 2 * moves],
        numbers[2 * moves : 3 * moves],
        numbers[3 * moves : 4 * moves],
        numbers[4 * moves : 5 * moves],
        numbers[5 * moves : 6 * moves],
        numbers[first:into],
        numbers[into : into + moves],
        numbers[into + moves : into + moves + layers + 1],
    )


@functools.cache
def widen_kernel():
    @cuda_jit
    def widen_level(near, level, first, last):
        i = cuda.grid(1)
        words = near.shape[2]
        if i < (last - first) * words:
            row, word = first + i // words, i % words
            near[level + 1, row, word] = widen(near[level, row], level, word)

    return widen_level


@functools.cache
def free_kernel():
    @cuda_jit
    def fill_free(near, runs, starts, first_row, last_row, first_word, last_word, free):
        i = cuda.grid(1)
        rows, words = last_row - first_row, last_word - first_word
        if i < rows * words * free.shape[0]:
            row, word = first_row + i // words % rows, first_word + i % words
            plane = i // (words * rows)
            free[plane, row, word] = free_word(plane, row, word, near, runs, starts)

    return fill_free


@functools.cache
def bits_kernel():
    @cuda_jit
    def read_bits(free, planes, rows, cols, found):
        i = cuda.grid(1)
        if i < len(found):
            word = free[planes[i], rows[i], cols[i] >> 5]
            found[i] = word >> np.uint32(cols[i] & 31) & np.uint32(1)

    return read_bits


@functools.cache
def values_kernel():
    @cuda_jit
    def read_values(value, states, found):
        i = cuda.grid(1)
        if i < len(found):
            found[i] = value[states[i]]

    return read_values


@functools.cache
def update_kernel():
    @cuda_jit(max_registers=REGISTERS)
    def update(sizes, moves, numbers, orders, seeds, cost, free, value, look, lists, memory):
        rows, cols, layers, span = sizes
        warp, lane = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP
        member, members = cuda.blockIdx.x, cuda.gridDim.x
        worker = Worker(warp * members + member, members * WARPS, lane, member, members, memory, memory)
        field = Field(rows, cols, layers, span, cost, free, value, look, lists, table_of(numbers, moves, layers))
        lengths = cuda.shared.array(LENGTHS, int32)
        update_field(orders[0], orders[5 : 5 + seeds], orders[1:5], lengths, field, worker)

    return update


@functools.cache
def follow_kernel():
    @cuda_jit
    def follow(sizes, moves, numbers, cost, free, value, starts, first, found, writing):
        rows, cols, layers, _ = sizes
        i = cuda.grid(1)
        if i < len(starts):
            field = Placed(rows, cols, cost, free, value)
            table = table_of(numbers, moves, layers)
            layer, row, col = int64(starts[i, 0]), int64(starts[i, 1]), int64(starts[i, 2])
            if not writing:
                first[i + 1] = max(walk(layer, row, col, field, table, found, int64(-1)), int64(0))
            elif first[i + 1] > first[i]:
                walk(layer, row, col, field, table, found, first[i])

    return follow
