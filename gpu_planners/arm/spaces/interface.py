"""What a planner asks of a checker, whatever the robot: an arm among polytopes, the planar arm of [BKF11], an image.

Compiled planners call `motion_free`; each space registers its own, for the CPU and for CUDA, by its type of scratch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numba.extending import overload

from ...device import lean_njit
from ...errors import SettingsError
from ...settings import Described, setting

ARM, PLANAR, IMAGE, KEEPING = range(4)  # kinds of space
NOT_FREE, FREE, NOT_FINITE = range(3)  # verdicts, uint8
NOTHING, END_FREE, REFUSED = range(3)  # hints for `motion_free`
CONTINUOUS, WORKSPACE, JOINT, COUNT = range(4)  # modes of MotionCheck
MODES = {"continuous": CONTINUOUS, "workspace": WORKSPACE, "joint": JOINT, "count": COUNT}
FINER = 128  # times that a proof of a whole motion goes on, where a search gives its parts up
LARGEST = np.float32(3e38)  # a float32 beyond is infinite


@dataclass(frozen=True)
class MotionCheck(Described):
    """How a straight motion in joint space is checked.

    mode: "continuous": proven free all along; a motion that comes closer than `step` metres may be refused.
          "workspace": at equal steps, so that no point of the robot moves more than `step` metres between two checks.
          "joint": at equal steps of at most `step` in the joint-space L2 norm ([DL14], definition 1).
          "count": in `step` equal parts, whatever the length ([BKF11], III-B-3).
    """

    mode: str = setting("continuous", "How motions are checked, proven or at steps", choices=tuple(MODES))
    step: float = setting(
        1e-3, "Step of the mode: metres, metres, rad (m for prismatic joints), number of parts", 1e-5, 1e6
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mode == "count" and self.step < 1:
            raise SettingsError(f"MotionCheck.step is {self.step!r}; allowed in mode 'count': at least 1 part")

    @property
    def compiled(self) -> tuple[int, np.float32]:
        """(mode, step) as compiled code takes them."""
        return MODES[self.mode], np.float32(self.step)

    @property
    def whole(self) -> tuple[int, np.float32]:
        """`compiled` for checks of whole motions. Searches prove them in parts and in either direction, so from other
        places, where an obstacle that is nearly touched may be passed; a check that gives up later passes it, too."""
        mode, step = self.compiled
        return mode, np.float32(step / FINER) if mode == CONTINUOUS else step


class Packed(NamedTuple):
    """All constant data of a robot and its obstacles. floats: (n,) float32; ints: (m,) int32; see each space."""

    floats: np.ndarray
    ints: np.ndarray


class SceneParts(NamedTuple):
    """A packed scene in two parts, of which many scenes share one.

    own: where the scene begins, a Packed; shared: what lies somewhere behind it, which does not change
    ints_of: ints_of(own.ints, floats_away, ints_away) -> own.ints where the beginnings of `shared` are so many numbers
        behind those of `own`; by default they do not depend on that
    """

    own: Packed
    shared: Packed = Packed(np.zeros(0, np.float32), np.zeros(0, np.int32))
    ints_of: Callable[[np.ndarray, int, int], np.ndarray] = lambda ints, floats_away, ints_away: ints

    def joined(self) -> Packed:
        """The scene in one piece."""
        ints = self.ints_of(self.own.ints, len(self.own.floats), len(self.own.ints))
        return Packed(np.concatenate([self.own.floats, self.shared.floats]), np.concatenate([ints, self.shared.ints]))


class InParts:
    """A checker whose packed scene is made of its `scene_parts`."""

    scene_parts: Any
    _joined: tuple[Any, Any] = None, None  # the parts that were joined last, and what came of it

    @property
    def packed_scene(self) -> Packed:
        """`scene_parts` in one piece."""
        parts = self.scene_parts
        if self._joined[0] is not parts:
            self._joined = parts, parts.joined()
        return self._joined[1]


class Robot(Protocol):
    """What planners ask of a checker's robot. lower, upper: (dof,); continuous, periodic: (dof,) bool"""

    dof: int
    joint_names: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    continuous: np.ndarray
    periodic: np.ndarray


