"""Shorten a path by replacing stretches of it with straight motions.

A pass lays POINTS points along the path, its corners among them, and finds the shortest way through them in which each
leg is a straight motion that is free, or a stretch of the path as it is. It is the best of all combinations of cuts
between these points, where the usual rounds of random cuts (Geraerts and Overmars, IJRR 2007, section 4.1) apply them one
by one. Legs are checked when the shortest way needs them; a team with many workers checks all at once, to the same end.
"""

import math

import numpy as np

from ..device import njit
from ..team import NEVER, clock_ns, lane_count, late, least_lane, peek, sum_lanes, sync_lanes, sync_team
from .sampling import folded_seed, uniform01
from .space import motion_free

POINTS, HALF = 32, 16
EAGER = 128  # a team with so many workers checks all legs at once
UNKNOWN, FREE, BLOCKED = range(3)
M_LENGTH, M_HALT, M_HEAD = 0, 1, 8  # M: number of corners, is the time up, where the rest begins
LEAST_SAVING = np.float32(1e-3)  # of the path's length: two passes that save less are the last
PER_LEG = np.float32(1e-4)  # of the path's length, added to every leg: of equal ways the one with fewer corners
FAR, ZERO, ONE = np.float32(3e38), np.float32(0), np.float32(1)
CUTS = np.uint64(0x5851F42D4C957F2D)  # sets the points of a pass apart from the samples of the same seed


def shorten_sizes(dof, corners, workers):
    """-> lengths of the float32 and int32 scratch of `shorten`, for paths of at most `corners` corners with their cuts."""
    return 2 * corners * dof + corners + POINTS * (dof + 2 + POINTS + workers), M_HEAD + POINTS * (POINTS + 2 + 2 * workers)


@njit
def shorten(length, corners, passes, deadline, weights, seed, split, mode, step, F, I, A, M, N, barrier, S, qa, qb, worker, workers, lane,
            member, members):
    """Shorten the path A[:length * dof]; corners: room for them, at least length + POINTS; A, M: see `shorten_sizes`.

    weights: (dof,) float32 of the cost; seed: uint64; split: how many workers share a leg; mode, step, F, I, S: see space; N[barrier]:
    the team's barrier; qa, qb: (dof,) float32 of each lane; deadline: of clock_ns(); the pass that it cuts changes nothing
    -> where in A the result begins, its number of corners
    """
    dof = len(weights)
    at, other = 0, corners * dof
    arc = 2 * corners * dof
    points = arc + corners
    raw = points + POINTS * dof
    s = raw + POINTS
    cost = s + POINTS
    best = cost + POINTS * POINTS + worker * POINTS
    legs, segment, following = M_HEAD, M_HEAD + POINTS * POINTS, M_HEAD + POINTS * (POINTS + 1)
    before = following + POINTS + worker * 2 * POINTS
    idle = 0
    for number in range(passes):
        if length < 3 or length + POINTS > corners:
            break
        if worker == 0:
            if lane == 0:
                M[M_HALT] = 0
            lay(length, at, arc, points, raw, s, cost, legs, segment, number, weights, seed, A, M, lane)
        sync_team(N, barrier, member, members)
        total = A[arc + length - 1]
        count, missing = POINTS * POINTS, 1  # all legs
        if workers < EAGER:  # only those of the shortest way
            count, missing = shortest(total, cost, best, legs, before, A, M, lane)
            sync_team(N, barrier, member, members)
        while missing > 0:
            for item in range(worker, count * split, workers):
                if late(deadline):
                    if lane == 0:
                        M[M_HALT] = 1
                    break
                leg, part = item % count, item // count
                if workers < EAGER:
                    leg = int(M[before + POINTS + leg])
                i, j = points + leg // POINTS * dof, points + leg % POINTS * dof
                # another part may be known to be blocked; one lane looks, so that all agree
                if i < j and sum_lanes(peek(M, legs + leg) if lane == 0 else 0) == UNKNOWN:
                    for k in range(dof):
                        qa[k] = A[i + k] + np.float32(part) / np.float32(split) * (A[j + k] - A[i + k])
                        qb[k] = A[j + k] if part + 1 == split else A[i + k] + np.float32(part + 1) / np.float32(split) * (A[j + k] - A[i + k])
                    if not motion_free(qa, qb, mode, step, F, I, S, lane) and lane == 0:
                        M[legs + leg] = BLOCKED
                    sync_lanes()
            sync_team(N, barrier, member, members)
            if M[M_HALT] != 0:
                return at, length
            if workers < EAGER:
                for item in range(worker, count, workers):
                    leg = int(M[before + POINTS + item])
                    if lane == 0 and M[legs + leg] == UNKNOWN:
                        M[legs + leg] = FREE
                sync_team(N, barrier, member, members)
            count, missing = shortest(total, cost, best, legs, before, A, M, lane)
            if workers < EAGER:
                sync_team(N, barrier, member, members)
            else:
                missing = 0  # legs that are not blocked are free
        shorter = A[best + POINTS - 1]
        if worker == 0:
            rebuild(at, other, dof, arc, points, s, segment, following, before, A, M, lane)
        sync_team(N, barrier, member, members)
        length = int(M[M_LENGTH])
        at, other = other, at
        idle = idle + 1 if shorter > (ONE - LEAST_SAVING) * total else 0
        if idle == 2:
            break
    return at, length


