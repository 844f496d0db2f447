"""CUDA: the kernels around planners' compiled code, and the arrays that they work on (see `host`)."""

import functools
import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numba import cuda, float32, int32

from ...device import cuda_jit
from ...parallel.buffers import DeviceBuffers
from ...parallel.stopping import heed
from ...parallel.stream import CudaStream
from ...parallel.team import Worker
from ...parallel.team_cuda import WARP, team_blocks
from ..spaces.cuda import THREADS, WARPS, Spill, kernel_jit, spill_type, warp_scratch
from ..spaces.interface import Space
from .message import open_head
from .node_store import Desk

SCENE = 1 << 18  # numbers of the scenes that `OnDevice` has room for, at least


@functools.cache
def kernel_of(work: Any, scratch_sizes: tuple) -> Any:
    """-> kernel that runs a planner's compiled code, for a checker's scratch_sizes."""
    desk_of = desk_of_lane(scratch_sizes)

    def kernel(floats, ints, own_floats, own_ints, scene_floats, scene_ints, spill):
        head = open_head(floats, ints)
        desk = desk_of(head.dof, head.mode, head.step, scene_floats, scene_ints, spill)
        work(floats, ints, own_floats, desk, grid_worker(own_ints))

    kernel.__name__ = kernel.__qualname__ = work.py_func.__name__
    return kernel_jit(scratch_sizes)(kernel)


def work_types(*scratch_sizes: int) -> tuple:
    """Of the arguments of kernels that `kernel_of` returns."""
    return *(3 * (float32[::1], int32[::1])), spill_type(*scratch_sizes)


