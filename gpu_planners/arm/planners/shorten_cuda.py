"""CUDA: the kernel around `shorten`. Request and answer lie in page-locked memory that both sides see."""

import functools
from typing import NamedTuple

import numpy as np
from numba import cuda, float32

from ...device import cuda_jit
from ...parallel.sampling import halves, joined_halves
from ...parallel.team import deadline_in, left_ms, meet
from ...parallel.team_cuda import WARP
from ..spaces.cuda import REGISTERS, warp_scratch
from ..spaces.interface import Space
from .launch_cuda import TeamLaunch, grid_worker
from .node_store import Desk
from .shorten import Task, open_cuts, shorten, shorten_sizes

SPLIT = 8  # warps that share a motion: a round lasts as long as its longest check


class Order(NamedTuple):
    """The int32 request, as it lies in memory; the new number of corners follows. The float32 request: step, weights,
    the path."""

    dof: int
    length: int
    room: int
    passes: int
    split: int
    mode: int
    seed_low: int
    seed_high: int
    left_ms: int


ANSWER = len(Order._fields)


@functools.cache
def _kernel(*scratch_sizes):
    scratch, n_q = warp_scratch(*scratch_sizes), scratch_sizes[1]

    @cuda_jit(max_registers=REGISTERS)
    def shorten_one(numbers, order, floats, ints, memory, scene_floats, scene_ints, spill):
        worker = grid_worker(memory)
        ask = Order(order[0], order[1], order[2], order[3], order[4], order[5], order[6], order[7], order[8])
        weights, path = numbers[1 : 1 + ask.dof], numbers[1 + ask.dof :]
        a, b = cuda.local.array(n_q, float32)[: ask.dof], cuda.local.array(n_q, float32)[: ask.dof]
        own = scratch(cuda.threadIdx.x // WARP, spill)
        space = Space(np.int32(ask.mode), numbers[0], scene_floats, scene_ints, own)
        first, lanes = worker.number * WARP + worker.lane, worker.count * WARP
        for k in range(first, ask.length * ask.dof, lanes):
            floats[k] = path[k]
        meet(worker)
        seed, deadline = joined_halves(ask.seed_low, ask.seed_high), deadline_in(ask.left_ms)
        task = Task(int(ask.length), int(ask.room), int(ask.passes), int(ask.split), deadline, seed, weights)
        cuts = open_cuts(floats, ints, ask.dof, task.room, worker)
        at, length = shorten(task, cuts, Desk(space, a, b, a), worker)
        if worker.number == 0:
            for k in range(worker.lane, length * ask.dof, WARP):
                path[k] = floats[at + k]
            if worker.lane == 0:
                order[ANSWER] = length

    return shorten_one


class CudaShortener:
    """Shortens paths on one device."""

    def __init__(self, device, scratch_sizes):
        self._launch = TeamLaunch(device, _kernel(*scratch_sizes), scratch_sizes, 1)

    def shorten(self, path: np.ndarray, checker, task: Task) -> np.ndarray:
        """path: (K, dof) -> (K', dof) float32"""
        launch, dof = self._launch, path.shape[1]
        n_floats, n_ints = shorten_sizes(dof, task.room, launch.workers)
        with launch.held():
            mode, step = checker.motion_args
            numbers = launch.mapped("numbers", 1 + (1 + task.room) * dof, np.float32)
            order = launch.mapped("order", ANSWER + 1, np.int32)
            numbers[0], numbers[1 : 1 + dof] = step, task.weights
            numbers[1 + dof : 1 + dof + path.size] = path.ravel()
            order[:ANSWER] = Order(
                dof, task.length, task.room, task.passes, SPLIT, mode, *halves(int(task.seed)), left_ms(task.deadline)
            )
            launch.run(
                numbers,
                order,
                launch.device_array("floats", n_floats, np.float32),
                launch.device_array("ints", n_ints, np.int32),
                launch.zeroed("memory", 1, np.int32),
                *checker.device_scene(),
            )
            return np.array(numbers[1 + dof : 1 + dof + order[ANSWER] * dof]).reshape(-1, dof)


@functools.cache
def shortener(device: str, scratch_sizes: tuple) -> CudaShortener:
    """The one for a device and a kind of space: made once, kept."""
    return CudaShortener(device, scratch_sizes)
