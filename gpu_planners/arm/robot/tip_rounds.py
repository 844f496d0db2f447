"""Rounds of searches (`tip_search`) for many poses, and what is chosen of what they find: compiled for both targets.

A round runs as many searches for each pose that is not done as all rounds before it together. A search depends on its
pose and its number alone, so threads may share the searches in any way.
"""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from time import monotonic_ns
from typing import Any, NamedTuple, TypeAlias

import numba
import numpy as np

from ...device import lean_njit, njit
from ...parallel.sampling import uniform01
from ...parallel.stopping import heed
from ...parallel.team import NEVER, borrowed, late
from ...parallel.threads import one_thread
from ..geometry.poses import POSE
from .chain import ENDLESS, LIMITED, TURN, Chain, Joints, PackedChain
from .tip_search import Tolerances, new_scratch, search

KNOWN = 4  # times as many distinct configurations as are wanted, up to which new ones are counted
ENOUGH = 64  # searches of a round that gives a pose up if it brings nothing new
MISSED, REACHED, LATE = range(3)  # how a search ends; LATE: it did not begin
NOT_FREE, FREE = range(2)  # verdicts, as spaces.interface has them
FREE_END, REFUSED_END, ANY_END = range(3)  # of what `pick` takes
FEW = 128  # searches that one thread runs sooner than several wake up
PIECES = 16  # that the searches are dealt into for each thread: some end early
AT_ONCE = 1 << 14  # searches between two looks at the clock
Judge: TypeAlias = Callable[[np.ndarray], np.ndarray] | None  # (R, dof) -> (R,) bool which may be solutions; None: all


class Searches(NamedTuple):
    """What to search for. Lengths in units of the chain's reach.

    goals: (P, 12) poses, the rotation by rows, then the translation; firsts: (P, dof), rad or m, where search 0 starts
    seed: of the other starts; poses: int32 which of the goals; slots: so many of these
    """

    goals: np.ndarray
    firsts: np.ndarray
    seed: np.uint64
    poses: np.ndarray
    slots: int


class Slots(NamedTuple):
    """What `choose` reads of Searches."""

    poses: np.ndarray
    slots: int


class Ends(NamedTuple):
    """Where searches ended. Search number s for poses[a] has row s * slots + a.

    found: (R,) uint8 MISSED, REACHED or LATE; verdicts: (R,) uint8 of a checker: FREE, or another number
    q: (R, dof) rad or m; narrow: (R, dof) float32, the same for a checker
    left: (R, 3) distance and angle left, m and rad, and how far q is from where search 0 starts
    """

    found: np.ndarray
    verdicts: np.ndarray
    q: np.ndarray
    narrow: np.ndarray
    left: np.ndarray


@lean_njit
def start_at(chain, joints, number, seed, first, q):
    """Write where search `number` starts: at `first`, (dof,), for number 0, at random for the others. q: (n,)"""
    for j in range(len(joints.number)):
        k = joints.number[j]
        if k >= 0 and number > 0:
            lower, upper = chain.limits[0, k], chain.limits[1, k]
            q[k] = lower + (upper - lower) * np.float64(uniform01(seed, number, k))
        elif k >= 0:
            value = first[j] / joints.values[2, j]
            q[k] = value if chain.kinds[k] == ENDLESS else min(max(value, chain.limits[0, k]), chain.limits[1, k])


@lean_njit
def settle(chain, joints, first, q):
    """Take whole turns off q: all off joints without limits, and off other joints those that lead nearer to `first`,
    (dof,)."""
    for j in range(len(joints.number)):
        k = joints.number[j]
        kind = chain.kinds[k] if k >= 0 else LIMITED
        if kind == ENDLESS:
            q[k] -= TURN * math.floor((q[k] + math.pi) / TURN)
            q[k] = min(max(q[k], -math.pi), math.pi)
        elif kind != LIMITED:
            lower, upper = chain.limits[0, k], chain.limits[1, k]
            turns = math.floor((first[j] / joints.values[2, j] - q[k]) / TURN + 0.5)
            turns = min(max(turns, math.ceil((lower - q[k]) / TURN)), math.floor((upper - q[k]) / TURN))
            q[k] += TURN * turns


