"""Inverse kinematics: the configurations that put a link at a pose, for many poses and from many starts at once.

Searches (`tip_search`) run in rounds (`tip_rounds`). A round runs as many for each pose with too few solutions as all
rounds before it together; a checker then judges all that reached their pose in one call. A pose is also given up when a
long round brings nothing new: an arm of six joints has few solutions. What is found for a pose depends on neither the
other poses nor the number of threads.
"""

import math
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import lies_on_cuda, numbers, refuse_joints
from ...device import resolve_device
from ...errors import ConfigurationError, GpuPlannersError, RobotDescriptionError, SettingsError, shown
from ...parallel.sampling import folded_seed
from ...parallel.team import DAY_MS, NEVER
from ...settings import Described, setting
from ..geometry.shapes import rigid_poses
from . import tip_rounds
from .chain import TURN, PackedChain, pack_chain, pose_row
from .tip_rounds import Chosen, Searches, Wanted, chosen_shapes
from .tip_search import Tolerances

GREATEST_VALUE = 1e10  # of seed_q, rad or m
ROWS = 1 << 23  # searches that memory has room for
_chains: weakref.WeakKeyDictionary[Any, dict[int, PackedChain]] = weakref.WeakKeyDictionary()
_AT_LEAST = ("a number from 1e-09 on", lambda value: value == value)  # infinity too


@dataclass(frozen=True)
class IkSettings(Described):
    """What to look for at each pose.

    The search for a pose ends as soon as it has its solutions, or finds no new ones. Whatever is within both tolerances
    is a solution, however large they are. A joint that whole turns bring back to its place takes those that lead
    nearest to seed_q. The time limit does not count compiling; the answer is what was found by then.
    """

    solutions: int = setting(8, "Distinct solutions that are wanted", 1, 1_000_000)
    seeds: int = setting(256, "Most searches for a pose: the first starts at seed_q, others at random", 1, 1_000_000)
    position_only: bool = setting(False, "Any orientation will do")
    position_tolerance: float = setting(1e-6, "Farthest from the pose", 1e-9, math.inf, unit="metres", must=_AT_LEAST)
    orientation_tolerance: float = setting(1e-6, "Most turned", 1e-9, math.inf, unit="rad", must=_AT_LEAST)
    distinct: float = setting(
        0.05, "Least difference of two solutions, in the joint where it is greatest", 0.0, 1e6, unit="rad or m"
    )
    time_limit_s: float = setting(math.inf, "Time limit", 0.0, math.inf, unit="seconds")


@dataclass(frozen=True, eq=False)
class PoseSolutions:
    """What was found for one pose, nearest to seed_q first.

    q: (K, dof) rad or m, inside the limits; continuous joints between -pi and pi
    position_error: (K,) metres between the link's origin and the pose's
    orientation_error: (K,) rad, the angle between the two orientations
    colliding: (C, dof) distinct configurations that reach the pose, but that the checker refused: at most as many as
        were wanted, and none where all solutions were found
    seeds: how many searches were run
    timed_out: the time limit ended the search before it had found all that was wanted
    """

    q: np.ndarray
    position_error: np.ndarray
    orientation_error: np.ndarray
    colliding: np.ndarray
    seeds: int
    timed_out: bool

    def __len__(self) -> int:
        return len(self.q)


class PoseArrays(NamedTuple):
    """What was found for poses on a CUDA device, as arrays there; see PoseSolutions. What lies behind the solutions of
    a pose is undefined.

    counts: (N, 4) int32 solutions; distinct configurations that the checker refused; searches; 1 where the search ended
        before the time limit
    q: (N, C, dof) float64 rad or m, C at most `solutions`; errors: (N, C, 2) float64 metres, rad
    """

    counts: Any
    q: Any
    errors: Any


class PoseAnswers(Sequence[PoseSolutions]):
    """The PoseSolutions of many poses, each made when it is asked for: arrays are there at once."""

    def __init__(self, chosen: Chosen) -> None:
        self._chosen = chosen

    def __len__(self) -> int:
        return len(self._chosen.counts)

    @overload
    def __getitem__(self, k: SupportsIndex) -> PoseSolutions: ...
    @overload
    def __getitem__(self, k: slice) -> list[PoseSolutions]: ...
    def __getitem__(self, k):
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        have, refused, seeds, done = self._chosen.counts[k].tolist()
        q, left = self._chosen.q[k, :have], self._chosen.left[k, :have].T
        return PoseSolutions(q, left[0], left[1], self._chosen.refused[k, :refused], seeds, not done)


