"""CUDA: the kernel around `growth.grow`. One launch grows the trees; a warp takes a sample or a motion."""

import functools

import numpy as np
from numba import float32, int32

from ....device import cuda_jit
from ....parallel.team import deadline_in
from ...spaces.cuda import REGISTERS
from ..launch_cuda import TeamLaunch, desk_of_lane, grid_worker
from .growth import GrowthCall, buffer_sizes, grow, open_job

BLOCKS_PER_MULTIPROCESSOR = 4


class PrmOnCuda:
    """On a CUDA device. The report lies in page-locked memory that host and device see. One query at a time."""

    def __init__(self, device, scratch_sizes):
        self._launch = TeamLaunch(device, _kernel(*scratch_sizes), scratch_sizes, BLOCKS_PER_MULTIPROCESSOR)

    def allocate(self, ask: GrowthCall) -> list[np.ndarray]:
        """Make room in the four buffers for the trees of a query; what they held is lost. -> told, found"""
        launch = self._launch
        n_floats, n_ints, n_told, n_found = buffer_sizes(ask, launch.workers)
        with launch.held():
            mapped = launch.mapped("told", n_told, np.float32), launch.mapped("found", n_found, np.int32)
            own = launch.device_array("floats", n_floats, np.float32), launch.zeroed("ints", n_ints, np.int32)
            self._arrays = *own, *(part.device for part in mapped)
        return [part.host for part in mapped]

    def grow(self, checker, ask: GrowthCall) -> None:
        """Some rounds."""
        mode, step = checker.motion_args
        with self._launch.held():
            self._launch.run(ask, int32(mode), float32(step), *self._arrays, *checker.device_scene())


cuda_buffers = functools.cache(PrmOnCuda)  # (device, scratch_sizes) -> those of a kind of checker: made once, kept


@functools.cache
def _kernel(*scratch_sizes):
    desk = desk_of_lane(scratch_sizes)

    @cuda_jit(max_registers=REGISTERS)
    def prm_growth(ask, mode, step, floats, ints, told, found, scene_floats, scene_ints, spill):
        own = desk(ask.dof, mode, step, scene_floats, scene_ints, spill)
        grow(open_job(ask, (floats, told, found), own, deadline_in(ask.left_ms), grid_worker(ints)))

    return prm_growth