def desk_of_lane(scratch_sizes: tuple) -> Callable:
    """-> device function desk(dof, mode, step, scene_floats, scene_ints, spill) for a checker's scratch_sizes."""
    scratch, n_q = warp_scratch(*scratch_sizes), scratch_sizes[1]

    @cuda.jit(device=True, inline="always")
    def desk(dof, mode, step, scene_floats, scene_ints, spill):
        a, b = cuda.local.array(n_q, float32)[:dof], cuda.local.array(n_q, float32)[:dof]
        return Desk(Space(mode, step, scene_floats, scene_ints, scratch(cuda.threadIdx.x // WARP, spill)), a, b, a)

    return desk


@cuda_jit(device=True)
def grid_worker(memory):
    """The warp as a Worker of a team of all blocks."""
    warp, lane, block, blocks = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP, cuda.blockIdx.x, cuda.gridDim.x
    return Worker(block * WARPS + warp, blocks * WARPS, lane, block, blocks, memory, memory)


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


def _parts(message, n_ints):
    """The float32 and the int32 of a message that lies in an int32 array."""
    return message[n_ints:].view(np.float32), message[:n_ints]


class OnDevice:
    """Blocks of a CUDA device that run at once, for checkers of a kind. One query at a time.

    workers, most_blocks: at most; own: (floats, ints), the team's own memory, on the device. Arrays only grow
    """

    def __init__(self, device: str, scratch_sizes: tuple, works: tuple, blocks: int, most_workers: int) -> None:
        self._kernels = {work: kernel_of(work, scratch_sizes) for work in works}
        self._index, self._lock, self._depth = int(device.partition(":")[2]), threading.RLock(), 0
        with cuda.gpus[self._index]:
            most = blocks * cuda.get_current_device().MULTIPROCESSOR_COUNT
            self._stream = CudaStream()
        self.most_blocks = min(most, most_workers // WARPS)
        self.workers = self.most_blocks * WARPS
        self._spill = Spill(scratch_sizes)
        self._at_once: dict = {}  # each work that ran -> how many blocks of it run at once
        # each (name, count, dtype) -> an array of at least so many numbers
        self._device_array = DeviceBuffers(cuda.device_array).room  # their content is undefined
        # on the device, zero when it is allocated: barriers lie there
        self._zeroed = DeviceBuffers(lambda count, dtype: cuda.to_device(np.zeros(count, dtype))).room
        self._mapped = DeviceBuffers(_mapped).room  # each a Mapped
        self._pinned = DeviceBuffers(cuda.pinned_array).room  # page-locked, to copy to
        self._message: Any = None  # a Mapped
        self._ints, self._size = 0, 0  # a message has room for so many int32, then come its float32; so long is it
        self._views: dict = {}  # is it near? -> an array with a message, room for its int32, its floats, its ints
        self.own: Any = ()

    def held(self) -> "OnDevice":
        """Until a query ends nobody else uses the arrays, and the device is the current one."""
        return self

    def __enter__(self) -> None:
        self._lock.acquire()
        if not self._depth:  # entering a device takes long
            self._current = cuda.gpus[self._index]
            self._current.__enter__()
        self._depth += 1

    def __exit__(self, *raised: Any) -> None:
        self._depth -= 1
        if not self._depth:
            self._current.__exit__(*raised)
        self._lock.release()

    def message(self, n_floats: int, n_ints: int) -> tuple[np.ndarray, np.ndarray]:
        """-> its floats and ints, which stay until a longer one is asked for."""
        with self.held():
            self._ints = max(self._ints, n_ints)  # so that views of the arrays stay the same
            self._size = self._ints + n_floats
            self._message = self._mapped("message", self._size, np.int32)
        floats, ints = _parts(self._message.host, self._ints)
        return floats[:n_floats], ints[:n_ints]

    def memory(self, n_floats: int, n_ints: int) -> None:
        """So much of its own for the team; what was there is lost."""
        with self.held():
            self.own = self._device_array("floats", n_floats, np.float32), self._zeroed("ints", n_ints, np.int32)

    def run(self, checker: Any, *works: Any, again: bool = False) -> None:
        """Let all blocks do their works, or these of them, as one team, and wait. again: this will be asked often, with
        the same arrays; from the third time on it takes less time"""
        heed()
        with self.held():
            scene = checker.device_scene()
            if again:
                self._run_near(works or self._kernels, self._scene(scene))
            else:
                for work in works or self._kernels:
                    self.start(work, self._blocks(work), *scene)
            self._stream.wait()

    def _run_near(self, works, scene):
        """On a copy of the message, where thousands of warps read it sooner; it comes back when all is done."""
        far = self._message.host[: self._size]
        near = self._device_array("message", far.size, np.int32)
        self._stream.to_device(near, 0, far)
        for work in works:
            blocks = self._blocks(work)
            given = (*self._parts_of(near), *self.own, *scene, self._spill.rows(blocks))
            self._stream.launch(self._kernels[work], blocks, THREADS, given)
        self._stream.to_host(far, near)

    def _parts_of(self, array):
        """The floats and the ints of the message in an array of the device, the same objects for the same array."""
        near = array is not self._message.device
        seen, room, *parts = self._views.get(near, (None, 0))
        if seen is not array or room != self._ints:
            parts = _parts(array, self._ints)  # which takes 100 us
            self._views[near] = array, self._ints, *parts
        return parts

    def start(self, work: Any, blocks: int, *scene: Any) -> None:
        """Let so many blocks work, in a scene that is on the device, on the message where the host has it."""
        message, rows = self._parts_of(self._message.device), self._spill.rows(blocks)
        self._kernels[work][blocks, THREADS, self._stream.numba](*message, *self.own, *scene, rows)

    def wait(self) -> None:
        """Until all is done."""
        self._stream.wait()

    def blocks_of_each(self, work: Any, teams: int) -> int:
        """How many blocks each of so many teams may have so that all run at once; 1 where they do not."""
        return max(1, self._blocks(work) // teams)

    def _blocks(self, work):
        kernel, blocks = self._kernels[work], self._at_once.get(work)
        if blocks is None:
            blocks = team_blocks(kernel, THREADS, self.most_blocks)
            if kernel.overloads:  # before its first launch nobody knows
                self._at_once[work] = blocks
        return blocks

    def _scene(self, scene):
        """Copies of the float32 and the int32 array of a checker's scene, in arrays that stay the same."""
        copies = []
        for name, part in zip(("scene floats", "scene ints"), scene):
            copies.append(self._device_array(name, max(part.size, SCENE), part.dtype))
            self._stream.copy(copies[-1], part)
        return tuple(copies)

    def fetch(self, n_floats: int, n_ints: int, places: Iterable[int] = (0, 0)) -> tuple[np.ndarray, np.ndarray]:
        """-> so much of the team's own memory, on the host. places: where it begins"""
        with self.held():
            floats, ints = self._pinned("floats", n_floats, np.float32), self._pinned("ints", n_ints, np.int32)
            twins = floats[:n_floats], ints[:n_ints]
            for device, host, first in zip(self.own, twins, places):
                device[first : first + len(host)].copy_to_host(host, self._stream.numba)
            self._stream.wait()
        return twins

    def send(self, floats: np.ndarray, ints: np.ndarray) -> None:
        """Write the beginnings of the team's own memory."""
        with self.held():
            for device, host in zip(self.own, (floats, ints)):
                device[: len(host)].copy_to_device(host, self._stream.numba)
            self._stream.wait()


on_device = functools.cache(OnDevice)  # (device, scratch_sizes, ...) -> that of a kind of checker: made once, kept
