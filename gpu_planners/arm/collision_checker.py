"""CollisionChecker: the one door between planners and the collision engine, on the CPU or a CUDA device."""

from dataclasses import dataclass

import numba
import numpy as np

from ..device import njit, resolve_device
from ..errors import SettingsError
from .collision import (
    CONTINUOUS,
    COUNT,
    JOINT,
    WORKSPACE,
    clear_speeds,
    free,
    motion_valid,
    new_scratch,
    pair_distances,
)
from .packing import MOVING, OBSTACLES, PAIR_INTS, PAIRS, pack_robot, pack_scene

MODES = {"continuous": CONTINUOUS, "workspace": WORKSPACE, "joint": JOINT, "count": COUNT}
UNITS = {"continuous": "metres", "workspace": "metres", "joint": "rad", "count": "parts"}


@dataclass(frozen=True)
class MotionCheck:
    """How a straight motion in joint space is checked.

    mode: "continuous": proven free all along; motions that come closer than about step / 2 metres are refused.
          "workspace": at equal steps so that no point of the robot moves more than `step` metres between two checks.
          "joint": at equal steps of at most `step` in the joint-space L2 norm ([DL14], definition 1).
          "count": `step` equal parts, whatever the length ([BKF11], III-B-3).
    step: metres, metres, rad (or m for prismatic joints), number.
    """

    mode: str = "continuous"
    step: float = 1e-3

    def __post_init__(self):
        if self.mode not in MODES:
            raise SettingsError(f"MotionCheck.mode is {self.mode!r}; allowed: {', '.join(MODES)}")
        least = 1 if self.mode == "count" else 1e-5
        if not (np.isfinite(self.step) and self.step >= least):
            raise SettingsError(f"MotionCheck.step is {self.step!r}; allowed in mode '{self.mode}': at least {least} {UNITS[self.mode]}")


