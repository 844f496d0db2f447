"""CUDA: thin kernels around `certify`: a lane checks a configuration, a warp a motion. And the scratch of a warp."""

import functools

from numba import cuda, float32, int32, uint8
from numba.cuda.extending import overload  # type: ignore[attr-defined]

from ... import beside
from ...code_cache import is_kept
from ...errors import RobotDescriptionError
from ...parallel.team_cuda import WARP
from ...parallel.threads import in_parts
from ..geometry.poses import POSE
from ..spaces import interface
from ..spaces.cuda import MANY, THREADS, WARPS, CudaBatches, kernel_jit, register_scratch, spill_type
from ..spaces.interface import Packed
from .certify import clear_speeds, verdict
from .motions import motion_valid
from .records import header
from .scratch import ANY, CODE, ITEM, QUEUE, SHARED_SPEEDS, SIEVE, SIZES, ArmScratch, poses_size, speeds_size

# entries of a block's shared arrays
ALL_WAITING, ALL_TAU = WARPS * 2 * QUEUE, WARPS * 2 * WARP
WAITING = WARPS * 2 * WARP  # pairs that wait for the exact search
ALL_ITEMS, ALL_CODES = ITEM * WAITING, CODE * WAITING
SHARED = 48 * 1024  # bytes of a block
assert 4 * (WARPS * SHARED_SPEEDS + ALL_WAITING + ALL_TAU + ALL_ITEMS + ALL_CODES) <= SHARED
MOST_POSES = 1 << 16  # floats of poses: half of the 512 KiB that a lane's local arrays may have


