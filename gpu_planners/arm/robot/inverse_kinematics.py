"""Inverse kinematics: the configurations that put a link at a pose, for many poses and from many starts at once.

Searches (`tip_search`) run in rounds. A round runs as many for each pose with too few solutions as all rounds before it
together; a checker then judges all that reached their pose in one call. A pose is also given up when a long round
brings nothing new: an arm of six joints has few solutions. What is found for a pose depends on neither the other poses
nor the number of threads.
"""

import functools
import math
import time
import weakref
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import numbers, refuse_joints
from ...device import njit, resolve_device
from ...errors import ConfigurationError, GpuPlannersError, RobotDescriptionError, SettingsError, shown
from ...parallel.sampling import folded_seed
from ...parallel.team import DAY_MS, NEVER
from ...settings import Described, setting
from ..geometry.shapes import rigid_poses
from . import tip_search
from .chain import TURN, PackedChain, pack_chain, pose_row, winding
from .tip_search import Searches, Tolerances

GREATEST_VALUE = 1e10  # of seed_q, rad or m
KNOWN = 4  # times as many distinct configurations as are wanted, up to which new ones are counted
ENOUGH = 64  # searches of a round that gives a pose up if it brings nothing new
ANSWERS_SHARE = 0.5  # of the time limit, kept for making answers
ANSWER_NS = 20_000  # for the answer of a pose, at most
AT_ONCE = 1 << 14  # searches between two looks at the clock
AT_ONCE_ON_CUDA = 1 << 18
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


class _Rows(NamedTuple):
    """Configurations (R, dof) that reach their poses (R,), by the searches of these numbers (R,).

    misses: (R, 2) m and rad; far: (R,) distance from seed_q; free: (R,) by the checker
    """

    q: np.ndarray
    pose: np.ndarray
    number: np.ndarray
    misses: np.ndarray
    far: np.ndarray
    free: np.ndarray


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
) -> PoseSolutions | list[PoseSolutions]:
    """The configurations that put a link at a pose, nearest to seed_q first.

    poses: (4, 4) wanted pose of the link in the root frame, metres; or (N, 4, 4), for a list of N answers
    checker: CollisionChecker, or whatever has its `configurations_valid(q)`: only what it calls valid is a solution
    link: default: the tip link
    seed_q: (dof,) or (N, dof), where the first search starts and what solutions are near to; joints that do not
        move the link keep its value, within their limits. Default: the middle of the limits
    seed: of the random starts; the same seed gives the same answers, on the CPU whatever the number of threads
    device: where to search, as CollisionChecker has it
    settings: solutions, seeds, position_only, position_tolerance, orientation_tolerance, distinct, time_limit_s:
        as in IkSettings

    A pose out of reach has no solutions: that is no error. Raises GpuPlannersError for poses that are not finite
    rigid transforms, RobotDescriptionError for a link that is unknown or that no planning joint moves,
    ConfigurationError for a seed_q that is not one, SettingsError for other arguments, DeviceError.
    """
    wanted, device = IkSettings(**settings), resolve_device(device)
    warm_up()
    run, at_once = tip_search.run_on_cpu, AT_ONCE
    if device != "cpu":
        from .tip_cuda import runner

        run, at_once = runner(device), AT_ONCE_ON_CUDA
    began = time.monotonic_ns()
    link = robot.tip_link if link is None else link
    packed = _chain(robot, link)
    T, one = as_poses(poses, link)
    firsts = _firsts(robot, seed_q, len(T))
    judge = _judge(robot, checker)
    angle = math.inf if wanted.position_only else wanted.orientation_tolerance
    tolerances = Tolerances(wanted.position_tolerance / packed.reach, angle)
    searches = Searches(
        pose_row(T, packed.reach),
        np.ascontiguousarray(firsts[:, packed.joints] / packed.units),
        np.uint64(folded_seed(seed)),
        np.arange(len(T), dtype=np.int32),
        0,
    )
    deadline = NEVER
    if 1e3 * wanted.time_limit_s < DAY_MS:
        deadline = began + int(1e9 * wanted.time_limit_s)
        left = deadline - time.monotonic_ns()
        deadline -= max(0, min(int(ANSWERS_SHARE * left), ANSWER_NS * len(T)))

    def found_by(number, more, part):
        """_Rows of searches `number` to `number + more - 1` for some of the poses."""
        ends = run(packed.chain, tolerances, searches._replace(poses=part, number=number), more, deadline)
        return _reached(robot, packed, firsts[part], part, number, ends, judge)

    answers = _rounds(robot, found_by, len(T), wanted, deadline, at_once)
    return answers[0] if one else answers


