"""CUDA: the kernel around `growth.grow`. One launch takes some rounds; a warp takes a sample."""

import functools

import numpy as np
from numba import float32, int32

from ....device import cuda_jit
from ....parallel.team import deadline_in
from ...spaces.cuda import REGISTERS
from ..launch_cuda import TeamLaunch, desk_of_lane, grid_worker
from .growth import TreeBuffers, grow
from .state import FLOAT_HEAD, INT_HEAD, WORKERS, TreeJob, open_growth

BLOCKS_PER_MULTIPROCESSOR = 4


class TreeOnCuda(TreeBuffers):
    """On a CUDA device, with page-locked twins. One query at a time."""

    def __init__(self, device, scratch_sizes):
        self._launch = TeamLaunch(device, _kernel(*scratch_sizes), scratch_sizes, BLOCKS_PER_MULTIPROCESSOR, WORKERS)

    def _allocate(self, n_floats, n_ints):
        launch = self._launch
        with launch.held():
            self._there = (
                launch.device_array("floats", n_floats, np.float32),
                launch.device_array("ints", n_ints, np.int32),
            )
            return launch.pinned("floats", n_floats, np.float32), launch.pinned("ints", n_ints, np.int32)

    def _send(self, *counts):
        with self._launch.held():
            for device, host, count in zip(self._there, self._hosts, counts):
                device[:count].copy_to_device(host[:count], self._launch.stream)

    def _fetch(self, *counts):
        with self._launch.held():
            self._bring(counts)

    def _bring(self, counts):
        for device, host, count in zip(self._there, self._hosts, counts):
            device[:count].copy_to_host(host[:count], self._launch.stream)
        self._launch.stream.synchronize()

    def grow(self, rounds: int, left_ms: int, seed: np.uint64) -> None:
        """Some rounds of samples, for at most so long."""
        launch, (mode, step) = self._launch, self.checker.motion_args
        with launch.held():
            arguments = *self._there, rounds, left_ms, seed, int32(mode), float32(step)
            launch.run(*arguments, *self.checker.device_scene(), wait=False)
            self._bring((FLOAT_HEAD, INT_HEAD))


cuda_buffers = functools.cache(TreeOnCuda)  # (device, scratch_sizes) -> those of a kind of checker: made once, kept


@functools.cache
def _kernel(*scratch_sizes):
    desk = desk_of_lane(scratch_sizes)

    @cuda_jit(max_registers=REGISTERS)
    def tree_growth(floats, ints, rounds, left_ms, seed, mode, step, scene_floats, scene_ints, spill):
        growth = open_growth(floats, ints)
        own = desk(growth.ask.dof, mode, step, scene_floats, scene_ints, spill)
        grow(TreeJob(growth, own, seed, deadline_in(left_ms), grid_worker(ints)), rounds)

    return tree_growth
