"""Is a configuration, or a whole motion, free? The mathematics shared by the CPU and the CUDA kernels.

`certify` answers for one configuration a lane and, beyond yes or no, for how large a part of a motion around it the
answer holds: each pair of shapes has a clearance and a bound on how fast it can close (reach.joint_reach), so no
collision can happen before clearance / speed. `motion_valid` covers a motion with such parts: the adaptive
checking of Schwarzer, Saha and Latombe (IEEE T-RO 2005), with the bounds of `convex.separation`.
The fixed samplings of [DL14] (a joint-space step) and [BKF11] (a fixed count) are modes of the same function.

The code is written for the lanes of a worker (`team`): on CUDA the 32 lanes of a warp check 32 configurations and
share the exact searches; on the CPU there is one lane. Scratch is passed in, since kernels cannot allocate.
"""

import math
from typing import NamedTuple

import numpy as np

from ..device import njit
from ..team import any_lane, from_lane, greatest_lane, lane_count, lower, rank_lanes, sync_lanes, vote_lanes
from . import space
from .convex import CYLINDER, ONE, POLYTOPE, SPHERE, TWO, ZERO, separation
from .packing import (
    BALLS,
    DOF,
    FINE_SPHERES,
    FLOATS,
    FRAME,
    FRAME_FLOAT_STRIDE,
    FRAME_FLOATS,
    FRAME_INT_STRIDE,
    FRAME_INTS,
    FRAMES,
    HALF,
    KIND,
    MOVING,
    OBSTACLE_INTS,
    OBSTACLES,
    PAIR_INTS,
    PAIRS,
    RANGES,
    REACH,
    SHAPE_INT_STRIDE,
    SHAPE_INTS,
    SHAPES,
    SKIN,
    SPHERE_STRIDE,
    SPHERES,
)

CONTINUOUS, WORKSPACE, JOINT, COUNT = 0, 1, 2, 3  # the modes of MotionCheck
QUEUE = 512  # parts of a motion that wait for a check
FAR = np.float32(1e30)
SIEVE, RUN = 64, 32  # pairs of a configuration that pass the first sieve together; pairs between two looks at their number
ITEM, CODE = 12, 2  # of a pair that waits for the exact search: scalars of the relative pose; integers, its number and the lane
COLLIDES = np.float32(-1.0)
UNRELATED = np.float32(-1.0)  # instead of a place on a motion
ALL = 0xFFFFFFFF
HALF_F = np.float32(0.5)
SURE = np.float32(1e-5)  # metres: so deep an inner ball must reach before it proves a collision


class ArmScratch(NamedTuple):
    """What one worker needs to check an arm. Arrays that the lanes share: speed (`speeds_size`,), waiting
    (2 * QUEUE,), tau (lanes,), items (2 * ITEM * lanes,) float32, codes (2 * CODE * lanes,) int32. One for each lane: q (dof,),
    X (poses_size,) float32, sieve (SIEVE,) int32."""

    speed: np.ndarray
    waiting: np.ndarray
    tau: np.ndarray
    items: np.ndarray
    codes: np.ndarray
    q: np.ndarray
    X: np.ndarray
    sieve: np.ndarray


@njit
def new_scratch(I):
    """CPU only: the scratch of one thread."""
    return ArmScratch(np.empty(speeds_size(I), dtype=np.float32), np.empty(2 * QUEUE, dtype=np.float32),
                      np.empty(1, dtype=np.float32), np.empty(2 * ITEM, dtype=np.float32), np.empty(2 * CODE, dtype=np.int32),
                      np.empty(I[DOF], dtype=np.float32), np.empty(poses_size(I), dtype=np.float32), np.empty(SIEVE, dtype=np.int32))


@njit
def poses_size(I):
    """Length of the scratch X of this robot."""
    return 12 * I[FRAMES] + 3 * I[SHAPES]


@njit
def speeds_size(I):
    """Length of the scratch `speed`: a number for each moving shape and self pair, then the centres of all shapes' balls."""
    return I[MOVING] + I[PAIRS] + 3 * I[SHAPES]


