"""CUDA: batches of configurations and motions on a device, and the scratch of a warp, for all spaces.

A space registers how a warp's scratch is made where it registers its `motion_free`. Local arrays need constant sizes,
so kernels are compiled for a few sizes of robots, and kept. What shared memory does not hold lies in global memory, in
a launch's `Spill`, the last argument of each kernel.
"""

import functools
from collections.abc import Callable

import numpy as np
from numba import cuda, float32, int32, types, uint8
from numba.cuda.extending import overload  # type: ignore[attr-defined]

from ...device import cuda_jit
from ...parallel.arrays_cuda import as_device_array
from ...parallel.team_cuda import WARP
from ...parallel.threads import in_parts
from .interface import FREE, NOT_FINITE, Space, motion_verdict, register

THREADS = 128  # of a block
WARPS = THREADS // WARP
REGISTERS = 128  # a lane's at most, so that 16 warps fit on a multiprocessor
MANY = 1 << 19  # rows of one launch, at first
SPILLED = 1 << 26  # floats of global memory that a batch of motions takes for its warps, at most
KEPT = 1 << 22  # of them from batch to batch: there may be many checkers
FEW = 64  # motions of a CudaPlane whose request stays in the host's memory, which saves the copies
_makers: dict[int, Callable] = {}
_spilled: dict[int, Callable] = {}
_missed: dict[int, Callable] = {}


def register_scratch(
    kind: int, make: Callable, spilled: Callable = lambda *sizes: 0, missed: Callable = lambda *sizes: None
) -> None:
    """Register a kind of space: make(*sizes) is the scratch that `warp_scratch` returns, spilled(*sizes) the floats of
    global memory that each warp needs for it; missed(*sizes) is called when a kernel begins to be compiled."""
    _makers[kind], _spilled[kind], _missed[kind] = make, spilled, missed


def kernel_jit(scratch_sizes: tuple) -> Callable:
    """-> the decorator of kernels for a checker's scratch_sizes."""
    kind, *sizes = scratch_sizes
    return cuda_jit(max_registers=REGISTERS, missed=functools.partial(_missed[kind], *sizes))


@functools.cache
def warp_scratch(kind: int, *sizes: int) -> Callable:
    """-> device function scratch(warp, spill) for warp 0...WARPS - 1 of a block. kind, sizes: a checker's
    `scratch_sizes`; spill: of the launch, `Spill.rows`"""
    return _makers[kind](*sizes)


def spilled_floats(kind: int, *sizes: int) -> int:
    """The floats of global memory that each warp needs for a kind of space."""
    return _spilled[kind](*sizes)


def spill_type(*scratch_sizes: int) -> types.Type:
    """The type of what `Spill.rows` returns."""
    return types.UniTuple(float32[:, ::1], 1) if spilled_floats(*scratch_sizes) else types.Tuple(())


