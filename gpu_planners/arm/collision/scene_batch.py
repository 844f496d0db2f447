"""SceneBatch: scenes of one robot among the same obstacles at other poses, as the environments of a simulator are.

    batch = SceneBatch(robot, world, 4096, device="cuda", moving=["cube", "bowl"])
    batch.set_poses(poses)                       # (4096, 2, 7) or (4096, 2, 4, 4), such as a tensor of the simulator's
    free = batch.configurations_valid(q)         # (4096, dof) -> (4096,)
    results = rrt_connect.solve_batch(starts, goals, batch)

All scenes lie one after the other in one pair of buffers, and behind them, once, the robot. `set_poses` writes what
depends on the poses and nothing else (`posing`); on a device nothing but one number for each scene comes back.
"""

from collections.abc import Sequence
from typing import Annotated, Any, SupportsIndex, overload

import numba
import numpy as np
from numpy.typing import ArrayLike

from ...arguments import checked, integers, lies_on_cuda, numbers, whole
from ...device import njit, refuse_forked, resolve_device
from ...errors import ConfigurationError, DeviceError, ObstacleError, SettingsError, shown
from ...ranges import GREATEST_LENGTH
from ..geometry.bricks import Bricks
from ..geometry.poses import POSE
from ..robot.model import RobotModel
from ..robot.placing import NOT_RIGID, pose12
from ..spaces.configurations import as_bools, check_policy, narrow, narrow_motions, on_device
from ..spaces.interface import MotionCheck, Packed, SceneParts, Space, motion_verdict
from . import records
from .certify import clear_speeds, verdict
from .checker import CollisionChecker, chunks_of
from .packing import GREATEST_SKIN, body, pack_robot
from .posing import COARSE, FINE, PLACE, Pieces, pose_scene, read_poses
from .records import BALL, SHAPE_RECORD, own_ints, shape_floats
from .scene_packing import SceneCache
from .scratch import new_scratch
from .world import CollisionWorld

MOST_SCENES = 1 << 20
GREATEST = (1 << 31) - 1  # places in the buffers are int32


