"""What the checkers of planar.py and image_space.py share: batches of motions on the CPU and on CUDA, and the scene there.

A configuration is checked as a motion that does not move (mode POINT).
"""

import numba
import numpy as np

from ..device import njit, refuse_forked, resolve_device
from . import space
from .configurations import as_bools, check_policy, narrow_motions

FEW = 64  # motions that one thread checks sooner than several wake up
POINT = -1  # mode of a motion whose first end alone is looked at
ZERO = np.float32(0)


class PlaneChecker:
    """robot: with dof, joint_names, lower, upper, continuous;  kind: of space;  scratch: NamedTuple that names the space

    Subclasses give `motion_args` and `colliding_pairs`, and call `_set_scene` when obstacles change.
    """

    def __init__(self, robot, device, kind, scratch):
        self.robot, self.device = robot, resolve_device(device)
        self.version, self.packed_scene = 0, None
        self.scratch_sizes = (kind, max(8, -(-robot.dof // 8) * 8))
        self._scratch, self._warm = scratch, False
        self._cuda = None
        if self.device != "cpu":
            from .plane_kernels import CudaPlane

            self._cuda = CudaPlane(robot.dof, self.scratch_sizes, self.device)

    def _set_scene(self, packed):
        self.packed_scene = packed
        self.version += 1
        if self._cuda:
            self._cuda.upload(packed)

    def device_scene(self):
        """(floats, ints) of the packed scene on the CUDA device."""
        return self._cuda.scene

    def new_scratch(self):
        """What one CPU thread of compiled code needs for a check."""
        return self._scratch

    def warm_up(self):
        """Compile the checks, or load them from the cache, so that no query is charged for it."""
        refuse_forked()
        if not self._warm:
            for n in (1, FEW + 1):
                q = np.zeros((n, self.robot.dof))
                self.motions_valid(q, q)
            self._warm = True

    def configurations_valid(self, q, not_finite="error"):
        """q: (N, dof) -> (N,) bool: free of collision. Limits are not looked at, but see each space for the greatest values.

        not_finite: see CollisionChecker
        """
        return self._run({"q": q}, POINT, ZERO, not_finite)

    def motions_valid(self, q_from, q_to, not_finite="error"):
        """(N, dof), (N, dof) -> (N,) bool: is each straight motion free, ends included."""
        return self._run({"q_from": q_from, "q_to": q_to}, *self.motion_args, not_finite)

    def _run(self, given, mode, step, not_finite):
        refuse_forked()
        check_policy(not_finite)
        q_from, q_to = narrow_motions(*(2 * list(given.values()))[:2], self.robot)
        if self._cuda:
            return as_bools(self._cuda.motions_valid(q_from, q_to, mode, step), not_finite, self.robot, **given)
        verdicts = np.empty(len(q_from), dtype=np.uint8)
        if len(verdicts) <= FEW:
            _check(q_from, q_to, 0, len(verdicts), mode, step, *self.packed_scene, self._scratch, verdicts)
        else:
            chunks = min(len(verdicts), 8 * numba.get_num_threads())
            _check_all(q_from, q_to, chunks, mode, step, *self.packed_scene, self._scratch, verdicts)
        return as_bools(verdicts, not_finite, self.robot, **given)


@njit
def _check(qa, qb, first, last, mode, step, F, I, S, verdicts):
    for i in range(first, last):
        verdicts[i] = space.motion_verdict(qa[i], qb[i], mode, step, F, I, S, 0)


@njit(parallel=True)
def _check_all(qa, qb, chunks, mode, step, F, I, S, verdicts):
    for c in numba.prange(chunks):
        _check(qa, qb, c * len(qa) // chunks, (c + 1) * len(qa) // chunks, mode, step, F, I, S, verdicts)
