"""Cylinders about the z axis of their own frame."""

import math

import numpy as np

from ...device import lean_njit
from .kind import Primitive, prism

ZERO = np.float32(0.0)
SIDES = 24  # of the prism around one
FACETS = 64  # of a picture of one


class Cylinder(Primitive):
    """half_extents: radius, radius, half height."""

    cut = (False, False, True)

    def radius(self, half):
        return np.hypot(half[0], half[2])

    def depths(self, shape, points):
        h, x = shape.half_extents, np.abs(points)
        return np.minimum(h[0] - np.hypot(x[:, 0], x[:, 1]), h[2] - x[:, 2])

    def cage(self, shape):
        return prism(_ring(SIDES) / np.cos(np.pi / SIDES), shape.half_extents)

    def outline(self, shape):
        return prism(_ring(FACETS), shape.half_extents)[0]


def _ring(count):
    angle = np.arange(count) * (2 * np.pi / count)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


@lean_njit
def support(radius, half_height, x, y, z):
    """Point of the cylinder farthest along (x, y, z)."""
    across = math.sqrt(x * x + y * y)
    scale = radius / across if across > np.float32(1e-9) else ZERO
    return x * scale, y * scale, math.copysign(half_height, z)


@lean_njit
def distance(radius, half_height, x, y, z):
    """Distance of the point (x, y, z) from the cylinder; 0 inside."""
    across, along = max(math.sqrt(x * x + y * y) - radius, ZERO), max(abs(z) - half_height, ZERO)
    return math.sqrt(across * across + along * along)


@lean_njit
def offset(radius, half_height, x, y, z):
    """The point (x, y, z) less the nearest point of the cylinder."""
    across = math.sqrt(x * x + y * y)
    scale = max(across - radius, ZERO) / max(across, np.float32(1e-30))
    return x * scale, y * scale, z - min(max(z, -half_height), half_height)
