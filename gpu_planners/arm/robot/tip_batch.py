"""Searches of `tip_search` for many poses and starts at once: their arrays, and the CPU's threads.

A search depends on its pose and its number alone, so the threads may share them in any way.
"""

import functools
from typing import NamedTuple

import numba
import numpy as np

from ...device import lean_njit, njit
from ...parallel.team import NEVER, borrowed, late
from ...parallel.threads import in_parts, one_thread
from .chain import Chain, frame_count, joint_count
from .tip_search import SearchScratch, Tolerances, search, settle, start_at

FEW = 128  # searches that one thread runs sooner than several wake up
PIECES = 16  # that the searches are dealt into for each thread: some end early


class Searches(NamedTuple):
    """What to search for. Lengths in units of the chain's reach, joints in its units.

    goals: (P, 12) poses, the rotation by rows, then the translation; firsts: (P, n) where search 0 starts
    seed: of the other starts; poses: (A,) int32 which of the goals; number: of the first search for each of them
    """

    goals: np.ndarray
    firsts: np.ndarray
    seed: np.uint64
    poses: np.ndarray
    number: int


class Ends(NamedTuple):
    """Where searches ended. Row i is search `number + i % count` for pose `poses[i // count]`, count searches for each.

    found: (R,) uint8, 1 where the pose was reached; q: (R, n); misses: (R, 2) distance and angle left
    """

    found: np.ndarray
    q: np.ndarray
    misses: np.ndarray


@lean_njit
def run_search(chain, tolerances, searches, i, ends, scratch):
    """Run the search of row i."""
    count = len(ends.found) // len(searches.poses)
    pose, number, q = searches.poses[i // count], searches.number + i % count, scratch.q
    start_at(chain, number, searches.seed, searches.firsts[pose], q)
    found, distance, angle = search(chain, searches.goals[pose], tolerances, scratch)
    if found:
        settle(chain, searches.firsts[pose], q)
    ends.found[i] = found
    ends.misses[i, 0], ends.misses[i, 1] = distance, angle
    for k in range(len(q)):
        ends.q[i, k] = q[k]


def run_on_cpu(chain: Chain, tolerances: Tolerances, searches: Searches, count: int, deadline: int) -> Ends:
    """Run `count` searches for each pose. Those that would begin after the deadline find nothing.

    deadline: of time.monotonic_ns
    """
    rows = len(searches.poses), count
    ends = Ends(np.empty(rows, np.uint8), np.empty((*rows, searches.firsts.shape[1])), np.empty((*rows, 2)))
    with one_thread(ends.found.size < FEW):
        for poses, *arrays in in_parts(searches.poses, *ends):
            part = Ends(*(array.reshape(-1, *array.shape[2:]) for array in arrays))
            pieces = min(len(part.found), PIECES * numba.get_num_threads())
            _run_all(chain, tolerances, searches._replace(poses=poses), np.int64(deadline), pieces, part)
    return Ends(*(array.reshape(-1, *array.shape[2:]) for array in ends))


@functools.cache
def warm_up() -> None:
    """Compile the searches, or load them from the cache. Their types are the same for all robots."""
    chain = Chain(np.zeros(64), np.array([1, 1, 0, 0, 0], dtype=np.int32))
    poses = np.zeros(1, dtype=np.int32)
    searches = Searches(np.zeros((1, 12)), np.zeros((1, 1)), np.uint64(0), poses, 0)
    run_on_cpu(chain, Tolerances(9.0, 9.0), searches, 1, NEVER)


@njit(parallel=True)
def _run_all(chain, tolerances, searches, deadline, pieces, ends):
    for piece in numba.prange(pieces):
        scratch = new_scratch(chain)
        _run_piece(
            borrowed(chain), tolerances, borrowed(searches), deadline, piece, pieces, borrowed(ends), borrowed(scratch)
        )


@lean_njit
def _run_piece(chain, tolerances, searches, deadline, piece, pieces, ends, scratch):
    for i in range(piece, len(ends.found), pieces):
        if late(deadline):
            ends.found[i] = 0
        else:
            run_search(chain, tolerances, searches, i, ends, scratch)


@njit
def new_scratch(chain):
    n = joint_count(chain)
    return SearchScratch(
        np.empty(n),
        np.empty(n),
        np.empty((frame_count(chain), 6)),
        np.empty((n, 6)),
        np.empty((6, 6)),
        np.empty(6),
        np.empty(6),
    )
