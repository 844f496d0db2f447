"""Is a configuration, or a whole motion, free? The mathematics shared by the CPU and the CUDA kernels.

`certify` answers for one configuration and, beyond yes or no, for how large a part of a motion around it the
answer holds: each pair of shapes has a clearance and a bound on how fast it can close (packing._reach), so no
collision can happen before clearance / speed. `motion_valid` bisects a motion with that until it is covered:
the adaptive checking of Schwarzer, Saha and Latombe (IEEE T-RO 2005), with the bounds of `convex.separation`.
The fixed samplings of [DL14] (a joint-space step) and [BKF11] (a fixed count) are modes of the same function.

Scratch is passed in, since kernels cannot allocate: `X` float32 (see `place`, then the pairs in the sieve), `W`
float64 (see convex).
"""

import math

import numpy as np

from ..device import njit
from .convex import CYLINDER, ONE, SIMPLEX_SCRATCH, SPHERE, ZERO, separation
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
    REACH,
    SHAPE_INT_STRIDE,
    SHAPE_INTS,
    SHAPES,
    SPHERES,
    ZEROS,
)

CONTINUOUS, WORKSPACE, JOINT, COUNT = 0, 1, 2, 3  # the modes of MotionCheck
QUEUE = 256  # intervals of a motion that wait for a check
FAR = np.float32(1e30)
SIEVE = 64  # pairs that pass a sieve together
COLLIDES = np.float32(-1.0)
HALF_F = np.float32(0.5)


@njit
def place(q, F, I, X):
    """Forward kinematics (Craig's modified DH) into X: poses of all frames, then of all shapes, 12 scalars each,
    then the coarse sphere of each shape in the world, 4 scalars."""
    n_frames = I[FRAMES]
    balls = 12 * (n_frames + I[SHAPES])
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
        T = load(F, I[record + FLOATS])
        if I[record + FRAME] >= 0:
            T = compose(load(X, I[record + FRAME] * 12), T)
        store(X, (n_frames + s) * 12, T)
        c = I[record + FLOATS] + SPHERES
        x, y, z, ball = F[c], F[c + 1], F[c + 2], balls + 4 * s
        X[ball] = T[0] * x + T[1] * y + T[2] * z + T[9]
        X[ball + 1] = T[3] * x + T[4] * y + T[5] * z + T[10]
        X[ball + 2] = T[6] * x + T[7] * y + T[8] * z + T[11]
        X[ball + 3] = F[c + 3]


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
def pose_of_obstacle(o, F, I):
    return load(F, I[I[OBSTACLE_INTS] + o * SHAPE_INT_STRIDE + FLOATS])


@njit
def pair(code, F, I, X):
    """A pair of shapes by its number: moving shape x obstacle first, then self pairs.

    -> records a and b, pose of A in B's frame, and which entry of `speed` is the pair's.
    """
    obstacles, first = I[OBSTACLES], 12 * I[FRAMES]
    p = code - I[MOVING] * obstacles
    if p < 0:
        i, o = code // obstacles, code % obstacles
        b = I[OBSTACLE_INTS] + o * SHAPE_INT_STRIDE
        TB = pose_of_obstacle(o, F, I)
        v = i
    else:
        i, j = I[I[PAIR_INTS] + 2 * p], I[I[PAIR_INTS] + 2 * p + 1]
        b = I[SHAPE_INTS] + j * SHAPE_INT_STRIDE
        TB = load(X, first + 12 * j)
        v = I[MOVING] + p
    return I[SHAPE_INTS] + i * SHAPE_INT_STRIDE, b, relative(TB, load(X, first + 12 * i)), v


@njit
def bounding_distance(F, I, a, b, T):
    """Lower bound of the distance of A and B by A's covering spheres and B's bounding volume; can be negative."""
    kind, h = I[b + KIND], I[b + FLOATS] + HALF
    hx, hy, hz = F[h], F[h + 1], F[h + 2]
    sphere, fine = I[a + FLOATS] + SPHERES, I[a + FINE_SPHERES]
    bound = FAR
    for k in range(max(fine, 1)):
        at = sphere + 4 * (k + 1 if fine > 0 else 0)
        x, y, z = F[at], F[at + 1], F[at + 2]
        bound = min(bound, distance_to_hull(kind, hx, hy, hz, T[0] * x + T[1] * y + T[2] * z + T[9], T[3] * x + T[4] * y + T[5] * z + T[10],
                                            T[6] * x + T[7] * y + T[8] * z + T[11]) - F[at + 3])
    return bound