@njit
def place(q, F, I, X):
    """Forward kinematics (Craig's modified DH) into X: poses of all frames, 12 scalars each, then the centre of the
    coarse sphere of each shape, all in the world."""
    n_frames = I[FRAMES]
    for f in range(n_frames):
        ints = I[FRAME_INTS] + f * FRAME_INT_STRIDE
        row = I[FRAME_FLOATS] + f * FRAME_FLOAT_STRIDE
        parent = I[ints]
        value = F[row + 5] * q[I[ints + 1]] + F[row + 6]
        theta, d = F[row + 3], F[row + 4]
        if I[ints + 2] != 0:
            d += value
        else:
            theta += value
        ct, st, ca, sa, a = math.cos(theta), math.sin(theta), F[row], F[row + 1], F[row + 2]
        T = (ct, -st, ZERO, st * ca, ct * ca, -sa, st * sa, ct * sa, ca, a, -d * sa, d * ca)
        if I[ints + 3] != 0:
            T = compose(load(F, row + 7), T)
        if parent >= 0:
            T = compose(load(X, parent * 12), T)
        store(X, f * 12, T)
    for s in range(I[SHAPES]):
        record = I[SHAPE_INTS] + s * SHAPE_INT_STRIDE
        c, ball = I[record + FLOATS] + SPHERES, 12 * n_frames + 3 * s
        T = shape_pose(record, F, I, X)
        x, y, z = F[c], F[c + 1], F[c + 2]
        X[ball] = T[0] * x + T[1] * y + T[2] * z + T[9]
        X[ball + 1] = T[3] * x + T[4] * y + T[5] * z + T[10]
        X[ball + 2] = T[6] * x + T[7] * y + T[8] * z + T[11]


@njit
def shape_pose(record, F, I, X):
    """Pose in the world of one of the robot's shapes, after `place`."""
    T = load(F, I[record + FLOATS])
    if I[record + FRAME] >= 0:
        T = compose(load(X, I[record + FRAME] * 12), T)
    return T


@njit
def load(A, i):
    return (A[i], A[i + 1], A[i + 2], A[i + 3], A[i + 4], A[i + 5], A[i + 6], A[i + 7], A[i + 8], A[i + 9], A[i + 10], A[i + 11])


@njit
def store(A, i, T):
    for k in range(12):
        A[i + k] = T[k]


@njit
def compose(P, Q):
    """P @ Q for poses of 12 scalars."""
    return (P[0] * Q[0] + P[1] * Q[3] + P[2] * Q[6], P[0] * Q[1] + P[1] * Q[4] + P[2] * Q[7], P[0] * Q[2] + P[1] * Q[5] + P[2] * Q[8],
            P[3] * Q[0] + P[4] * Q[3] + P[5] * Q[6], P[3] * Q[1] + P[4] * Q[4] + P[5] * Q[7], P[3] * Q[2] + P[4] * Q[5] + P[5] * Q[8],
            P[6] * Q[0] + P[7] * Q[3] + P[8] * Q[6], P[6] * Q[1] + P[7] * Q[4] + P[8] * Q[7], P[6] * Q[2] + P[7] * Q[5] + P[8] * Q[8],
            P[0] * Q[9] + P[1] * Q[10] + P[2] * Q[11] + P[9], P[3] * Q[9] + P[4] * Q[10] + P[5] * Q[11] + P[10],
            P[6] * Q[9] + P[7] * Q[10] + P[8] * Q[11] + P[11])


@njit
def relative(P, Q):
    """P^-1 @ Q: the pose Q seen from P."""
    x, y, z = Q[9] - P[9], Q[10] - P[10], Q[11] - P[11]
    return (P[0] * Q[0] + P[3] * Q[3] + P[6] * Q[6], P[0] * Q[1] + P[3] * Q[4] + P[6] * Q[7], P[0] * Q[2] + P[3] * Q[5] + P[6] * Q[8],
            P[1] * Q[0] + P[4] * Q[3] + P[7] * Q[6], P[1] * Q[1] + P[4] * Q[4] + P[7] * Q[7], P[1] * Q[2] + P[4] * Q[5] + P[7] * Q[8],
            P[2] * Q[0] + P[5] * Q[3] + P[8] * Q[6], P[2] * Q[1] + P[5] * Q[4] + P[8] * Q[7], P[2] * Q[2] + P[5] * Q[5] + P[8] * Q[8],
            P[0] * x + P[3] * y + P[6] * z, P[1] * x + P[4] * y + P[7] * z, P[2] * x + P[5] * y + P[8] * z)