class CollisionChecker:
    """Exact checks of whole configurations and motions of one robot in one world.

    The world may change between queries: it is uploaded again when its version has changed.

    device: "auto", "cpu", "cuda" or "cuda:N"; raises DeviceError when it is not there.
    """

    def __init__(self, robot, world, device="auto", motion=MotionCheck()):
        self.robot, self.world, self.motion = robot, world, motion
        self.device = resolve_device(device)
        self.packed_robot, self._shape_order = pack_robot(robot)
        self._warm = False
        self._version = None
        self._packed_scene = None
        self._cuda = None
        if self.device != "cpu":
            from .collision_kernels import CudaChecker

            self._cuda = CudaChecker(self.packed_robot, self.device)

    @property
    def version(self):
        return self.world.version

    @property
    def packed_scene(self):
        if self._version != self.world.version:
            version = self.world.version
            self._packed_scene = pack_scene(self.packed_robot, self.world.shapes)
            self._version = version
            if self._cuda:
                self._cuda.upload(self._packed_scene)
        return self._packed_scene

    def warm_up(self):
        """Compile the checks, or load them from the cache, so that no query is charged for it. Seconds once, then nothing."""
        if not self._warm:
            q = np.zeros((1, self.robot.dof))
            self.configurations_valid(q)
            self.motions_valid(q, q)
            self._warm = True

    @property
    def motion_args(self):
        """(mode, step) as the kernels take them."""
        return MODES[self.motion.mode], np.float32(self.motion.step)

    def new_scratch(self):
        """What one CPU thread of compiled code needs for a check."""
        return new_scratch(self.packed_robot.ints)

    @property
    def scratch_sizes(self):
        """(kind of space, sizes...): what a CUDA kernel must allocate for a check."""
        return self._cuda.scratch_sizes

    def device_scene(self):
        """(floats, ints) of the packed scene on the CUDA device."""
        self.packed_scene
        return self._cuda.scene

    def configurations_valid(self, q):
        """q: (N, dof), rad or m -> (N,) bool: free of collision with the world and of self-collision. Limits are not looked at."""
        q = self._configurations(q, "q")
        scene = self.packed_scene
        if self._cuda:
            return self._cuda.configurations_valid(q)
        valid = np.empty(len(q), dtype=np.bool_)
        _configurations_valid(q, self._chunks(q), *scene, valid)
        return valid

    def motions_valid(self, q_from, q_to):
        """(N, dof), (N, dof) -> (N,) bool: is each straight motion free, ends included, by the checker's MotionCheck."""
        q_from, q_to = self._configurations(q_from, "q_from"), self._configurations(q_to, "q_to")
        if q_from.shape != q_to.shape:
            raise ValueError(f"q_from and q_to must have the same shape, got {q_from.shape} and {q_to.shape}")
        scene = self.packed_scene
        if self._cuda:
            return self._cuda.motions_valid(q_from, q_to, *self.motion_args)
        valid = np.empty(len(q_from), dtype=np.bool_)
        _motions_valid(q_from, q_to, self._chunks(q_from), *self.motion_args, *scene, valid)
        return valid

    def colliding_pairs(self, q):
        """q: (dof,) -> [(name, name), ...]: every pair of a robot shape and an obstacle or another robot shape that meet."""
        q = self._configurations(np.asarray(q)[None], "q")
        meets = np.flatnonzero(_pair_distances(q, *self.packed_scene, np.float32(0))[0] < 0)
        names = [self.robot.shapes[i].name for i in self._shape_order]
        obstacles = [shape.name for shape in self.world.shapes]
        ints = self.packed_robot.ints
        self_pairs = ints[ints[PAIR_INTS]:ints[PAIR_INTS] + 2 * ints[PAIRS]].reshape(-1, 2)
        first_self = ints[MOVING] * len(obstacles)
        return [(names[m // len(obstacles)], obstacles[m % len(obstacles)]) if m < first_self
                else tuple(names[i] for i in self_pairs[m - first_self]) for m in meets]

    def shape_pair_collisions(self, q):
        """q: (N, dof) -> (N, P) bool: which of robot.self_collision_pairs meet."""
        q = self._configurations(q, "q")
        return _pair_distances(q, *pack_scene(self.packed_robot, ()), np.float32(0)) < 0

    def clearances(self, q, up_to=0.1):
        """q: (N, dof) -> (N,) float32: lower bound of the distance to the nearest collision, metres; negative where in
        collision. Distances below `up_to` are within a fifth of the true one."""
        distances = _pair_distances(self._configurations(q, "q"), *self.packed_scene, np.float32(up_to))
        return distances.min(axis=1, initial=np.float32(np.inf))

    @staticmethod
    def _chunks(q):
        """How many pieces the threads share: several each, since early exits make them uneven."""
        return min(len(q), 8 * numba.get_num_threads())

    def _configurations(self, q, name):
        q = np.ascontiguousarray(q, dtype=np.float32) if not hasattr(q, "__cuda_array_interface__") else q
        if len(q.shape) != 2 or q.shape[1] != self.robot.dof:
            raise ValueError(f"{name} must have shape (N, {self.robot.dof}), got {tuple(q.shape)}")
        return q


@njit(parallel=True)
def _configurations_valid(q, chunks, F, I, valid):
    for c in numba.prange(chunks):
        S = new_scratch(I)
        clear_speeds(I, S.speed, 0)
        for i in range(c * len(q) // chunks, (c + 1) * len(q) // chunks):
            valid[i] = free(True, q[i], F, I, S, False, 0)


@njit(parallel=True)
def _motions_valid(qa, qb, chunks, mode, step, F, I, valid):
    for c in numba.prange(chunks):
        S = new_scratch(I)
        for i in range(c * len(qa) // chunks, (c + 1) * len(qa) // chunks):
            valid[i] = motion_valid(qa[i], qb[i], mode, step, F, I, S, 0)


@njit
def _pair_distances(q, F, I, margin):
    """(N, moving * obstacles + pairs): see collision.pair_distances."""
    S = new_scratch(I)
    distances = np.empty((len(q), I[MOVING] * I[OBSTACLES] + I[PAIRS]), dtype=np.float32)
    for n in range(len(q)):
        pair_distances(q[n], F, I, S, margin, distances[n])
    return distances