@njit
def exact_distance(F, I, a, b, T, margin, W):
    """convex.separation with a first separating vector from A's centre to the nearest point of B's box."""
    h = I[b + FLOATS] + HALF
    c = I[a + FLOATS] + SPHERES
    x, y, z = F[c], F[c + 1], F[c + 2]
    cx, cy, cz = T[0] * x + T[1] * y + T[2] * z + T[9], T[3] * x + T[4] * y + T[5] * z + T[10], T[6] * x + T[7] * y + T[8] * z + T[11]
    dx, dy, dz = (min(max(cx, -F[h]), F[h]) - cx, min(max(cy, -F[h + 1]), F[h + 1]) - cy, min(max(cz, -F[h + 2]), F[h + 2]) - cz)
    if dx * dx + dy * dy + dz * dz < np.float32(1e-10):
        dx, dy, dz = -cx, -cy, -cz
    return separation(F, I, a, b, T, dx, dy, dz, margin, W)


@njit
def certify(q, want, speed, F, I, X, W):
    """COLLIDES, or how far (in units of the motion parameter, at most `want`) the configuration q can move and stay free.

    q: (dof,) float32; speed: (moving shapes + self pairs,) float32, metres that each can close per unit of the
    motion parameter (`speeds`). With want = 0 this is a plain collision check.

    Three sieves, one after the other over all pairs, so that the threads of a warp stay together: spheres around
    both; covering spheres against a bounding volume; the exact search.
    """
    place(q, F, I, X)
    tau = want
    moving, obstacles = I[MOVING], I[OBSTACLES]
    balls = 12 * (I[FRAMES] + I[SHAPES])
    sieve = balls + 4 * I[SHAPES]
    s, o, p = moving - 1 if obstacles > 0 else -1, 0, 0  # the hand first: it is likelier to collide than the shoulder
    done = False
    while not done:
        count = 0
        while count < SIEVE:
            if s >= 0:
                A, B = balls + 4 * s, I[BALLS] + 4 * o
                x, y, z = F[B] - X[A], F[B + 1] - X[A + 1], F[B + 2] - X[A + 2]
                away = F[B + 3] + X[A + 3] + tau * speed[s]
                code = s * obstacles + o
                o += 1
                if o == obstacles:
                    o, s = 0, s - 1
            elif p < I[PAIRS]:
                A, B = balls + 4 * I[I[PAIR_INTS] + 2 * p], balls + 4 * I[I[PAIR_INTS] + 2 * p + 1]
                x, y, z = X[B] - X[A], X[B + 1] - X[A + 1], X[B + 2] - X[A + 2]
                away = X[B + 3] + X[A + 3] + tau * speed[moving + p]
                code = moving * obstacles + p
                p += 1
            else:
                done = True
                break
            if x * x + y * y + z * z <= away * away:
                X[sieve + count] = code
                count += 1
        kept = 0
        for k in range(count):
            code = int(X[sieve + k])
            a, b, T, i = pair(code, F, I, X)
            margin = tau * speed[i]
            bound = bounding_distance(F, I, a, b, T)
            if bound <= ZERO or bound < HALF_F * want * speed[i]:
                if bound <= margin:
                    X[sieve + kept] = code
                    kept += 1
            elif bound < margin:
                tau = bound / speed[i]
        for k in range(kept):
            a, b, T, i = pair(int(X[sieve + k]), F, I, X)
            margin = tau * speed[i]
            distance = exact_distance(F, I, a, b, T, margin, W)
            if distance < ZERO:
                return COLLIDES
            if distance < margin:
                tau = distance / speed[i]
    return tau


@njit
def pair_distances(q, F, I, X, W, margin, distances):
    """Lower bound of the distance of every pair, or COLLIDES, into distances; tight below `margin` (convex.separation)."""
    place(q, F, I, X)
    for code in range(len(distances)):
        a, b, T, _ = pair(code, F, I, X)
        bound = bounding_distance(F, I, a, b, T)
        distances[code] = bound if bound > margin else exact_distance(F, I, a, b, T, margin, W)