def _rounds(robot, found_by, poses, wanted, deadline, at_once):
    """[PoseSolutions], by rounds of searches until each pose has its solutions, nothing new comes, or time is up.

    found_by: (number, more, poses (A,)) -> _Rows; deadline: of time.monotonic_ns
    """
    count, most, distinct = wanted.solutions, wanted.seeds, wanted.distinct
    found, waiting = [], np.arange(poses, dtype=np.int32)
    tried, have, known = (np.zeros(poses, dtype=np.int64) for _ in range(3))
    total, late = 0, False
    while total < most and len(waiting) and not late:
        more = min(max(total, 2 * count), most - total)
        for part in np.array_split(waiting, min(len(waiting), -(-len(waiting) * more // at_once))):
            found.append(found_by(total, more, part))
            tried[part] += more
            late = time.monotonic_ns() > deadline
            if late:
                break
        total += more
        rows = _Rows(*map(np.concatenate, zip(*found, strict=True)))
        chosen = _chosen(robot, rows, rows.free, distinct, count)
        have, before = np.bincount(rows.pose[chosen], minlength=poses), known
        reaching = _chosen(robot, rows, np.ones(len(rows.pose), dtype=bool), distinct, KNOWN * count)
        known = np.bincount(rows.pose[reaching], minlength=poses)
        exhausted = (known > 0) & (known == before) & (known < KNOWN * count) & (more >= ENOUGH)
        waiting = np.flatnonzero((have < count) & ~exhausted).astype(np.int32)
    refused = _chosen(robot, rows, ~rows.free & (have < count)[rows.pose], distinct, count)
    return _answers(rows, chosen, refused, tried, late & np.isin(np.arange(poses), waiting))


def _answers(rows, chosen, refused, tried, waiting):
    """[PoseSolutions] of all poses. chosen, refused: numbers of rows; tried, waiting: (P,) searches, and timed out"""
    ends = np.arange(len(tried) + 1)
    q, misses, ends_chosen = rows.q[chosen], rows.misses[chosen].T.copy(), np.searchsorted(rows.pose[chosen], ends)
    colliding, ends_refused = rows.q[refused], np.searchsorted(rows.pose[refused], ends)
    none = functools.cache(functools.partial(PoseSolutions, q[:0], misses[0, :0], misses[1, :0], colliding[:0]))
    return [
        PoseSolutions(q[a:b], misses[0, a:b], misses[1, a:b], colliding[c:d], seeds, timed_out)
        if b > a or d > c
        else none(seeds, timed_out)
        for a, b, c, d, seeds, timed_out in zip(
            *(each.tolist() for ends in (ends_chosen, ends_refused) for each in (ends[:-1], ends[1:])),
            tried.tolist(),
            waiting.tolist(),
            strict=True,
        )
    ]


def warm_up() -> None:
    """Compile for the CPU, or load from the cache, so that no query is charged for it."""
    tip_search.warm_up()
    nothing = np.zeros(0, dtype=np.bool_)
    _keep_distinct(np.zeros((0, 1)), np.zeros(0, dtype=np.int64), nothing, 0.0, 1, nothing)


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


def _judge(robot, checker):
    """The function (R, dof) -> (R,) bool that tells which configurations may be solutions."""
    if checker is None:
        return lambda q: np.ones(len(q), dtype=bool)
    judge = getattr(checker, "configurations_valid", None)
    if not callable(judge):
        raise SettingsError(f"checker is {shown(checker)}; allowed: None, or a CollisionChecker of the robot")
    other = getattr(getattr(checker, "robot", robot), "joint_names", robot.joint_names)
    if tuple(other) != tuple(robot.joint_names):
        raise SettingsError(
            f"checker is for a robot with the joints {shown(other)}; allowed: one with {shown(robot.joint_names)}"
        )
    return judge


def _reached(robot, packed, firsts, poses, number, ends, judge):
    """The _Rows of what searches found; ends: of as many for each of the poses (A,), from `number` on.

    firsts: (A, dof) where those of that number began
    """
    count, hits = len(ends.found) // len(poses), np.flatnonzero(ends.found)
    q = firsts[hits // count]
    q[:, packed.joints] = ends.q[hits] * packed.units
    q = np.where(robot.continuous, nearest_turn(q), np.clip(q, robot.lower, robot.upper))
    away = q - firsts[hits // count]
    far = np.linalg.norm(np.where(robot.continuous, nearest_turn(away), away), axis=1)
    free = np.asarray(judge(q)) if len(q) else np.zeros(0, dtype=bool)
    pose = poses[hits // count].astype(np.int64)
    return _Rows(q, pose, number + hits % count, ends.misses[hits] * (packed.reach, 1.0), far, free)


def _chosen(robot, rows, allowed, distinct, count):
    """Numbers of rows, by pose and nearest first: of the allowed ones at most `count` distinct ones for each pose."""
    order = np.flatnonzero(allowed)
    order = order[np.lexsort((rows.number[order], rows.far[order], rows.pose[order]))]
    keep = np.zeros(len(order), dtype=np.bool_)
    _keep_distinct(rows.q[order], rows.pose[order], winding(robot), distinct, count, keep)
    return order[keep]


@njit
def _keep_distinct(q, pose, winding, distinct, count, keep):
    """Mark rows (R, dof), sorted by pose, that differ by over `distinct` in some joint from all marked before them.

    winding: (dof,) bool, joints that differ by no whole turns
    """
    marked, have = np.empty(len(q), np.int64), 0
    for i in range(len(q)):
        if i > 0 and pose[i] != pose[i - 1]:
            have = 0
        if have == count:
            continue
        new = True
        for j in range(have):
            apart = False
            for k in range(q.shape[1]):
                difference = abs(q[i, k] - q[marked[j], k])
                if winding[k]:
                    difference %= TURN
                    difference = min(difference, TURN - difference)
                apart = apart or difference > distinct
            new = new and apart
        if new:
            marked[have] = i
            have += 1
            keep[i] = True


def nearest_turn(angle: np.ndarray) -> np.ndarray:
    """Angles (rad) less whole turns: from -pi to pi."""
    return (angle + np.pi) % TURN - np.pi
