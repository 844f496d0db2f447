"""What the planner asks of a kind of convex shape; the table of kinds is in kinds.py."""

from typing import Protocol

import numpy as np

from .shapes import ConvexShape

PAD = 1e-6  # metres added to radii, covers the rounding to float32


class Kind(Protocol):
    """One kind of shape. Points are in the shape's own frame, metres.

    cut: along which of its axes a shape may be cut off, so that what is left is a smaller shape of this kind
    """

    cut: tuple[bool, bool, bool]

    def ball(self, shape: ConvexShape) -> np.ndarray:
        """(4,) x, y, z, r of a sphere around the shape."""

    def farthest(self, shape: ConvexShape) -> float:
        """Greatest distance, at most, of the shape's points from the origin of the frame that its pose is given in."""

    def depths(self, shape: ConvexShape, points: np.ndarray) -> np.ndarray:
        """(N,) distance of points (N, 3) inside the shape from its surface; negative outside."""

    def cage(self, shape: ConvexShape) -> tuple[np.ndarray, np.ndarray] | None:
        """(V, 3) corners whose hull contains the shape, and its edges (E, 2, 3); None: `ball` bounds it as well."""

    def outline(self, shape: ConvexShape) -> np.ndarray:
        """(V, 3) points whose hull is drawn."""


class Primitive:
    """What boxes, cylinders and spheres share: each is centred, and its half extents say all about it."""

    def radius(self, half: np.ndarray) -> float:
        """Greatest distance of the shape's points from its centre; half: (3,)."""
        raise NotImplementedError

    def ball(self, shape):
        return np.array([0, 0, 0, self.radius(shape.half_extents) + PAD])

    def farthest(self, shape):
        return np.linalg.norm(shape.pose[:3, 3]) + self.radius(shape.half_extents)


def prism(ring, half):
    """Corners (2 N, 3) and edges (3 N, 2, 3) of the prism over a ring (N, 2), scaled by `half` (3,), z from -1 to 1."""
    n = len(ring)
    corners = np.concatenate([np.column_stack([ring, np.full(n, z)]) for z in (-1.0, 1.0)]) * half
    k = np.arange(n)
    pairs = np.concatenate([np.stack([k, (k + 1) % n], 1), np.stack([k, (k + 1) % n], 1) + n, np.stack([k, k + n], 1)])
    return corners, corners[pairs]
