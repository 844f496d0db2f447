"""Do two convex shapes meet, and if not, how far apart are they at least?

Chung and Wang (VRST 1996, as used in [DL14] section 2.4) look for a separating vector S: with a the point of A
farthest along S and b the point of B farthest against it, S separates when S.(b - a) > 0; otherwise S is
reflected about r = b - a and tried again. It settles nearly every pair at once, but near contact it can wander:
after CHUNG_WANG_STEPS the distance algorithm of Gilbert, Johnson and Keerthi (1988) decides, on the same support
functions. Its simplex is in float64 and in registers: in float32 the direction to a thin simplex a millimetre away is off by enough
to miss the separation. Where even that is undecided the answer is "they meet".

Departure from [DL14]: the separation S.(b - a) of a unit vector is a lower bound of the distance; it is
returned, so that motions can be certified between checks.

Everything here is plain numba without allocation and runs on the CPU and in CUDA kernels alike. A shape is
(F, I, s): the packed buffers of `packing.py` and the offset of its record in I. Relative poses travel as 12
scalars: rotation by rows, then translation, of A in B's frame.
"""

import math

import numpy as np

from ..device import njit
from .packing import CANDIDATES, COUNT_BITS, FLOATS, HALF, KIND, SKIN, TABLE, VERTEX_COUNT, VERTICES
from .shapes import ShapeKind
from .support_table import CELLS

CHUNG_WANG_STEPS = 4
GJK_STEPS = 40

POLYTOPE, BOX, CYLINDER, SPHERE = (int(kind) for kind in ShapeKind)
ZERO, HALF_, ONE, TWO = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(2.0)
ZERO_, ONE_, TINY, FAR_ = 0.0, 1.0, 1e-30, 1e30  # float64, for the simplex
MEET = np.float32(-1.0)
ROUNDING = np.float32(2e-6)  # metres: a smaller gap is not trusted in float32
GOOD_BOUND = np.float32(0.8)  # a lower bound this close to the distance is not refined
HALF_CELLS = np.float32(CELLS / 2)
COUNT_MASK = (1 << COUNT_BITS) - 1


@njit
def table_cell(x, y, z):
    """Cell of the support table that the direction (x, y, z) falls into."""
    ax, ay, az = abs(x), abs(y), abs(z)
    if ax >= ay and ax >= az:
        face, major, u, v = 0 if x > ZERO else 1, ax, y, z
    elif ay >= az:
        face, major, u, v = 2 if y > ZERO else 3, ay, z, x
    else:
        face, major, u, v = 4 if z > ZERO else 5, az, x, y
    scale = HALF_CELLS / max(major, np.float32(1e-30))
    i = min(int(u * scale + HALF_CELLS), CELLS - 1)
    j = min(int(v * scale + HALF_CELLS), CELLS - 1)
    return (face * CELLS + i) * CELLS + j


@njit
def polytope_support(F, I, s, x, y, z):
    """Vertex of a polytope farthest along (x, y, z): the best of the support table's candidates."""
    at, count, table = I[s + VERTICES], I[s + VERTEX_COUNT], I[s + TABLE]
    if table >= 0:
        entry = I[table + table_cell(x, y, z)]
        at, count = I[s + CANDIDATES] + 3 * (entry >> COUNT_BITS), entry & COUNT_MASK
    px, py, pz = F[at], F[at + 1], F[at + 2]
    best = px * x + py * y + pz * z
    for k in range(1, count):
        at += 3
        value = F[at] * x + F[at + 1] * y + F[at + 2] * z
        if value > best:
            best, px, py, pz = value, F[at], F[at + 1], F[at + 2]
    return px, py, pz


@njit
def support(F, I, s, x, y, z):
    """Point of a shape farthest along the unit direction (x, y, z), all in the shape's frame."""
    kind = I[s + KIND]
    h = I[s + FLOATS] + HALF
    if kind == BOX:
        return math.copysign(F[h], x), math.copysign(F[h + 1], y), math.copysign(F[h + 2], z)
    if kind == CYLINDER:
        across = math.sqrt(x * x + y * y)
        scale = F[h] / across if across > np.float32(1e-9) else ZERO
        return x * scale, y * scale, math.copysign(F[h + 2], z)
    if kind == SPHERE:
        return x * F[h], y * F[h], z * F[h]
    return polytope_support(F, I, s, x, y, z)


@njit
def support_difference(F, I, a, b, T, x, y, z):
    """b - a for the point a of A farthest along S and b of B farthest against it; S = (x, y, z) unit, in B's frame."""
    ax, ay, az = support(F, I, a, T[0] * x + T[3] * y + T[6] * z, T[1] * x + T[4] * y + T[7] * z, T[2] * x + T[5] * y + T[8] * z)
    bx, by, bz = support(F, I, b, -x, -y, -z)
    return (bx - (T[0] * ax + T[1] * ay + T[2] * az + T[9]),
            by - (T[3] * ax + T[4] * ay + T[5] * az + T[10]),
            bz - (T[6] * ax + T[7] * ay + T[8] * az + T[11]))


