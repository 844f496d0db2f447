"""CUDA: the kernel around `growth.grow`. One launch grows the trees; a warp takes a sample or a motion."""

import functools

import numpy as np
from numba import cuda, float32, int32

from ....device import cuda_jit
from ....parallel.team import deadline_in
from ....parallel.team_cuda import WARP
from ...spaces.cuda import REGISTERS, warp_scratch
from ...spaces.interface import Space
from ..launch_cuda import TeamLaunch, grid_worker
from ..node_store import Desk
from .growth import grow
from .state import Ask, Job, Report, buffer_sizes, open_report, open_trees

BLOCKS_PER_MULTIPROCESSOR = 4


@functools.cache
def cuda_buffers(device: str, scratch_sizes: tuple) -> "CudaBuffers":
    """The buffers for a device and a kind of space: made once, kept, and grown when a query needs more."""
    return CudaBuffers(device, scratch_sizes)


class CudaBuffers:
    """On a CUDA device. The report lies in page-locked memory that host and device see. One query at a time."""

    def __init__(self, device, scratch_sizes):
        self._launch = TeamLaunch(device, _kernel(*scratch_sizes), scratch_sizes, BLOCKS_PER_MULTIPROCESSOR)

    def allocate(self, ask: Ask) -> None:
        """Room for the trees of a query; what the buffers held is lost."""
        launch = self._launch
        sizes = buffer_sizes(ask.dof, ask.batch, ask.tried, ask.capacity, launch.workers)
        with launch.held():
            self._arrays = (
                launch.device_array("floats", sizes[0], np.float32),
                launch.zeroed("ints", sizes[1], np.int32),
                launch.mapped("told", sizes[2], np.float32),
                launch.mapped("found", sizes[3], np.int32),
            )

    def report(self, ask: Ask) -> Report:
        """What host and compiled code tell each other."""
        told, found = map(_host_view, self._arrays[2:])
        return open_report.py_func(ask, told, found)

    def grow(self, checker, ask: Ask) -> None:
        """Some rounds."""
        mode, step = checker.motion_args
        with self._launch.held():
            self._launch.run(ask, int32(mode), float32(step), *self._arrays, *checker.device_scene())


def _host_view(mapped):
    """The memory of a mapped array as a plain array: compiled code of the host takes the device's kind for another
    type."""
    return np.ndarray(mapped.shape, mapped.dtype, buffer=mapped.gpu_data)


@functools.cache
def _kernel(*scratch_sizes):
    """The kernel for a checker's scratch_sizes."""
    scratch, n_q = warp_scratch(*scratch_sizes), scratch_sizes[1]

    @cuda_jit(max_registers=REGISTERS)
    def prm_growth(ask, mode, step, floats, ints, told, found, scene_floats, scene_ints, spill):
        a, b = cuda.local.array(n_q, float32)[: ask.dof], cuda.local.array(n_q, float32)[: ask.dof]
        space = Space(mode, step, scene_floats, scene_ints, scratch(cuda.threadIdx.x // WARP, spill))
        worker = grid_worker(ints)
        trees, report = open_trees(ask, floats, worker), open_report(ask, told, found)
        grow(Job(ask, trees, report, Desk(space, a, b, a), deadline_in(ask.left_ms), worker))

    return prm_growth
