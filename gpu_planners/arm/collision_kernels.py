"""CUDA: thin kernels around `collision.py`: a lane checks a configuration, a warp a motion. And what other kernels need to
check motions in any space: `space.motion_free` on the device, and the scratch of a warp.

Kernels are compiled for the size of the robot (local arrays need constants) and kept. Launches take four to
seven array arguments; buffers for requests and answers are page-locked, grow by doubling and are used again.
"""

import functools
import warnings

import numpy as np
from numba import cuda, float32, int32
from numba.cuda.extending import overload

from ..device import cuda_jit
from ..errors import RobotDescriptionError
from ..team_kernels import WARP
from . import image_space, planar, space
from .collision import CODE, ITEM, QUEUE, SIEVE, ArmScratch, clear_speeds, motion_valid, poses_size, speeds_size, verdict
from .image_space import ImageScratch
from .packing import DOF, PAIRS
from .planar import PlanarScratch

# single queries are small by nature; numba would warn at every launch
warnings.filterwarnings("ignore", message=".*Grid size .* low occupancy")
space.register(ArmScratch, "cuda", motion_valid, overload)
space.register(PlanarScratch, "cuda", planar.motion_free, overload)
space.register(ImageScratch, "cuda", image_space.motion_free, overload)

THREADS = 128  # of a block
WARPS = THREADS // WARP
REGISTERS = 128  # a lane's at most, so that 16 warps fit on a multiprocessor
ALL_WAITING, ALL_ITEMS, ALL_CODES = WARPS * 2 * QUEUE, WARPS * 2 * ITEM * WARP, WARPS * 2 * CODE * WARP
SHARED = 48 * 1024  # bytes of a block
MOST_SPEEDS = (SHARED // 4 - ALL_WAITING - ALL_ITEMS - ALL_CODES - THREADS) // WARPS // 256 * 256  # of a robot: what is left of it


class CudaChecker:
    """Checks on one CUDA device. Not for several threads at once.

    scene: (floats, ints) on the device;  scratch_sizes: see space
    """

    def __init__(self, packed_robot, device):
        self._index = int(device.partition(":")[2])
        with cuda.gpus[self._index]:
            self._stream = cuda.stream()
        ints = packed_robot.ints
        self._dof = int(ints[DOF])
        sizes = (self._dof, poses_size(ints), speeds_size(ints))
        if sizes[2] > MOST_SPEEDS:
            raise RobotDescriptionError(f"the robot has {ints[PAIRS]} pairs of shapes that may collide, and {sizes[2]} speeds to keep; allowed "
                                        f"on CUDA: {MOST_SPEEDS}. Give an SRDF that disables pairs, or use device='cpu'")
        self.scratch_sizes = (space.ARM, *(_round_up(int(n)) for n in sizes))
        self._configurations, self._motions = _kernels(*self.scratch_sizes[1:])
        self.scene = None
        self._buffers = {}

    def upload(self, scene):
        """Bring a packed scene to the device: the only time that constant data travels."""
        with cuda.gpus[self._index]:
            self.scene = cuda.to_device(scene.floats, self._stream), cuda.to_device(scene.ints, self._stream)
            self._stream.synchronize()

    def configurations_valid(self, q):
        """q: (N, dof) float32, of the host or of the device -> (N,) uint8 verdicts (space)."""
        return self._run(self._configurations, THREADS, (q,))

    def motions_valid(self, q_from, q_to, mode, step):
        return self._run(self._motions, WARPS, (q_from, q_to), int32(mode), step)

    def room(self, number, rows, columns):
        """The page-locked array from which input `number` travels, as configurations.new_array: valid until the next call."""
        with cuda.gpus[self._index]:
            return self._buffer(f"in{number}", rows, (columns,), np.float32)[1][:rows]

    def _run(self, kernel, per_block, inputs, *scalars):
        """inputs: (N, dof) float32 arrays of the host or of the device; -> (N,) uint8 verdicts on the host."""
        n = len(inputs[0])
        if n == 0:
            return np.zeros(0, dtype=np.uint8)
        with cuda.gpus[self._index]:
            on_device = [self._upload(f"in{k}", q) for k, q in enumerate(inputs)]
            answer, host_answer = self._buffer("out", n, (), np.uint8)
            kernel[(n + per_block - 1) // per_block, THREADS, self._stream](*on_device, *scalars, *self.scene, answer[:n])
            answer[:n].copy_to_host(host_answer[:n], self._stream)
            self._stream.synchronize()
            return host_answer[:n].copy()

    def _upload(self, name, q):
        if hasattr(q, "__cuda_array_interface__"):
            return cuda.as_cuda_array(q)
        device, host = self._buffer(name, len(q), (self._dof,), np.float32)
        if not np.may_share_memory(host, q):  # the caller may have filled it already
            np.copyto(host[:len(q)], q)
        device[:len(q)].copy_to_device(host[:len(q)], self._stream)
        return device[:len(q)]

    def _buffer(self, name, n, row, dtype):
        """A device array and its page-locked twin with room for n rows of shape `row`."""
        held = self._buffers.get(name)
        if held is None or len(held[0]) < n:
            shape = 1 << max(10, int(n - 1).bit_length()), *row
            held = cuda.device_array(shape, dtype), cuda.pinned_array(shape, dtype)
            self._buffers[name] = held
        return held


def _round_up(n):
    """Few sizes, so that robots share compiled kernels."""
    return -(-n // 256) * 256 if n > 16 else max(8, -(-n // 8) * 8)


@functools.cache
def warp_scratch(kind, n_q, n_poses=8, n_speeds=8):
    """-> device function scratch(warp): the scratch for a checker's `scratch_sizes` of warp 0...WARPS - 1 of the block.

    What the lanes of a warp share lies in shared memory, the rest in local arrays of each lane.
    """
    all_speeds = WARPS * n_speeds
    arm, plane = space.ARM, space.PLANAR

    @cuda.jit(device=True, inline="always")
    def scratch(warp):
        if kind == arm:
            speed = cuda.shared.array(all_speeds, float32)
            waiting = cuda.shared.array(ALL_WAITING, float32)
            tau = cuda.shared.array(THREADS, float32)
            items = cuda.shared.array(ALL_ITEMS, float32)
            codes = cuda.shared.array(ALL_CODES, int32)
            S = ArmScratch(speed[warp * n_speeds:(warp + 1) * n_speeds], waiting[warp * 2 * QUEUE:], tau[warp * WARP:],
                           items[warp * 2 * ITEM * WARP:], codes[warp * 2 * CODE * WARP:], cuda.local.array(n_q, float32),
                           cuda.local.array(n_poses, float32), cuda.local.array(SIEVE, int32))
        elif kind == plane:
            S = PlanarScratch(cuda.local.array(1, float32))
        else:
            S = ImageScratch(cuda.local.array(1, float32))
        return S

    return scratch


@functools.cache
def _kernels(n_q, n_poses, n_speeds):
    """-> (configurations, motions) for robots of at most n_q joints, n_poses pose scalars and n_speeds speeds."""
    scratch = warp_scratch(space.ARM, n_q, n_poses, n_speeds)

    @cuda_jit(max_registers=REGISTERS)
    def configurations(q, F, I, verdicts):
        warp, lane = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP
        S = scratch(warp)
        clear_speeds(I, S.speed, lane)
        i = cuda.grid(1)
        active = i < len(verdicts)
        answer = verdict(active, q[min(i, len(verdicts) - 1)], F, I, S, lane)
        if active:
            verdicts[i] = answer

    @cuda_jit(max_registers=REGISTERS)
    def motions(q_from, q_to, mode, step, F, I, verdicts):
        warp, lane = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP
        S = scratch(warp)
        i = cuda.blockIdx.x * WARPS + warp
        if i < len(verdicts):
            answer = space.motion_verdict(q_from[i], q_to[i], mode, step, F, I, S, lane)
            if lane == 0:
                verdicts[i] = answer

    return configurations, motions
