"""Do two convex shapes meet, and if not, how far apart are they at least?

Chung and Wang (VRST 1996, as used in [DL14] section 2.4) look for a separating vector S: with a the point of A
farthest along S and b the point of B farthest against it, S separates when S.(b - a) > 0; otherwise S is
reflected about r = b - a and tried again. It settles nearly every pair at once, but near contact it can wander:
after CHUNG_WANG_STEPS the distance algorithm of Gilbert, Johnson and Keerthi (1988) decides, on the same support
functions. Its simplex is in float64: in float32 the direction to a thin simplex a millimetre away is off by enough
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
from .packing import EDGES, FLOATS, HALF, KIND, TABLE, TABLE_CELLS, VERTEX_COUNT, VERTICES
from .shapes import ShapeKind

CHUNG_WANG_STEPS = 4
GJK_STEPS = 40
SIMPLEX_SCRATCH = 16  # float64 scratch of `separation`: four points and the closest one

BOX, CYLINDER, SPHERE = int(ShapeKind.BOX), int(ShapeKind.CYLINDER), int(ShapeKind.SPHERE)
ZERO, HALF_, ONE, TWO = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(2.0)
MEET = np.float32(-1.0)
ROUNDING = np.float32(2e-6)  # metres: a smaller gap is not trusted in float32
GOOD_BOUND = np.float32(0.8)  # a lower bound this close to the distance is not refined
CELLS = np.float32(TABLE_CELLS / 2)


@njit
def table_cell(x, y, z):
    """Cell of the direction table that the direction (x, y, z) falls into."""
    ax, ay, az = abs(x), abs(y), abs(z)
    if ax >= ay and ax >= az:
        face, major, u, v = 0 if x > ZERO else 1, ax, y, z
    elif ay >= az:
        face, major, u, v = 2 if y > ZERO else 3, ay, z, x
    else:
        face, major, u, v = 4 if z > ZERO else 5, az, x, y
    scale = CELLS / max(major, np.float32(1e-30))
    i = min(int(u * scale + CELLS), TABLE_CELLS - 1)
    j = min(int(v * scale + CELLS), TABLE_CELLS - 1)
    return (face * TABLE_CELLS + i) * TABLE_CELLS + j


@njit
def polytope_support(F, I, s, x, y, z):
    """Vertex of a polytope farthest along (x, y, z): climb the edge graph from the direction table's vertex."""
    n = I[s + VERTEX_COUNT]
    at = I[s + VERTICES]
    table = I[s + TABLE]
    if table < 0:
        px, py, pz = F[at], F[at + 1], F[at + 2]
        best = px * x + py * y + pz * z
        for k in range(1, n):
            at += 3
            value = F[at] * x + F[at + 1] * y + F[at + 2] * z
            if value > best:
                best, px, py, pz = value, F[at], F[at + 1], F[at + 2]
        return px, py, pz
    vertex = I[table + table_cell(x, y, z)]
    at += 3 * vertex
    px, py, pz = F[at], F[at + 1], F[at + 2]
    best = px * x + py * y + pz * z
    edges = I[s + EDGES]
    for step in range(n):  # every step climbs, so n bounds them
        upper = vertex
        for e in range(I[edges + vertex], I[edges + vertex + 1], 4):
            value = F[e] * x + F[e + 1] * y + F[e + 2] * z
            if value > best:
                best, px, py, pz = value, F[e], F[e + 1], F[e + 2]
                upper = int(F[e + 3])
        if upper == vertex:
            break
        vertex = upper
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
def separation(F, I, a, b, T, x, y, z, margin, W):
    """Lower bound of the distance of A and B in metres, or MEET.

    T: pose of A in B's frame (12 scalars); (x, y, z): any first guess of a direction from A to B, in B's frame;
    margin: the search stops at the first bound above it; W: (SIMPLEX_SCRATCH,) float64 scratch.
    A bound below `margin` is within GOOD_BOUND of the true distance, or below float32's resolution.
    """
    length = math.sqrt(x * x + y * y + z * z)
    if length > np.float32(1e-12):
        x, y, z = x / length, y / length, z / length
    else:
        x, y, z = ZERO, ZERO, ONE
    enough = margin + ROUNDING
    best = ZERO
    rx, ry, rz = x, y, z
    for step in range(CHUNG_WANG_STEPS):
        rx, ry, rz = support_difference(F, I, a, b, T, x, y, z)
        gap = x * rx + y * ry + z * rz
        best = max(best, gap)
        if best > enough:
            return best
        squared = rx * rx + ry * ry + rz * rz
        if gap > ZERO or squared < ROUNDING * ROUNDING:  # apart but closer than the margin, or touching
            break
        factor = TWO * gap / squared
        x, y, z = x - factor * rx, y - factor * ry, z - factor * rz
        inverse = ONE / math.sqrt(x * x + y * y + z * z)
        x, y, z = x * inverse, y * inverse, z * inverse
    return closest(F, I, a, b, T, rx, ry, rz, best, enough, W)