class Checker(Protocol):
    """What planners ask of a checker; it can be pickled, for workers.

    device: "cpu" or "cuda:N"
    version: changes when the obstacles do
    packed_scene: all constant data of robot and obstacles;  scene_parts: in two, for many scenes of one robot
    motion_args: (mode, step) of its MotionCheck, for the compiled code
    configurations_valid, motions_valid, colliding_pairs: as CollisionChecker has them
    scratch_sizes: (kind of space, sizes...), integers: what a kernel must allocate (`cuda.warp_scratch`)
    """

    robot: Robot
    device: str
    version: Any
    packed_scene: Packed
    scene_parts: SceneParts
    motion_args: tuple
    scratch_sizes: tuple

    def warm_up(self) -> None:
        """Compile, so that no query pays for it."""

    def configurations_valid(self, q: Any) -> np.ndarray: ...
    def motions_valid(self, q_from: Any, q_to: Any) -> np.ndarray: ...
    def colliding_pairs(self, q: Any) -> list[tuple[str, str]]: ...
    def new_scratch(self) -> Any:
        """A NamedTuple of arrays: what one CPU thread needs for a check."""

    def device_scene(self) -> tuple:
        """(floats, ints) on the CUDA device."""

    def on(self, device: str) -> Any:
        """A checker like it on another device."""


class Space(NamedTuple):
    """Where compiled code checks motions, and how.

    mode, step: int32 and float32, checker.motion_args; floats, ints: checker.packed_scene
    scratch: of one worker, a NamedTuple of arrays whose type picks the kind of space
    """

    mode: np.int32
    step: np.float32
    floats: np.ndarray
    ints: np.ndarray
    scratch: NamedTuple


def space_of(checker: Any) -> Space:
    """-> the Space of a checker for one CPU thread."""
    mode, step = checker.motion_args
    scene = checker.packed_scene
    return Space(np.int32(mode), np.float32(step), scene.floats, scene.ints, checker.new_scratch())


def motion_free(qa, qb, hint, space, lane):
    """Is the straight motion qa -> qb, (dof,) float32 each, free in the Space?

    hint: only orders the search. NOTHING; END_FREE: qb is free; REFUSED: ends free, motion probably blocked near recent
        collisions
    All lanes of the worker call it and get the answer.
    """
    raise NotImplementedError("compiled code only")


_scratches: dict[str, type] = {}  # by their names


def register(scratch_class: type, target: str, implementation: Callable, overload: Callable = overload) -> None:
    """Let `motion_free` be `implementation`, same arguments, where the scratch is a scratch_class.

    scratch_class: no other space's may have the same name, since Numba tells the types of NamedTuples apart by it
    target: "cpu" or "cuda", with that target's `overload`
    """
    if _scratches.setdefault(scratch_class.__name__, scratch_class) is not scratch_class:
        raise ValueError(f"another space has a scratch named {scratch_class.__name__}")

    @overload(motion_free, target=target)
    def choose(qa, qb, hint, space, lane):
        scratch = space.types[Space._fields.index("scratch")]
        if getattr(scratch, "instance_class", None) is scratch_class:
            if target == "cpu":  # a constant, which makes the code shorter and faster
                return lambda qa, qb, hint, space, lane: implementation(qa, qb, hint, space, 0)
            return lambda qa, qb, hint, space, lane: implementation(qa, qb, hint, space, lane)


def choose(function: Callable, target: str, overload: Callable, plain: Any, other: Any, is_other: Callable) -> None:
    """Let compiled code that calls `function`, whose arguments are (s, now, k) or (s, now, k, out), call `plain`, or
    `other` where is_other(type of s): what a planner does by the space that it works in. Only that is compiled."""
    if other.py_func.__code__.co_argcount == 3:

        @overload(function, target=target)
        def choose_of_three(s, now, k):
            chosen = other if is_other(s) else plain
            return lambda s, now, k: chosen(s, now, k)

    else:

        @overload(function, target=target)
        def choose_of_four(s, now, k, out):
            chosen = other if is_other(s) else plain
            return lambda s, now, k, out: chosen(s, now, k, out)


@lean_njit
def motion_verdict(qa, qb, space, lane):
    """`motion_free` as FREE or NOT_FREE, or NOT_FINITE where an end is not. All lanes of the worker get the answer."""
    if not (finite(qa) and finite(qb)):
        return NOT_FINITE
    return FREE if motion_free(qa, qb, END_FREE, space, lane) else NOT_FREE


@lean_njit
def finite(q):
    """Is no joint's value infinite or NaN?"""
    for k in range(len(q)):
        if not abs(q[k]) <= LARGEST:
            return False
    return True
