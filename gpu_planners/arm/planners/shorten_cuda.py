"""CUDA: the kernel around `shorten`. Path and answer lie in page-locked memory that both sides see."""

import functools

import numpy as np
from numba import float32, int32

from ...device import cuda_jit
from ...parallel.team import deadline_in, left_ms, meet
from ...parallel.team_cuda import WARP
from ..spaces.cuda import REGISTERS
from .launch_cuda import TeamLaunch, desk_of_lane, grid_worker
from .shorten import Task, cuts_sizes, open_cuts, shorten

SPLIT = 8  # warps that share a motion: a round lasts as long as its longest check


@functools.cache
def _kernel(*scratch_sizes):
    desk = desk_of_lane(scratch_sizes)

    @cuda_jit(max_registers=REGISTERS)
    def shorten_one(
        dof, length, room, passes, seed, left_ms, mode, step,
        weights, path, corners, floats, ints, memory, scene_floats, scene_ints, spill,
    ):  # fmt: skip
        worker, own = grid_worker(memory), desk(dof, mode, step, scene_floats, scene_ints, spill)
        for k in range(worker.number * WARP + worker.lane, length * dof, worker.count * WARP):
            floats[k] = path[k]
        meet(worker)
        task = Task(length, room, passes, SPLIT, deadline_in(left_ms), seed, weights[:dof])
        at, shorter = shorten(task, open_cuts(floats, ints, dof, room, worker), own, worker)
        if worker.number == 0:
            for k in range(worker.lane, shorter * dof, WARP):
                path[k] = floats[at + k]
            if worker.lane == 0:
                corners[0] = shorter

    return shorten_one


class CudaShortener:
    """Shortens paths on one device."""

    def __init__(self, device, scratch_sizes):
        self._launch = TeamLaunch(device, _kernel(*scratch_sizes), scratch_sizes, 1)

    def shorten(self, path: np.ndarray, checker, task: Task) -> np.ndarray:
        """path: (K, dof) -> (K', dof) float32"""
        launch, dof, (mode, step) = self._launch, path.shape[1], checker.motion_args
        n_floats, n_ints = cuts_sizes(dof, task.room, launch.workers)
        with launch.held():
            weights = launch.mapped("weights", dof, np.float32)
            numbers = launch.mapped("path", task.room * dof, np.float32)  # the path, then its successor
            corners = launch.mapped("corners", 1, np.int32)  # of the successor
            weights[:dof], numbers[: path.size] = task.weights, path.ravel()
            asked = (
                dof,
                task.length,
                task.room,
                task.passes,
                task.seed,
                left_ms(task.deadline),
                int32(mode),
                float32(step),
            )
            floats = launch.device_array("floats", n_floats, np.float32)
            ints = launch.device_array("ints", n_ints, np.int32)
            memory = launch.zeroed("memory", 1, np.int32)
            launch.run(*asked, weights, numbers, corners, floats, ints, memory, *checker.device_scene())
            return np.array(numbers[: corners[0] * dof]).reshape(-1, dof)


shortener = functools.cache(CudaShortener)  # (device, scratch_sizes) -> that of a kind of checker: made once, kept
