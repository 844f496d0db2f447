"""CUDA: motions of the planar arm and of the point on an image, a warp each."""

import functools

import numpy as np
from numba import cuda, float32, int32
from numba.cuda.extending import overload  # type: ignore[attr-defined]

from . import interface
from .cuda import THREADS, WARPS, CudaBatches, motion_kernel, register_scratch

FEW = 64  # motions whose request stays in the host's memory, which saves the copies


@functools.cache
def _register(kind, scratch_class, motion_free):
    """Let a kind of space, whose scratch keeps nothing, be checked on CUDA by its `motion_free`."""

    def make(*sizes):
        @cuda.jit(device=True, inline="always")
        def scratch(warp, spill):
            return scratch_class(cuda.local.array(1, float32))

        return scratch

    register_scratch(kind, make)
    interface.register(scratch_class, "cuda", motion_free, overload)


class CudaPlane:
    """Motions for the checkers of plane_checker, on one CUDA device. Not for several threads at once."""

    def __init__(self, dof, scratch_sizes, device, scratch_class, motion_free):
        _register(scratch_sizes[0], scratch_class, motion_free)
        self._batches, self._motions = CudaBatches(device, dof, scratch_sizes), motion_kernel(*scratch_sizes)
        with cuda.gpus[self._batches.index]:
            self._few = *(cuda.mapped_array((FEW, dof), np.float32) for _ in range(2)), cuda.mapped_array(FEW, np.uint8)

    @property
    def scene(self):
        """(floats, ints) on the device."""
        return self._batches.scene

    def upload(self, scene):
        """Bring a packed scene to the device."""
        self._batches.upload(scene)

    def motions_valid(self, q_from, q_to, mode, step):
        """q_from, q_to: (N, dof) float32 -> (N,) uint8 verdicts (interface)."""
        n, batches = len(q_from), self._batches
        if not 0 < n <= FEW:
            return batches.run(self._motions, WARPS, (q_from, q_to), int32(mode), step)
        mapped_from, mapped_to, verdicts = self._few
        with cuda.gpus[batches.index]:
            mapped_from[:n], mapped_to[:n] = q_from, q_to
            self._motions[(n + WARPS - 1) // WARPS, THREADS, batches.stream](
                *self._few[:2], int32(mode), step, *batches.scene, verdicts, ()
            )
            batches.stream.synchronize()
            return np.array(verdicts[:n])
