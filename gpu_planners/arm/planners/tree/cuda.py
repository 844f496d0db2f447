"""CUDA: the kernel around `growth.grow`. One launch takes some rounds; a warp takes a sample."""

import functools

import numpy as np
from numba import float32, int32

from ....device import cuda_jit
from ....parallel.team import deadline_in
from ...spaces.cuda import REGISTERS
from ..launch_cuda import TeamLaunch, desk_of_lane, grid_worker
from .buffers import TreeBuffers
from .growth import grow
from .state import FLOAT_HEAD, INT_HEAD, WORKERS, TreeJob, open_growth

BLOCKS_PER_MULTIPROCESSOR = 4


@functools.cache
def cuda_buffers(device: str, scratch_sizes: tuple) -> "TreeOnCuda":
    """The buffers for a device and a kind of space: made once, kept, and grown when a query needs more."""
    return TreeOnCuda(device, scratch_sizes)


class TreeOnCuda(TreeBuffers):
    """On a CUDA device, with page-locked twins. One query at a time."""

    def __init__(self, device, scratch_sizes):
        self._launch = TeamLaunch(device, _kernel(*scratch_sizes), scratch_sizes, BLOCKS_PER_MULTIPROCESSOR, WORKERS)

    def _allocate(self, n_floats, n_ints):
        launch = self._launch
        with launch.held():
            self._twins = launch.twins("floats", n_floats, np.float32), launch.twins("ints", n_ints, np.int32)
        return tuple(twins.host for twins in self._twins)

    def _send(self, n_floats, n_ints):
        with self._launch.held():
            for twins, count in zip(self._twins, (n_floats, n_ints)):
                twins.send(count, self._launch.stream)

    def _fetch(self, n_floats, n_ints):
        with self._launch.held():
            for twins, count in zip(self._twins, (n_floats, n_ints)):
                twins.fetch(count, self._launch.stream)
            self._launch.stream.synchronize()

    def grow(self, rounds: int, left_ms: int, seed: np.uint64) -> None:
        """Some rounds of samples, for at most so long."""
        launch, (mode, step), (floats, ints) = self._launch, self.checker.motion_args, self._twins
        with launch.held():
            arguments = floats.device, ints.device, rounds, left_ms, seed, int32(mode), float32(step)
            launch.run(*arguments, *self.checker.device_scene(), wait=False)
            floats.fetch(FLOAT_HEAD, launch.stream)
            ints.fetch(INT_HEAD, launch.stream)
            launch.stream.synchronize()


@functools.cache
def _kernel(*scratch_sizes):
    """The kernel for a checker's scratch_sizes."""
    desk = desk_of_lane(scratch_sizes)

    @cuda_jit(max_registers=REGISTERS)
    def tree_growth(floats, ints, rounds, left_ms, seed, mode, step, scene_floats, scene_ints, spill):
        growth = open_growth(floats, ints)
        own = desk(growth.ask.dof, mode, step, scene_floats, scene_ints, spill)
        grow(TreeJob(growth, own, seed, deadline_in(left_ms), grid_worker(ints)), rounds)

    return tree_growth