@checked(SettingsError)
class SceneBatch(Sequence):
    """`count` scenes of a robot, and a checker of each: batch[3] is a CollisionChecker of scene 3, for every planner.

    world: the obstacles, which are the same in all scenes; until `set_poses` they stand where they do there. Later
        changes of it are not seen
    moving: names of the obstacles that `set_poses` moves, in the order of its poses; by default all, in the world's
        order
    device, motion, margin: as CollisionChecker has them, for all scenes

    Raises SettingsError, ObstacleError for an unknown name, for voxels that should move, or where the scenes are too
    large together, DeviceError.
    """

    def __init__(
        self,
        robot: RobotModel,
        world: Annotated[CollisionWorld, SettingsError],
        count: int,
        device: Annotated[str, DeviceError] = "auto",
        motion: MotionCheck = MotionCheck(),
        margin: float = 0.0,
        moving: Sequence[str] | None = None,
    ) -> None:
        count = whole("count", count, 1, MOST_SCENES)
        self.names = tuple(world.names if moving is None else moving)
        if len(set(self.names)) < len(self.names):
            raise SettingsError(f"moving is {shown(self.names)}; allowed: each obstacle once")
        self._base = CollisionChecker(robot, world.copy(), device, motion, margin)
        self.robot, self.device, self.version = robot, self._base.device, 0
        self._template, self._shared = _template(self._base, self.names)
        self._pieces = _pieces(self._base, self.names, self._template)
        sizes = np.array([len(part) for part in self._template])
        behind = np.array([len(part) for part in self._shared])
        if (count * sizes + behind).max() > GREATEST:
            raise ObstacleError(
                f"{count} scenes have {int((count * sizes + behind).max())} numbers; allowed: {GREATEST}. Make fewer "
                "scenes, or simpler obstacles"
            )
        self._sizes, self._count = sizes, count
        frames = [world.pose_of(name) for name in self.names]
        rows = np.tile(pose12(np.array(frames).reshape(-1, 4, 4)), (count, 1, 1))
        floats = np.concatenate([np.tile(self._template.floats, count), self._shared.floats])
        ints = np.concatenate([self._all_ints().ravel(), self._shared.ints])
        self._scenes: Any = _OnThreads(self._base, self._pieces, floats, ints, rows, sizes)
        if self.device != "cpu":
            from .scene_batch_cuda import ScenesOnDevice

            self._scenes = ScenesOnDevice(self._base, self._pieces, floats, ints, rows, sizes)
        self._environments: dict[int, Environment] = {}
        self._elsewhere: dict[str, tuple[int, SceneBatch]] = {}
        self._sent: Packed | None = None  # the scene that the environments' checker on a device has
        everything = np.arange(count, dtype=np.int32)
        self._scenes.write(rows, everything)

    def _all_ints(self):
        """(count, ..) ints of all scenes, whose places of the robot's data differ."""
        plain = self._template.ints.astype(np.int64)
        by_float = own_ints(self._template.ints, 1, 0) - plain
        by_int = own_ints(self._template.ints, 0, 1) - plain
        left = np.arange(self._count, 0, -1)[:, None]
        return (plain + left * (self._sizes[0] * by_float + self._sizes[1] * by_int)).astype(np.int32)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: SupportsIndex) -> "Environment": ...
    @overload
    def __getitem__(self, number: slice) -> "list[Environment]": ...
    def __getitem__(self, number):
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        i = range(len(self))[number]  # IndexError beyond
        if i not in self._environments:
            self._environments[i] = Environment(self, i)
        return self._environments[i]

    @property
    def margin(self) -> float:
        """Metres that the robot keeps from obstacles."""
        return self._base.margin

    def set_poses(self, poses: Any, environments: ArrayLike | None = None) -> None:
        """Move the obstacles `names`, M of them: of all scenes, or of some.

        poses: (E, M, 4, 4), or (E, M, 7) with x, y, z and a quaternion w, x, y, z, in the root frame, metres; an array
            of the host, or on this batch's CUDA device (float32 or float64), which stays there
        environments: (E,) numbers of the scenes, each once; by default all

        Raises ObstacleError that names scene and obstacle of a pose that is no finite rigid transform, too far out, or
        where float32 cannot hold the obstacle to 0.1 mm; then nothing has changed.
        """
        refuse_forked()
        given, chosen = self._given(poses), self._chosen(environments)
        if len(given) != len(chosen):
            raise ObstacleError(f"poses are for {len(given)} scenes; allowed: for {len(chosen)}")
        if not self.names or not len(chosen):
            return
        rows, faults = self._scenes.read(given)
        wrong = np.flatnonzero(faults != FINE)
        if len(wrong):
            obstacle, kind = divmod(int(faults[wrong[0]]), 4)
            what = {
                NOT_RIGID: "is no finite rigid transform",
                COARSE: f"is where single precision does not hold its surface to {1e3 * GREATEST_SKIN:g} mm",
            }.get(kind, f"is over {GREATEST_LENGTH:g} m away")
            raise ObstacleError(f"the pose of '{self.names[obstacle]}' in scene {int(chosen[wrong[0]])} {what}")
        self._scenes.write(rows, chosen)
        self.version += 1

    def _given(self, poses):
        """As compiled code reads it (`posing.read_poses`)."""
        m = len(self.names)
        if lies_on_cuda(poses):
            if self.device == "cpu":
                raise ObstacleError("poses lie on a CUDA device, but this batch is on the CPU; allowed: of the host")
            from ...parallel.arrays_cuda import taken

            array = taken(poses, int(self.device.partition(":")[2]))
            if array.dtype not in (np.float32, np.float64) or not array.flags["C_CONTIGUOUS"]:
                raise ObstacleError("poses on a CUDA device must be float32 or float64, in C order without gaps")
        else:
            array = numbers("poses", poses, error=ObstacleError, finite=False)
            kind = array.dtype if array.dtype == np.float32 else np.float64
            array = np.ascontiguousarray(array, dtype=kind)
        shape = tuple(array.shape)
        if shape[1:] not in ((m, 4, 4), (m, PLACE)):
            raise ObstacleError(f"poses have shape {shape}; allowed: (E, {m}, 4, 4) or (E, {m}, {PLACE})")
        return array if len(shape) == 4 else array.reshape(shape[0], m * PLACE, 1, 1)

    def _chosen(self, environments):
        if environments is None:
            return np.arange(self._count, dtype=np.int32)
        if lies_on_cuda(environments):
            from ...parallel.arrays_cuda import to_host

            environments = to_host(environments)
        chosen = integers("environments", environments, (None,), f"from 0 to {self._count - 1}", ObstacleError)
        if len(chosen) and (chosen.min() < 0 or chosen.max() >= self._count or len(np.unique(chosen)) < len(chosen)):
            raise ObstacleError(
                f"environments are {shown(chosen.tolist())}; allowed: 0 to {self._count - 1}, each once"
            )
        return chosen.astype(np.int32)

    def configurations_valid(self, q: Any, not_finite: str = "error") -> Any:
        """Is the robot free in each scene? q: (count, dof) -> (count,) bool; (count, K, dof) -> (count, K).

        Of the host, or float32 on this batch's CUDA device: the answer lies where q does. Otherwise as
        CollisionChecker.configurations_valid.
        """
        refuse_forked()
        check_policy(not_finite)
        rows, shape = self._rows(q, "q")
        return self._shaped(self._scenes.configurations(self._narrow(rows)), not_finite, shape, q=rows)

    def motions_valid(self, q_from: Any, q_to: Any, not_finite: str = "error") -> Any:
        """Is each straight motion free in its scene, ends included? (count, dof) twice -> (count,) bool, or
        (count, K, dof) -> (count, K)."""
        refuse_forked()
        check_policy(not_finite)
        (a, shape), (b, other) = self._rows(q_from, "q_from"), self._rows(q_to, "q_to")
        if shape != other:
            raise ConfigurationError("q_from and q_to must have the same shape")
        ends = narrow_motions(a, b, self.robot, self.device)
        return self._shaped(self._scenes.motions(*ends, *self._base.motion.whole), not_finite, shape, q_from=a, q_to=b)

    def _narrow(self, rows):
        return narrow(rows, self.robot, "q", self.device)

    def _rows(self, q, name):
        """(count * K, dof), and the shape of the answer."""
        if lies_on_cuda(q):
            if self.device != "cpu":
                from ...parallel.arrays_cuda import taken

                q = taken(q, int(self.device.partition(":")[2]))
            else:
                on_device(q, self.robot, name, self.device)  # raises
        else:
            q = numbers(name, q, error=ConfigurationError, finite=False)
        shape, dof = tuple(q.shape), self.robot.dof
        if len(shape) not in (2, 3) or shape[0] != self._count or shape[-1] != dof:
            raise ConfigurationError(
                f"{name} has shape {shape}; allowed: ({self._count}, {dof}) or ({self._count}, K, {dof})"
            )
        return q.reshape(-1, dof) if len(shape) == 2 or shape[1] else q.reshape(0, dof), shape[:-1]

    def _shaped(self, verdicts, not_finite, shape, **rows):
        return as_bools(verdicts, not_finite, self.robot, **rows).reshape(*shape)

    def world(self, number: int) -> CollisionWorld:
        """A CollisionWorld of one scene, as it is now."""
        number = whole("number", number, 0, self._count - 1)
        world = self._base.world.copy()
        rows = self._scenes.poses(number)
        for name, row in zip(self.names, rows):
            T = np.eye(4)
            T[:3, :3], T[:3, 3] = row[:9].reshape(3, 3), row[9:]
            moved = T @ np.linalg.inv(world.pose_of(name))
            world._put(name, tuple(piece.moved(moved) for piece in world.pieces_of(name)), T)
        return world

    def poses(self) -> np.ndarray:
        """(count, M, 4, 4) of the obstacles `names`, as they are now."""
        T = np.zeros((self._count, len(self.names), 4, 4))
        rows = self._scenes.poses(slice(None))
        T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = rows[..., :9].reshape(*rows.shape[:2], 3, 3), rows[..., 9:], 1.0
        return T

    def on(self, device: str) -> "SceneBatch":
        """The same scenes on another device, kept until poses change; this batch where that is its own."""
        device = resolve_device(device)
        if device == self.device:
            return self
        version, other = self._elsewhere.get(device, (-1, None))
        if other is None:
            base = self._base
            other = SceneBatch(base.robot, base.world, self._count, device, base.motion, base.margin, self.names)
        if version != self.version:
            other.set_poses(self.poses())
            self._elsewhere[device] = self.version, other
        return other

    def warm_up(self) -> None:
        """Compile the checks, or load them from the cache."""
        q = np.zeros((self._count, self.robot.dof))
        self.configurations_valid(q)
        self.motions_valid(q, q)

    @property
    def buffers(self) -> tuple[Any, Any]:
        """(floats, ints) of all scenes, where they lie; `places` says where each begins."""
        return self._scenes.buffers

    @property
    def places(self) -> np.ndarray:
        """(count, 2) int64."""
        return np.arange(self._count)[:, None] * self._sizes

    def _packed(self, number: int) -> Packed:
        """Scene i in one piece with the robot; on the CPU where it lies, with the scenes after it."""
        return self._scenes.whole(number) if self.device == "cpu" else self._parts(number).joined()

    def _parts(self, number: int) -> SceneParts:
        """Scene i on the host."""
        return SceneParts(Packed(self._scenes.floats_of(number), self._template.ints), self._shared, own_ints)


