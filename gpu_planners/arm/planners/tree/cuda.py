"""CUDA: the kernel around `growth.grow`. One launch takes some rounds; a warp takes a sample."""

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
from .buffers import Buffers, growth_on_host
from .growth import grow
from .state import FLOAT_HEAD, INT_HEAD, WORKERS, Ask, Growth, Job, nodes_at, open_growth

BLOCKS_PER_MULTIPROCESSOR = 4


@functools.cache
def cuda_buffers(device: str, scratch_sizes: tuple) -> "CudaBuffers":
    """The buffers for a device and a kind of space: made once, kept, and grown when a query needs more."""
    return CudaBuffers(device, scratch_sizes)


class CudaBuffers(Buffers):
    """On a CUDA device, with page-locked twins. One query at a time."""

    def __init__(self, device, scratch_sizes):
        self._launch = TeamLaunch(device, _kernel(*scratch_sizes), scratch_sizes, BLOCKS_PER_MULTIPROCESSOR, WORKERS)

    def begin(self, checker, ask: Ask, floats: np.ndarray, ints: np.ndarray) -> None:
        """A new tree in the buffers as they are, or in larger ones."""
        self.checker, self.ask, launch = checker, ask, self._launch
        n_floats, n_ints = self.sizes(ask)
        with launch.held():
            self._floats, self._ints = (
                launch.twins("floats", n_floats, np.float32),
                launch.twins("ints", n_ints, np.int32),
            )
            self.floats, self.ints = self._floats.host[: len(floats)], self._ints.host[:INT_HEAD]
            self.floats[:], self.ints[:] = floats, ints
            self._floats.send(len(floats), launch.stream)
            self._ints.send(INT_HEAD, launch.stream)

    def put(self, kept: list[np.ndarray]) -> None:
        """The parts of a smaller tree move over."""
        for values, part in zip(kept, self._on_host().tree):
            part[: len(values)] = values
        with self._launch.held():
            self._floats.send(len(self._floats.host), self._launch.stream)
            self._ints.send(len(self._ints.host), self._launch.stream)

    def grow(self, rounds: int, left_ms: int, seed: np.uint64) -> None:
        """Some rounds of samples, for at most so long."""
        launch, (mode, step) = self._launch, self.checker.motion_args
        with launch.held():
            scene = self.checker.device_scene()
            arguments = self._floats.device, self._ints.device, rounds, left_ms, seed, int32(mode), float32(step)
            launch.run(*arguments, *scene, wait=False)
            self._floats.fetch(FLOAT_HEAD, launch.stream)
            self._ints.fetch(INT_HEAD, launch.stream)
            launch.stream.synchronize()

    def growth(self) -> Growth:
        """All of it on the host: what belongs to nodes lies at the beginning of both buffers."""
        ask, launch = self.ask, self._launch
        with launch.held():
            self._floats.fetch(nodes_at(ask.dof, ask.goals) + ask.capacity * (ask.dof + 3), launch.stream)
            self._ints.fetch(INT_HEAD + 2 * ask.capacity, launch.stream)
            launch.stream.synchronize()
        return self._on_host()

    def _on_host(self):
        return growth_on_host(self._floats.host, self._ints.host)


@functools.cache
def _kernel(*scratch_sizes):
    """The kernel for a checker's scratch_sizes."""
    scratch, n_q = warp_scratch(*scratch_sizes), scratch_sizes[1]

    @cuda_jit(max_registers=REGISTERS)
    def tree_growth(floats, ints, rounds, left_ms, seed, mode, step, scene_floats, scene_ints, spill):
        growth = open_growth(floats, ints)
        dof = growth.ask.dof
        a, b = cuda.local.array(n_q, float32)[:dof], cuda.local.array(n_q, float32)[:dof]
        space = Space(mode, step, scene_floats, scene_ints, scratch(cuda.threadIdx.x // WARP, spill))
        grow(Job(growth, Desk(space, a, b, a), seed, deadline_in(left_ms), grid_worker(ints)), rounds)

    return tree_growth
