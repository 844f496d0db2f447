"""CUDA: thin kernels around `collision.py`. A thread checks a configuration, a warp checks a motion.

Kernels are compiled for the size of the robot (local arrays need constants) and kept. Launches take four to
seven array arguments; buffers for requests and answers are page-locked, grow by doubling and are used again.
"""

import functools
import warnings

import numpy as np
from numba import cuda, float32, float64, int32

from ..device import cuda_jit
from .collision import CONTINUOUS, HALF_F, ZERO, certify, free, interpolate, motion_parts, poses_size
from .convex import SIMPLEX_SCRATCH
from .packing import DOF, MOVING, PAIRS, REACH

# single queries are small by nature; numba would warn at every launch
warnings.filterwarnings("ignore", message=".*Grid size .* low occupancy")

WARP = 32
THREADS = 128
WARPS = THREADS // WARP
WAITING = 512  # intervals of a motion that wait for a lane; more than a motion can need (32 lanes, 14 halvings)
ALL_WAITING = WARPS * 2 * WAITING
ALL = np.uint32(0xFFFFFFFF)


class CudaChecker:
    """Checks on one CUDA device. Not for several threads at once."""

    def __init__(self, packed_robot, device):
        self._index = int(device.partition(":")[2])
        with cuda.gpus[self._index]:
            self._stream = cuda.stream()
        ints = packed_robot.ints
        self._dof = int(ints[DOF])
        sizes = (self._dof, poses_size(ints), ints[MOVING] + ints[PAIRS])
        self._configurations, self._motions = _kernels(*(_round_up(int(n)) for n in sizes))
        self._scene = None
        self._buffers = {}

    def upload(self, scene):
        """Bring a packed scene to the device: the only time that constant data travels."""
        with cuda.gpus[self._index]:
            self._scene = cuda.to_device(scene.floats, self._stream), cuda.to_device(scene.ints, self._stream)
            self._stream.synchronize()

    def configurations_valid(self, q):
        return self._run(self._configurations, THREADS, (q,))

    def motions_valid(self, q_from, q_to, mode, step):
        return self._run(self._motions, WARPS, (q_from, q_to), int32(mode), step)

    def _run(self, kernel, per_block, inputs, *scalars):
        """inputs: (N, dof) float32 arrays of the host or of the device; -> (N,) bool on the host."""
        n = len(inputs[0])
        if n == 0:
            return np.zeros(0, dtype=np.bool_)
        with cuda.gpus[self._index]:
            on_device = [self._upload(f"in{k}", q) for k, q in enumerate(inputs)]
            answer, host_answer = self._buffer("out", n, 1, np.bool_)
            kernel[(n + per_block - 1) // per_block, THREADS, self._stream](*on_device, *scalars, *self._scene, answer[:n])
            answer[:n].copy_to_host(host_answer[:n], self._stream)
            self._stream.synchronize()
            return host_answer[:n].copy()

    def _upload(self, name, q):
        if hasattr(q, "__cuda_array_interface__"):
            return cuda.as_cuda_array(q)
        device, host = self._buffer(name, len(q), self._dof, np.float32)
        np.copyto(host[:len(q)], q)
        device[:len(q)].copy_to_device(host[:len(q)], self._stream)
        return device[:len(q)]

    def _buffer(self, name, n, columns, dtype):
        """A device array and its page-locked twin with room for n rows."""
        held = self._buffers.get(name)
        if held is None or len(held[0]) < n:
            rows = 1 << max(10, int(n - 1).bit_length())
            shape = (rows,) if columns == 1 else (rows, columns)
            held = cuda.device_array(shape, dtype), cuda.pinned_array(shape, dtype)
            self._buffers[name] = held
        return held


def _round_up(n):
    """Few sizes, so that robots share compiled kernels."""
    return max(8, -(-n // 64) * 64 if n > 16 else -(-n // 8) * 8)


@functools.cache
def _kernels(n_q, n_poses, n_speeds):
    """-> (configurations, motions) for robots of at most n_q joints, n_poses pose scalars and n_speeds speeds."""

    all_speeds = WARPS * n_speeds

    @cuda_jit
    def configurations(q, F, I, valid):
        X = cuda.local.array(n_poses, float32)
        W = cuda.local.array(SIMPLEX_SCRATCH, float64)
        i = cuda.grid(1)
        if i < len(valid):
            valid[i] = free(q[i], F, I, X, W)

    @cuda_jit
    def motions(q_from, q_to, mode, step, F, I, valid):
        X = cuda.local.array(n_poses, float32)
        W = cuda.local.array(SIMPLEX_SCRATCH, float64)
        q = cuda.local.array(n_q, float32)
        speeds = cuda.shared.array(all_speeds, float32)
        waiting = cuda.shared.array(ALL_WAITING, float32)
        warp, lane = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP
        i = cuda.blockIdx.x * WARPS + warp
        if i < len(valid):
            qa, qb = q_from[i], q_to[i]
            result = warp_motion_valid(qa, qb, mode, step, F, I, q[:len(qa)], X, W, speeds[warp * n_speeds:],
                                       waiting[warp * 2 * WAITING:], lane)
            if lane == 0:
                valid[i] = result

    return configurations, motions


@cuda_jit(device=True, cache=False)
def warp_motion_valid(qa, qb, mode, step, F, I, q, X, W, speed, waiting, lane):
    """`collision.motion_valid` by the 32 lanes of a warp; every lane gets the answer.

    q, X, W: scratch of the lane; speed, waiting: shared scratch of the warp.
    """
    greatest = warp_speeds(qa, qb, F, I, speed, lane)
    if mode != CONTINUOUS:
        parts = motion_parts(qa, qb, mode, step, greatest)
        rounds = (parts + WARP) // WARP
        for r in range(rounds):
            k = lane * rounds + r
            hit = False
            if k <= parts:
                interpolate(qa, qb, float32(k) / float32(parts), q)
                hit = not free(q, F, I, X, W)
            if cuda.any_sync(ALL, hit):
                return False
        return True
    shortest = step / max(greatest, float32(1e-12))
    low, high = float32(lane) / float32(WARP), float32(lane + 1) / float32(WARP)
    active, count = True, 0
    while True:
        refused, split = False, False
        middle, tau = low, low
        if active:
            half = HALF_F * (high - low)
            middle = low + half
            interpolate(qa, qb, middle, q)
            tau = certify(q, max(half, shortest), speed, F, I, X, W)
            split = tau >= ZERO and tau < half
            refused = tau < ZERO or (split and tau < HALF_F * shortest)
        if cuda.any_sync(ALL, refused):
            return False
        splitting = cuda.ballot_sync(ALL, split)
        added = 2 * cuda.popc(splitting)
        if count + added > WAITING:
            return False
        if split:
            at = 2 * (count + 2 * cuda.popc(splitting & ((1 << lane) - 1)))
            waiting[at], waiting[at + 1] = low, middle - tau
            waiting[at + 2], waiting[at + 3] = middle + tau, high
        count += added
        if count == 0:
            return True
        cuda.syncwarp()
        active = lane < count
        if active:
            low, high = waiting[2 * (count - 1 - lane)], waiting[2 * (count - 1 - lane) + 1]
        count -= min(count, WARP)
        cuda.syncwarp()


@cuda_jit(device=True, cache=False)
def warp_speeds(qa, qb, F, I, speed, lane):
    """`collision.speeds`, a lane for each shape or pair; -> the greatest, for every lane."""
    dof, greatest = I[DOF], ZERO
    for s in range(lane, I[MOVING] + I[PAIRS], WARP):
        v = ZERO
        for k in range(dof):
            v += F[I[REACH] + s * dof + k] * abs(qb[k] - qa[k])
        speed[s] = v
        greatest = max(greatest, v)
    for offset in (16, 8, 4, 2, 1):
        greatest = max(greatest, cuda.shfl_xor_sync(ALL, greatest, offset))
    cuda.syncwarp()
    return greatest