@njit
def speeds(qa, qb, F, I, speed):
    """Fill `speed` for the straight motion qa -> qb over the parameter 0..1; -> the greatest speed, metres."""
    dof, n = I[DOF], I[MOVING] + I[PAIRS]
    greatest = ZERO
    for s in range(n):
        v = ZERO
        for k in range(dof):
            v += F[I[REACH] + s * dof + k] * abs(qb[k] - qa[k])
        speed[s] = v
        greatest = max(greatest, v)
    return greatest


@njit
def interpolate(qa, qb, t, q):
    for k in range(len(q)):
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
def motion_valid(qa, qb, mode, step, F, I, S):
    """Is the straight motion qa -> qb free, by the check (mode, step) of MotionCheck? S: `make_scratch`."""
    q, speed, queue, X, W = S
    greatest = speeds(qa, qb, F, I, speed)
    if mode == CONTINUOUS:
        return certified_motion(qa, qb, step, greatest, F, I, q, speed, queue, X, W)
    return sampled_motion(qa, qb, motion_parts(qa, qb, mode, step, greatest), F, I, q, X, W)


@njit
def free(q, F, I, X, W):
    """A plain check: nothing of the robot meets anything at q."""
    return certify(q, ZERO, F[I[ZEROS]:], F, I, X, W) >= ZERO


@njit
def poses_size(I):
    """Length of the scratch X of this robot."""
    return 12 * I[FRAMES] + 16 * I[SHAPES] + SIEVE


@njit
def make_scratch(I):
    """CPU only: -> q, speed, queue, X, W for one thread."""
    return (np.empty(I[DOF], dtype=np.float32), np.empty(I[MOVING] + I[PAIRS], dtype=np.float32),
            np.empty(2 * QUEUE, dtype=np.float32), np.empty(poses_size(I), dtype=np.float32), np.empty(SIMPLEX_SCRATCH, dtype=np.float64))


@njit
def certified_motion(qa, qb, tolerance, greatest, F, I, q, speed, queue, X, W):
    """Is the straight motion qa -> qb free all along? True only with a proof: around every checked configuration
    the clearance covers the way to the next. Motions that keep less than about `tolerance` / 2 metres are refused.

    q (dof,), speed, queue (2 * QUEUE,), X, W: float32 scratch.
    """
    interpolate(qa, qb, ONE, q)
    shortest = tolerance / max(greatest, np.float32(1e-12))
    tau = certify(q, max(ONE, shortest), speed, F, I, X, W)
    queue[0], queue[1] = ZERO, ONE - tau
    head, count = 0, 1 if tau < ONE else 0
    if tau < ONE and tau < HALF_F * shortest:
        return False
    while count > 0:
        # the widest interval first finds collisions early; with the queue nearly full, the newest one keeps it bounded
        at = head if count < QUEUE - 32 else (head + count - 1) % QUEUE
        low, high = queue[2 * at], queue[2 * at + 1]
        if at == head:
            head = (head + 1) % QUEUE
        count -= 1
        half = HALF_F * (high - low)
        middle = low + half
        interpolate(qa, qb, middle, q)
        tau = certify(q, max(half, shortest), speed, F, I, X, W)  # a smaller question would get a coarser answer
        if tau < half:
            if tau < HALF_F * shortest:  # in collision, or too close to it
                return False
            for side in range(2):
                place_at = (head + count) % QUEUE
                queue[2 * place_at] = low if side == 0 else middle + tau
                queue[2 * place_at + 1] = middle - tau if side == 0 else high
                count += 1
    return True


@njit
def sampled_motion(qa, qb, parts, F, I, q, X, W):
    """Are the parts + 1 equally spaced configurations from qa to qb free? Coarse ones are looked at first."""
    stride = 1
    while stride * 2 <= parts:
        stride *= 2
    first = True
    while stride > 0:
        start, step = (0, stride) if first else (stride, 2 * stride)
        for k in range(start, parts + 1, step):
            interpolate(qa, qb, np.float32(k) / np.float32(parts), q)
            if not free(q, F, I, X, W):
                return False
        first = False
        stride //= 2
    return True