class Environment(CollisionChecker):
    """A CollisionChecker of one scene of a SceneBatch, for every planner. Its obstacles and margin are the batch's."""

    def __init__(self, batch: SceneBatch, number: int) -> None:
        self.__dict__.update(batch._base.__dict__)
        self.batch, self.number = batch, number
        self._thicker, self._elsewhere = {}, {}
        self._seen: dict[str, tuple] = {}  # what was made of the scene, and of which version

    def _kept(self, name, make):
        version, value = self._seen.get(name, (-1, None))
        if version != self.batch.version:
            value = make(self.number)
            self._seen[name] = self.batch.version, value
        return value

    @property
    def world(self) -> CollisionWorld:  # type: ignore[override]
        """Of this scene, as it is now; its changes change no scene."""
        return self._kept("world", self.batch.world)

    @world.setter
    def world(self, world: CollisionWorld) -> None:
        raise SettingsError("the world of a scene cannot be set; use SceneBatch.set_poses")

    @property
    def margin(self) -> float:
        """The batch's."""
        return self.batch.margin

    @margin.setter
    def margin(self, margin: float) -> None:
        raise SettingsError("the margin of a scene cannot be set; SceneBatch takes it for all")

    @property
    def version(self) -> Any:
        """Changes when poses do."""
        return self.batch.version, self.margin

    @property
    def scene_parts(self) -> SceneParts:
        """See CollisionChecker."""
        return self._kept("parts", self.batch._parts)

    @property
    def packed_scene(self) -> Packed:
        """See CollisionChecker."""
        return self._kept("packed", self.batch._packed)

    def _send(self, scene):
        if self._cuda and self.batch._sent is not scene:  # all environments share what checks on a device
            self._cuda.upload(scene)
            self.batch._sent = scene

    def thickened(self, thickness: float) -> CollisionChecker:
        """See CollisionChecker."""

        def plain(number):
            return CollisionChecker(self.robot, self.world, "cpu", self.motion, self.margin)

        return self._kept("plain", plain).thickened(thickness)

    def on(self, device: str) -> CollisionChecker:
        """See CollisionChecker."""
        return self.batch.on(device)[self.number]

    def prepare(self) -> None:
        """Nothing: scenes are always there."""


