"""CUDA: the kernel around `growth.grow`. One launch grows the trees; a warp takes a sample or a motion."""

import functools

import numpy as np
from numba import float32, int32

from ....device import cuda_jit
from ....parallel.team import deadline_in
from ...spaces.cuda import REGISTERS
from ..launch_cuda import TeamLaunch, desk_of_lane, grid_worker
from .growth import grow
from .state import GrowthCall, Report, buffer_sizes, open_job, open_report

BLOCKS_PER_MULTIPROCESSOR = 4


@functools.cache
def cuda_buffers(device: str, scratch_sizes: tuple) -> "PrmOnCuda":
    """The buffers for a device and a kind of space: made once, kept, and grown when a query needs more."""
    return PrmOnCuda(device, scratch_sizes)


class PrmOnCuda:
    """On a CUDA device. The report lies in page-locked memory that host and device see. One query at a time."""

    def __init__(self, device, scratch_sizes):
        self._launch = TeamLaunch(device, _kernel(*scratch_sizes), scratch_sizes, BLOCKS_PER_MULTIPROCESSOR)

    def allocate(self, ask: GrowthCall) -> None:
        """Room for the trees of a query; what the buffers held is lost."""
        launch = self._launch
        sizes = buffer_sizes(ask, launch.workers)
        with launch.held():
            self._arrays = (
                launch.device_array("floats", sizes[0], np.float32),
                launch.zeroed("ints", sizes[1], np.int32),
                launch.mapped("told", sizes[2], np.float32),
                launch.mapped("found", sizes[3], np.int32),
            )

    def report(self, ask: GrowthCall) -> Report:
        """What host and compiled code tell each other."""
        told, found = map(_host_view, self._arrays[2:])
        return open_report.py_func(told, found, ask.dof, ask.tried, ask.capacity)

    def grow(self, checker, ask: GrowthCall) -> None:
        """Some rounds."""
        mode, step = checker.motion_args
        with self._launch.held():
            self._launch.run(ask, int32(mode), float32(step), *self._arrays, *checker.device_scene())


def _host_view(mapped):
    """A mapped array as a plain one: Numba takes the mapped kind for another type."""
    return np.ndarray(mapped.shape, mapped.dtype, buffer=mapped.gpu_data)


@functools.cache
def _kernel(*scratch_sizes):
    """The kernel for a checker's scratch_sizes."""
    desk = desk_of_lane(scratch_sizes)

    @cuda_jit(max_registers=REGISTERS)
    def prm_growth(ask, mode, step, floats, ints, told, found, scene_floats, scene_ints, spill):
        own = desk(ask.dof, mode, step, scene_floats, scene_ints, spill)
        grow(open_job(ask, (floats, told, found), own, deadline_in(ask.left_ms), grid_worker(ints)))

    return prm_growth