def solve(
    robot: Any,
    poses: ArrayLike,
    checker: Any = None,
    *,
    link: str | None = None,
    seed_q: ArrayLike | None = None,
    seed: int = 0,
    device: str = "cpu",
    **settings: Any,
) -> PoseSolutions | PoseAnswers | PoseArrays:
    """The configurations that put a link at a pose, nearest to seed_q first.

    poses: (4, 4) wanted pose of the link in the root frame, metres; or (N, 4, 4), for N answers. Those that lie on a
        CUDA device are searched for there, and answered by PoseArrays
    checker: CollisionChecker, or whatever has its `configurations_valid(q)`: only what it calls valid is a solution
    link: default: the tip link
    seed_q: (dof,) or (N, dof), where the first search starts and what solutions are near to; joints that do not
        move the link keep its value, within their limits. Default: the middle of the limits. May lie where poses do
    seed: of the random starts; the same seed gives the same answers, on the CPU whatever the number of threads
    device: where to search, as CollisionChecker has it
    settings: solutions, seeds, position_only, position_tolerance, orientation_tolerance, distinct, time_limit_s:
        as in IkSettings

    A pose out of reach has no solutions: that is no error. Raises GpuPlannersError for poses that are not finite
    rigid transforms, RobotDescriptionError for a link that is unknown or that no planning joint moves,
    ConfigurationError for a seed_q that is not one, SettingsError for other arguments, DeviceError.
    """
    asked, there = IkSettings(**settings), lies_on_cuda(poses)
    if there:
        from ...parallel.arrays_cuda import number_of

        device = f"cuda:{number_of(poses)}" if device == "cpu" else device
    device = resolve_device(device)
    warm_up()
    rounds: Any = tip_rounds.OnThreads
    if device != "cpu":
        from .tip_cuda import rounds_on

        rounds = rounds_on(device, checker)
    began = time.monotonic_ns()
    link = robot.tip_link if link is None else link
    packed = _chain(robot, link)
    if there:
        from .placing_cuda import first_rows, goal_rows

        goals = goal_rows(poses, device, packed.reach, link)
    else:
        T, one = as_poses(poses, link)
        goals = pose_row(T, packed.reach)
    if there and lies_on_cuda(seed_q):
        firsts: Any = first_rows(seed_q, device, robot, len(goals), GREATEST_VALUE)
    else:
        firsts = _firsts(robot, seed_q, len(goals))
    judge = judge_of(robot, checker)
    angle = math.inf if asked.position_only else asked.orientation_tolerance
    tolerances = Tolerances(asked.position_tolerance / packed.reach, angle)
    wanted = Wanted(asked.solutions, asked.seeds, asked.distinct)
    deadline = began + int(1e9 * asked.time_limit_s) if 1e3 * asked.time_limit_s < DAY_MS else NEVER
    number, shapes = np.uint64(folded_seed(seed)), chosen_shapes(len(goals), robot.dof, wanted)
    if there:
        from .tip_cuda import array_of, room_there

        found = room_there(device, shapes)
    else:
        found = Chosen(*(np.empty(*each) for each in shapes))
    size = max(1, ROWS // wanted.most)
    for first in range(0, len(goals), size):
        part = slice(first, first + size)
        starts = np.array(firsts[part], order="C") if isinstance(firsts, np.ndarray) else firsts[part]
        searches = Searches(goals[part], starts, number, np.arange(len(starts), dtype=np.int32), len(starts))
        own = Chosen(*(each[part] for each in found))
        rounds(packed, tolerances, wanted, searches, judge, own).answer(deadline)
    if there:
        return PoseArrays(array_of(device, found.counts), found.q, found.left)
    answers = PoseAnswers(found)
    return answers[0] if one else answers


def warm_up() -> None:
    """Compile for the CPU, or load from the cache, so that no query is charged for it."""
    tip_rounds.warm_up()


def _chain(robot, link):
    index = robot.link_index(link)
    chains = _chains.setdefault(robot, {})
    if index not in chains:
        if robot.link_frame[index] < 0:
            raise RobotDescriptionError(
                f"no planning joint of robot '{robot.name}' moves link '{link}'; allowed: a link that one moves, "
                f"such as '{robot.tip_link}'"
            )
        chains[index] = pack_chain(robot, index)
    return chains[index]


def as_poses(poses, link):
    """(P, 4, 4) float64, and whether one pose was given; GpuPlannersError that names the first that is none."""
    T = numbers(f"the poses of link '{link}'", poses, error=GpuPlannersError, finite=False).astype(np.float64)
    one = T.ndim == 2
    T = T[None] if one else T
    if T.ndim != 3 or T.shape[1:] != (4, 4) or not len(T):
        raise GpuPlannersError(
            f"the poses of link '{link}' must have shape (4, 4), or (N, 4, 4) with N at least 1, got {np.shape(poses)}"
        )
    named = (lambda k: f"the pose of link '{link}'") if one else (lambda k: f"pose {k} of link '{link}'")
    return rigid_poses(T, named, GpuPlannersError), one


def _firsts(robot, seed_q, count):
    """(count, dof) seed_q for each pose."""
    q = (robot.lower + robot.upper) / 2 if seed_q is None else seed_q
    q = robot.as_configurations(numbers("seed_q", q, error=ConfigurationError, finite=False))
    if len(q) not in (1, count):
        raise ConfigurationError(f"seed_q has {len(q)} rows for {count} poses; allowed: one row, or one for each pose")
    refuse_joints("seed_q", q, robot.joint_names, GREATEST_VALUE)
    return np.broadcast_to(q, (count, robot.dof))


def judge_of(robot: Any, checker: Any) -> Any:
    """The function (R, dof) -> (R,) bool that tells which configurations may be solutions; None: all."""
    if checker is None:
        return None
    judge = getattr(checker, "configurations_valid", None)
    if not callable(judge):
        raise SettingsError(f"checker is {shown(checker)}; allowed: None, or a CollisionChecker of the robot")
    other = getattr(getattr(checker, "robot", robot), "joint_names", robot.joint_names)
    if tuple(other) != tuple(robot.joint_names):
        raise SettingsError(
            f"checker is for a robot with the joints {shown(other)}; allowed: one with {shown(robot.joint_names)}"
        )
    return judge


def nearest_turn(angle: np.ndarray) -> np.ndarray:
    """Angles (rad) less whole turns: from -pi to pi."""
    return (angle + np.pi) % TURN - np.pi