@njit
def separation(F, I, a, b, T, x, y, z, margin):
    """Lower bound of the distance of A and B in their skins, in metres, or MEET.

    T: pose of A in B's frame (12 scalars); (x, y, z): any first guess of a direction from A to B, in B's frame;
    margin: the search stops at the first bound above it.
    A bound below `margin` is within GOOD_BOUND of the true distance, or below float32's resolution.
    """
    skins = F[I[a + FLOATS] + SKIN] + F[I[b + FLOATS] + SKIN]
    length = math.sqrt(x * x + y * y + z * z)
    if length > np.float32(1e-12):
        x, y, z = x / length, y / length, z / length
    else:
        x, y, z = ZERO, ZERO, ONE
    enough = margin + ROUNDING
    best = ZERO
    # the simplex of Gilbert, Johnson and Keerthi: n of the points p0 to p2, and v, the point of their hull closest to the origin
    n = 0
    p0 = p1 = p2 = v = (ZERO_, ZERO_, ZERO_)
    for step in range(CHUNG_WANG_STEPS + GJK_STEPS):
        rx, ry, rz = support_difference(F, I, a, b, T, x, y, z)
        gap = x * rx + y * ry + z * rz
        best = max(best, gap - skins)
        if best > enough:
            return best
        if n == 0:
            squared = rx * rx + ry * ry + rz * rz
            if gap <= ZERO and squared >= ROUNDING * ROUNDING and step < CHUNG_WANG_STEPS:
                factor = TWO * gap / squared
                x, y, z = x - factor * rx, y - factor * ry, z - factor * rz
                inverse = ONE / math.sqrt(x * x + y * y + z * z)
                x, y, z = x * inverse, y * inverse, z * inverse
                continue
            n, p0 = 1, (np.float64(rx), np.float64(ry), np.float64(rz))  # apart but closer than the margin, touching, or unclear
            v = p0
        else:
            distance = math.sqrt(dot(v, v))
            if best > GOOD_BOUND * (distance - skins) or distance - gap < ROUNDING * HALF_:  # good enough, or no closer point is left
                break
            r = (np.float64(rx), np.float64(ry), np.float64(rz))
            if n == 1:
                n, p0, p1, v = closest_on_segment(r, p0)
            elif n == 2:
                n, p0, p1, p2, v = closest_on_triangle(r, p0, p1)
            else:
                n, p0, p1, p2, v = closest_on_tetrahedron(r, p0, p1, p2)
                if n == 4:  # the origin is inside
                    return MEET
        distance = math.sqrt(dot(v, v))
        if distance < skins + ROUNDING:
            return MEET
        x, y, z = np.float32(v[0] / distance), np.float32(v[1] / distance), np.float32(v[2] / distance)
    return best if best > ROUNDING else MEET


@njit
def dot(u, v):
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]


@njit
def minus(u, v):
    return (u[0] - v[0], u[1] - v[1], u[2] - v[2])


@njit
def along(p, u, t):
    """p + t u"""
    return (p[0] + t * u[0], p[1] + t * u[1], p[2] + t * u[2])


@njit
def closest_on_segment(a, b):
    """-> how many of the two points hold the one closest to the origin, these, and the closest point."""
    ab = minus(b, a)
    t, squared = -dot(a, ab), dot(ab, ab)
    if t <= ZERO or squared <= ZERO:
        return 1, a, a, a
    if t >= squared:
        return 1, b, b, b
    return 2, a, b, along(a, ab, t / squared)


@njit
def closest_on_triangle(a, b, c):
    """The same for three points, by Voronoi regions (Ericson, Real-Time Collision Detection, 5.1.5)."""
    ab, ac = minus(b, a), minus(c, a)
    d1, d2 = -dot(ab, a), -dot(ac, a)
    if d1 <= ZERO and d2 <= ZERO:
        return 1, a, a, a, a
    d3, d4 = -dot(ab, b), -dot(ac, b)
    if d3 >= ZERO and d4 <= d3:
        return 1, b, b, b, b
    wc = d1 * d4 - d3 * d2
    if wc <= ZERO and d1 >= ZERO and d3 <= ZERO:
        return 2, a, b, b, along(a, ab, d1 / max(d1 - d3, TINY))
    d5, d6 = -dot(ab, c), -dot(ac, c)
    if d6 >= ZERO and d5 <= d6:
        return 1, c, c, c, c
    wb = d5 * d2 - d1 * d6
    if wb <= ZERO and d2 >= ZERO and d6 <= ZERO:
        return 2, a, c, c, along(a, ac, d2 / max(d2 - d6, TINY))
    wa = d3 * d6 - d5 * d4
    if wa <= ZERO and d4 - d3 >= ZERO and d5 - d6 >= ZERO:
        return 2, b, c, c, along(b, minus(c, b), (d4 - d3) / max((d4 - d3) + (d5 - d6), TINY))
    scale = ONE_ / (wa + wb + wc)
    return 3, a, b, c, along(along(a, ab, wb * scale), ac, wc * scale)


@njit
def face_sees_origin(a, b, c, d):
    """Is the origin on the far side of the face a b c, as seen from d (or the face degenerate)?"""
    u, v = minus(b, a), minus(c, a)
    normal = (u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0])
    return -dot(normal, a) * dot(normal, minus(d, a)) <= ZERO


@njit
def closest_on_tetrahedron(a, b, c, d):
    """The same for four points; 4 when the origin is inside."""
    best, n, p, q, r, v = FAR_, 4, a, b, c, a
    for face in range(4):
        if face_sees_origin(a, b, c, d):
            m, i, j, k, w = closest_on_triangle(a, b, c)
            squared = dot(w, w)
            if squared < best:
                best, n, p, q, r, v = squared, m, i, j, k, w
        a, b, c, d = b, c, d, a
    return n, p, q, r, v
