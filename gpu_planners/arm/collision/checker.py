"""CollisionChecker: the one door between planners and the collision engine, on the CPU or a CUDA device."""

import copy
import math
from typing import Annotated, Any

import numba
import numpy as np
from numpy.typing import ArrayLike

from ...arguments import checked
from ...device import njit, refuse_forked, resolve_device, told_if_slow
from ...errors import ConfigurationError, DeviceError, SettingsError
from ...parallel.stopping import heed
from ...parallel.threads import in_parts, one_thread
from ...settings import Setting
from ..robot.model import RobotModel
from ..spaces.configurations import as_bools, check_policy, narrow, narrow_motions, new_array
from ..spaces.interface import FREE, NOT_FINITE, InParts, MotionCheck, Packed, SceneParts, Space, finite, motion_verdict
from .certify import clear_speeds, in_ranges, pair_distance, verdict
from .forward import place_robot
from .motions import motion_valid  # noqa: F401 - registers itself as the arm's motion_free
from .packing import pack_robot, thickened
from .records import header, pair_count, self_pairs
from .scene_packing import SceneCache
from .scratch import ArmScratch, new_scratch
from .sieves import COLLIDES
from .world import CollisionWorld

FEW = 128  # configurations that one thread checks sooner than several wake up
THICKNESS = Setting(0.0, "Metres by which a robot is thicker", 0.0, 1.0, unit="metres")
UP_TO = Setting(0.1, "Distance up to which clearances are exact", 0.0, math.inf, unit="metres")
MARGIN = Setting(0.0, "Distance kept from obstacles", 0.0, 100.0, unit="metres")