class CudaChecker(CudaBatches):
    """Checks of an arm. least: number of the first of SIZES that its kernels may have"""

    def __init__(self, packed_robot, device, least=0):
        super().__init__(device, header(packed_robot).dof, scratch_sizes_of(packed_robot, least))
        self._configurations = configuration_kernel(*self.scratch_sizes)
        with cuda.gpus[self.index]:
            if not is_kept(self._configurations, configuration_types(*self.scratch_sizes)):
                _compile_others(*self.scratch_sizes[1:])

    def configurations_valid(self, q):
        """q: (N, dof) float32, on the host or on the device -> (N,) uint8 verdicts (interface)."""
        return self.run(self._configurations, THREADS, (q,), plain=True)

    def judge(self, q, verdicts, stream):
        """The same, into an array of the device, once the stream has come so far."""
        for rows, answers in in_parts(q, verdicts, size=MANY):
            blocks = -(-len(answers) // THREADS)
            self._configurations[blocks, THREADS, stream.numba](rows, *self.scene, answers, self._spill.rows(1))


def _sizes_of(packed_robot):
    """(joints, floats of poses, of speeds) that a robot takes."""
    return header(packed_robot).dof, poses_size(packed_robot), speeds_size(packed_robot)


def size_number(packed_robot: Packed, least: int = 0) -> int:
    """Number of the first of SIZES, from `least` on, that has room for a robot; len(SIZES): it is larger."""
    sizes = _sizes_of(packed_robot)
    fitting = (k for k in range(least, len(SIZES)) if all(n <= most for n, most in zip(sizes, SIZES[k])))
    return next(fitting, len(SIZES))


def scratch_sizes_of(packed_robot: Packed, least: int = 0) -> tuple[int, ...]:
    """(ARM, joints, floats of poses, speeds) of the kernels for a robot. Kernels whose speeds lie in global memory are
    the same for any number of them."""
    sizes, number = _sizes_of(packed_robot), size_number(packed_robot, least)
    if sizes[1] > MOST_POSES:
        counts = header(packed_robot)
        raise RobotDescriptionError(
            f"the robot has {counts.shapes} convex shapes and {counts.frames} frames, {sizes[1]} numbers to place "
            f"them; allowed on CUDA: {MOST_POSES}, about 8,000 shapes. Simplify the meshes, or use device='cpu'"
        )
    joints, poses, speeds = SIZES[min(number, len(SIZES) - 1)]
    if speeds == ANY:
        speeds = max(2 * SHARED_SPEEDS, _doubled(SHARED_SPEEDS, sizes[2]))
    return interface.ARM, _doubled(joints, sizes[0]), _doubled(poses, sizes[1]), speeds


def _doubled(size, count):
    """The size, doubled until it is `count` or more."""
    return size << max(int(-(-count // size) - 1).bit_length(), 0)


def _spilled(n_q, n_poses, n_speeds):
    """How many of a robot's speeds lie in global memory: all, or none."""
    return n_speeds if n_speeds > SHARED_SPEEDS else 0


def _speeds(n_speeds, plain):
    """-> device function speeds(warp, spill): a warp's, in shared memory where they fit.

    plain: for plain checks, whose speeds are all zero; in global memory one row stands for all warps
    """
    all_speeds, apart = WARPS * n_speeds, 0 if plain else 1

    @cuda.jit(device=True, inline="always")
    def in_shared_memory(warp, spill):
        speeds = cuda.shared.array(all_speeds, float32)
        return speeds[warp * n_speeds : (warp + 1) * n_speeds]

    @cuda.jit(device=True, inline="always")
    def in_global_memory(warp, spill):
        return spill[0][apart * (cuda.blockIdx.x * WARPS + warp)]

    return in_global_memory if _spilled(0, 0, n_speeds) else in_shared_memory


def _scratch(n_q, n_poses, n_speeds, plain=False):
    """-> device function scratch(warp, spill): what a warp's lanes share, in shared or global memory; the rest in local
    arrays.

    plain: for plain checks, which keep no more than the POSE of a pair that waits
    """
    speeds_of, item = _speeds(n_speeds, plain), POSE if plain else ITEM
    all_items = item * WAITING

    @cuda.jit(device=True, inline="always")
    def scratch(warp, spill):
        speeds = speeds_of(warp, spill)
        waiting = cuda.shared.array(ALL_WAITING, float32)
        tau = cuda.shared.array(ALL_TAU, float32)
        items = cuda.shared.array(all_items, float32)
        codes = cuda.shared.array(ALL_CODES, int32)
        return ArmScratch(
            speeds,
            waiting[warp * 2 * QUEUE :],
            tau[warp * 2 * WARP :],
            items[warp * 2 * item * WARP :],
            codes[warp * 2 * CODE * WARP :],
            cuda.local.array(n_q, float32),
            cuda.local.array(n_poses, float32),
            cuda.local.array(SIEVE, int32),
        )

    return scratch


def plain_scratch(*scratch_sizes):
    """-> device function scratch(warp, spill) of plain checks, for a checker's `scratch_sizes`."""
    return _scratch(*scratch_sizes[1:], plain=True)


def sizes_of(number: int) -> tuple[int, ...]:
    """The scratch_sizes of the kernels number `number` of SIZES."""
    joints, poses, speeds = SIZES[number]
    return interface.ARM, joints, poses, 2 * SHARED_SPEEDS if speeds == ANY else speeds


def _compile_others(n_q, n_poses, n_speeds):
    """A kernel of one of SIZES is nowhere kept: other processes compile the others, and then those of other
    sizes, but for the largest, which few robots take. Larger robots' kernels are compiled here alone."""
    sizes = [(joints, poses, speeds > SHARED_SPEEDS) for joints, poses, speeds in SIZES]
    if (own := (n_q, n_poses, n_speeds > SHARED_SPEEDS)) in sizes:
        number = sizes.index(own)
        others = [other for other in range(len(SIZES) - 1) if other != number]
        beside.compile_kernels(f"cuda:{cuda.get_current_device().id}", [number, *others])


register_scratch(interface.ARM, _scratch, _spilled, _compile_others)
interface.register(ArmScratch, "cuda", motion_valid, overload)


@functools.cache
def configuration_kernel(*scratch_sizes):
    """-> kernel that checks configurations, a lane each. A block takes THREADS of them."""
    make_scratch = plain_scratch(*scratch_sizes)

    @kernel_jit(scratch_sizes)
    def configurations(q, floats, ints, verdicts, spill):
        warp, lane = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP
        scene, scratch = Packed(floats, ints), make_scratch(warp, spill)
        clear_speeds(scene, scratch.speeds, lane)
        i = cuda.grid(1)
        active = i < len(verdicts)
        answer = verdict(active, q[min(i, len(verdicts) - 1)], scene, scratch, lane)
        if active:
            verdicts[i] = answer

    return configurations


def configuration_types(*scratch_sizes: int) -> tuple:
    """Of the arguments of `configuration_kernel`."""
    return float32[:, ::1], float32[::1], int32[::1], uint8[::1], spill_type(*scratch_sizes)
