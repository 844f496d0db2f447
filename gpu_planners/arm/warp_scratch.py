"""CUDA: what a kernel needs to check motions, whatever the space: `space.motion_free` on the device, and the scratch of a warp."""

import functools

from numba import cuda, float32
from numba.cuda.extending import overload

from ..team_kernels import WARP
from . import image_space, planar, space
from .collision import ITEM, QUEUE, ArmScratch, motion_valid
from .image_space import ImageScratch
from .planar import PlanarScratch

space.register(ArmScratch, "cuda", motion_valid, overload)
space.register(PlanarScratch, "cuda", planar.motion_free, overload)
space.register(ImageScratch, "cuda", image_space.motion_free, overload)

THREADS = 128  # of a block
WARPS = THREADS // WARP
REGISTERS = 128  # a lane's at most, so that 16 warps fit on a multiprocessor
ALL_WAITING, ALL_ITEMS = WARPS * 2 * QUEUE, WARPS * 2 * ITEM * WARP


@functools.cache
def warp_scratch(kind, n_q, n_poses=8, n_speeds=8):
    """-> device function scratch(warp): the scratch for a checker's `scratch_sizes` of warp 0...WARPS - 1 of the block.

    What the lanes of a warp share lies in shared memory, the rest in local arrays of each lane.
    """
    all_speeds = WARPS * n_speeds
    arm, planar = space.ARM, space.PLANAR

    @cuda.jit(device=True, inline="always")
    def scratch(warp):
        if kind == arm:
            speed = cuda.shared.array(all_speeds, float32)
            waiting = cuda.shared.array(ALL_WAITING, float32)
            tau = cuda.shared.array(THREADS, float32)
            items = cuda.shared.array(ALL_ITEMS, float32)
            S = ArmScratch(speed[warp * n_speeds:(warp + 1) * n_speeds], waiting[warp * 2 * QUEUE:], tau[warp * WARP:],
                           items[warp * 2 * ITEM * WARP:], cuda.local.array(n_q, float32), cuda.local.array(n_poses, float32))
        elif kind == planar:
            S = PlanarScratch(cuda.local.array(1, float32))
        else:
            S = ImageScratch(cuda.local.array(1, float32))
        return S

    return scratch
