"""CollisionChecker: the one door between planners and the collision engine, on the CPU or a CUDA device."""

from dataclasses import dataclass

import numba
import numpy as np

from ..device import njit, refuse_forked, resolve_device
from ..errors import SettingsError
from .collision import (
    COLLIDES,
    CONTINUOUS,
    COUNT,
    JOINT,
    WORKSPACE,
    clear_speeds,
    in_ranges,
    new_scratch,
    pair_distance,
    place,
    verdict,
)
from .collision_world import CollisionWorld
from .configurations import as_bools, check_policy, narrow, narrow_motions
from .packing import MOVING, OBSTACLES, PAIR_INTS, PAIRS, pack_robot
from .robot_model import RobotModel
from .scene_packing import SceneCache
from .space import FREE, NOT_FINITE, finite, motion_verdict

MODES = {"continuous": CONTINUOUS, "workspace": WORKSPACE, "joint": JOINT, "count": COUNT}
UNITS = {"continuous": "metres", "workspace": "metres", "joint": "rad", "count": "parts"}


@dataclass(frozen=True)
class MotionCheck:
    """How a straight motion in joint space is checked.

    mode: "continuous": proven free all along; motions that come closer than `step` metres may be refused, and below half of it are.
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


GREATEST_MARGIN = 100.0  # metres


class CollisionChecker:
    """Exact checks of whole configurations and motions of one robot in one world.

    The world may change between queries; then what changed is packed, and the scene is uploaded again.

    device: "auto", "cpu", "cuda" or "cuda:N"; raises DeviceError when it is not there
    margin: metres that the robot keeps from obstacles; from itself it keeps none. May be set between queries

    Configurations are (N, dof) numbers, rad or m. Joints that turn freely may have any value: whole turns are taken off in float64.
    Limits are not looked at, but where a joint slides, the bounds behind a proof hold up to 1 mm beyond its limits: farther out
    nothing is called free. The same goes for motions of more than a turn of a joint that has no farther limits. A value that is not
    finite, or beyond 1e10, is an error that names row and joint; with `not_finite="false"` such rows are not free instead.
    """

    def __init__(self, robot, world, device="auto", motion=MotionCheck(), margin=0.0):
        for what, value, kind in (("robot", robot, RobotModel), ("world", world, CollisionWorld), ("motion", motion, MotionCheck)):
            if not isinstance(value, kind):
                raise SettingsError(f"CollisionChecker: {what} is {value!r}; allowed: a {kind.__name__}")
        self.robot, self.world, self.motion = robot, world, motion
        self.margin = margin
        self.device = resolve_device(device)
        self._packed_robot = pack_robot(robot)
        self._scenes = SceneCache(self._packed_robot)
        self._warm = False
        self._version = None
        self._packed_scene = None
        self._cuda = None
        if self.device != "cpu":
            from .collision_kernels import CudaChecker

            self._cuda = CudaChecker(self._packed_robot.buffers, self.device)

    @property
    def margin(self):
        return self._margin

    @margin.setter
    def margin(self, margin):
        if isinstance(margin, bool) or not isinstance(margin, (int, float, np.integer, np.floating)) or not 0 <= margin <= GREATEST_MARGIN:
            raise SettingsError(f"CollisionChecker.margin is {margin!r}; allowed: a number of metres from 0 to {GREATEST_MARGIN:g}")
        self._margin = float(margin)

    @property
    def version(self):
        return self.world.version, self.margin

    @property
    def packed_scene(self):
        if self._version != self.version:
            version = self.version
            self._packed_scene = self._scenes.pack(self.world.shapes, self.margin)
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
        return new_scratch(self._packed_robot.buffers.ints)

    @property
    def scratch_sizes(self):
        """(kind of space, sizes...): what a CUDA kernel must allocate for a check."""
        return self._cuda.scratch_sizes

    def device_scene(self):
        """(floats, ints) of the packed scene on the CUDA device."""
        self.packed_scene
        return self._cuda.scene

    def configurations_valid(self, q, not_finite="error"):
        """q: (N, dof) -> (N,) bool: free of self-collision, and of collision with the world in its margin."""
        refuse_forked()
        check_policy(not_finite)
        narrowed, scene = narrow(q, self.robot, "q", self.device), self.packed_scene
        if self._cuda:
            verdicts = self._cuda.configurations_valid(narrowed)
        else:
            verdicts = np.empty(len(narrowed), dtype=np.uint8)
            _configurations_valid(narrowed, self._chunks(narrowed), *scene, verdicts)
        return as_bools(verdicts, not_finite, self.robot, q=q)

    def motions_valid(self, q_from, q_to, not_finite="error"):
        """(N, dof), (N, dof) -> (N,) bool: is each straight motion free, ends included, by the checker's MotionCheck."""
        refuse_forked()
        check_policy(not_finite)
        ends, scene = narrow_motions(q_from, q_to, self.robot, self.device), self.packed_scene
        if self._cuda:
            verdicts = self._cuda.motions_valid(*ends, *self.motion_args)
        else:
            verdicts = np.empty(len(ends[0]), dtype=np.uint8)
            _motions_valid(*ends, self._chunks(ends[0]), *self.motion_args, *scene, verdicts)
        return as_bools(verdicts, not_finite, self.robot, q_from=q_from, q_to=q_to)

    def colliding_pairs(self, q):
        """q: (dof,) -> [(name, name), ...]: every pair of a robot shape and an obstacle or another robot shape that meet."""
        meets = np.flatnonzero(self._pair_distances(np.asarray(q)[None], self.packed_scene)[0] < 0)
        names = [self.robot.shapes[i].name for i in self._packed_robot.order]
        obstacles = [shape.name for shape in self.world.shapes]
        ints = self._packed_robot.buffers.ints
        self_pairs = ints[ints[PAIR_INTS]:ints[PAIR_INTS] + 2 * ints[PAIRS]].reshape(-1, 2)
        first_self = ints[MOVING] * len(obstacles)
        return [(names[m // len(obstacles)], obstacles[m % len(obstacles)]) if m < first_self
                else tuple(names[i] for i in self_pairs[m - first_self]) for m in meets]

    def shape_pair_collisions(self, q):
        """q: (N, dof) -> (N, P) bool: which of robot.self_collision_pairs meet."""
        return self._pair_distances(q, self._packed_robot.buffers) < 0

    def clearances(self, q, up_to=0.1, not_finite="error"):
        """q: (N, dof) -> (N,) float32: lower bound of the distance to the nearest collision, metres; to obstacles it is what is left
        beyond the margin. -1 where in collision. Distances below `up_to` are within a fifth of the true one."""
        refuse_forked()
        check_policy(not_finite)
        narrowed, verdicts = narrow(q, self.robot, "q"), np.empty(len(q), dtype=np.uint8)
        nearest = np.empty(len(q), dtype=np.float32)
        _clearances(narrowed, self._chunks(narrowed), *self.packed_scene, np.float32(up_to), verdicts, nearest)
        as_bools(verdicts, not_finite, self.robot, q=q)
        return nearest

    def _pair_distances(self, q, scene):
        """(N, pairs) as collision.pair_distance has them, for all pairs of a packed scene."""
        narrowed, pairs = narrow(q, self.robot, "q"), int(scene.ints[MOVING]) * int(scene.ints[OBSTACLES]) + int(scene.ints[PAIRS])
        verdicts, distances = np.empty(len(q), dtype=np.uint8), np.empty((len(q), pairs), dtype=np.float32)
        _pair_distances(narrowed, *scene, verdicts, distances)
        as_bools(verdicts, "error", self.robot, q=q)
        return distances

    @staticmethod
    def _chunks(q):
        """How many pieces the threads share: several each, since early exits make them uneven."""
        return min(len(q), 8 * numba.get_num_threads())


@njit(parallel=True)
def _configurations_valid(q, chunks, F, I, verdicts):
    for c in numba.prange(chunks):
        S = new_scratch(I)
        clear_speeds(I, S.speed, 0)
        for i in range(c * len(q) // chunks, (c + 1) * len(q) // chunks):
            verdicts[i] = verdict(True, q[i], F, I, S, 0)


@njit(parallel=True)
def _motions_valid(qa, qb, chunks, mode, step, F, I, verdicts):
    for c in numba.prange(chunks):
        S = new_scratch(I)
        for i in range(c * len(qa) // chunks, (c + 1) * len(qa) // chunks):
            verdicts[i] = motion_verdict(qa[i], qb[i], mode, step, F, I, S, 0)


@njit(parallel=True)
def _clearances(q, chunks, F, I, up_to, verdicts, nearest):
    for c in numba.prange(chunks):
        S = new_scratch(I)
        for i in range(c * len(q) // chunks, (c + 1) * len(q) // chunks):
            verdicts[i] = FREE if finite(q[i]) else NOT_FINITE
            nearest[i] = np.inf if verdicts[i] == FREE and in_ranges(q[i], F, I) else COLLIDES
            if nearest[i] > 0:
                place(q[i], F, I, S.X)
                for code in range(I[MOVING] * I[OBSTACLES] + I[PAIRS]):
                    nearest[i] = min(nearest[i], pair_distance(code, F, I, S, up_to))


@njit
def _pair_distances(q, F, I, verdicts, distances):
    S = new_scratch(I)
    for i in range(len(q)):
        verdicts[i] = FREE if finite(q[i]) else NOT_FINITE
        if verdicts[i] == FREE:
            place(q[i], F, I, S.X)
            for code in range(len(distances[i])):
                distances[i, code] = pair_distance(code, F, I, S, np.float32(0))