@njit
def distance_to_hull(kind, hx, hy, hz, x, y, z):
    """Distance of a point from a box, cylinder or sphere about the origin, never more than the true one; 0 inside.

    A polytope is bounded by its box here."""
    if kind == SPHERE:
        return max(math.sqrt(x * x + y * y + z * z) - hx, ZERO)
    dz = max(abs(z) - hz, ZERO)
    if kind == CYLINDER:
        dx = max(math.sqrt(x * x + y * y) - hx, ZERO)
        return math.sqrt(dx * dx + dz * dz)
    dx, dy = max(abs(x) - hx, ZERO), max(abs(y) - hy, ZERO)
    return math.sqrt(dx * dx + dy * dy + dz * dz)


@njit
def distance_to_obstacle(o, x, y, z, F, I):
    """`distance_to_hull` of a point of the world from an obstacle in its skin; can be negative then."""
    record = I[OBSTACLE_INTS] + o * SHAPE_INT_STRIDE
    at = I[record + FLOATS]
    x, y, z, h = x - F[at + 9], y - F[at + 10], z - F[at + 11], at + HALF
    return distance_to_hull(I[record + KIND], F[h], F[h + 1], F[h + 2], F[at] * x + F[at + 3] * y + F[at + 6] * z,
                            F[at + 1] * x + F[at + 4] * y + F[at + 7] * z, F[at + 2] * x + F[at + 5] * y + F[at + 8] * z) - F[at + SKIN]


@njit
def pair(code, F, I):
    """A pair of shapes by its number, moving shape x obstacle first, then self pairs.

    -> records of A and B, and which entry of `speed` is the pair's.
    """
    obstacles = I[OBSTACLES]
    p = code - I[MOVING] * obstacles
    if p < 0:
        i = code // obstacles
        return I[SHAPE_INTS] + i * SHAPE_INT_STRIDE, I[OBSTACLE_INTS] + (code - i * obstacles) * SHAPE_INT_STRIDE, i
    i, j = I[I[PAIR_INTS] + 2 * p], I[I[PAIR_INTS] + 2 * p + 1]
    return I[SHAPE_INTS] + i * SHAPE_INT_STRIDE, I[SHAPE_INTS] + j * SHAPE_INT_STRIDE, I[MOVING] + p


@njit
def relative_pose(a, b, F, I, X):
    """Pose of A in B's frame, after `place`; B may be an obstacle (its frame is -1, the world)."""
    return relative(shape_pose(b, F, I, X), shape_pose(a, F, I, X))


@njit
def bounding_distance(F, I, a, b, T):
    """Lower bound of the distance of A and B in their skins, by A's covering spheres and B's bounding volume; 0 where it says nothing.

    COLLIDES when a ball inside A proves that they meet. T: pose of A in B's frame
    """
    kind, h = I[b + KIND], I[b + FLOATS] + HALF
    hx, hy, hz, skin = F[h], F[h + 1], F[h + 2], F[I[b + FLOATS] + SKIN]
    sphere, fine = I[a + FLOATS] + SPHERES, I[a + FINE_SPHERES]
    bound = FAR
    for k in range(max(fine, 1)):
        at = sphere + SPHERE_STRIDE * (k + 1 if fine > 0 else 0)
        x, y, z = F[at], F[at + 1], F[at + 2]
        distance = distance_to_hull(kind, hx, hy, hz, T[0] * x + T[1] * y + T[2] * z + T[9], T[3] * x + T[4] * y + T[5] * z + T[10],
                                    T[6] * x + T[7] * y + T[8] * z + T[11])
        if kind != POLYTOPE and distance < F[at + 4] - SURE:
            return COLLIDES
        bound = min(bound, max(distance - F[at + 3] - skin, ZERO))
    return bound


