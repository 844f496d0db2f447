"""CUDA: what all spaces share. Batches of configurations and motions on a device, and the scratch of a warp.

Each space registers how a warp's scratch is made (`register_scratch`) where it registers its `motion_free`; kernels of
planners and checkers ask `warp_scratch` for it. Local arrays need constant sizes, so kernels are compiled for a few
sizes of robots, and kept.
"""

import functools
from collections.abc import Callable

import numpy as np
from numba import cuda

from ...device import cuda_jit
from ...parallel.team_cuda import WARP
from ...parallel.threads import in_parts
from .interface import Space, motion_verdict

THREADS = 128  # of a block
WARPS = THREADS // WARP
REGISTERS = 128  # a lane's at most, so that 16 warps fit on a multiprocessor
MANY = 1 << 19  # rows of one launch, at first
_makers: dict[int, Callable] = {}


def register_scratch(kind: int, make: Callable) -> None:
    """Let make(*sizes) give the scratch of a kind of space, as `warp_scratch` returns it."""
    _makers[kind] = make


@functools.cache
def warp_scratch(kind: int, *sizes: int) -> Callable:
    """-> device function scratch(warp) for warp 0...WARPS - 1 of a block. kind, sizes: a checker's `scratch_sizes`"""
    return _makers[kind](*sizes)


class CudaBatches:
    """Runs kernels over batches of configurations on one CUDA device. Not for several threads at once.

    Buffers for requests and answers are page-locked, grow by doubling and are used again.

    scene: (floats, ints) on the device
    """

    def __init__(self, device, dof):
        self.index, self._dof = int(device.partition(":")[2]), dof
        with cuda.gpus[self.index]:
            self.stream = cuda.stream()
        self.scene = None
        self._buffers = {}

    def upload(self, scene):
        """Bring a packed scene to the device. Constant data travels at no other time."""
        with cuda.gpus[self.index]:
            self.scene = cuda.to_device(scene.floats, self.stream), cuda.to_device(scene.ints, self.stream)
            self.stream.synchronize()

    def room(self, number, rows, columns):
        """The page-locked array that input `number` travels from (`new_array`), valid until the next call."""
        with cuda.gpus[self.index]:
            return self._buffer(f"in{number}", rows, (columns,), np.float32)[1][:rows]

    def run(self, kernel, per_block, inputs, *scalars):
        """inputs: (N, dof) float32 arrays on the host or on the device -> (N,) uint8 verdicts on the host."""
        n = len(inputs[0])
        if n == 0:
            return np.zeros(0, dtype=np.uint8)
        with cuda.gpus[self.index]:
            on_device = [self._upload(f"in{k}", q) for k, q in enumerate(inputs)]
            answer, host_answer = self._buffer("out", n, (), np.uint8)
            for *rows, answers in in_parts(*on_device, answer[:n], size=MANY):
                blocks = (len(answers) + per_block - 1) // per_block
                kernel[blocks, THREADS, self.stream](*rows, *scalars, *self.scene, answers)
                if n > MANY:
                    self.stream.synchronize()
            answer[:n].copy_to_host(host_answer[:n], self.stream)
            self.stream.synchronize()
            return host_answer[:n].copy()

    def _upload(self, name, q):
        if hasattr(q, "__cuda_array_interface__"):
            return cuda.as_cuda_array(q)
        device, host = self._buffer(name, len(q), (self._dof,), np.float32)
        if not np.may_share_memory(host, q):  # the caller may have filled it already
            np.copyto(host[: len(q)], q)
        device[: len(q)].copy_to_device(host[: len(q)], self.stream)
        return device[: len(q)]

    def _buffer(self, name, n, row, dtype):
        """A device array and its page-locked twin with room for n rows of shape `row`."""
        held = self._buffers.get(name)
        if held is None or len(held[0]) < n:
            shape = 1 << max(10, int(n - 1).bit_length()), *row
            held = cuda.device_array(shape, dtype), cuda.pinned_array(shape, dtype)
            self._buffers[name] = held
        return held


@functools.cache
def motion_kernel(*scratch_sizes):
    """-> kernel that checks motions, a warp each, for a checker's `scratch_sizes`. A block takes WARPS motions."""
    scratch = warp_scratch(*scratch_sizes)

    @cuda_jit(max_registers=REGISTERS)
    def motions(q_from, q_to, mode, step, floats, ints, verdicts):
        warp, lane = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP
        space = Space(mode, step, floats, ints, scratch(warp))
        i = cuda.blockIdx.x * WARPS + warp
        if i < len(verdicts):
            answer = motion_verdict(q_from[i], q_to[i], space, lane)
            if lane == 0:
                verdicts[i] = answer

    return motions
