"""CUDA: places of many answers of different length in one array, by prefix sums. Thread blocks have SUM_THREADS."""

from numba import cuda, int64

from ...device import cuda_jit
from ...grid.exact.descend_cuda import WALKER_WARPS, WALKERS, sum_before
from ...grid.paths import MOST_WORDS

SUM_THREADS = WALKERS


@cuda_jit(device=True)
def place_in_block(items, sums):
    """-> how many items the threads before this one have in its thread block

    sums: (thread blocks,) int64, gets how many all of them have
    """
    before, total = sum_before(int64(items), cuda.shared.array(WALKER_WARPS, int64))
    if cuda.threadIdx.x == 0:
        sums[cuda.blockIdx.x] = total
    return before


@cuda_jit
def scan(sums, state, at, blocks):
    """Replace each of sums, (blocks,) int64, by the sum of those before. Launched with one thread block.

    state[at]: gets the sum of all, MOST_WORDS + 1 where it is more
    """
    shared = cuda.shared.array(WALKER_WARPS, int64)
    i, before = cuda.threadIdx.x, int64(0)
    for _ in range(0, blocks, SUM_THREADS):
        place, total = sum_before(sums[i] if i < blocks else int64(0), shared)
        if i < blocks:
            sums[i] = before + place
        before += total
        i += SUM_THREADS
    if cuda.threadIdx.x == 0:
        state[at] = min(before, int64(MOST_WORDS + 1))


@cuda_jit
def clear(array):
    for i in range(cuda.grid(1), len(array), cuda.gridsize(1)):
        array[i] = 0