@njit
def inner_balls_meet(F, I, a, b, T):
    """Do balls inside A and inside B overlap? Then they collide. T: pose of A in B's frame"""
    of_a, of_b = I[a + FLOATS] + SPHERES, I[b + FLOATS] + SPHERES
    for k in range(I[a + FINE_SPHERES] + 1):
        A = of_a + SPHERE_STRIDE * k
        u, v, w = F[A], F[A + 1], F[A + 2]
        x, y, z = T[0] * u + T[1] * v + T[2] * w + T[9], T[3] * u + T[4] * v + T[5] * w + T[10], T[6] * u + T[7] * v + T[8] * w + T[11]
        for m in range(I[b + FINE_SPHERES] + 1):
            B = of_b + SPHERE_STRIDE * m
            u, v, w, reach = F[B] - x, F[B + 1] - y, F[B + 2] - z, F[A + 4] + F[B + 4] - SURE
            if min(F[A + 4], F[B + 4]) > ZERO and u * u + v * v + w * w < reach * reach:
                return True
    return False


@njit
def exact_distance(F, I, a, b, T, margin):
    """convex.separation with a first separating vector from A's centre to the nearest point of B's box."""
    h = I[b + FLOATS] + HALF
    c = I[a + FLOATS] + SPHERES
    x, y, z = F[c], F[c + 1], F[c + 2]
    cx, cy, cz = T[0] * x + T[1] * y + T[2] * z + T[9], T[3] * x + T[4] * y + T[5] * z + T[10], T[6] * x + T[7] * y + T[8] * z + T[11]
    dx, dy, dz = (min(max(cx, -F[h]), F[h]) - cx, min(max(cy, -F[h + 1]), F[h + 1]) - cy, min(max(cz, -F[h + 2]), F[h + 2]) - cz)
    if dx * dx + dy * dy + dz * dz < np.float32(1e-10):
        dx, dy, dz = -cx, -cy, -cz
    if I[b + KIND] == POLYTOPE and inner_balls_meet(F, I, a, b, T):
        return COLLIDES
    return separation(F, I, a, b, T, dx, dy, dz, margin)


@njit
def certify(active, q, at, want, stop, F, I, S, lane):
    """COLLIDES, or how far (in units of the motion parameter, at most `want`) the configuration q can move and stay free.

    active: does this lane have a configuration (those that do come first); q: its (dof,) float32; at: where on a motion that
    all lanes share it lies, or UNRELATED; S.speed: metres that each pair can close per unit
    of the motion parameter (`speeds`); stop: return as soon as any lane's configuration collides (the other lanes'
    answers are void then). With want = 0 this is a plain collision check.

    Three sieves, one after the other over many pairs, so that the lanes stay together: a sphere around A against a sphere
    and a box around B; spheres that cover A against that box; the exact search, for which the lanes share what is left.
    Before the first, the lanes of a motion share out its pairs and drop those that are too far apart for all of them.
    """
    X, tau, speed, sieve = S.X, S.tau, S.speed, S.sieve
    moving, obstacles = I[MOVING], I[OBSTACLES]
    balls = 12 * I[FRAMES]
    tau[lane] = want if active else COLLIDES
    if active:
        place(q, F, I, X)
    spread = gather(active, at, want, F, I, S, lane)
    count, waiting = 0, 0
    for row in range(moving + 1):
        s = moving - 1 - row  # the hand first: it is likelier to collide than the shoulder
        n = obstacles if s >= 0 else I[PAIRS]
        for first in range(0, max(n, 1), RUN):
            last = min(first + RUN, n)
            matter = ALL if spread < ZERO else vote_lanes(first + lane < last and may_meet(s, first + lane, spread, F, I, S))
            reach = tau[lane]
            if reach >= ZERO:
                if s >= 0:
                    A = balls + 3 * s
                    ax, ay, az = X[A], X[A + 1], X[A + 2]
                    around = ball_radius(s, F, I) + reach * speed[s]
                    for o in range(first, last):
                        if matter >> (o - first) & 1:
                            B = I[BALLS] + 4 * o
                            x, y, z, away = F[B] - ax, F[B + 1] - ay, F[B + 2] - az, F[B + 3] + around
                            if x * x + y * y + z * z <= away * away and distance_to_obstacle(o, ax, ay, az, F, I) <= around:
                                sieve[count] = s * obstacles + o
                                count += 1
                else:
                    for p in range(first, last):
                        if matter >> (p - first) & 1:
                            i, j = I[I[PAIR_INTS] + 2 * p], I[I[PAIR_INTS] + 2 * p + 1]
                            A, B = balls + 3 * i, balls + 3 * j
                            x, y, z = X[B] - X[A], X[B + 1] - X[A + 1], X[B + 2] - X[A + 2]
                            away = reach * speed[moving + p] + ball_radius(i, F, I) + ball_radius(j, F, I)
                            if x * x + y * y + z * z <= away * away:
                                sieve[count] = moving * obstacles + p
                                count += 1
            done = s < 0 and last == n
            if done or any_lane(count > SIEVE - RUN):
                waiting = settle(count, waiting, done, want, stop and active, F, I, S, lane)
                count = 0
                if stop and any_lane(active and tau[lane] < ZERO):
                    return tau[lane]
    return tau[lane]


