"""CUDA: the kernel around `shorten`. Request and answer lie in page-locked memory that both sides see."""

import functools
from typing import NamedTuple

import numpy as np

from ...device import cuda_jit
from ...parallel.layout import Float32, Int32, floats, ints, layout
from ...parallel.sampling import halves, joined_halves
from ...parallel.team import deadline_in, left_ms, meet
from ...parallel.team_cuda import WARP
from ..spaces.cuda import REGISTERS
from .launch_cuda import TeamLaunch, desk_of_lane, grid_worker
from .shorten import Task, cuts_sizes, open_cuts, shorten

SPLIT = 8  # warps that share a motion: a round lasts as long as its longest check


class PathRequest(NamedTuple):
    """A path to shorten, and room for its successor. corners: the answer: how many the path has then"""

    dof: int = ints()
    length: int = ints()
    room: int = ints()
    passes: int = ints()
    split: int = ints()
    mode: Int32 = ints()
    seed_low: int = ints()
    seed_high: int = ints()
    left_ms: int = ints()
    corners: np.ndarray = ints("1")
    step: Float32 = floats()
    weights: np.ndarray = floats("dof")
    path: np.ndarray = floats("room * dof")


request_sizes, open_request = layout(PathRequest, "dof room")


@functools.cache
def _kernel(*scratch_sizes):
    desk = desk_of_lane(scratch_sizes)

    @cuda_jit(max_registers=REGISTERS)
    def shorten_one(numbers, order, floats, ints, memory, scene_floats, scene_ints, spill):
        worker, ask = grid_worker(memory), open_request(numbers, order)
        own = desk(ask.dof, ask.mode, ask.step, scene_floats, scene_ints, spill)
        for k in range(worker.number * WARP + worker.lane, ask.length * ask.dof, worker.count * WARP):
            floats[k] = ask.path[k]
        meet(worker)
        seed, deadline = joined_halves(ask.seed_low, ask.seed_high), deadline_in(ask.left_ms)
        task = Task(ask.length, ask.room, ask.passes, ask.split, deadline, seed, ask.weights)
        at, length = shorten(task, open_cuts(floats, ints, ask.dof, ask.room, worker), own, worker)
        if worker.number == 0:
            for k in range(worker.lane, length * ask.dof, WARP):
                ask.path[k] = floats[at + k]
            if worker.lane == 0:
                ask.corners[0] = length

    return shorten_one


class CudaShortener:
    """Shortens paths on one device."""

    def __init__(self, device, scratch_sizes):
        self._launch = TeamLaunch(device, _kernel(*scratch_sizes), scratch_sizes, 1)

    def shorten(self, path: np.ndarray, checker, task: Task) -> np.ndarray:
        """path: (K, dof) -> (K', dof) float32"""
        launch, dof, (mode, step) = self._launch, path.shape[1], checker.motion_args
        n_floats, n_ints = cuts_sizes(dof, task.room, launch.workers)
        n_numbers, n_order = request_sizes.py_func(dof, task.room)
        with launch.held():
            mapped = launch.mapped("numbers", n_numbers, np.float32), launch.mapped("order", n_order, np.int32)
            numbers, order = (part.host for part in mapped)
            seed, left = halves(int(task.seed)), left_ms(task.deadline)
            order[: n_order - 1] = dof, task.length, task.room, task.passes, SPLIT, mode, *seed, left
            numbers[0], numbers[1 : 1 + dof] = step, task.weights
            numbers[1 + dof : 1 + dof + path.size] = path.ravel()
            launch.run(
                *(part.device for part in mapped),
                launch.device_array("floats", n_floats, np.float32),
                launch.device_array("ints", n_ints, np.int32),
                launch.zeroed("memory", 1, np.int32),
                *checker.device_scene(),
            )
            return np.array(numbers[1 + dof : 1 + dof + order[n_order - 1] * dof]).reshape(-1, dof)


shortener = functools.cache(CudaShortener)  # (device, scratch_sizes) -> that of a kind of checker: made once, kept