class Spill:
    """Global memory for what the warps of a launch cannot keep in shared memory.

    scratch_sizes: of a checker;  most_blocks: a launch of a batch has at most so many, 0: any number
    """

    def __init__(self, scratch_sizes):
        self._floats, self._rows = spilled_floats(*scratch_sizes), ()
        self.most_blocks = max(SPILLED // (WARPS * self._floats), 1) if self._floats else 0

    def rows(self, blocks: int) -> tuple:
        """A row for each warp of so many blocks, ((warps, floats) float32,); () where shared memory holds everything,
        which costs a launch nothing."""
        if self._floats and (not self._rows or len(self._rows[0]) < blocks * WARPS):
            self._rows = ()  # free before the new rows are allocated
            self._rows = (cuda.device_array((blocks * WARPS, self._floats), np.float32),)
        return self._rows

    def trim(self) -> None:
        """Let go of what is more than KEPT, once the launch is done."""
        if self._rows and self._rows[0].size > KEPT:
            self._rows = ()


class CudaBatches:
    """Runs kernels over batches of configurations and motions on one CUDA device. Not for several threads at once.

    Buffers for requests and answers are page-locked, grow by doubling and are used again.

    scratch_sizes: of the checker (spaces.interface); scene: (floats, ints) on the device
    """

    def __init__(self, device, dof, scratch_sizes):
        self.index, self._dof, self._spill = int(device.partition(":")[2]), dof, Spill(scratch_sizes)
        self.scratch_sizes, self._motions = scratch_sizes, motion_kernel(*scratch_sizes)
        with cuda.gpus[self.index]:
            self.stream = cuda.stream()
        self.scene = None
        self._buffers = {}

    def motions_valid(self, q_from, q_to, mode, step):
        """q_from, q_to: (N, dof) float32, on the host or on the device -> (N,) uint8 verdicts (interface)."""
        return self.run(self._motions, WARPS, (q_from, q_to), int32(mode), step)

    def upload(self, scene):
        """Bring a packed scene to the device. Constant data travels at no other time."""
        with cuda.gpus[self.index]:
            self.scene = cuda.to_device(scene.floats, self.stream), cuda.to_device(scene.ints, self.stream)
            self.stream.synchronize()

    def room(self, number, rows, columns):
        """The page-locked array that input `number` travels from (`new_array`), valid until the next call."""
        with cuda.gpus[self.index]:
            return self._buffer(f"in{number}", rows, (columns,), np.float32)[1][:rows]

    def run(self, kernel, per_block, inputs, *scalars, plain=False):
        """inputs: (N, dof) float32 arrays on the host -> (N,) uint8 verdicts on the host; on the device -> there, (N,)
        bool, and whether any value was not finite.

        plain: does one row of the Spill do for all warps?
        """
        n, most = len(inputs[0]), 0 if plain else self._spill.most_blocks * per_block
        stay = not isinstance(inputs[0], np.ndarray)
        with cuda.gpus[self.index]:
            if n == 0:
                return (as_device_array(cuda.device_array(0, np.bool_)), False) if stay else np.zeros(0, dtype=np.uint8)
            on_device = [self._upload(f"in{k}", q) for k, q in enumerate(inputs)]
            answer, host_answer = (
                (cuda.device_array(n, np.uint8), None) if stay else self._buffer("out", n, (), np.uint8)
            )
            for *rows, answers in in_parts(*on_device, answer[:n], size=MANY, most=most):
                blocks = (len(answers) + per_block - 1) // per_block
                spill = self._spill.rows(1 if plain else blocks)
                kernel[blocks, THREADS, self.stream](*rows, *scalars, *self.scene, answers, spill)
                if len(answers) < n:
                    self.stream.synchronize()
            found = self._as_bools(answer) if stay else None
            if not stay:
                answer[:n].copy_to_host(host_answer[:n], self.stream)
            self.stream.synchronize()
            self._spill.trim()
        return found if stay else host_answer[:n].copy()

    def _as_bools(self, verdicts):
        """Verdicts of the device, in place -> (N,) bool, and whether one was NOT_FINITE."""
        refused, told = self._buffer("refused", 1, (), np.int32)
        refused[:1].copy_to_device(np.zeros(1, np.int32), self.stream)
        bools_kernel()[-(-len(verdicts) // THREADS), THREADS, self.stream](verdicts, refused)
        refused[:1].copy_to_host(told[:1], self.stream)
        self.stream.synchronize()
        return as_device_array(verdicts.view(np.bool_)), bool(told[0])

    def _upload(self, name, q):
        if not isinstance(q, np.ndarray):
            return q
        device, host = self._buffer(name, len(q), (self._dof,), np.float32)
        if not np.may_share_memory(host, q):  # the caller may have filled it already
            np.copyto(host[: len(q)], q)
            q = host[: len(q)]
        device[: len(q)].copy_to_device(q, self.stream)
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
def bools_kernel():
    """-> kernel that makes verdicts 1 where they are FREE, else 0, and counts those that are NOT_FINITE."""

    @cuda_jit
    def bools(verdicts, refused):
        i = cuda.grid(1)
        if i < len(verdicts):
            if verdicts[i] == NOT_FINITE:
                cuda.atomic.add(refused, 0, 1)
            verdicts[i] = 1 if verdicts[i] == FREE else 0

    return bools


@functools.cache
def motion_kernel(*scratch_sizes):
    """-> kernel that checks motions, a warp each, for a checker's `scratch_sizes`. A block takes WARPS motions."""
    scratch = warp_scratch(*scratch_sizes)

    @kernel_jit(scratch_sizes)
    def motions(q_from, q_to, mode, step, floats, ints, verdicts, spill):
        warp, lane = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP
        space = Space(mode, step, floats, ints, scratch(warp, spill))
        i = cuda.blockIdx.x * WARPS + warp
        if i < len(verdicts):
            answer = motion_verdict(q_from[i], q_to[i], space, lane)
            if lane == 0:
                verdicts[i] = answer

    return motions


def motion_types(*scratch_sizes: int) -> tuple:
    """Of the arguments of `motion_kernel`."""
    q, rows = float32[:, ::1], spill_type(*scratch_sizes)
    return q, q, int32, float32, float32[::1], int32[::1], uint8[::1], rows


@functools.cache
def _register_plane(kind, scratch_class, motion_free):
    """Let a kind of space, whose scratch keeps nothing, be checked on CUDA by its `motion_free`."""

    def make(*sizes):
        @cuda.jit(device=True, inline="always")
        def scratch(warp, spill):
            return scratch_class(cuda.local.array(1, float32))

        return scratch

    register_scratch(kind, make)
    register(scratch_class, "cuda", motion_free, overload)


class CudaPlane(CudaBatches):
    """Motions for the checkers of plane_checker."""

    def __init__(self, dof, scratch_sizes, device, scratch_class, motion_free):
        _register_plane(scratch_sizes[0], scratch_class, motion_free)
        super().__init__(device, dof, scratch_sizes)
        with cuda.gpus[self.index]:
            self._few = *(cuda.mapped_array((FEW, dof), np.float32) for _ in range(2)), cuda.mapped_array(FEW, np.uint8)

    def motions_valid(self, q_from, q_to, mode, step):
        n = len(q_from)
        if not 0 < n <= FEW:
            return super().motions_valid(q_from, q_to, mode, step)
        mapped_from, mapped_to, verdicts = self._few
        with cuda.gpus[self.index]:
            mapped_from[:n], mapped_to[:n] = q_from, q_to
            self._motions[(n + WARPS - 1) // WARPS, THREADS, self.stream](
                mapped_from, mapped_to, int32(mode), step, *self.scene, verdicts, ()
            )
            self.stream.synchronize()
            return np.array(verdicts[:n])