@njit
def gather(active, at, want, F, I, S, lane):
    """Share the ball centres of the lane in the middle; -> how far on the motion any lane looks from there, or UNRELATED."""
    if lane_count() == 1:
        return UNRELATED
    _, others = rank_lanes(active)
    middle = others // 2
    place_there = from_lane(at, middle)
    far = greatest_lane(abs(at - place_there) + want if active else ZERO)
    if lane == middle:
        for k in range(3 * I[SHAPES]):
            S.speed[I[MOVING] + I[PAIRS] + k] = S.X[12 * I[FRAMES] + k]
    sync_lanes()
    return UNRELATED if any_lane(active and at < ZERO) else far


@njit
def may_meet(s, k, spread, F, I, S):
    """Can shape s and obstacle k (or, where s < 0, the shapes of self pair k) be near each other within `spread` of the place on
    the motion whose ball centres `gather` shared?"""
    C, moving = I[MOVING] + I[PAIRS], I[MOVING]
    if s >= 0:
        A, B = C + 3 * s, I[BALLS] + 4 * k
        ax, ay, az = S.speed[A], S.speed[A + 1], S.speed[A + 2]
        around = ball_radius(s, F, I) + spread * S.speed[s] + SURE
        x, y, z, away = F[B] - ax, F[B + 1] - ay, F[B + 2] - az, F[B + 3] + around
        return x * x + y * y + z * z <= away * away and distance_to_obstacle(k, ax, ay, az, F, I) <= around
    i, j = I[I[PAIR_INTS] + 2 * k], I[I[PAIR_INTS] + 2 * k + 1]
    A, B = C + 3 * i, C + 3 * j
    x, y, z = S.speed[B] - S.speed[A], S.speed[B + 1] - S.speed[A + 1], S.speed[B + 2] - S.speed[A + 2]
    away = spread * S.speed[moving + k] + ball_radius(i, F, I) + ball_radius(j, F, I) + SURE
    return x * x + y * y + z * z <= away * away


@njit
def ball_radius(s, F, I):
    """Radius of the coarse sphere of one of the robot's shapes."""
    return F[I[I[SHAPE_INTS] + s * SHAPE_INT_STRIDE + FLOATS] + SPHERES + 3]