def _template(checker, names):
    """Own floats and ints of the scene, where obstacles that move have their whole size, and the robot's."""
    packed = SceneCache(pack_robot(checker.robot)).pack(checker.world.pieces, checker.margin)
    floats, ints = packed.own.floats.copy(), packed.own.ints
    for shape, _, head, _ in _moving_shapes(checker, names, ints):
        one = body(shape)
        spheres = np.append(one.ball, -1.0)  # the coarse one alone, no ball inside
        floats[head : head + POSE + 4 + len(spheres)] = shape_floats(np.eye(4), one.shape.half_extents, 0.0, spheres)
    return Packed(floats, ints), packed.shared


def _moving_shapes(checker, names, ints):
    """[(shape, its obstacle's number among `names`, where its head is in the scene's floats, which shape it is)]"""
    found, index, world = [], 0, checker.world
    counts = records.Header(*ints[: len(records.Header._fields)].tolist())
    heads = ints[counts.obstacle_ints :][: counts.obstacles * SHAPE_RECORD].reshape(-1, SHAPE_RECORD)
    at = records.ShapeRecord._fields.index("floats")
    for name in names:
        world.pieces_of(name)  # raises where there is none
    for name in world.names:
        for piece in world.pieces_of(name):
            if isinstance(piece, Bricks):
                if name in names:
                    raise ObstacleError(f"'{name}' is of voxels, which do not move; allowed: convex shapes and meshes")
                index += len(piece)
                continue
            if name in names:
                found.append((piece, names.index(name), int(heads[index, at]), index))
            index += 1
    return found


