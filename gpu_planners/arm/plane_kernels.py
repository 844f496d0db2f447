"""CUDA: motions of the planar arm and of the point on an image, a warp each."""

import functools

from numba import cuda, float32
from numba.cuda.extending import overload

from ..device import cuda_jit
from ..team_kernels import WARP
from . import image_space, planar, space
from .collision_kernels import WARPS, CudaChecker
from .image_space import ImageScratch
from .planar import PlanarScratch

space.register(PlanarScratch, "cuda", planar.motion_free, overload)
space.register(ImageScratch, "cuda", image_space.motion_free, overload)


class CudaPlane(CudaChecker):
    """As CudaChecker, for the checkers of plane_checker."""

    def __init__(self, dof, scratch_sizes, device):
        self._index = int(device.partition(":")[2])
        with cuda.gpus[self._index]:
            self._stream = cuda.stream()
        self._dof, self.scratch_sizes = dof, scratch_sizes
        self._motions = _motions(scratch_sizes[0])
        self.scene, self._buffers = None, {}


@functools.cache
def _motions(kind):
    scratch = {space.PLANAR: PlanarScratch, space.IMAGE: ImageScratch}[kind]

    @cuda_jit
    def motions(q_from, q_to, mode, step, F, I, valid):
        warp, lane = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP
        i = cuda.blockIdx.x * WARPS + warp
        if i < len(valid):
            is_free = space.motion_free(q_from[i], q_to[i], mode, step, F, I, scratch(cuda.local.array(1, float32)), lane)
            if lane == 0:
                valid[i] = is_free

    return motions
