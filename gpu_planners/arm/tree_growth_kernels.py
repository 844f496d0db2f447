"""CUDA: the kernel around `tree_growth.grow`. One launch takes some rounds; a warp takes a sample."""

import functools

import numpy as np
from numba import cuda, float32

from ..device import cuda_jit
from ..team_kernels import WARP, team_blocks
from . import tree_buffers as tree
from .collision_kernels import REGISTERS, THREADS, WARPS, warp_scratch
from .tree_growth import grow
from .tree_search import Buffers

BLOCKS_PER_MULTIPROCESSOR = 4


@functools.cache
def cuda_buffers(device, scratch_sizes):
    """The buffers for a device and a kind of space: made once, kept, and grown when a query needs more."""
    return CudaBuffers(device, scratch_sizes)


class CudaBuffers(Buffers):
    """On a CUDA device, with page-locked twins. One query at a time."""

    def __init__(self, device, scratch_sizes):
        self._index = int(device.partition(":")[2])
        self._kernel = _kernel(*scratch_sizes)
        self._A = self._N = None
        with cuda.gpus[self._index]:
            multiprocessors = cuda.get_current_device().MULTIPROCESSOR_COUNT
            self._most_blocks = min(BLOCKS_PER_MULTIPROCESSOR * multiprocessors, tree.WORKERS // WARPS)
            self._stream = cuda.stream()

    def begin(self, checker, floats, ints):
        self._checker, self._scene = checker, checker.device_scene()
        sizes = self.sizes(ints)
        with cuda.gpus[self._index]:
            if self._A is None or len(self._A) < sizes[0] or len(self._N) < sizes[1]:
                self._allocate(sizes)
            self._host_A[:len(floats)], self._host_N[:len(ints)] = floats, ints
            self._A[:len(floats)].copy_to_device(self._host_A[:len(floats)], self._stream)
            self._N[:len(ints)].copy_to_device(self._host_N[:len(ints)], self._stream)
        self.floats, self.ints = self._host_A[:len(floats)], self._host_N[:tree.INT_HEAD]

    def make_room(self, nodes):
        if nodes > self.ints[tree.CAPACITY]:
            kept, floats, head = self.nodes(), self.floats.copy(), self.ints.copy()
            head[tree.CAPACITY] = self.larger(nodes)
            self.begin(self._checker, floats, head)
            self.put(kept, self._host_tree())
            with cuda.gpus[self._index]:
                self._A.copy_to_device(self._host_A, self._stream)
                self._N.copy_to_device(self._host_N, self._stream)

    def grow(self, rounds, left_ms, seed):
        with cuda.gpus[self._index]:
            blocks = team_blocks(self._kernel, THREADS, self._most_blocks)
            self._kernel[blocks, THREADS, self._stream](self._A, self._N, rounds, left_ms, seed, *self._checker.motion_args, *self._scene)
            self._A[:tree.FLOAT_HEAD].copy_to_host(self._host_A[:tree.FLOAT_HEAD], self._stream)
            self._N[:tree.INT_HEAD].copy_to_host(self._host_N[:tree.INT_HEAD], self._stream)
            self._stream.synchronize()

    def tree(self):
        T = self._host_tree()
        with cuda.gpus[self._index]:  # what belongs to nodes: the beginning of both
            self._A[:T.new_x].copy_to_host(self._host_A[:T.new_x], self._stream)
            self._N[:T.joined].copy_to_host(self._host_N[:T.joined], self._stream)
            self._stream.synchronize()
        return T

    def _allocate(self, sizes):
        """Room for twice as much as asked, so that few queries allocate."""
        floats, ints = 2 * sizes[0], 2 * sizes[1]
        self._A, self._N = cuda.device_array(floats, np.float32), cuda.device_array(ints, np.int32)
        self._host_A, self._host_N = cuda.pinned_array(floats, np.float32), cuda.pinned_array(ints, np.int32)

    def _host_tree(self):
        return tree.tree_of(self._host_A, self._host_N)


@functools.cache
def _kernel(kind, n_q, n_poses=8, n_speeds=8):
    """The kernel for a kind of space (`space.ARM`...) and sizes of its scratch."""
    scratch = warp_scratch(kind, n_q, n_poses, n_speeds)

    @cuda_jit(max_registers=REGISTERS)
    def tree_growth(A, N, rounds, left_ms, seed, mode, step, F, I):
        warp, lane = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP
        q, p = cuda.local.array(n_q, float32)[:N[tree.DOF]], cuda.local.array(n_q, float32)[:N[tree.DOF]]
        grow(tree.tree_of(A, N), rounds, left_ms, seed, mode, step, F, I, scratch(warp), q, p, cuda.blockIdx.x * WARPS + warp,
             cuda.gridDim.x * WARPS, lane, cuda.blockIdx.x, cuda.gridDim.x)

    return tree_growth
