"""Spheres that cover a convex shape, and balls inside it.

Covering spheres can prove that two shapes are apart, balls inside both that they meet; else the exact search decides.
"""

import numpy as np

from .kind import PAD
from .kinds import KINDS
from .polytope import enclosing_sphere
from .shapes import ConvexShape

MAX_SPHERES = 6


def ball(shape: ConvexShape) -> np.ndarray:
    """(4,) float64 x, y, z, r in the shape's frame: a sphere around all of it."""
    return KINDS[shape.kind].ball(shape)


def covering_spheres(shape: ConvexShape) -> np.ndarray:
    """(1 + K, 5) float64 x, y, z, r, inner in the shape's frame.

    The first is `ball`. The others, one for each slice along the shape's longest axis, cover it together; there are
    none where one sphere is as good. A ball of radius `inner` about the same centre lies inside the shape; -1: none.
    """
    spheres = _covering_spheres(shape)
    inner = KINDS[shape.kind].depths(shape, spheres[:, :3]) - PAD
    return np.column_stack([spheres, np.where(inner > 0, inner, -1.0)])


def _covering_spheres(shape):
    h = shape.half_extents
    axis = int(np.argmax(h))
    across = np.sort(h)[1]
    count = int(np.clip(np.ceil(1.5 * h[axis] / across), 1, MAX_SPHERES))
    spheres, cage = [ball(shape)], KINDS[shape.kind].cage(shape)
    if cage is None or count == 1:
        return np.array(spheres)
    corners, edges = cage
    cuts = np.linspace(-h[axis], h[axis], count + 1)
    for low, high in zip(cuts[:-1], cuts[1:]):
        inside = corners[(corners[:, axis] >= low) & (corners[:, axis] <= high)]
        spheres.append(
            enclosing_sphere(np.concatenate([inside, _section(edges, axis, low), _section(edges, axis, high)]))
        )
    return np.array(spheres)


def _section(edges, axis, at):
    """Points where the edges cross the plane x[axis] = at."""
    a, b = edges[:, 0], edges[:, 1]
    crossing = (a[:, axis] - at) * (b[:, axis] - at) < 0
    a, b = a[crossing], b[crossing]
    t = ((at - a[:, axis]) / (b[:, axis] - a[:, axis]))[:, None]
    return a + t * (b - a)
