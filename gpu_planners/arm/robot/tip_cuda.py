"""CUDA: a thread for each search of `tip_search`.

Local arrays need constant sizes, so there is a kernel for each power of two of frames.
"""

import functools
import time
from collections.abc import Callable

import numpy as np
from numba import cuda, float64

from ...device import cuda_jit
from ...parallel.team import NEVER
from .chain import Chain
from .tip_search import Ends, Searches, SearchScratch, Tolerances, run_search

THREADS = 64  # of a block
AT_ONCE = 1 << 16  # searches of a launch, between two looks at the clock
LEAST_SIZE = 8  # frames, and joints, of the chains that the smallest kernel is for


@functools.cache
def runner(device: str) -> Callable[[Chain, Tolerances, Searches, int, int], Ends]:
    """`tip_search.run_on_cpu` for a device "cuda:N"."""
    index = int(device.partition(":")[2])

    def run(chain, tolerances, searches, count, deadline):
        rows, n = len(searches.poses) * count, searches.firsts.shape[1]
        kernel = search_kernel(max(LEAST_SIZE, 1 << (len(chain.joints) - 1).bit_length()))
        with cuda.gpus[index]:
            given = [cuda.to_device(each) for each in (*chain, searches.goals, searches.firsts, searches.poses)]
            found = cuda.to_device(np.zeros(rows, np.uint8))
            q, misses = cuda.device_array((rows, n), np.float64), cuda.device_array((rows, 2), np.float64)
            asked = searches.seed, searches.number, *tolerances
            for first in range(0, rows, AT_ONCE):
                if time.monotonic_ns() >= deadline:
                    break
                blocks = -(-min(rows - first, AT_ONCE) // THREADS)
                kernel[blocks, THREADS](*given, *asked, first, found, q, misses)
                if deadline < NEVER:
                    cuda.synchronize()
            return Ends(found.copy_to_host(), q.copy_to_host(), misses.copy_to_host())

    return run


@functools.cache
def search_kernel(size: int) -> Callable:
    """The kernel for chains of at most `size` frames. A joint has a frame at least, so joints fit too."""

    @cuda_jit
    def run(
        frames, limits, joints, kinds, goals, firsts, poses, seed, number, position, angle, first, found, q, misses
    ):
        chain, n = Chain(frames, limits, joints, kinds), len(kinds)
        scratch = SearchScratch(
            cuda.local.array(size, float64)[:n],
            cuda.local.array(size, float64)[:n],
            cuda.local.array((size, 6), float64)[: len(joints)],
            cuda.local.array((size, 6), float64)[:n],
            cuda.local.array((6, 6), float64),
            cuda.local.array(6, float64),
            cuda.local.array(6, float64),
        )
        i = first + cuda.grid(1)
        if i < len(found):
            searches = Searches(goals, firsts, seed, poses, number)
            run_search(chain, Tolerances(position, angle), searches, i, Ends(found, q, misses), scratch)

    return run
