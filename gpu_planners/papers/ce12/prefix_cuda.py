"""CUDA: places of many answers of different length in one array, by prefix sums.

A thread block has SUM_THREADS threads.
"""

import functools

from numba import cuda, int64

from ...device import cuda_jit
from ...grid.paths import MOST_WORDS

SUM_THREADS, SCAN_THREADS = 256, 1024


@cuda_jit(device=True)
def sum_up(shared, t, value):
    """-> sum of the values of threads 0..t of the thread block. shared: an item for each thread"""
    shared[t] = value
    reach = 1
    while reach < cuda.blockDim.x:
        cuda.syncthreads()
        more = shared[t - reach] if t >= reach else value - value
        cuda.syncthreads()
        shared[t] += more
        reach *= 2
    cuda.syncthreads()
    return shared[t]


@cuda_jit(device=True)
def place_in_block(items, sums):
    """-> how many items the threads before this one have in its thread block

    sums: (thread blocks,) int64, gets how many all of them have
    """
    shared = cuda.shared.array(SUM_THREADS, int64)
    t = cuda.threadIdx.x
    total = sum_up(shared, t, int64(items))
    if t == SUM_THREADS - 1:
        sums[cuda.blockIdx.x] = total
    return total - items


@functools.cache
def scan_kernel():
    """Launched with one thread block of SCAN_THREADS."""

    @cuda_jit
    def scan(sums, state, at, blocks):
        """Replace each of sums, (blocks,) int64, by the sum of those before.

        state[at]: gets the sum of all, MOST_WORDS + 1 where it is more
        """
        shared = cuda.shared.array(SCAN_THREADS, int64)
        t, before = cuda.threadIdx.x, int64(0)
        for base in range(0, blocks, SCAN_THREADS):
            own = sums[base + t] if base + t < blocks else int64(0)
            up_to = sum_up(shared, t, own)
            if base + t < blocks:
                sums[base + t] = before + up_to - own
            before += shared[SCAN_THREADS - 1]
            cuda.syncthreads()
        if t == 0:
            state[at] = min(before, int64(MOST_WORDS + 1))

    return scan


@functools.cache
def clear_kernel():
    @cuda_jit
    def clear(array):
        for i in range(cuda.grid(1), len(array), cuda.gridsize(1)):
            array[i] = 0

    return clear
