"""Boxes, along the axes of their own frame."""

import math

import numpy as np

from ...device import lean_njit
from .kind import Primitive, prism

ZERO = np.float32(0.0)
CORNERS = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])


class Box(Primitive):
    """half_extents: half of the edge lengths."""

    cut = (True, True, True)

    def radius(self, half):
        a, b, c = half
        return np.sqrt(a * a + b * b + c * c)

    def depths(self, shape, points):
        return (shape.half_extents - np.abs(points)).min(axis=1)

    def cage(self, shape):
        return prism(CORNERS, shape.half_extents)

    def outline(self, shape):
        return self.cage(shape)[0]


@lean_njit
def support(hx, hy, hz, x, y, z):
    """Point farthest along (x, y, z) of the box of half extents hx, hy, hz."""
    return math.copysign(hx, x), math.copysign(hy, y), math.copysign(hz, z)


@lean_njit
def distance(hx, hy, hz, x, y, z):
    """Distance of the point (x, y, z) from the box; 0 inside."""
    dx, dy, dz = max(abs(x) - hx, ZERO), max(abs(y) - hy, ZERO), max(abs(z) - hz, ZERO)
    return math.sqrt(dx * dx + dy * dy + dz * dz)


@lean_njit
def offset(hx, hy, hz, x, y, z):
    """The point (x, y, z) less the nearest point of the box."""
    return x - min(max(x, -hx), hx), y - min(max(y, -hy), hy), z - min(max(z, -hz), hz)