@njit
def closest(F, I, a, b, T, rx, ry, rz, best, enough, W):
    """The Gilbert-Johnson-Keerthi iteration from the difference point r; arguments and answer as `separation`."""
    W[0], W[1], W[2] = rx, ry, rz
    W[12], W[13], W[14] = rx, ry, rz
    n = 1
    for _ in range(GJK_STEPS):
        distance = math.sqrt(W[12] * W[12] + W[13] * W[13] + W[14] * W[14])
        if distance < ROUNDING:
            return MEET
        x, y, z = np.float32(W[12] / distance), np.float32(W[13] / distance), np.float32(W[14] / distance)
        rx, ry, rz = support_difference(F, I, a, b, T, x, y, z)
        gap = x * rx + y * ry + z * rz
        best = max(best, gap)
        if best > enough or best > GOOD_BOUND * distance:
            break
        if distance - gap < ROUNDING * HALF_:  # no closer point is left
            break
        W[3 * n], W[3 * n + 1], W[3 * n + 2] = rx, ry, rz
        n = reduce_simplex(W, n + 1)
        if n == 4:  # the origin is inside
            return MEET
    return best if best > ROUNDING else MEET


@njit
def reduce_simplex(W, n):
    """Keep of the n points in W those whose hull holds the point closest to the origin, written to W[12:15].

    -> how many are left; 4 when the origin is inside the tetrahedron.
    """
    if n == 2:
        return closest_on_segment(W)
    if n == 3:
        return closest_on_triangle(W, 0, 3, 6)
    return closest_in_tetrahedron(W)


@njit
def closest_on_segment(W):
    dx, dy, dz = W[3] - W[0], W[4] - W[1], W[5] - W[2]
    squared = dx * dx + dy * dy + dz * dz
    t = -(W[0] * dx + W[1] * dy + W[2] * dz)
    if t <= ZERO or squared <= ZERO:
        return keep_one(W, 0)
    if t >= squared:
        return keep_one(W, 3)
    t /= squared
    W[12], W[13], W[14] = W[0] + t * dx, W[1] + t * dy, W[2] + t * dz
    return 2


@njit
def keep_one(W, i):
    x, y, z = W[i], W[i + 1], W[i + 2]
    W[0], W[1], W[2] = x, y, z
    W[12], W[13], W[14] = x, y, z
    return 1


@njit
def keep_two(W, i, j, t):
    """Keep points at i and j; the closest one lies at the fraction t from i to j."""
    ix, iy, iz, jx, jy, jz = W[i], W[i + 1], W[i + 2], W[j], W[j + 1], W[j + 2]
    W[0], W[1], W[2], W[3], W[4], W[5] = ix, iy, iz, jx, jy, jz
    W[12], W[13], W[14] = ix + t * (jx - ix), iy + t * (jy - iy), iz + t * (jz - iz)
    return 2