@lean_njit
def run_search(chain, joints, reach, tolerances, searches, i, ends, scratch):
    """Run the search of row i. reach: metres, the unit of the chain's lengths"""
    pose, number, q = searches.poses[i % searches.slots], i // searches.slots, scratch.q
    first = searches.firsts[pose]
    start_at(chain, joints, number, searches.seed, first, q)
    found, distance, angle = search(chain, searches.goals[pose], tolerances, scratch)
    ends.found[i], ends.verdicts[i] = REACHED if found else MISSED, FREE
    if found:
        settle(chain, joints, first, q)
        ends.left[i, 0], ends.left[i, 1] = distance * reach, angle
        ends.left[i, 2] = write_end(joints, first, q, ends.q[i], ends.narrow[i])


@lean_njit
def write_end(joints, first, q, end, narrow):
    """Write the planning joints' values -> how far they are from `first`, whose values joints keep that do not move the
    link."""
    far = 0.0
    for j in range(len(end)):
        k, value = joints.number[j], first[j]
        if k >= 0:
            value = q[k] * joints.values[2, j]
        if joints.kinds[j] == ENDLESS:
            value = (value + math.pi) % TURN - math.pi
        else:
            value = min(max(value, joints.values[0, j]), joints.values[1, j])
        away = value - first[j]
        if joints.kinds[j] == ENDLESS:
            away = (away + math.pi) % TURN - math.pi
        far += away * away
        end[j] = value
        if joints.turning[j] != 0 and abs(value) > TURN:
            value -= TURN * math.floor(value / TURN + 0.5)
        narrow[j] = value
    return math.sqrt(far)


class Wanted(NamedTuple):
    """A pose is done with so many solutions that differ by over `distinct`, with `most` searches, or where a round of
    ENOUGH searches or more brings nothing new."""

    solutions: int
    most: int
    distinct: float


class Chosen(NamedTuple):
    """The answers of all poses, C configurations for each at most.

    counts: (P, 4) int32 solutions, refused configurations, searches, and 1 where the pose is done
    q, refused: (P, C, dof); left: (P, C, 2) as of Ends; rows: (P, C) int32 to work with
    """

    counts: np.ndarray
    q: np.ndarray
    refused: np.ndarray
    left: np.ndarray
    rows: np.ndarray


@lean_njit
def round_end(before, wanted):
    """How many searches for a pose there are after the round that follows `before`: as many again."""
    return min(before + max(before, 2 * wanted.solutions), wanted.most)


@lean_njit
def choose(joints, searches, ends, taken, wanted, span, last, slot, chosen):
    """Write the answer of a slot that is done with one of the rounds in `span`, searches before and after them, or of
    any with `last`. taken: (R,) uint8 to work with"""
    pose, (t, after), done = searches.poses[slot], span, False
    rows, where, most = chosen.rows[pose], (searches.slots, slot), KNOWN * wanted.solutions
    while t < after and not done:
        before, t = t, round_end(t, wanted)
        done = pick(joints, ends, taken, t, where, FREE_END, wanted, wanted.solutions, rows) == wanted.solutions
        if not (done or last):
            done = t == wanted.most
            if not done and t - before >= ENOUGH:
                known = pick(joints, ends, taken, t, where, ANY_END, wanted, most, rows)
                if 0 < known < most:
                    done = known == pick(joints, ends, taken, before, where, ANY_END, wanted, most, rows)
    chosen.counts[pose, 3] = done
    if done or last:
        have = pick(joints, ends, taken, t, where, FREE_END, wanted, wanted.solutions, rows)
        for j in range(have):
            chosen.left[pose, j, 0], chosen.left[pose, j, 1] = ends.left[rows[j], 0], ends.left[rows[j], 1]
            copy_row(ends.q[rows[j]], chosen.q[pose, j])
        refused = 0
        if have < wanted.solutions:
            refused = pick(joints, ends, taken, t, where, REFUSED_END, wanted, wanted.solutions, rows)
            for j in range(refused):
                copy_row(ends.q[rows[j]], chosen.refused[pose, j])
        run = 0
        for s in range(t):
            run += ends.found[s * searches.slots + slot] != LATE
        chosen.counts[pose, 0], chosen.counts[pose, 1], chosen.counts[pose, 2] = have, refused, run


