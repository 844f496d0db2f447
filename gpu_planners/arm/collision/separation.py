"""Do two convex shapes meet, and if not, how far apart are they at least?

Chung and Wang (VRST 1996, as used in [DL14] section 2.4) look for a separating vector S: with a the point of A
farthest along S and b the point of B farthest against it, S separates when S.(b - a) > 0; otherwise S is
reflected about r = b - a and tried again. It settles nearly every pair at once, but near contact it can wander:
after CHUNG_WANG_STEPS the distance algorithm of Gilbert, Johnson and Keerthi (1988) decides, on the same support
functions. Its simplex is in float64 and in registers: in float32 the direction to a thin simplex a millimetre away is
off by enough to miss the separation. Where even that is undecided the answer is "they meet".

Departure from [DL14]: the separation S.(b - a) of a unit vector is a lower bound of the distance; it is
returned, so that motions can be certified between checks.

Everything here is plain numba without allocation and runs on the CPU and in CUDA kernels alike. A shape is the place
of its record in the scene (`records`); T is the pose of A in B's frame (`poses`).
"""

import math
from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ...parallel.memory import item
from ..geometry.kinds import POLYTOPE, primitive_support
from ..geometry.poses import HALF, ONE, TWO, ZERO, minus, moved, turned_back
from .closing import FOREVER, Closing, horizons
from .records import has_table, polytope_vertices, shape_half, shape_kind, shape_skin, sphere_centre, table_candidates
from .sieves import inner_balls_meet

CHUNG_WANG_STEPS = 4
GJK_STEPS = 40

ZERO_64, ONE_64, TINY, FAR_64 = 0.0, 1.0, 1e-30, 1e30  # for the simplex
MEET = np.float32(-1.0)
ROUNDING = np.float32(2e-6)  # metres: a smaller gap is not trusted in float32
GOOD_BOUND = np.float32(0.8)  # a lower bound this close to the distance is not refined


class Sought(NamedTuple):
    """What a search for a separation may stop at.

    margin: a distance, metres
    back, ahead: for how long the shapes stay apart, of the motion parameter; FOREVER where only the distance counts
    closing: Closing of the pair; not used where only the distance counts
    """

    margin: float
    back: float
    ahead: float
    closing: Closing


class Apart(NamedTuple):
    """distance: lower bound in skins, metres, or MEET; back, ahead: for how long it lasts, where that counts"""

    distance: float
    back: float
    ahead: float


@lean_njit
def distance_sought(margin):
    """-> Sought of a lower bound of a distance: one above `margin`, or one near the distance itself."""
    none = (ZERO, ZERO, ZERO)
    return Sought(margin, FOREVER, FOREVER, Closing(none, none, ZERO, none, ZERO, ZERO, ZERO))


@lean_njit
def exact_separation(a, b, T, sought, scene):
    """`separation`, started in the direction from A's centre to the nearest point of B's box -> Apart"""
    x, y, z = sphere_centre(scene, a, 0)
    cx, cy, cz = moved(T, x, y, z)
    hx, hy, hz = shape_half(scene, b)
    dx, dy, dz = min(max(cx, -hx), hx) - cx, min(max(cy, -hy), hy) - cy, min(max(cz, -hz), hz) - cz
    if dx * dx + dy * dy + dz * dz < np.float32(1e-10):
        dx, dy, dz = -cx, -cy, -cz
    if shape_kind(scene, b) == POLYTOPE and inner_balls_meet(a, b, T, scene):
        return Apart(MEET, ZERO, ZERO)
    return separation(a, b, T, (dx, dy, dz), sought, scene)