@njit
def settle(count, waiting, done, want, ends, F, I, S, lane):
    """The second sieve over the `count` pairs that this lane found near; the exact search whenever there is a pair for
    every lane, and at the end when nothing else is to come (done). -> how many pairs still wait for the search."""
    X, tau, speed, items, codes, lanes = S.X, S.tau, S.speed, S.items, S.codes, lane_count()
    k = 0
    while True:
        near = any_lane(k < count)
        if near:
            keep, code = False, 0
            T = identity()
            if k < count and tau[lane] >= ZERO:
                code = int(S.sieve[k])
                a, b, i = pair(code, F, I)
                T = relative_pose(a, b, F, I, X)
                bound = bounding_distance(F, I, a, b, T)
                if bound < ZERO:
                    tau[lane] = COLLIDES
                elif bound == ZERO or bound < HALF_F * want * speed[i]:
                    keep = bound <= tau[lane] * speed[i]
                elif bound < tau[lane] * speed[i]:
                    tau[lane] = bound / speed[i]
            rank, total = rank_lanes(keep)
            if keep:
                slot = waiting + rank
                for j in range(ITEM):
                    items[2 * lanes * j + slot] = T[j]
                codes[slot], codes[2 * lanes + slot] = code, lane
            waiting += total
            k += 1
        elif not (done and waiting > 0):
            return waiting
        if not near or waiting >= lanes:
            waiting = search(waiting, F, I, S, lane)
        if any_lane(ends and tau[lane] < ZERO):  # nobody will ask for the rest
            return waiting


@njit
def search(waiting, F, I, S, lane):
    """The exact search for the last of the waiting pairs, one a lane; -> how many are left."""
    tau, speed, items, codes = S.tau, S.speed, S.items, S.codes
    lanes = lane_count()
    slot = waiting - 1 - lane
    sync_lanes()
    if slot >= 0:
        owner = int(codes[2 * lanes + slot])
        reach = tau[owner]
        if reach >= ZERO:
            T = (items[slot], items[2 * lanes + slot], items[4 * lanes + slot], items[6 * lanes + slot], items[8 * lanes + slot],
                 items[10 * lanes + slot], items[12 * lanes + slot], items[14 * lanes + slot], items[16 * lanes + slot],
                 items[18 * lanes + slot], items[20 * lanes + slot], items[22 * lanes + slot])
            a, b, i = pair(int(codes[slot]), F, I)
            margin = reach * speed[i]
            distance = exact_distance(F, I, a, b, T, margin)
            if distance < ZERO:
                lower(tau, owner, COLLIDES)
            elif distance < margin:
                lower(tau, owner, distance / speed[i])
    sync_lanes()
    return max(waiting - lanes, 0)


@njit
def identity():
    return (ONE, ZERO, ZERO, ZERO, ONE, ZERO, ZERO, ZERO, ONE, ZERO, ZERO, ZERO)


@njit
def pair_distance(code, F, I, S, margin):
    """CPU only, after `place`: lower bound of the distance of a pair in its skins, or COLLIDES; tight below `margin`."""
    a, b, _ = pair(code, F, I)
    T = relative_pose(a, b, F, I, S.X)
    bound = bounding_distance(F, I, a, b, T)
    return bound if bound < ZERO or bound > margin else exact_distance(F, I, a, b, T, margin)


@njit
def speeds(qa, qb, F, I, speed, lane):
    """Fill `speed` for the straight motion qa -> qb over the parameter 0..1; -> the greatest speed, metres."""
    dof, greatest = I[DOF], ZERO
    for s in range(lane, I[MOVING] + I[PAIRS], lane_count()):
        v = ZERO
        for k in range(dof):
            v += F[I[REACH] + s * dof + k] * abs(qb[k] - qa[k])
        speed[s] = v
        greatest = max(greatest, v)
    sync_lanes()
    return greatest_lane(greatest)


@njit
def interpolate(qa, qb, t, q):
    for k in range(len(qa)):
        q[k] = qa[k] + t * (qb[k] - qa[k])


@njit
def motion_parts(qa, qb, mode, step, greatest):
    """Into how many equal parts a sampled motion is cut, for the modes of MotionCheck; `greatest` as `speeds` returns."""
    if mode == COUNT:
        return max(int(step), 1)
    length = greatest
    if mode == JOINT:
        length = ZERO
        for k in range(len(qa)):
            length += (qb[k] - qa[k]) * (qb[k] - qa[k])
        length = math.sqrt(length)
    return max(int(math.ceil(length / step)), 1)


