"""CUDA: launches of a planner's kernel by a team of blocks, and the arrays that it works on."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numba import cuda, float32

from ...parallel.buffers import DeviceBuffers
from ...parallel.stream import CudaStream
from ...parallel.team import Worker
from ...parallel.team_cuda import WARP, team_blocks
from ..spaces.cuda import THREADS, WARPS, Spill, warp_scratch
from ..spaces.interface import Space
from .node_store import Desk

SCENE = 1 << 18  # numbers of the scenes that `TeamLaunch.scene` has room for, at least


def desk_of_lane(scratch_sizes: tuple) -> Callable:
    """-> device function desk(dof, mode, step, scene_floats, scene_ints, spill) for a checker's scratch_sizes."""
    scratch, n_q = warp_scratch(*scratch_sizes), scratch_sizes[1]

    @cuda.jit(device=True, inline="always")
    def desk(dof, mode, step, scene_floats, scene_ints, spill):
        a, b = cuda.local.array(n_q, float32)[:dof], cuda.local.array(n_q, float32)[:dof]
        return Desk(Space(mode, step, scene_floats, scene_ints, scratch(cuda.threadIdx.x // WARP, spill)), a, b, a)

    return desk


@cuda.jit(device=True)
def team_worker(blocks, barrier, memory):
    """The warp as a Worker of one of several teams of so many blocks each."""
    warp, lane, block = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP, cuda.blockIdx.x % blocks
    return Worker(block * WARPS + warp, blocks * WARPS, lane, block, blocks, barrier, memory)


@cuda.jit(device=True)
def grid_worker(memory):
    """The warp as a Worker of a team of all blocks."""
    return team_worker(cuda.gridDim.x, memory, memory)


class Mapped(NamedTuple):
    """Page-locked memory that both sides see. host: array; device: the same for kernels, which take it sooner so"""

    host: np.ndarray
    device: Any

    @property
    def size(self) -> int:
        return self.host.size


def _mapped(count, dtype):
    array = cuda.mapped_array(count, dtype)
    return Mapped(np.ndarray(array.shape, array.dtype, buffer=array.gpu_data), cuda.as_cuda_array(array))


class TeamLaunch:
    """One kernel on one device, one launch at a time. Its arrays are kept from launch to launch and only grow.

    scratch_sizes: of the checkers that the kernel is for; its last argument is their `Spill.rows`
    workers: at most, of a launch of all blocks that run at once
    """

    def __init__(
        self, device: str, kernel, scratch_sizes: tuple, blocks_per_multiprocessor: int, most_workers: int = 1 << 20
    ):
        self._kernel, self._lock = kernel, threading.Lock()
        self._index = int(device.partition(":")[2])
        with cuda.gpus[self._index]:
            most = blocks_per_multiprocessor * cuda.get_current_device().MULTIPROCESSOR_COUNT
            self._own = CudaStream()
        self.stream = self._own.numba
        self.most_blocks = min(most, most_workers // WARPS)
        self.workers = self.most_blocks * WARPS
        self._spill = Spill(scratch_sizes)
        self._at_once: dict = {}  # each kernel that was launched -> how many blocks of it run at once
        # each (name, count, dtype) -> an array of at least so many numbers
        self.device_array = DeviceBuffers(cuda.device_array).room  # their content is undefined
        # on the device, zero when it is allocated: barriers lie there
        self.zeroed = DeviceBuffers(lambda count, dtype: cuda.to_device(np.zeros(count, dtype))).room
        self.mapped = DeviceBuffers(_mapped).room  # each a Mapped
        self.pinned = DeviceBuffers(cuda.pinned_array).room  # page-locked, to copy from and to

    @contextmanager
    def held(self) -> Iterator[None]:
        """Until a query ends nobody else uses the arrays, and the device is the current one."""
        with self._lock, cuda.gpus[self._index]:
            yield

    def run(self, *arguments, wait: bool = True) -> None:
        """Launch the kernel with as many blocks as run at once, which may wait for each other; wait for its end."""
        self.start(self._blocks(self._kernel), *arguments)
        if wait:
            self.stream.synchronize()

    def run_again(self, kernels: Sequence, *arguments) -> None:
        """Launch kernels for the same checkers one after the other, which takes less time from the third time on that
        the arguments are the same arrays; wait for their end."""
        for kernel in kernels:
            blocks = self._blocks(kernel)
            self._own.launch(kernel, blocks, THREADS, (*arguments, self._spill.rows(blocks)))
        self._own.wait()

    def scene(self, scene: Sequence) -> tuple:
        """Copies of the float32 and the int32 array of a checker's scene, in arrays of this launch's own."""
        copies = []
        for name, part in zip(("scene floats", "scene ints"), scene):
            copies.append(self.device_array(name, max(part.size, SCENE), part.dtype))
            self._own.copy(copies[-1], part)
        return tuple(copies)

    def blocks_of_each(self, teams: int) -> int:
        """How many blocks each of so many teams may have so that all run at once; 1 where they do not."""
        return max(1, self._blocks(self._kernel) // teams)

    def _blocks(self, kernel):
        blocks = self._at_once.get(kernel)
        if blocks is None:
            blocks = team_blocks(kernel, THREADS, self.most_blocks)
            if kernel.overloads:  # before its first launch nobody knows
                self._at_once[kernel] = blocks
        return blocks

    def start(self, blocks: int, *arguments) -> None:
        """Launch the kernel with so many blocks."""
        self._kernel[blocks, THREADS, self.stream](*arguments, self._spill.rows(blocks))