@njit
def closest_on_triangle(W, i, j, k):
    """By Voronoi regions (Ericson, Real-Time Collision Detection, 5.1.5), the query point being the origin."""
    ax, ay, az, bx, by, bz, cx, cy, cz = W[i], W[i + 1], W[i + 2], W[j], W[j + 1], W[j + 2], W[k], W[k + 1], W[k + 2]
    ux, uy, uz, vx, vy, vz = bx - ax, by - ay, bz - az, cx - ax, cy - ay, cz - az
    d1, d2 = -(ux * ax + uy * ay + uz * az), -(vx * ax + vy * ay + vz * az)
    if d1 <= ZERO and d2 <= ZERO:
        return keep_one(W, i)
    d3, d4 = -(ux * bx + uy * by + uz * bz), -(vx * bx + vy * by + vz * bz)
    if d3 >= ZERO and d4 <= d3:
        return keep_one(W, j)
    wc = d1 * d4 - d3 * d2
    if wc <= ZERO and d1 >= ZERO and d3 <= ZERO:
        return keep_two(W, i, j, d1 / max(d1 - d3, np.float32(1e-30)))
    d5, d6 = -(ux * cx + uy * cy + uz * cz), -(vx * cx + vy * cy + vz * cz)
    if d6 >= ZERO and d5 <= d6:
        return keep_one(W, k)
    wb = d5 * d2 - d1 * d6
    if wb <= ZERO and d2 >= ZERO and d6 <= ZERO:
        return keep_two(W, i, k, d2 / max(d2 - d6, np.float32(1e-30)))
    wa = d3 * d6 - d5 * d4
    if wa <= ZERO and d4 - d3 >= ZERO and d5 - d6 >= ZERO:
        return keep_two(W, j, k, (d4 - d3) / max((d4 - d3) + (d5 - d6), np.float32(1e-30)))
    scale = ONE / (wa + wb + wc)
    v, w = wb * scale, wc * scale
    W[0], W[1], W[2], W[3], W[4], W[5], W[6], W[7], W[8] = ax, ay, az, bx, by, bz, cx, cy, cz
    W[12], W[13], W[14] = ax + v * ux + w * vx, ay + v * uy + w * vy, az + v * uz + w * vz
    return 3


@njit
def face_sees_origin(W, i, j, k, l):
    """Is the origin on the far side of the face i j k, as seen from the fourth point l (or the face degenerate)?"""
    ux, uy, uz = W[j] - W[i], W[j + 1] - W[i + 1], W[j + 2] - W[i + 2]
    vx, vy, vz = W[k] - W[i], W[k + 1] - W[i + 1], W[k + 2] - W[i + 2]
    nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    of_origin = -(nx * W[i] + ny * W[i + 1] + nz * W[i + 2])
    of_fourth = nx * (W[l] - W[i]) + ny * (W[l + 1] - W[i + 1]) + nz * (W[l + 2] - W[i + 2])
    return of_origin * of_fourth <= ZERO


@njit
def squared_distance_to_triangle(W, i, j, k):
    """Squared distance of the origin from the triangle, leaving W as it was but for W[12:15]."""
    s0, s1, s2, s3, s4, s5, s6, s7, s8 = W[0], W[1], W[2], W[3], W[4], W[5], W[6], W[7], W[8]
    closest_on_triangle(W, i, j, k)
    W[0], W[1], W[2], W[3], W[4], W[5], W[6], W[7], W[8] = s0, s1, s2, s3, s4, s5, s6, s7, s8
    return W[12] * W[12] + W[13] * W[13] + W[14] * W[14]


@njit
def closest_in_tetrahedron(W):
    best, bi, bj, bk = np.float32(1e30), -1, 0, 0
    for face in range(4):
        if face == 0:
            i, j, k, l = 0, 3, 6, 9
        elif face == 1:
            i, j, k, l = 0, 3, 9, 6
        elif face == 2:
            i, j, k, l = 0, 6, 9, 3
        else:
            i, j, k, l = 3, 6, 9, 0
        if face_sees_origin(W, i, j, k, l):
            squared = squared_distance_to_triangle(W, i, j, k)
            if squared < best:
                best, bi, bj, bk = squared, i, j, k
    if bi < 0:
        return 4
    return closest_on_triangle(W, bi, bj, bk)