@njit
def verdict(active, q, F, I, S, lane):
    """space.FREE, NOT_FREE or NOT_FINITE: a plain check, for one configuration a lane. `S.speed` must be zero."""
    is_free = certify(active, q, UNRELATED, ZERO, False, F, I, S, lane) >= ZERO
    if not space.finite(q):
        return space.NOT_FINITE
    return space.FREE if is_free and in_ranges(q, F, I) else space.NOT_FREE


@njit
def in_ranges(q, F, I):
    """Is each joint's value where the bounds hold (reach.joint_ranges)? False for NaN."""
    dof = I[DOF]
    for k in range(dof):
        if not F[I[RANGES] + k] <= q[k] <= F[I[RANGES] + dof + k]:
            return False
    return True


@njit
def clear_speeds(I, speed, lane):
    """For plain checks."""
    for s in range(lane, I[MOVING] + I[PAIRS], lane_count()):
        speed[s] = ZERO
    sync_lanes()


@njit
def motion_valid(qa, qb, mode, step, F, I, S, lane):
    """Is the straight motion qa -> qb, (dof,) float32, free, by the check (mode, step) of MotionCheck? Not outside of `in_ranges`.

    Continuous: True only with a proof that it is free all along. It is cut into as many parts as there are lanes, each
    checked at its middle, the last one at the motion's end; what the clearance there does not cover waits as one or two
    smaller parts. Motions that keep less than step / 2 metres are refused, and some that keep less than step, since the
    sieves' distances are lower bounds.
    Sampled: the parts + 1 equally spaced configurations are checked, coarse ones first.
    """
    if not (in_ranges(qa, F, I) and in_ranges(qb, F, I)):
        return False
    lanes, waiting = lane_count(), S.waiting
    greatest = speeds(qa, qb, F, I, S.speed, lane)
    sampled = mode != CONTINUOUS
    shortest = step / max(greatest, np.float32(1e-12))
    half = ONE / np.float32(2 * lanes - 1)
    middle = ONE - TWO * half * np.float32(lane)
    active, head, count = True, 0, 0
    parts, stride, first, apart = 1, 1, 0, 1
    if sampled:
        parts = motion_parts(qa, qb, mode, step, greatest)
        while stride * 2 * lanes <= parts:
            stride *= 2
        apart = stride
    while True:
        if sampled:
            k = first + lane * apart
            active = k <= parts
            middle = np.float32(min(k, parts)) / np.float32(parts)
        interpolate(qa, qb, middle, S.q)
        want = ZERO if sampled else max(half, shortest)  # a smaller question would get a coarser answer
        tau = certify(active, S.q, middle, want, True, F, I, S, lane)
        if any_lane(active and tau < ZERO):
            return False
        sync_lanes()
        if sampled:
            first += apart * lanes
            if first > parts:
                if stride == 1:
                    return True
                stride //= 2
                first, apart = stride, 2 * stride
            continue
        split = active and tau < half
        if any_lane(split and tau < HALF_F * shortest):
            return False
        for side in range(2):
            more = split and (side == 0 or middle + tau < ONE)
            rank, total = rank_lanes(more)
            if count + total > QUEUE:
                return False
            if more:
                at = 2 * ((head + count + rank) % QUEUE)
                waiting[at] = middle - half if side == 0 else middle + tau
                waiting[at + 1] = middle - tau if side == 0 else min(middle + half, ONE)
            count += total
        if count == 0:
            return True
        sync_lanes()
        # the widest parts first find collisions early; with the queue half full, the newest ones keep it bounded
        taken = min(count, lanes)
        oldest = count < QUEUE // 2
        active = lane < taken
        if active:
            at = 2 * ((head + lane if oldest else head + count - taken + lane) % QUEUE)
            half = HALF_F * (waiting[at + 1] - waiting[at])
            middle = waiting[at] + half
        if oldest:
            head = (head + taken) % QUEUE
        count -= taken


space.register(ArmScratch, "cpu", motion_valid)
