"""What convex shapes pass over when they are moved without turning: the convex hull of both ends.

A box that moves along one of its axes stays a box, a cylinder along its axis a cylinder, a polytope a polytope. A
sphere's capsule is a cylinder and two spheres; a cylinder that moves across its axis passes over a box and two
cylinders. One that moves aslant is held by the hull of a prism of SIDES sides, which is larger than what it passes over
by 0.5 % of the radius at most.
"""

import numpy as np

from .bricks import Bricks
from .shapes import BOX_CORNERS, ConvexShape, ShapeKind

SIDES = 32  # of the prism around a cylinder
STILL = 1e-9  # metres that count as none: shapes become larger by them, never smaller
RING = np.stack([np.cos(t := np.arange(SIDES) * 2 * np.pi / SIDES), np.sin(t)], axis=1) / np.cos(np.pi / SIDES)


def moved_by(piece: ConvexShape | Bricks, displacement: np.ndarray) -> ConvexShape | Bricks:
    """The piece a displacement (3,), metres in the frame that its pose is in, away."""
    T = np.eye(4)
    T[:3, 3] = displacement
    return piece.moved(T)


def swept(piece: ConvexShape | Bricks, displacement: np.ndarray) -> tuple[ConvexShape | Bricks, ...]:
    """Pieces of its name that hold what a piece passes over on a straight way.

    displacement: (3,) metres, in the frame that its pose is in, from where it is
    """
    if np.abs(displacement).max() <= 0.0:
        return (piece,)
    if isinstance(piece, Bricks):
        return tuple(part for brick in piece.shapes for part in _swept(brick, displacement))
    return _swept(piece, displacement)


def _swept(shape, displacement):
    way = shape.pose[:3, :3].T @ displacement  # in the shape's own frame
    if shape.kind == ShapeKind.SPHERE:
        return _capsule(shape, way)
    if shape.kind == ShapeKind.BOX and np.count_nonzero(np.abs(way) > STILL) <= 1:
        return (_box(shape, np.eye(3), way, 2 * shape.half_extents + np.abs(way)),)
    if shape.kind == ShapeKind.CYLINDER:
        return _swept_cylinder(shape, way)
    corners = shape.vertices if shape.kind == ShapeKind.POLYTOPE else shape.half_extents * BOX_CORNERS
    return (_hull(shape, corners, way),)


def _swept_cylinder(shape, way):
    radius, height = shape.half_extents[0], 2 * shape.half_extents[2]
    across, along = float(np.hypot(*way[:2])), float(abs(way[2]))
    if across <= STILL:
        pose = moved_by(shape, shape.pose[:3, :3] @ way / 2).pose
        return (ConvexShape.cylinder(shape.name, radius + across, height + along, pose),)
    if along <= STILL:
        taller = ConvexShape.cylinder(shape.name, radius, height + along, shape.pose)
        x, up = way * [1, 1, 0] / across, np.array([0.0, 0.0, 1.0])
        between = _box(shape, np.stack([x, np.cross(up, x), up], axis=1), way, [across, 2 * radius, height + along])
        return between, taller, moved_by(taller, shape.pose[:3, :3] @ way)
    ring = radius * RING
    ends = [np.column_stack([ring, np.full(SIDES, z)]) for z in (-height / 2, height / 2)]
    return (_hull(shape, np.concatenate(ends), way),)


def _capsule(shape, way):
    length, radius = float(np.linalg.norm(way)), shape.half_extents[0]
    z = way / length
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= np.linalg.norm(x)
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.stack([x, np.cross(z, x), z], axis=1), way / 2
    tube = ConvexShape.cylinder(shape.name, radius, length, shape.pose @ T)
    return tube, shape, moved_by(shape, shape.pose[:3, :3] @ way)


def _box(shape, R, way, size):
    """A box of some size, turned by R (3, 3) in the shape's frame, in the middle of its way."""
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, way / 2
    return ConvexShape.box(shape.name, size, shape.pose @ T)


def _hull(shape, points, way):
    return ConvexShape.convex_hull(shape.name, np.concatenate([points, points + way]), shape.pose)