@lean_njit
def pick(joints, ends, taken, t, where, kind, wanted, most, rows):
    """-> how many of the first t searches of a slot, `most` at most, ended so, each differing from all nearer ones that
    count; writes their rows. where: (slots, slot)"""
    slots, slot = where
    for s in range(t):
        row = s * slots + slot
        free = ends.verdicts[row] == FREE
        allowed = kind == ANY_END or (free if kind == FREE_END else not free)
        taken[row] = not (allowed and ends.found[row] == REACHED)
    count = 0
    while True:
        best = -1
        for s in range(t):
            row = s * slots + slot
            if not taken[row] and (best < 0 or ends.left[row, 2] < ends.left[best, 2]):
                best = row
        if best < 0:
            return count
        if count < len(rows):
            rows[count] = best
        count += 1
        if count == most:
            return count
        for s in range(t):
            row = s * slots + slot
            if not taken[row] and alike(joints, ends.q[row], ends.q[best], wanted.distinct):
                taken[row] = 1


@lean_njit
def alike(joints, a, b, distinct):
    """Does no joint differ by over `distinct`, whole turns apart?"""
    for k in range(len(a)):
        difference = abs(a[k] - b[k])
        if joints.kinds[k] != LIMITED:
            difference %= TURN
            difference = min(difference, TURN - difference)
        if difference > distinct:
            return False
    return True


@lean_njit
def copy_row(source, target):
    for k in range(len(target)):
        target[k] = source[k]


@lean_njit
def keep_row(i, old, slots, keep, size, new):
    """Row i of Ends for the slots `keep`, so many, of those that there were, `slots`."""
    row = i // size * slots + keep[i % size]
    new.found[i], new.verdicts[i] = old.found[row], old.verdicts[row]
    copy_row(old.q[row], new.q[i])
    copy_row(old.left[row], new.left[i])


def end_shapes(rows: int, dof: int) -> tuple:
    """(shape, type) of each array of Ends."""
    flags = (rows,), np.uint8
    return flags, flags, ((rows, dof), np.float64), ((rows, dof), np.float32), ((rows, 3), np.float64)


def chosen_shapes(poses: int, dof: int, wanted: Wanted) -> tuple:
    """(shape, type) of each array of Chosen."""
    most = min(wanted.solutions, wanted.most)
    q = (poses, most, dof), np.float64
    return ((poses, 4), np.int32), q, q, ((poses, most, 2), np.float64), ((poses, most), np.int32)


class Rounds(ABC):
    """Rounds of searches for the poses of one call, until each is done; on the CPU, or on a device (`tip_cuda`).

    searches: for all poses; judge: (R, dof) -> (R,) bool, which may be solutions; None: all; found: gets the answers
    """

    def __init__(
        self,
        packed: PackedChain,
        tolerances: Tolerances,
        wanted: Wanted,
        searches: Searches,
        judge: Judge,
        found: Chosen,
    ) -> None:
        self._packed, self._tolerances, self._wanted, self._judge = packed, tolerances, wanted, judge
        self._found = found
        self._searches, self._dof = searches, searches.firsts.shape[1]

    def answer(self, deadline: int) -> None:
        """Write what is found by the deadline, of time.monotonic_ns."""
        before, late, waiting = 0, False, self._searches.poses
        while len(waiting) and not late:
            heed()
            after = self._next(before)
            late = self._search(before, after, deadline)
            waiting = self._choose(before, after, late)
            if 0 < len(waiting) < self._searches.slots:
                self._keep(waiting, after)
            before = after

    def _next(self, before: int) -> int:
        """How many searches for a pose there should be after the next rounds."""
        return int(round_end.py_func(before, self._wanted))

    @abstractmethod
    def _search(self, before: int, after: int, deadline: int) -> bool:
        """Run searches -> is it late? Those that would begin after the deadline are not run."""

    @abstractmethod
    def _choose(self, before: int, after: int, last: bool) -> np.ndarray:
        """Write the answers of poses that are done, or of all (`last`) -> numbers (A,) of the slots that are not."""

    @abstractmethod
    def _keep(self, slots: np.ndarray, before: int) -> None:
        """Go on with these slots only, of which so many searches have run."""


