"""CUDA: the scenes of a SceneBatch on a device. A lane writes the obstacles of a scene; a warp checks configurations,
or a motion, of one scene."""

import functools
from typing import Any

import numpy as np
from numba import cuda, int32

from ...device import cuda_jit
from ...parallel.arrays_cuda import as_device_array
from ...parallel.team_cuda import WARP
from ..geometry.poses import POSE
from ..spaces.cuda import MANY, REGISTERS, THREADS, WARPS, CudaBatches, warp_scratch
from ..spaces.interface import Packed, Space, motion_verdict
from . import records
from .certify import clear_speeds, verdict
from .checker_cuda import plain_scratch
from .posing import Pieces, pose_scene, read_poses


class ScenesOnDevice(CudaBatches):
    """As `scene_batch._OnThreads`."""

    def __init__(self, base: Any, pieces: Pieces, floats: Any, ints: Any, rows: Any, sizes: Any) -> None:
        super().__init__(base.device, base.robot.dof, base.scratch_sizes)
        self._sizes, self._count = tuple(sizes.tolist()), len(rows)
        self._obstacles = records.header(Packed(floats, ints)).obstacles
        self.upload(Packed(floats, ints))
        self.buffers = self.scene
        with cuda.gpus[self.index]:
            self._pieces = tuple(cuda.to_device(each) for each in pieces)
            self._rows = cuda.to_device(rows)

    def read(self, given):
        n, obstacles = len(given), self._rows.shape[1]
        with cuda.gpus[self.index]:
            given = cuda.to_device(given) if isinstance(given, np.ndarray) else given
            rows, faults = cuda.device_array((n, obstacles, POSE), np.float64), cuda.device_array(n, np.int32)
            _read_kernel()[-(-n // THREADS), THREADS, self.stream](given, rows, *self._pieces, faults)
            told = faults.copy_to_host(stream=self.stream)
            self.stream.synchronize()
        return rows, told

    def write(self, rows, chosen):
        n = len(chosen)
        if not n or not self._rows.shape[1]:
            return
        with cuda.gpus[self.index]:
            rows = cuda.to_device(rows) if isinstance(rows, np.ndarray) else rows
            given = rows, cuda.to_device(chosen), self._rows, self.buffers[0], self._sizes[0]
            _write_kernel()[-(-n // THREADS), THREADS, self.stream](*given, *self._pieces, self._obstacles)
            self.stream.synchronize()

    def poses(self, chosen):
        with cuda.gpus[self.index]:
            return self._rows.copy_to_host()[chosen]

    def floats_of(self, number):
        size = self._sizes[0]
        with cuda.gpus[self.index]:
            return self.buffers[0][number * size : (number + 1) * size].copy_to_host()

    def configurations(self, q):
        per = len(q) // self._count
        return self._checked(_configuration_kernel(*self.scratch_sizes), self._count * -(-per // WARP), per, (q,), True)

    def motions(self, qa, qb, mode, step):
        kernel, per = _motion_kernel(*self.scratch_sizes), len(qa) // self._count
        return self._checked(kernel, len(qa), per, (qa, qb), False, int32(mode), step)

    def _checked(self, kernel, warps, per, inputs, plain, *scalars):
        """Let so many warps check rows, `per` of each scene -> as `CudaBatches.run`."""
        n, stay = len(inputs[0]), not isinstance(inputs[0], np.ndarray)
        with cuda.gpus[self.index]:
            answer = cuda.device_array(n, np.uint8)
            on_device = [self._upload(f"in{k}", q) for k, q in enumerate(inputs)]
            most = 0 if plain else self._spill.most_blocks * WARPS
            at_once = min(MANY, most or MANY)
            for first in range(0, warps, at_once):
                blocks = -(-min(at_once, warps - first) // WARPS)
                given = first, warps, per, *self._sizes, *scalars, *self.buffers, answer
                kernel[blocks, THREADS, self.stream](*on_device, *given, self._spill.rows(1 if plain else blocks))
                if warps > at_once:
                    self.stream.synchronize()
            found = (self._as_bools(answer) if n else (as_device_array(answer.view(np.bool_)), False)) if stay else None
            if not stay:
                found = answer.copy_to_host(stream=self.stream)
                self.stream.synchronize()
            self._spill.trim()
        return found


@functools.cache
def _read_kernel():
    """The kernel that reads poses, a lane for each scene."""

    @cuda_jit
    def read_scenes(given, rows, places, local, robot, groups, faults):
        k = cuda.grid(1)
        if k < len(faults):
            faults[k] = read_poses(k, given, rows, Pieces(places, local, robot, groups))

    return read_scenes


@functools.cache
def _write_kernel():
    """The kernel that puts obstacles there, a lane for each scene."""

    @cuda_jit
    def write_scenes(rows, chosen, all_rows, floats, size, places, local, robot, groups, obstacles):
        k = cuda.grid(1)
        if k < len(chosen):
            e = chosen[k]
            for m in range(rows.shape[1]):
                for i in range(POSE):
                    all_rows[e, m, i] = rows[k, m, i]
            pose_scene(rows[k], floats[e * size : (e + 1) * size], Pieces(places, local, robot, groups), obstacles)

    return write_scenes


@functools.cache
def _configuration_kernel(*scratch_sizes):
    """-> kernel that checks configurations, a lane each; all lanes of a warp have the same scene."""
    make_scratch = plain_scratch(*scratch_sizes)

    @cuda_jit(max_registers=REGISTERS)
    def configurations_of_scenes(q, first, warps, per, n_floats, n_ints, floats, ints, verdicts, spill):
        warp, lane = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP
        w = min(first + cuda.blockIdx.x * WARPS + warp, warps - 1)
        each = (per + WARP - 1) // WARP
        e, row = w // each, w % each * WARP + lane
        scene = Packed(floats[e * n_floats :], ints[e * n_ints :])
        scratch = make_scratch(warp, spill)
        clear_speeds(scene, scratch.speeds, lane)
        active = row < per
        i = e * per + min(row, per - 1)
        answer = verdict(active, q[i], scene, scratch, lane)
        if active:
            verdicts[i] = answer

    return configurations_of_scenes


@functools.cache
def _motion_kernel(*scratch_sizes):
    """-> kernel that checks motions, a warp each."""
    scratch = warp_scratch(*scratch_sizes)

    @cuda_jit(max_registers=REGISTERS)
    def motions_of_scenes(q_from, q_to, first, warps, per, n_floats, n_ints, mode, step, floats, ints, verdicts, spill):
        warp, lane = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP
        i = first + cuda.blockIdx.x * WARPS + warp
        if i < warps:
            e = i // per
            space = Space(mode, step, floats[e * n_floats :], ints[e * n_ints :], scratch(warp, spill))
            answer = motion_verdict(q_from[i], q_to[i], space, lane)
            if lane == 0:
                verdicts[i] = answer

    return motions_of_scenes
