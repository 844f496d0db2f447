"""CUDA: the kernel around `prm_growth.grow`. One launch grows the trees; a warp takes a sample or a motion."""

import functools

import numpy as np
from numba import cuda, float32

from ..device import cuda_jit
from ..team_kernels import WARP, team_blocks
from .collision_kernels import REGISTERS, THREADS, WARPS, warp_scratch
from .prm_growth import Ask, grow
from .prm_trees import Growth

BLOCKS_PER_MULTIPROCESSOR = 4


class CudaGrowth(Growth):
    """A launch of as many blocks as run at once. G and H are page-locked memory that host and device see."""

    def __init__(self, checker):
        super().__init__()
        self._index = int(checker.device.partition(":")[2])
        self._kernel = _kernel(*checker.scratch_sizes)
        with cuda.gpus[self._index]:
            self._most_blocks = BLOCKS_PER_MULTIPROCESSOR * cuda.get_current_device().MULTIPROCESSOR_COUNT
            self._stream = cuda.stream()
        self.workers = self._most_blocks * WARPS

    def _allocate(self, n_A, n_N, n_G, n_H):
        with cuda.gpus[self._index]:
            self._A, self._N = cuda.device_array(n_A, np.float32), cuda.to_device(np.zeros(n_N, dtype=np.int32))
            self._G, self._H = cuda.mapped_array(n_G, np.float32), cuda.mapped_array(n_H, np.int32)
        self.G, self.H = _host_view(self._G), _host_view(self._H)

    def grow(self, checker, ask):
        with cuda.gpus[self._index]:
            scene = checker.device_scene()
            blocks = team_blocks(self._kernel, THREADS, self._most_blocks)
            self._kernel[blocks, THREADS, self._stream](*ask, self._A, self._N, self._G, self._H, *scene)
            self._stream.synchronize()


def _host_view(mapped):
    """The memory of a mapped array as a plain array: compiled code of the host takes the device's kind for another type."""
    return np.ndarray(mapped.shape, mapped.dtype, buffer=mapped.gpu_data)


@functools.cache
def _kernel(kind, n_q, n_poses=8, n_speeds=8):
    """The kernel for a kind of space (`space.ARM`...) and sizes of its scratch."""
    scratch = warp_scratch(kind, n_q, n_poses, n_speeds)

    @cuda_jit(max_registers=REGISTERS)
    def prm_growth(dof, first, counts_0, counts_1, drawn, until, batch, tried, capacity, lazy, left_ms, seed, mode, step,
                   radius, near, A, N, G, H, F, I):
        warp, lane = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP
        ask = Ask(dof, first, counts_0, counts_1, drawn, until, batch, tried, capacity, lazy, left_ms, seed, mode, step, radius, near)
        qa, qb = cuda.local.array(n_q, float32)[:dof], cuda.local.array(n_q, float32)[:dof]
        grow(ask, A, N, G, H, F, I, scratch(warp), qa, qb, cuda.blockIdx.x * WARPS + warp, cuda.gridDim.x * WARPS, lane, cuda.blockIdx.x,
             cuda.gridDim.x)

    return prm_growth