class OnThreads(Rounds):
    """On the CPU."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._ends = Ends(*(np.empty(*each) for each in end_shapes(0, self._dof)))

    def _search(self, before, after, deadline):
        slots, packed, old = self._searches.slots, self._packed, self._ends
        ends = self._ends = Ends(*(np.empty(*each) for each in end_shapes(after * slots, self._dof)))
        for source, target in zip(old, ends):
            target[: len(source)] = source
        ends.found[before * slots :] = LATE
        for first in range(before * slots, after * slots, AT_ONCE):
            span = first, min(first + AT_ONCE, after * slots)
            with one_thread(span[1] - first < FEW):
                pieces = min(span[1] - first, PIECES * numba.get_num_threads())
                given = packed.chain, packed.of_joints, packed.reach, self._tolerances, self._searches
                _run_all(*given, np.int64(deadline), pieces, span, ends)
            hits = first + np.flatnonzero(ends.found[slice(*span)] == REACHED)
            if self._judge is not None and len(hits):
                ends.verdicts[hits] = np.where(self._judge(ends.q[hits]), FREE, NOT_FREE)
            if monotonic_ns() > deadline:
                return True
        return False

    def _choose(self, before, after, last):
        taken, slots = np.empty(len(self._ends.found), np.uint8), self._searches.slots
        with one_thread(slots < FEW):
            pieces, span = min(slots, PIECES * numba.get_num_threads()), (before, after)
            given = self._packed.of_joints, self._searches, self._ends, taken, self._wanted
            _choose_all(*given, span, last, pieces, self._found)
        return np.flatnonzero(self._found.counts[self._searches.poses, 3] == 0)

    def _keep(self, slots, before):
        rows = (each.reshape(before, -1, *each.shape[1:])[:, slots] for each in self._ends)
        self._ends = Ends(*(each.reshape(-1, *each.shape[2:]) for each in rows))
        self._searches = self._searches._replace(poses=self._searches.poses[slots], slots=len(slots))


@njit(parallel=True)
def _run_all(chain, joints, reach, tolerances, searches, deadline, pieces, span, ends):
    for piece in numba.prange(pieces):
        own = new_scratch(chain)
        given = borrowed(chain), borrowed(joints), reach, tolerances, borrowed(searches), borrowed(ends), borrowed(own)
        _run_piece(given, deadline, span[0] + piece, span[1], pieces)


@lean_njit
def _run_piece(given, deadline, first, last, pieces):
    chain, joints, reach, tolerances, searches, ends, scratch = given
    for i in range(first, last, pieces):
        if not late(deadline):
            run_search(chain, joints, reach, tolerances, searches, i, ends, scratch)


@njit(parallel=True)
def _choose_all(joints, searches, ends, taken, wanted, span, last, pieces, chosen):
    for piece in numba.prange(pieces):
        given = borrowed(joints), borrowed(searches), borrowed(ends), borrowed(taken), borrowed(chosen)
        _choose_piece(given, wanted, span, last, piece, pieces)


@lean_njit
def _choose_piece(given, wanted, span, last, piece, pieces):
    joints, searches, ends, taken, chosen = given
    for slot in range(piece, searches.slots, pieces):
        choose(joints, searches, ends, taken, wanted, span, last, slot, chosen)


@functools.cache
def warm_up() -> None:
    """Compile the searches, or load them from the cache. Their types are the same for all robots."""
    chain = Chain(np.zeros((2, POSE + 1)), np.zeros((2, 1)), np.zeros((1, 2), np.int32), np.zeros(1, np.int32))
    joints = Joints(np.ones((3, 1)), *(np.zeros(1, np.int32) for _ in range(3)))
    searches = Searches(np.zeros((1, POSE)), np.zeros((1, 1)), np.uint64(0), np.zeros(1, np.int32), 1)
    wanted = Wanted(1, 2, 0.0)
    found = Chosen(*(np.empty(*each) for each in chosen_shapes(1, 1, wanted)))
    OnThreads(PackedChain(chain, joints, 1.0), Tolerances(9.0, 9.0), wanted, searches, None, found).answer(NEVER)
