"""Polytopes: convex hulls of points. The supports of compiled code are read from a table (support_table.py)."""

from dataclasses import replace

import numpy as np

from .kind import PAD
from .shapes import ConvexShape

MANY = 500  # vertices of a hull whose box is sought by those that are farthest in some direction
HEIGHTS, ANGLES = 1 - (2 * np.arange(128) + 1) / 128, np.arange(128) * np.pi * (3 - np.sqrt(5))
DIRECTIONS = np.column_stack(
    [np.sqrt(1 - HEIGHTS**2) * np.cos(ANGLES), np.sqrt(1 - HEIGHTS**2) * np.sin(ANGLES), HEIGHTS]
)  # evenly spread


class Polytope:
    """vertices: at least four, whose hull spans a volume; half_extents: of the box around it."""

    cut = (False, False, False)

    def ball(self, shape):
        return enclosing_sphere(shape.vertices)

    def farthest(self, shape):
        return np.linalg.norm(shape.vertices @ shape.pose[:3, :3].T + shape.pose[:3, 3], axis=1).max()

    def depths(self, shape, points):
        from scipy.spatial import ConvexHull, QhullError

        try:
            planes = ConvexHull(shape.vertices).equations
        except QhullError:
            return np.full(len(points), -1.0)
        return -(points @ planes[:, :3].T + planes[:, 3]).max(axis=1)

    def cage(self, shape):
        tail = np.repeat(np.arange(len(shape.vertices)), np.diff(shape.neighbour_offsets))
        return shape.vertices, np.stack([shape.vertices[tail], shape.vertices[shape.neighbours]], axis=1)

    def outline(self, shape):
        return shape.vertices


def aligned(shape: ConvexShape) -> ConvexShape:
    """The polytope with its own frame turned to its tightest oriented box."""
    import trimesh
    from scipy.spatial import QhullError

    outermost = shape.vertices
    if len(outermost) > MANY:  # searching all faces of a hull of 1000 vertices takes a third of a second
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
    return replace(
        shape, pose=shape.pose @ T_shape_box, half_extents=np.ptp(vertices, axis=0) / 2, vertices=vertices - middle
    )


def enclosing_sphere(points: np.ndarray) -> np.ndarray:
    """(4,) x, y, z, r: a nearly smallest sphere that contains points (N, 3), by Badoiu and Clarkson's iteration."""
    centre = (points.min(0) + points.max(0)) / 2
    for i in range(2, 100):
        farthest = points[np.argmax(((points - centre) ** 2).sum(1))]
        centre = centre + (farthest - centre) / i
    return np.append(centre, np.sqrt(((points - centre) ** 2).sum(1).max()) + PAD)


def outward_triangles(points: np.ndarray) -> np.ndarray:
    """(T, 3, 3) faces of the hull of points (N, 3), counter-clockwise seen from outside."""
    from scipy.spatial import ConvexHull

    hull = ConvexHull(points)
    triangles = points[hull.simplices]
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    inward = (normals * hull.equations[:, :3]).sum(axis=1) < 0
    triangles[inward] = triangles[inward][:, ::-1]
    return triangles