@lean_njit
def separation(a, b, T, direction, sought, scene):
    """Are A and B in their skins apart, how far and for how long? -> Apart

    direction: any first guess of a direction from A to B, in B's frame
    sought: the search stops as soon as it has what is Sought
    A smaller distance than the margin is within GOOD_BOUND of the true one, or below float32's resolution.
    """
    # shapes whose distance is less count as meeting
    touch = shape_skin(scene, a) + shape_skin(scene, b) + ROUNDING
    x, y, z = direction
    length = math.sqrt(x * x + y * y + z * z)
    if length > np.float32(1e-12):
        x, y, z = x / length, y / length, z / length
    else:
        x, y, z = ZERO, ZERO, ONE
    best, back, ahead, moving = ZERO, ZERO, ZERO, sought.back < FOREVER
    # the simplex of Gilbert, Johnson and Keerthi: n of the points p0 to p2; v: their hull's point closest to the origin
    n = 0
    p0 = p1 = p2 = v = (ZERO_64, ZERO_64, ZERO_64)
    for step in range(CHUNG_WANG_STEPS + GJK_STEPS):
        rx, ry, rz = support_difference(a, b, T, x, y, z, scene)
        gap = x * rx + y * ry + z * rz
        best = max(best, gap)
        if moving and gap > touch:
            one, other = horizons(gap - touch, (x, y, z), sought.closing)
            back, ahead = max(back, one), max(ahead, other)
        if best > sought.margin + touch or (back >= sought.back and ahead >= sought.ahead):
            return Apart(best - touch, back, ahead)
        if n == 0:
            squared = rx * rx + ry * ry + rz * rz
            if gap <= ZERO and squared >= ROUNDING * ROUNDING and step < CHUNG_WANG_STEPS:
                factor = TWO * gap / squared
                x, y, z = x - factor * rx, y - factor * ry, z - factor * rz
                inverse = ONE / math.sqrt(x * x + y * y + z * z)
                x, y, z = x * inverse, y * inverse, z * inverse
                continue
            # apart but closer than the margin, touching, or unclear
            n, p0 = 1, (np.float64(rx), np.float64(ry), np.float64(rz))
            v = p0
        else:
            distance = math.sqrt(dot(v, v))
            # good enough, or no closer point is left
            if best - touch > GOOD_BOUND * (distance - touch) or distance - gap < ROUNDING * HALF:
                break
            r = (np.float64(rx), np.float64(ry), np.float64(rz))
            if n == 1:
                n, p0, p1, v = closest_on_segment(r, p0)
            elif n == 2:
                n, p0, p1, p2, v = closest_on_triangle(r, p0, p1)
            else:
                n, p0, p1, p2, v = closest_on_tetrahedron(r, p0, p1, p2)
                if n == 4:  # the origin is inside
                    return Apart(MEET, ZERO, ZERO)
        distance = math.sqrt(dot(v, v))
        if distance < touch:
            return Apart(MEET, ZERO, ZERO)
        x, y, z = np.float32(v[0] / distance), np.float32(v[1] / distance), np.float32(v[2] / distance)
    return Apart(best - touch if best > touch else MEET, back, ahead)


@lean_njit
def support_difference(a, b, T, x, y, z, scene):
    """b - a for the point a of A farthest along S and b of B farthest against it; S = (x, y, z) unit, in B's frame."""
    ux, uy, uz = turned_back(T, x, y, z)
    ax, ay, az = support(a, ux, uy, uz, scene)
    bx, by, bz = support(b, -x, -y, -z, scene)
    ax, ay, az = moved(T, ax, ay, az)
    return bx - ax, by - ay, bz - az


@lean_njit
def support(shape, x, y, z, scene):
    """Point of a shape farthest along the unit direction (x, y, z), all in the shape's frame."""
    kind = shape_kind(scene, shape)
    if kind == POLYTOPE:
        return polytope_support(shape, x, y, z, scene)
    hx, hy, hz = shape_half(scene, shape)
    return primitive_support(kind, hx, hy, hz, x, y, z)


@lean_njit
def polytope_support(shape, x, y, z, scene):
    """Vertex of a polytope farthest along (x, y, z): the best of the support table's candidates."""
    vertices = scene.floats
    at, count = polytope_vertices(scene, shape)
    if has_table(scene, shape):
        at, count = table_candidates(scene, shape, x, y, z)
    px, py, pz = item(vertices, at), item(vertices, at + 1), item(vertices, at + 2)
    best = px * x + py * y + pz * z
    for _ in range(1, count):
        at += 3
        value = item(vertices, at) * x + item(vertices, at + 1) * y + item(vertices, at + 2) * z
        if value > best:
            best, px, py, pz = value, item(vertices, at), item(vertices, at + 1), item(vertices, at + 2)
    return px, py, pz


@lean_njit
def dot(u, v):
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]


@lean_njit
def along(p, u, t):
    """p + t u"""
    return (p[0] + t * u[0], p[1] + t * u[1], p[2] + t * u[2])


@lean_njit
def closest_on_segment(a, b):
    """-> how many of the two points hold the one closest to the origin, these, and the closest point."""
    ab = minus(b, a)
    t, squared = -dot(a, ab), dot(ab, ab)
    if t <= ZERO or squared <= ZERO:
        return 1, a, a, a
    if t >= squared:
        return 1, b, b, b
    return 2, a, b, along(a, ab, t / squared)


@lean_njit
def closest_on_triangle(a, b, c):
    """`closest_on_segment` for three points, by Voronoi regions (Ericson, Real-Time Collision Detection, 5.1.5)."""
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
    scale = ONE_64 / (wa + wb + wc)
    return 3, a, b, c, along(along(a, ab, wb * scale), ac, wc * scale)


@lean_njit
def face_sees_origin(a, b, c, d):
    """Is the origin on the far side of the face a b c, as seen from d (or the face degenerate)?"""
    u, v = minus(b, a), minus(c, a)
    normal = (u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0])
    return -dot(normal, a) * dot(normal, minus(d, a)) <= ZERO


@lean_njit
def closest_on_tetrahedron(a, b, c, d):
    """`closest_on_segment` for four points; 4 when the origin is inside."""
    best, n, p, q, r, v = FAR_64, 4, a, b, c, a
    for _ in range(4):
        if face_sees_origin(a, b, c, d):
            m, i, j, k, w = closest_on_triangle(a, b, c)
            squared = dot(w, w)
            if squared < best:
                best, n, p, q, r, v = squared, m, i, j, k, w
        a, b, c, d = b, c, d, a
    return n, p, q, r, v