def _pieces(checker, names, template):
    """Pieces of the obstacles that move."""
    counts = records.header(template)
    order = template.ints[counts.order :][: counts.obstacles]
    ball_of = np.empty(counts.obstacles, np.int64)
    ball_of[order] = np.arange(counts.obstacles)
    places, local = [], []
    for shape, obstacle, head, index in _moving_shapes(checker, names, template.ints):
        one = body(shape)
        T = np.linalg.inv(checker.world.pose_of(names[obstacle])) @ one.shape.pose
        places.append((obstacle, head, counts.balls + BALL * ball_of[index]))
        local.append(np.concatenate([pose12(T[None])[0], one.ball]))
    packed = pack_robot(checker.robot)
    return Pieces(
        np.array(places, np.int32).reshape(-1, 3),
        np.array(local, np.float64).reshape(-1, POSE + 4),
        np.array([*packed.origin, packed.radius, checker.margin], np.float64),
        np.array([counts.balls, counts.groups], np.int32),
    )


class _OnThreads:
    """Scenes on the CPU. floats, ints: of all scenes and the robot; rows: (count, M, POSE) where obstacles are; sizes:
    (2,) numbers of a scene"""

    def __init__(self, base, pieces, floats, ints, rows, sizes):
        self._pieces, self._rows, self.buffers = pieces, rows.copy(), (floats, ints)
        self._sizes, self._obstacles = tuple(sizes.tolist()), records.header(Packed(floats, ints)).obstacles

    def read(self, given):
        """-> rows (K, M, POSE) of given poses, and (K,) int32 what is wrong with each scene's."""
        rows, faults = np.empty((len(given), self._rows.shape[1], POSE)), np.empty(len(given), np.int32)
        _read_all(given, rows, self._pieces, faults)
        return rows, faults

    def write(self, rows, chosen):
        """Put the obstacles of chosen scenes there."""
        self._rows[chosen] = rows
        _write_all(rows, chosen, self.buffers[0], self._sizes[0], self._pieces, self._obstacles)

    def poses(self, chosen):
        return self._rows[chosen]

    def floats_of(self, number):
        return self.buffers[0][number * self._sizes[0] :][: self._sizes[0]].copy()

    def whole(self, number):
        """The scene with all that follows it, where its data are."""
        return Packed(*(part[number * size :] for part, size in zip(self.buffers, self._sizes)))

    def configurations(self, q):
        verdicts, per = np.empty(len(q), np.uint8), len(q) // len(self._rows)
        if len(q):
            _configurations(q, per, chunks_of(q), Packed(*self.buffers), self._sizes, verdicts)
        return verdicts

    def motions(self, qa, qb, mode, step):
        verdicts, per = np.empty(len(qa), np.uint8), len(qa) // len(self._rows)
        if len(qa):
            _motions(qa, qb, per, chunks_of(qa), np.int32(mode), step, Packed(*self.buffers), self._sizes, verdicts)
        return verdicts


@njit(parallel=True)
def _read_all(given, rows, pieces, faults):
    for k in numba.prange(len(given)):
        faults[k] = read_poses(k, given, rows, pieces)


@njit(parallel=True)
def _write_all(rows, chosen, floats, size, pieces, obstacles):
    for k in numba.prange(len(rows)):
        first = np.int64(chosen[k]) * size
        pose_scene(rows[k], floats[first : first + size], pieces, obstacles)


@njit(parallel=True)
def _configurations(q, per, chunks, scenes, sizes, verdicts):
    for c in numba.prange(chunks):
        scratch = new_scratch(scenes)
        clear_speeds(scenes, scratch.speeds, 0)
        for i in range(c * len(q) // chunks, (c + 1) * len(q) // chunks):
            e = i // per
            scene = Packed(scenes.floats[e * sizes[0] :], scenes.ints[e * sizes[1] :])
            verdicts[i] = verdict(True, q[i], scene, scratch, 0)


@njit(parallel=True)
def _motions(qa, qb, per, chunks, mode, step, scenes, sizes, verdicts):
    for c in numba.prange(chunks):
        scratch = new_scratch(scenes)
        for i in range(c * len(qa) // chunks, (c + 1) * len(qa) // chunks):
            e = i // per
            space = Space(mode, step, scenes.floats[e * sizes[0] :], scenes.ints[e * sizes[1] :], scratch)
            verdicts[i] = motion_verdict(qa[i], qb[i], space, 0)