@njit
def lay(length, at, arc, points, raw, s, cost, legs, segment, number, weights, seed, A, M, lane):
    """The points of a pass, and what is known of the legs between them."""
    dof, lanes = len(weights), lane_count()
    for i in range(lane, length - 1, lanes):
        A[arc + i + 1] = distance(A, at + i * dof, at + (i + 1) * dof, weights)
    sync_lanes()
    if lane == 0:
        A[arc] = ZERO
        for i in range(1, length):
            A[arc + i] += A[arc + i - 1]
    sync_lanes()
    total = A[arc + length - 1]
    kept = min(length, HALF)
    for c in range(lane, POINTS, lanes):
        if c < kept:
            A[raw + c] = A[arc + c * (length - 1) // (kept - 1)]
        else:
            A[raw + c] = total * (np.float32(c - kept) + uniform01(seed ^ CUTS, number, c)) / np.float32(POINTS - kept)
    sync_lanes()
    for c in range(lane, POINTS, lanes):
        value, rank = A[raw + c], 0
        for d in range(POINTS):
            if A[raw + d] < value or (A[raw + d] == value and d < c):
                rank += 1
        i = 0
        while i < length - 2 and A[arc + i + 1] <= value:
            i += 1
        t = min((value - A[arc + i]) / max(A[arc + i + 1] - A[arc + i], np.float32(1e-12)), ONE)
        for k in range(dof):
            p = A[at + i * dof + k]
            A[points + rank * dof + k] = p + t * (A[at + (i + 1) * dof + k] - p)
        A[s + rank], M[segment + rank] = value, i
    sync_lanes()
    for leg in range(lane, POINTS * POINTS, lanes):
        i, j = leg // POINTS, leg % POINTS
        if i < j:
            along, straight = A[s + j] - A[s + i], distance(A, points + i * dof, points + j * dof, weights)
            if j == i + 1 or A[s + j] <= A[arc + M[segment + i] + 1]:
                M[legs + leg], A[cost + leg] = FREE, along
            else:
                M[legs + leg], A[cost + leg] = UNKNOWN if along - straight > PER_LEG * total else BLOCKED, straight


@njit
def distance(A, a, b, weights):
    """Weighted distance of the configurations at a and b."""
    squared = ZERO
    for k in range(len(weights)):
        d = A[b + k] - A[a + k]
        squared += weights[k] * d * d
    return math.sqrt(squared)


@njit
def shortest(total, cost, best, legs, before, A, M, lane):
    """The shortest way to each point if unknown legs were free; the legs of the way to the last one go to M[before + POINTS:].

    -> number of these legs, and how many of them are unknown
    """
    sync_lanes()
    if lane == 0:
        A[best] = ZERO
    sync_lanes()
    for j in range(1, POINTS):
        least, index = FAR, -1
        for i in range(lane, j, lane_count()):
            if M[legs + i * POINTS + j] != BLOCKED:
                c = A[best + i] + A[cost + i * POINTS + j] + PER_LEG * total
                if c < least:
                    least, index = c, i
        least, index = least_lane(least, index)
        if lane == 0:
            A[best + j], M[before + j] = least, index
        sync_lanes()
    j, count, missing = POINTS - 1, 0, 0
    while j > 0:
        i = int(M[before + j])
        if M[legs + i * POINTS + j] == UNKNOWN:
            missing += 1
        if lane == 0:
            M[before + POINTS + count] = i * POINTS + j
        j, count = i, count + 1
    sync_lanes()
    return count, missing


@njit
def rebuild(at, other, dof, arc, points, s, segment, following, before, A, M, lane):
    """Write the shortest way, and its number of corners to M[M_LENGTH]."""
    sync_lanes()
    if lane == 0:
        j = POINTS - 1
        while j > 0:
            M[following + M[before + j]] = j
            j = M[before + j]
    sync_lanes()
    i, count, written = 0, 1, True
    copy(A, points, other, dof, lane)
    while i < POINTS - 1:
        j, now = int(M[following + i]), False
        if j == i + 1 or A[s + j] <= A[arc + M[segment + i] + 1]:  # along the path as it is
            for corner in range(M[segment + i] + 1, M[segment + j] + 1):
                if A[arc + corner] > A[s + i] and A[arc + corner] <= A[s + j]:
                    copy(A, at + corner * dof, other + count * dof, dof, lane)
                    count, now = count + 1, A[arc + corner] == A[s + j]
        else:
            if not written:
                copy(A, points + i * dof, other + count * dof, dof, lane)
                count += 1
            copy(A, points + j * dof, other + count * dof, dof, lane)
            count, now = count + 1, True
        i, written = j, now
    if not written:
        copy(A, points + i * dof, other + count * dof, dof, lane)
        count += 1
    if lane == 0:
        M[M_LENGTH] = count


@njit
def copy(A, a, b, dof, lane):
    for k in range(lane, dof, lane_count()):
        A[b + k] = A[a + k]


def shortcut(path, checker, passes, seed, weights=None, deadline=NEVER):
    """path: (K, dof) -> a path with the same ends, no longer and free by the checker's MotionCheck.

    weights: (dof,) of the cost; none: 1 each
    deadline: of clock_ns(); a pass that would take longer is left out
    """
    path = np.asarray(path, dtype=np.float64)
    if passes == 0 or len(path) < 3 or clock_ns() > deadline:
        return path
    length, dof = path.shape
    corners = length + POINTS
    weights = np.ones(dof, dtype=np.float32) if weights is None else np.asarray(weights, dtype=np.float32)
    seed = np.uint64(folded_seed(seed))
    if checker.device == "cpu":
        floats, ints = shorten_sizes(dof, 2 * corners, 1)
        A, M, N = np.empty(floats, dtype=np.float32), np.empty(ints, dtype=np.int32), np.zeros(1, dtype=np.int32)
        A[:length * dof] = path.ravel()
        at, length = _shorten_on_cpu(length, 2 * corners, passes, deadline, weights, seed, *checker.motion_args, *checker.packed_scene, A, M,
                                     N, checker.new_scratch())
        shorter = A[at:at + length * dof].reshape(length, dof).astype(np.float64)
    else:
        from .rrt_connect_kernels import engine_on

        shorter = engine_on(checker).shorten(path, checker, passes, deadline, weights, seed).astype(np.float64)
    shorter[0], shorter[-1] = path[0], path[-1]
    return shorter


def warm_up(checker):
    """Compile `shortcut` for a kind of checker, or load it from the cache, before the clock of a query starts."""
    kind = checker.device, type(checker.new_scratch()) if checker.device == "cpu" else checker.scratch_sizes
    if kind not in _warm:
        _warm.add(kind)
        shortcut(np.zeros((3, checker.robot.dof)), checker, 1, 0)


_warm = set()


@njit
def _shorten_on_cpu(length, corners, passes, deadline, weights, seed, mode, step, F, I, A, M, N, S):
    qa, qb = np.empty(len(weights), dtype=np.float32), np.empty(len(weights), dtype=np.float32)
    return shorten(length, corners, passes, deadline, weights, seed, 1, np.int32(mode), step, F, I, A, M, N, 0, S, qa, qb, 0, 1, 0, 0, 1)
