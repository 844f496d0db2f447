"""CUDA: motions of the planar arm and of the point on an image, a warp each."""

import functools

import numpy as np
from numba import cuda, int32

from ..device import cuda_jit
from ..team_kernels import WARP
from . import space
from .collision_kernels import THREADS, WARPS, CudaChecker, warp_scratch
from .plane_checker import FEW


class CudaPlane(CudaChecker):
    """As CudaChecker, for the checkers of plane_checker."""

    def __init__(self, dof, scratch_sizes, device):
        self._index = int(device.partition(":")[2])
        with cuda.gpus[self._index]:
            self._stream = cuda.stream()
        self._dof, self.scratch_sizes = dof, scratch_sizes
        self._motions = _motions(*scratch_sizes)
        self.scene, self._buffers = None, {}
        with cuda.gpus[self._index]:  # small requests stay in the host's memory, which saves the copies
            self._few = *(cuda.mapped_array((FEW, dof), np.float32) for _ in range(2)), cuda.mapped_array(FEW, np.uint8)

    def motions_valid(self, q_from, q_to, mode, step):
        n = len(q_from)
        if not 0 < n <= FEW:
            return super().motions_valid(q_from, q_to, mode, step)
        mapped_from, mapped_to, verdicts = self._few
        with cuda.gpus[self._index]:
            mapped_from[:n], mapped_to[:n] = q_from, q_to
            self._motions[(n + WARPS - 1) // WARPS, THREADS, self._stream](*self._few[:2], int32(mode), step, *self.scene, verdicts)
            self._stream.synchronize()
            return np.array(verdicts[:n])


@functools.cache
def _motions(*scratch_sizes):
    scratch = warp_scratch(*scratch_sizes)

    @cuda_jit
    def motions(q_from, q_to, mode, step, F, I, verdicts):
        warp, lane = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP
        i = cuda.blockIdx.x * WARPS + warp
        if i < len(verdicts):
            answer = space.motion_verdict(q_from[i], q_to[i], mode, step, F, I, scratch(warp), lane)
            if lane == 0:
                verdicts[i] = answer

    return motions
