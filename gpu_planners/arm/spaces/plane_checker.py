"""What the checkers of the planar arm and of images share: batches of motions on the CPU and on CUDA.

A configuration is checked as a zero-length motion (mode POINT).
"""

import functools
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike

from ...device import njit, refuse_forked, resolve_device, told_if_slow
from ...parallel.threads import in_parts
from .configurations import as_bools, check_policy, narrow_motions
from .interface import SceneParts, Space, motion_verdict

FEW = 64  # motions that one thread checks sooner than several wake up
POINT = -1  # mode of a motion whose first end alone is looked at
ZERO = np.float32(0)


class PlaneChecker:
    """A checker as `interface` describes it. Subclasses add `motion_args`, `colliding_pairs` and `arguments`, and call
    `_set_scene` when obstacles change. A pickled checker comes back on the CPU.

    robot: with dof, joint_names, lower, upper, continuous; kind: of space; scratch: NamedTuple that names the space
    motion_free: the compiled check, as interface.motion_free
    """

    def __init__(self, robot: Any, device: str, kind: int, scratch: NamedTuple, motion_free: Any) -> None:
        self.robot, self.device = robot, resolve_device(device)
        self.version, self.packed_scene, self.scene_parts = 0, None, None
        self.scratch_sizes = (kind, max(8, -(-robot.dof // 8) * 8))
        self._scratch, self._warm = scratch, False
        self._elsewhere: dict[str, tuple[int, Any]] = {}  # by device: the version that it is of, and the checker
        self._cuda: Any = None  # a CudaPlane
        if self.device != "cpu":
            from .cuda import CudaPlane

            self._cuda = CudaPlane(robot.dof, self.scratch_sizes, self.device, type(scratch), motion_free)

    def _set_scene(self, packed):
        self.packed_scene, self.scene_parts = packed, SceneParts(packed)
        self.version += 1
        if self._cuda:
            self._cuda.upload(packed)

    def __reduce__(self) -> tuple:
        return functools.partial(type(self), **self.arguments, device="cpu"), ()

    @property
    def arguments(self) -> dict[str, Any]:
        """What makes a checker like this one, but for the device."""
        raise NotImplementedError

    def on(self, device: str) -> Any:
        """A checker like this one on another device, which is kept until this one changes; this one where that is its
        own device. Raises DeviceError."""
        device = resolve_device(device)
        if device == self.device:
            return self
        version, other = self._elsewhere.get(device, (None, None))
        if version != self.version:
            other = type(self)(**self.arguments, device=device)
            self._elsewhere[device] = self.version, other
        return other

    @property
    def motion_args(self) -> tuple[int, np.float32]:
        """(mode, step) as the compiled code takes them."""
        raise NotImplementedError

    def device_scene(self) -> tuple:
        """(floats, ints) of the packed scene on the CUDA device."""
        return self._cuda.scene

    def new_scratch(self) -> NamedTuple:
        """What one CPU thread of compiled code needs for a check."""
        return self._scratch

    def warm_up(self) -> None:
        """Compile the checks, or load them from the cache, so that no query is charged for it."""
        refuse_forked()
        if not self._warm:
            with told_if_slow(f"checks for {self.device}", *self.scratch_sizes):
                for n in (1, FEW + 1):
                    q = np.zeros((n, self.robot.dof))
                    self.motions_valid(q, q)
            self._warm = True

    def configurations_valid(self, q: ArrayLike, not_finite: str = "error") -> np.ndarray:
        """q: (N, dof) -> (N,) bool: free of collision. Limits are not checked; each space has its greatest values.

        not_finite: as CollisionChecker has it
        """
        return self._run({"q": q}, POINT, ZERO, not_finite)

    def motions_valid(self, q_from: ArrayLike, q_to: ArrayLike, not_finite: str = "error") -> np.ndarray:
        """(N, dof), (N, dof) -> (N,) bool: is each straight motion free, ends included?"""
        mode, step = self.motion_args
        return self._run({"q_from": q_from, "q_to": q_to}, mode, step, not_finite)

    def _run(self, given, mode, step, not_finite):
        refuse_forked()
        check_policy(not_finite)
        q_from, q_to = narrow_motions(*(2 * list(given.values()))[:2], self.robot)
        if self._cuda:
            return as_bools(self._cuda.motions_valid(q_from, q_to, mode, step), not_finite, self.robot, **given)
        verdicts = np.empty(len(q_from), dtype=np.uint8)
        check, parts = (_check_few, 1) if len(verdicts) <= FEW else (_check_many, 8 * numba.get_num_threads())
        for qa, qb, answers in in_parts(q_from, q_to, verdicts):
            check(qa, qb, parts, np.int32(mode), np.float32(step), self.packed_scene, self._scratch, answers)
        return as_bools(verdicts, not_finite, self.robot, **given)


@njit
def _check_few(qa, qb, parts, mode, step, scene, scratch, verdicts):
    """Write the verdicts of motions qa -> qb, (N, dof) each. parts: how many pieces the threads share"""
    space = Space(mode, step, scene.floats, scene.ints, scratch)
    for i in range(len(qa)):
        verdicts[i] = motion_verdict(qa[i], qb[i], space, 0)


@njit(parallel=True)
def _check_many(qa, qb, parts, mode, step, scene, scratch, verdicts):
    for part in numba.prange(parts):
        first, last = part * len(qa) // parts, (part + 1) * len(qa) // parts
        _check_few(qa[first:last], qb[first:last], 1, mode, step, scene, scratch, verdicts[first:last])
