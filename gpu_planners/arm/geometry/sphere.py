"""Spheres."""

import math

import numpy as np

from ...device import lean_njit
from .kind import Primitive

ZERO = np.float32(0.0)
FACETS = 400  # corners of a picture of one


class Sphere(Primitive):
    """half_extents: the radius, three times."""

    cut = (False, False, False)

    def radius(self, half):
        return half[0]

    def depths(self, shape, points):
        return shape.half_extents[0] - np.linalg.norm(points, axis=1)

    def cage(self, shape):
        return None

    def outline(self, shape):
        return shape.half_extents[0] * unit_vectors(FACETS)


def unit_vectors(count: int) -> np.ndarray:
    """(count, 3) unit vectors spread evenly (Fibonacci)."""
    k = np.arange(count) + 0.5
    z, angle = 1 - 2 * k / count, np.pi * (1 + 5**0.5) * k
    return np.stack([np.sqrt(1 - z * z) * np.cos(angle), np.sqrt(1 - z * z) * np.sin(angle), z], axis=1)


@lean_njit
def support(radius, x, y, z):
    """Point of the sphere farthest along the unit vector (x, y, z)."""
    return x * radius, y * radius, z * radius


@lean_njit
def distance(radius, x, y, z):
    """Distance of the point (x, y, z) from the sphere; 0 inside."""
    return max(math.sqrt(x * x + y * y + z * z) - radius, ZERO)


@lean_njit
def offset(radius, x, y, z):
    """The point (x, y, z) less the nearest point of the sphere."""
    across = math.sqrt(x * x + y * y + z * z)
    scale = max(across - radius, ZERO) / max(across, np.float32(1e-30))
    return x * scale, y * scale, z * scale
