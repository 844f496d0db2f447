"""CUDA: the bits of voxel_bits, of fields that lie on a device. A warp makes the word of 32 voxels of a row by a vote;
of blocks, whose rows are short, a thread sets or clears its voxel's bit. The bits are copied to the host."""

import functools
from typing import Any

import numpy as np
from numba import cuda

from ...device import cuda_jit
from ...parallel.arrays_cuda import number_of, stream_of, taken
from .voxel_bits import WORD, may_be_occupied

THREADS = 256
WARP = 32
LANES = 0xFFFFFFFF


def on_device(array: Any) -> Any:
    """An array as Numba's, on the device where it is."""
    return taken(array, number_of(array))


def grid_bits(distances, observed, least, most, unknown):
    """As voxel_bits.grid_bits."""
    nx, ny, nz = distances.shape
    words, number = 2 * -(-nz // WORD), number_of(distances)
    with cuda.gpus[number]:
        bits = cuda.device_array((nx, ny, words), np.uint32)
        blocks, stream = -(-nx * ny * words * WARP // THREADS), stream_of(number)
        if blocks:
            _kernels(distances.dtype.type)[0][blocks, THREADS, stream](
                distances, _flags(observed, 3), observed.size > 0, least, most, unknown, bits
            )
        stream.synchronize()
        return _on_host(bits)


def block_bits(blocks, distances, observed, least, most, unknown, shape):
    """As voxel_bits.block_bits."""
    nx, ny, nz = shape
    n, words = distances.shape[1], 2 * -(-nz // WORD)
    start = np.full((nx, ny, words), 0xFFFFFFFF if unknown else 0, np.uint32)
    count, number = len(blocks) * n**3, number_of(distances)
    with cuda.gpus[number]:
        bits, stream = cuda.to_device(start), stream_of(number)
        places, flags = cuda.to_device(blocks), _flags(observed, 4)
        _kernels(distances.dtype.type)[1][-(-count // THREADS), THREADS, stream](
            places, distances, flags, observed.size > 0, least, most, unknown, bits
        )
        stream.synchronize()
        return _on_host(bits)


def _flags(observed, axes):
    return observed if observed.size else cuda.device_array((1,) * axes, np.uint8)


def _on_host(bits):
    return bits.copy_to_host().view(np.uint64)


@functools.cache
def _kernels(kind):
    """(of grids, of blocks) of one type of distances; half precision is looked at as single."""
    wide = np.float64 if kind is np.float64 else np.float32

    @cuda_jit
    def grid(distances, observed, flagged, least, most, unknown, bits):
        nx, ny, nz = distances.shape
        words = bits.shape[2]
        word, lane = cuda.grid(1) // WARP, cuda.grid(1) % WARP
        row = word // words
        i, j, w = row // ny, row % ny, word % words
        occupied = False
        if i < nx and WARP * w + lane < nz:
            k = WARP * w + lane
            occupied = may_be_occupied(wide(distances[i, j, k]), least, most, unknown)
            if flagged and observed[i, j, k] == 0:
                occupied = unknown
        votes = cuda.ballot_sync(LANES, occupied)
        if i < nx and lane == 0:
            bits[i, j, w] = np.uint32(votes)

    @cuda_jit
    def block(blocks, distances, observed, flagged, least, most, unknown, bits):
        n, v = distances.shape[1], cuda.grid(1)
        if v >= len(blocks) * n * n * n:
            return
        b, i, j, k = v // (n * n * n), v // (n * n) % n, v // n % n, v % n
        occupied = may_be_occupied(wide(distances[b, i, j, k]), least, most, unknown)
        if flagged and observed[b, i, j, k] == 0:
            occupied = unknown
        if occupied != unknown:
            z = n * blocks[b, 2] + k
            bit = np.uint32(1) << np.uint32(z % WARP)
            place = n * blocks[b, 0] + i, n * blocks[b, 1] + j, z // WARP
            if occupied:
                cuda.atomic.or_(bits, place, bit)
            else:
                cuda.atomic.and_(bits, place, ~bit)

    return grid, block