@checked(ConfigurationError, SettingsError)
class CollisionChecker(InParts):
    """Exact checks of whole configurations and motions of one robot in one world.

    The world may change between queries, or another one take its place (`checker.world = other`); the next check packs
    what changed and uploads the scene again.

    device: "auto", "cpu", "cuda" or "cuda:N"; raises DeviceError when it is not there
    motion: how motions are checked
    margin: metres that the robot keeps from obstacles, not from itself. May be set between queries

    Configurations are (N, dof) numbers, rad or m. Joints that turn freely may have any value: whole turns are taken off
    in float64. Limits are not checked, but nothing is called free where the bounds behind a proof do not hold: more
    than 1 mm beyond the limits of a joint that slides, more than a turn from 0, or beyond farther limits, for one that
    turns. A value that is not finite, or beyond 1e10, is an error that names row and joint; with `not_finite="false"`
    such rows count as not free.

    A pickled checker comes back on the CPU, whatever its device was; `on` makes it one for another device.
    """

    def __init__(
        self,
        robot: Annotated[RobotModel, SettingsError],
        world: Annotated[CollisionWorld, SettingsError],
        device: Annotated[str, DeviceError] = "auto",
        motion: Annotated[MotionCheck, SettingsError] = MotionCheck(),
        margin: float = 0.0,
    ) -> None:
        self.robot, self.world, self.motion = robot, world, motion
        self.margin = margin
        self.device = resolve_device(device)
        self._thickness, self._least_size = 0.0, 0
        self._thicker: dict[float, CollisionChecker] = {}
        self._elsewhere: dict[str, CollisionChecker] = {}
        self._begin(pack_robot(robot))

    def __reduce__(self) -> tuple:
        return _made, (self.robot, self.world, "cpu", self.motion, self.margin, self._thickness)

    def _begin(self, packed_robot):
        self._packed_robot = packed_robot
        self._scenes = SceneCache(self._packed_robot)
        self._warm = False
        self._packed_version: tuple | None = None
        self._parts: Any = None  # SceneParts
        self._sent: Packed | None = None  # the scene that the device has
        self._cuda: Any = None  # a CudaChecker
        if self.device != "cpu":
            from .checker_cuda import CudaChecker

            self._cuda = CudaChecker(self._packed_robot.buffers, self.device, self._least_size)
        self._room = self._cuda.room if self._cuda else new_array

    @property
    def margin(self) -> float:
        """Metres that the robot keeps from obstacles."""
        return self._margin

    @margin.setter
    def margin(self, margin: float) -> None:
        self._margin = MARGIN.checked("CollisionChecker.margin", margin)

    def thickened(self, thickness: float) -> "CollisionChecker":
        """A checker of the same robot and world in which every moving shape is `thickness` metres thicker, both for
        obstacles and for the robot's other shapes; it proves motions, whatever `motion` says, and is kept.

        Where it calls a motion free, a tube around it is free: all configurations in which no point of the robot is
        farther than `thickness` from where it is on the motion.
        """
        thickness = THICKNESS.checked("CollisionChecker.thickened: thickness", thickness)
        if thickness not in self._thicker:
            other = copy.copy(self)  # on the CPU, as from a pickle: it checks a few motions at a time
            other.motion, other._thickness, other._thicker, other._elsewhere = MotionCheck(), thickness, {}, {}
            other._begin(thickened(self._packed_robot, thickness))
            self._thicker[thickness] = other
        thicker = self._thicker[thickness]
        thicker.world, thicker.margin = self.world, self.margin
        return thicker

    def around(self, start: ArrayLike) -> "CollisionChecker":
        """A checker like it, in the same state, of `RobotModel.around` a start (dof,); this one where that is within
        the limits."""
        robot = self.robot.around(start)
        if robot is self.robot:
            return self
        other = copy.copy(self)
        other.robot = robot
        return other

    def on(self, device: Annotated[str, DeviceError]) -> "CollisionChecker":
        """A checker of the same robot, world and rules on another device, kept for the next time; this one where the
        device is its own. Raises DeviceError."""
        device = resolve_device(device)
        if device == self.device:
            return self
        if device not in self._elsewhere:
            self._elsewhere[device] = _made(self.robot, self.world, device, self.motion, self.margin, self._thickness)
        other = self._elsewhere[device]
        other.world, other.margin, other.motion = self.world, self.margin, self.motion
        if other._packed_version != self.version:
            other._parts, other._packed_version = self.scene_parts, self.version
        return other

    def of_size(self, least: int) -> "CollisionChecker":
        """A checker like it whose kernels on CUDA have at least room for robots of `scratch.SIZES[least]`, to compile
        kernels of that size for other robots. It answers the same."""
        other = CollisionChecker(self.robot, self.world, self.device, self.motion, self.margin)
        other._least_size = least
        other._begin(other._packed_robot)
        return other

    def prepare(self) -> None:
        """Pack what changed, for the thickened checkers that are kept too, so that no query waits for it."""
        for checker in (self, *map(self.thickened, self._thicker)):
            checker._send(checker.packed_scene)

    @property
    def version(self) -> tuple[int, float]:
        """Changes when the world or the margin does."""
        return self.world.version, self.margin

    @property
    def scene_parts(self) -> SceneParts:
        """The constant data of robot and obstacles (collision.records); packs what changed since the last check."""
        version = self.version
        if self._packed_version != version:
            self._parts, self._packed_version = self._scenes.pack(self.world.pieces, self.margin), version
        return self._parts

    def _send(self, scene):
        """Bring a packed scene to the device, if it has another one."""
        if self._cuda and self._sent is not scene:
            self._cuda.upload(scene)
            self._sent = scene

    def warm_up(self) -> None:
        """Compile the checks, or load them from the cache, so that no query is charged for it."""
        if not self._warm:
            q = np.zeros((1, self.robot.dof))
            with told_if_slow(f"collision checks for {self.device}", *self.scratch_sizes):
                self.configurations_valid(q)
                self.motions_valid(q, q)
            self._warm = True

    @property
    def motion_args(self) -> tuple[int, np.float32]:
        """(mode, step) as the kernels take them."""
        return self.motion.compiled

    def new_scratch(self) -> ArmScratch:
        """What one CPU thread of compiled code needs for a check."""
        return new_scratch(self._packed_robot.buffers)

    @property
    def scratch_sizes(self) -> tuple[int, ...]:
        """(kind of space, sizes...): what a CUDA kernel must allocate for a check; () on the CPU."""
        return self._cuda.scratch_sizes if self._cuda else ()

    def device_scene(self) -> tuple:
        """(floats, ints) of the packed scene on the CUDA device."""
        self._send(self.packed_scene)
        return self._cuda.scene

    def configurations_valid(self, q: ArrayLike, not_finite: str = "error") -> np.ndarray:
        """q: (N, dof) -> (N,) bool: free of self-collision, and of collision with the world and its margin."""
        heed()
        refuse_forked()
        check_policy(not_finite)
        narrowed, scene = narrow(q, self.robot, "q", self.device, self._room), self.packed_scene
        if self._cuda:
            self._send(scene)
            verdicts = self._cuda.configurations_valid(narrowed)
        else:
            verdicts = np.empty(len(narrowed), dtype=np.uint8)
            with one_thread(len(narrowed) < FEW):
                for rows, answers in in_parts(narrowed, verdicts):
                    _configurations_valid(rows, chunks_of(rows), scene, answers)
        return as_bools(verdicts, not_finite, self.robot, q=q)

    def judge_on_device(self, q: Any, verdicts: Any, stream: Any) -> None:
        """`configurations_valid` of q, (N, dof) float32, into verdicts, (N,) uint8 (spaces.interface), both on this
        checker's CUDA device, once a CudaStream has come so far."""
        self._send(self.packed_scene)
        self._cuda.judge(q, verdicts, stream)

    def motions_valid(self, q_from: ArrayLike, q_to: ArrayLike, not_finite: str = "error") -> np.ndarray:
        """(N, dof), (N, dof) -> (N,) bool: is each straight motion free, ends included, by the checker's `motion`?

        What a planner has proven with this checker, in parts as it may be, is free here, too."""
        heed()
        refuse_forked()
        check_policy(not_finite)
        ends, scene = narrow_motions(q_from, q_to, self.robot, self.device, self._room), self.packed_scene
        mode, step = self.motion.whole
        if self._cuda:
            self._send(scene)
            verdicts = self._cuda.motions_valid(*ends, mode, step)
        else:
            verdicts = np.empty(len(ends[0]), dtype=np.uint8)
            for qa, qb, answers in in_parts(*ends, verdicts):
                _motions_valid(qa, qb, chunks_of(qa), np.int32(mode), step, scene, answers)
        return as_bools(verdicts, not_finite, self.robot, q_from=q_from, q_to=q_to)

    @property
    def pair_count(self) -> int:
        """Pairs of shapes that `colliding_pairs` looks at."""
        counts = header(self.packed_scene)
        return counts.moving * counts.obstacles + counts.pairs

    def colliding_pairs(self, q: ArrayLike) -> list[tuple[str, str]]:
        """q: (dof,) -> [(name, name), ...]: each robot shape and the obstacle or other robot shape that it meets."""
        meets = np.flatnonzero(self._pair_distances(np.asarray(q)[None], self.packed_scene)[0] < 0)
        names = [self.robot.shapes[i].name for i in self._packed_robot.order]
        pairs, obstacles = self_pairs(self._packed_robot.buffers), header(self.packed_scene).obstacles
        first_self = header(self._packed_robot.buffers).moving * obstacles
        return [
            (names[m // obstacles], self.world.shape_name(m % obstacles))
            if m < first_self
            else tuple(names[i] for i in pairs[m - first_self])
            for m in meets
        ]

    def shape_pair_collisions(self, q: ArrayLike) -> np.ndarray:
        """q: (N, dof) -> (N, P) bool: which of robot.self_collision_pairs meet."""
        distances = self._pair_distances(q, self._packed_robot.buffers)
        meets = np.empty((len(distances), len(self._packed_robot.pair_order)), dtype=bool)
        meets[:, self._packed_robot.pair_order] = distances < 0
        return meets

    def clearances(self, q: ArrayLike, up_to: float = 0.1, not_finite: str = "error") -> np.ndarray:
        """q: (N, dof) -> (N,) float32: lower bound of the distance to the nearest collision, metres; -1 in collision.

        The margin counts as part of the obstacles. Distances below `up_to` are within a fifth of the true one.
        """
        refuse_forked()
        check_policy(not_finite)
        up_to = UP_TO.checked("up_to", up_to)
        narrowed = narrow(q, self.robot, "q")
        verdicts, nearest = np.empty(len(narrowed), dtype=np.uint8), np.empty(len(narrowed), dtype=np.float32)
        scene = self.packed_scene
        for rows, answers, distances in in_parts(narrowed, verdicts, nearest):
            _clearances(rows, chunks_of(rows), scene, np.float32(up_to), answers, distances)
        as_bools(verdicts, not_finite, self.robot, q=q)
        return nearest

    def _pair_distances(self, q, scene):
        """(N, pairs) float32, certify.pair_distance of all pairs of a packed scene."""
        refuse_forked()
        narrowed, counts = narrow(q, self.robot, "q"), header(scene)
        verdicts = np.empty(len(narrowed), dtype=np.uint8)
        distances = np.empty((len(narrowed), counts.moving * counts.obstacles + counts.pairs), dtype=np.float32)
        for rows, *answers in in_parts(narrowed, verdicts, distances):
            _pair_distances(rows, scene, *answers)
        as_bools(verdicts, "error", self.robot, q=q)
        return distances


def _made(robot, world, device, motion, margin, thickness):
    """A checker like another one, which may be `thickened`."""
    checker = CollisionChecker(robot, world, device, motion, margin)
    return checker.thickened(thickness) if thickness else checker


def chunks_of(q: np.ndarray) -> int:
    """How many pieces the threads share: several each, since early exits make them uneven."""
    return min(len(q), 8 * numba.get_num_threads())


@njit(parallel=True)
def _configurations_valid(q, chunks, scene, verdicts):
    for c in numba.prange(chunks):
        scratch = new_scratch(scene)
        clear_speeds(scene, scratch.speeds, 0)
        for i in range(c * len(q) // chunks, (c + 1) * len(q) // chunks):
            verdicts[i] = verdict(True, q[i], scene, scratch, 0)


@njit(parallel=True)
def _motions_valid(qa, qb, chunks, mode, step, scene, verdicts):
    for c in numba.prange(chunks):
        space = Space(mode, step, scene.floats, scene.ints, new_scratch(scene))
        for i in range(c * len(qa) // chunks, (c + 1) * len(qa) // chunks):
            verdicts[i] = motion_verdict(qa[i], qb[i], space, 0)


@njit(parallel=True)
def _clearances(q, chunks, scene, up_to, verdicts, nearest):
    for c in numba.prange(chunks):
        poses = new_scratch(scene).poses
        for i in range(c * len(q) // chunks, (c + 1) * len(q) // chunks):
            verdicts[i] = FREE if finite(q[i]) else NOT_FINITE
            nearest[i] = np.inf if verdicts[i] == FREE and in_ranges(q[i], scene) else COLLIDES
            if nearest[i] > 0:
                place_robot(q[i], scene, poses)
                for code in range(pair_count(scene)):
                    nearest[i] = min(nearest[i], pair_distance(code, scene, poses, up_to))


@njit
def _pair_distances(q, scene, verdicts, distances):
    poses = new_scratch(scene).poses
    for i in range(len(q)):
        verdicts[i] = FREE if finite(q[i]) else NOT_FINITE
        if verdicts[i] == FREE:
            place_robot(q[i], scene, poses)
            for code in range(len(distances[i])):
                distances[i, code] = pair_distance(code, scene, poses, np.float32(0))
