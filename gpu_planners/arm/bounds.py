"""Bounding volumes that reject early: an oriented box and covering spheres for each convex shape.

They only prove that two shapes are apart; what they cannot separate goes to `convex.py`.
"""

import numpy as np
import trimesh
from scipy.spatial import ConvexHull, QhullError

from .shapes import ConvexShape, ShapeKind

MAX_SPHERES = 6
PAD = 1e-6  # metres added to radii, covers the rounding to float32
HEIGHTS, ANGLES = 1 - (2 * np.arange(128) + 1) / 128, np.arange(128) * np.pi * (3 - np.sqrt(5))
DIRECTIONS = np.column_stack([np.sqrt(1 - HEIGHTS ** 2) * np.cos(ANGLES), np.sqrt(1 - HEIGHTS ** 2) * np.sin(ANGLES), HEIGHTS])  # evenly spread


def aligned(shape: ConvexShape) -> ConvexShape:
    """The same body with its own frame turned to its tightest oriented box (polytopes only)."""
    if shape.kind != ShapeKind.POLYTOPE:
        return shape
    outermost = shape.vertices
    if len(outermost) > len(DIRECTIONS):  # searching all faces of a hull of 1000 vertices takes a third of a second
        outermost = outermost[np.unique(np.argmax(outermost @ DIRECTIONS.T, axis=0))]
    try:
        T_box_shape, _ = trimesh.bounds.oriented_bounds(outermost)
    except (QhullError, ValueError):  # nearly flat hulls: keep the axis-aligned box
        return shape
    vertices = shape.vertices @ T_box_shape[:3, :3].T + T_box_shape[:3, 3]
    if np.prod(np.ptp(vertices, axis=0)) > 0.99 * np.prod(2 * shape.half_extents):
        return shape
    middle = (vertices.min(0) + vertices.max(0)) / 2
    T_shape_box = np.linalg.inv(T_box_shape) @ trimesh.transformations.translation_matrix(middle)
    return ConvexShape(shape.name, shape.kind, shape.pose @ T_shape_box, np.ptp(vertices, axis=0) / 2,
                       vertices - middle, shape.neighbour_offsets, shape.neighbours)


def ball(shape: ConvexShape) -> np.ndarray:
    """(4,) float64 x, y, z, r in the shape's frame: a sphere around all of it."""
    a, b, c = shape.half_extents
    if shape.kind == ShapeKind.POLYTOPE:
        return _enclosing_sphere(shape.vertices)
    radius = {ShapeKind.SPHERE: a, ShapeKind.CYLINDER: np.hypot(a, c), ShapeKind.BOX: np.sqrt(a * a + b * b + c * c)}[shape.kind]
    return np.array([0, 0, 0, radius + PAD])


def covering_spheres(shape: ConvexShape) -> np.ndarray:
    """(1 + K, 5) float64 x, y, z, r, inner in the shape's frame: `ball`, then K smaller ones that cover it together (K = 0
    where one is as good), one for each slice along its longest axis. A ball of radius `inner` about the same centre
    lies inside the shape; -1 where the centre does not."""
    spheres = _covering_spheres(shape)
    inner = _inner_radii(shape, spheres[:, :3]) - PAD
    return np.column_stack([spheres, np.where(inner > 0, inner, -1.0)])


def _inner_radii(shape, points):
    """(N,) distance of points (N, 3) inside the shape from its surface; negative outside."""
    h, x = shape.half_extents, np.abs(points)
    if shape.kind == ShapeKind.POLYTOPE:
        try:
            planes = ConvexHull(shape.vertices).equations
        except QhullError:
            return np.full(len(points), -1.0)
        return -(points @ planes[:, :3].T + planes[:, 3]).max(axis=1)
    if shape.kind == ShapeKind.SPHERE:
        return h[0] - np.linalg.norm(points, axis=1)
    if shape.kind == ShapeKind.CYLINDER:
        return np.minimum(h[0] - np.hypot(x[:, 0], x[:, 1]), h[2] - x[:, 2])
    return (h - x).min(axis=1)


def _covering_spheres(shape):
    h = shape.half_extents
    axis = int(np.argmax(h))
    across = np.sort(h)[1]
    count = int(np.clip(np.ceil(1.5 * h[axis] / across), 1, MAX_SPHERES))
    spheres = [ball(shape)]
    if shape.kind == ShapeKind.SPHERE or count == 1:
        return np.array(spheres)
    corners, edges = _corners_and_edges(shape)
    cuts = np.linspace(-h[axis], h[axis], count + 1)
    for low, high in zip(cuts[:-1], cuts[1:]):
        inside = corners[(corners[:, axis] >= low) & (corners[:, axis] <= high)]
        spheres.append(_enclosing_sphere(np.concatenate([inside, _section(edges, axis, low), _section(edges, axis, high)])))
    return np.array(spheres)


def _corners_and_edges(shape):
    """Points whose hull contains the shape (V, 3), and its edges as point pairs (E, 2, 3)."""
    if shape.kind == ShapeKind.POLYTOPE:
        tail = np.repeat(np.arange(len(shape.vertices)), np.diff(shape.neighbour_offsets))
        return shape.vertices, np.stack([shape.vertices[tail], shape.vertices[shape.neighbours]], axis=1)
    if shape.kind == ShapeKind.BOX:
        ring = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    else:  # a 24-sided prism around the cylinder
        angle = np.arange(24) * (2 * np.pi / 24)
        ring = np.stack([np.cos(angle), np.sin(angle)], axis=1) / np.cos(np.pi / 24)
    n = len(ring)
    prism = np.concatenate([np.column_stack([ring, np.full(n, z)]) for z in (-1.0, 1.0)]) * shape.half_extents
    k = np.arange(n)
    pairs = np.concatenate([np.stack([k, (k + 1) % n], 1), np.stack([k, (k + 1) % n], 1) + n, np.stack([k, k + n], 1)])
    return prism, prism[pairs]


def _section(edges, axis, at):
    """Points where the edges cross the plane x[axis] = at."""
    a, b = edges[:, 0], edges[:, 1]
    crossing = (a[:, axis] - at) * (b[:, axis] - at) < 0
    a, b = a[crossing], b[crossing]
    t = ((at - a[:, axis]) / (b[:, axis] - a[:, axis]))[:, None]
    return a + t * (b - a)


def _enclosing_sphere(points):
    """A nearly smallest sphere around points, (4,): Badoiu and Clarkson's iteration; it always contains them."""
    centre = (points.min(0) + points.max(0)) / 2
    for i in range(2, 100):
        farthest = points[np.argmax(((points - centre) ** 2).sum(1))]
        centre = centre + (farthest - centre) / i
    return np.append(centre, np.sqrt(((points - centre) ** 2).sum(1).max()) + PAD)
