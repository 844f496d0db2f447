"""KeepingChecker: a CollisionChecker whose motions also keep a constraint. For planners it is a space of its own."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import checked
from ...errors import SettingsError, shown
from ..collision.packing import pack_robot
from ..collision.reach import joint_ranges, joint_reach
from ..spaces.interface import KEEPING, InParts, Packed, SceneParts, register
from .constraint import Constraint
from .keeping import kept_and_free
from .measures import KeepingScratch
from .pair import sides_of
from .record import packed_rule, work_size

LEAST_WORK = 256  # floats of a lane's KeepingScratch.work on CUDA, so that most constraints share kernels
register(KeepingScratch, "cpu", kept_and_free)


@checked()
class KeepingChecker(InParts):
    """A CollisionChecker whose motions keep a constraint, too.

    RRT-Connect takes it as it takes others, which is what its `constraints` make; so does `time_parameterize`, so that
    corners are rounded only as far as that keeps the constraint.

    robot: the checker's; base: the checker; constraint: what motions keep
    """

    def __init__(self, checker: Any, constraint: Constraint, thickness: float = 0.0) -> None:
        if isinstance(checker, type) or not callable(getattr(checker, "thickened", None)):
            raise SettingsError(f"checker is {shown(checker)}; allowed: a CollisionChecker")
        check_robot(constraint, checker.robot)
        self.robot, self.base, self.constraint, self._thickness = checker.robot, checker, constraint, thickness
        self._spares = [0.0] * len(constraint.parts)
        self._parts: tuple[Any, Any] = (None, None)  # of the checker's scene, and with the constraint before it
        self._sent: tuple[Any, Any] = (None, None)
        if thickness:
            reach = joint_reach(self.robot)
            with np.errstate(divide="ignore", invalid="ignore"):  # joints that do not change a part's x do not count
                least = [
                    sum(np.nanmin(np.nanmax(rates / reach, axis=1)) for rates in sides_of(part) if rates.any())
                    for part in constraint.parts
                ]
            self._spares = [thickness * each for each in least]

    def thickened(self, thickness: float) -> "KeepingChecker":
        """One for motions that are near the straight ones: no point of the robot is off by more than this, metres."""
        return KeepingChecker(self.base.thickened(thickness), self.constraint, thickness)

    def around(self, start: ArrayLike) -> "KeepingChecker":
        """One of `CollisionChecker.around` a start (dof,)."""
        return KeepingChecker(self.base.around(start), self.constraint, self._thickness)

    def on(self, device: str) -> "KeepingChecker":
        """One of the checker on another device; this one where the device is its own."""
        base = self.base.on(device)
        return self if base is self.base else KeepingChecker(base, self.constraint, self._thickness)

    def __reduce__(self) -> tuple:
        return KeepingChecker, (self.base, self.constraint, self._thickness)

    @property
    def device(self) -> str:
        """The checker's."""
        return self.base.device

    @property
    def version(self) -> Any:
        """Changes when the checker's does."""
        return self.base.version

    @property
    def motion_args(self) -> tuple[int, np.float32]:
        """The checker's."""
        return self.base.motion_args

    def warm_up(self) -> None:
        """Compile the checks, or load them from the cache, so that no query is charged for it."""
        self.base.warm_up()

    def configurations_valid(self, q: ArrayLike) -> np.ndarray:
        """(N,) bool: are configurations (N, dof) free, and do they keep the constraint?"""
        return np.asarray(self.base.configurations_valid(q)) & self.constraint.satisfied(q)

    def motions_valid(self, q_from: ArrayLike, q_to: ArrayLike) -> np.ndarray:
        """(N,) bool: are motions (N, dof) proven free, and to keep the constraint?"""
        valid = np.array(self.base.motions_valid(q_from, q_to), dtype=bool)
        a, b = (np.asarray(q, dtype=float)[valid] for q in (q_from, q_to))
        valid[valid] = self.constraint._kept(a, b, self._spares)
        return valid

    @property
    def pair_count(self) -> int:
        """The checker's."""
        return self.base.pair_count

    def colliding_pairs(self, q: ArrayLike) -> list[tuple[str, str]]:
        """The checker's."""
        return self.base.colliding_pairs(q)

    @property
    def scene_parts(self) -> SceneParts:
        """The checker's, with the constraint's `record` before it."""
        inner = self.base.scene_parts
        if self._parts[0] is not inner:
            rule = packed_rule(self.constraint.parts, pack_robot(self.robot).origin)
            n_floats, n_ints = map(len, rule)

            def ints_of(ints, floats_away, ints_away):
                scene = inner.ints_of(ints[n_ints:], floats_away - n_floats, ints_away - n_ints)
                return np.concatenate([ints[:n_ints], scene])

            own = Packed(*(np.concatenate(both) for both in zip(rule, inner.own)))
            self._parts = inner, SceneParts(own, inner.shared, ints_of)
        return self._parts[1]

    def new_scratch(self) -> KeepingScratch:
        """What one CPU thread of compiled code needs for a check."""
        work = np.empty(work_size(len(self.constraint.parts), self.robot.dof), dtype=np.float32)
        return KeepingScratch(self.base.new_scratch(), work)

    @property
    def scratch_sizes(self) -> tuple[int, ...]:
        """(kind of space, sizes...): what a CUDA kernel must allocate for a check; () on the CPU."""
        if self.device == "cpu":
            return ()
        from . import space_cuda  # noqa: F401 - registers the scratch

        _, joints, *others = self.base.scratch_sizes
        needed, room = work_size(len(self.constraint.parts), joints), LEAST_WORK
        while room < needed:
            room *= 2
        return KEEPING, joints, *others, room

    def device_scene(self) -> tuple:
        """(floats, ints) of the packed scene on the CUDA device."""
        scene = self.packed_scene
        if self._sent[0] is not scene:
            from .space_cuda import uploaded

            self._sent = scene, uploaded(scene, self.device)
        return self._sent[1]


def check_robot(constraint: Constraint, robot: Any) -> None:
    """SettingsError unless the constraint's robot moves as another one does; limits and loads may differ."""
    own = constraint.robot
    same = getattr(robot, "joint_names", None) == own.joint_names
    if not same or not all(np.array_equal(getattr(own, part), getattr(robot, part)) for part in _MOVES):
        raise SettingsError("constraints are of another robot than the checker's; allowed: those of its RobotModel")
    slides = own.frames["joint"][own.frames["prismatic"]]
    (low, high), (lower, upper) = (joint_ranges(each)[:, slides] for each in (own, robot))
    for k in slides[(lower < low) | (upper > high)]:  # levers are those of the constraint's robot
        raise SettingsError(
            f"joint '{own.joint_names[k]}' of the checker's robot slides farther than that of the constraints' robot; "
            "allowed: constraints of a RobotModel whose limits are as wide"
        )


_MOVES = "frames", "T_parent_base"  # of a RobotModel: where a configuration puts its links
