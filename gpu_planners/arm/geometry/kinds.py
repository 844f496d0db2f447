"""The table of the kinds of convex shapes: what the host asks of each, and what compiled code does.

A new kind needs an entry of `shapes.ShapeKind`, a file like box.py, a row of KINDS, and a branch in each of the three
compiled functions below: a table of functions would be an indirect call for every support, which neither target
inlines. Where users name it (CollisionWorld, scene files, URDFs, messages) it needs a name there. A shape whose kind
has no row cannot be packed, so compiled code never sees one.
"""

from ...device import lean_njit
from . import box, cylinder, sphere
from .kind import Kind
from .polytope import Polytope
from .shapes import ShapeKind

POLYTOPE, BOX, CYLINDER, SPHERE = (int(kind) for kind in ShapeKind)  # for compiled code
KINDS: dict[ShapeKind, Kind] = {
    ShapeKind.POLYTOPE: Polytope(),
    ShapeKind.BOX: box.Box(),
    ShapeKind.CYLINDER: cylinder.Cylinder(),
    ShapeKind.SPHERE: sphere.Sphere(),
}


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
