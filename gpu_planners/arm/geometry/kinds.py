"""The table of the kinds of convex shapes: what the host asks of each, and what compiled code does.

A new kind needs an entry of `shapes.ShapeKind`, a file like box.py, a row of KINDS, and a branch in each of the three
compiled functions below: a table of functions would be an indirect call for every support, which neither target
inlines. Where users name it (CollisionWorld, scene files, URDFs, messages) it needs a name there. A shape whose kind
has no row cannot be packed, so compiled code never sees one.
"""

import numpy as np

from ...device import lean_njit
from . import box, cylinder, sphere
from .kind import PAD, Kind
from .polytope import Polytope, enclosing_sphere
from .shapes import ConvexShape, ShapeKind

POLYTOPE, BOX, CYLINDER, SPHERE = (int(kind) for kind in ShapeKind)  # for compiled code
KINDS: dict[ShapeKind, Kind] = {
    ShapeKind.POLYTOPE: Polytope(),
    ShapeKind.BOX: box.Box(),
    ShapeKind.CYLINDER: cylinder.Cylinder(),
    ShapeKind.SPHERE: sphere.Sphere(),
}
MAX_SPHERES = 6  # of one shape, besides its ball


def covering_spheres(shape: ConvexShape) -> np.ndarray:
    """(1 + K, 5) float64 x, y, z, r, inner in the shape's frame: they prove that two shapes are apart, or meet.

    The first sphere is the kind's `ball`. The others, one for each slice along the shape's longest axis, cover it
    together; there are none where one sphere is as good. A ball of radius `inner` about the same centre lies inside the
    shape; -1: none.
    """
    h, kind = shape.half_extents, KINDS[shape.kind]
    axis = int(np.argmax(h))
    across = np.sort(h)[1]
    count = int(np.clip(np.ceil(1.5 * h[axis] / across), 1, MAX_SPHERES))
    spheres, cage = [kind.ball(shape)], kind.cage(shape)
    if cage is not None and count > 1:
        corners, edges = cage
        cuts = np.linspace(-h[axis], h[axis], count + 1)
        for low, high in zip(cuts[:-1], cuts[1:]):
            inside = corners[(corners[:, axis] >= low) & (corners[:, axis] <= high)]
            rims = _section(edges, axis, low), _section(edges, axis, high)
            spheres.append(enclosing_sphere(np.concatenate([inside, *rims])))
    inner = kind.depths(shape, np.array(spheres)[:, :3]) - PAD
    return np.column_stack([spheres, np.where(inner > 0, inner, -1.0)])


def _section(edges, axis, at):
    """Points where the edges cross the plane x[axis] = at."""
    a, b = edges[:, 0], edges[:, 1]
    crossing = (a[:, axis] - at) * (b[:, axis] - at) < 0
    a, b = a[crossing], b[crossing]
    t = ((at - a[:, axis]) / (b[:, axis] - a[:, axis]))[:, None]
    return a + t * (b - a)


@lean_njit
def primitive_support(kind, hx, hy, hz, x, y, z):
    """Point of a box, cylinder or sphere farthest along the unit vector (x, y, z), all in its own frame."""
    if kind == BOX:
        return box.support(hx, hy, hz, x, y, z)
    if kind == CYLINDER:
        return cylinder.support(hx, hz, x, y, z)
    return sphere.support(hx, x, y, z)


@lean_njit
def bound_offset(kind, hx, hy, hz, x, y, z):
    """Where a point outside of such a volume lies from the volume's nearest point, (3,); its length: bound_distance."""
    if kind == SPHERE:
        return sphere.offset(hx, x, y, z)
    if kind == CYLINDER:
        return cylinder.offset(hx, hz, x, y, z)
    return box.offset(hx, hy, hz, x, y, z)


@lean_njit
def bound_distance(kind, hx, hy, hz, x, y, z):
    """Distance of a point from a box, cylinder or sphere, or from the box around a polytope; 0 inside."""
    if kind == SPHERE:
        return sphere.distance(hx, x, y, z)
    if kind == CYLINDER:
        return cylinder.distance(hx, hz, x, y, z)
    return box.distance(hx, hy, hz, x, y, z)
