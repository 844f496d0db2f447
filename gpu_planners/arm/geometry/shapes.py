"""Convex shapes: what robots' links and obstacles are made of.

A shape is a polytope (the vertices and edges of a convex hull), a box, a cylinder or a sphere. The last three are
exact through their support functions, never tessellated. What depends on the kind is in kinds.py.
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import Numbers, checked, numbers
from ...errors import ObstacleError, shown
from ...ranges import GREATEST_LENGTH

Pose = Annotated[ArrayLike, Numbers((4, 4))]
RIGID = 1e-4  # how far R R^T may be from the identity; poses out of float32 arithmetic are off by 1e-6
EXACT = 1e-14  # below this a rotation is one in float64
BOX_CORNERS = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, 8).T  # (8, 3), of half extents 1


class ShapeKind(IntEnum):
    """See kinds.KINDS."""

    POLYTOPE = 0
    BOX = 1
    CYLINDER = 2
    SPHERE = 3


@dataclass(frozen=True, eq=False)
@checked(ObstacleError)
class ConvexShape:
    """One convex body. Equal only to itself, so that what is packed of it can be kept with it.

    name: what error texts and pair lists call it
    kind: ShapeKind
    pose: (4, 4) T_frame_shape, pose of the shape in the frame it is given in (a DH frame or the world), metres
    half_extents: (3,) half of the size along the shape's own axes, metres; cylinder (radius, radius,
        half height) with its axis along z; sphere (radius,) * 3; polytope: of its bounding box about the origin
    vertices: (V, 3) polytope vertices in the shape's own frame, metres; (0, 3) for the other kinds
    neighbour_offsets, neighbours: (V + 1,), (E,) int32 edges of the hull: vertex v is joined to
        neighbours[neighbour_offsets[v]:neighbour_offsets[v + 1]]
    """

    name: str
    kind: ShapeKind
    pose: np.ndarray
    half_extents: np.ndarray
    vertices: np.ndarray
    neighbour_offsets: np.ndarray
    neighbours: np.ndarray

    @staticmethod
    def box(name: str, size: ArrayLike, pose: ArrayLike) -> "ConvexShape":
        """size: (3,) full edge lengths, metres; pose: (4, 4)."""
        return _primitive(name, ShapeKind.BOX, pose, _positive(name, "size", size, 3) / 2)

    @staticmethod
    def cylinder(name: str, radius: float, height: float, pose: ArrayLike) -> "ConvexShape":
        """Axis along the pose's z, centred; metres."""
        radius, height = _positive(name, "radius", radius, 1)[0], _positive(name, "height", height, 1)[0]
        return _primitive(name, ShapeKind.CYLINDER, pose, np.array([radius, radius, height / 2]))

    @staticmethod
    def sphere(name: str, radius: float, pose: ArrayLike) -> "ConvexShape":
        """Centred; metres."""
        radius = _positive(name, "radius", radius, 1)[0]
        return _primitive(name, ShapeKind.SPHERE, pose, np.full(3, radius))

    @staticmethod
    def convex_hull(name: str, points: ArrayLike, pose: ArrayLike) -> "ConvexShape":
        """Hull of points (P, 3) given in the frame of `pose`, metres.

        Raises ObstacleError when the points are not finite, lie too far out or span no volume.
        """
        from scipy.spatial import ConvexHull, QhullError  # takes a third of a second

        points = check_lengths(name, "vertices", points)
        if points.ndim != 2 or points.shape[1] != 3 or len(points) < 4:
            raise ObstacleError(f"'{name}': a hull needs at least 4 points of shape (N, 3), got {points.shape}")
        try:
            hull = ConvexHull(points)
        except QhullError as error:
            raise ObstacleError(f"'{name}': the points are flat or coincide, their hull has no volume") from error
        vertices = points[hull.vertices]
        number = np.full(len(points), -1)
        number[hull.vertices] = np.arange(len(vertices))
        triangles = number[hull.simplices]
        edges = np.unique(np.concatenate([triangles[:, [a, b]] for a in range(3) for b in range(3) if a != b]), axis=0)
        offsets = np.searchsorted(edges[:, 0], np.arange(len(vertices) + 1)).astype(np.int32)
        middle = (vertices.min(0) + vertices.max(0)) / 2
        pose = check_pose(name, pose)
        centred = pose.copy()
        centred[:3, 3] += pose[:3, :3] @ middle
        return ConvexShape(
            name,
            ShapeKind.POLYTOPE,
            centred,
            np.ptp(vertices, axis=0) / 2,
            vertices - middle,
            offsets,
            edges[:, 1].astype(np.int32),
        )

    def moved(self, T_new_frame: Pose, name: str | None = None) -> "ConvexShape":
        """The shape seen from another frame: its pose becomes T_new_frame @ pose."""
        return replace(self, name=name or self.name, pose=np.asarray(T_new_frame) @ self.pose)


def check_numbers(name: str, what: str, values: Any) -> np.ndarray:
    """values as a new float64 array of any shape, or ObstacleError where they are not real numbers."""
    return np.array(numbers(f"'{name}': {what}", values, error=ObstacleError, finite=False), dtype=np.float64)


def check_lengths(name: str, what: str, values: Any) -> np.ndarray:
    """values as a float64 array of any shape, metres: finite, none beyond GREATEST_LENGTH; or ObstacleError."""
    array = check_numbers(name, what, values)
    bad = ~(np.abs(array) <= GREATEST_LENGTH)
    if bad.any():
        raise ObstacleError(
            f"'{name}': {what} must be finite and within +-{GREATEST_LENGTH:g} m, got {array[bad][0]:g}"
        )
    return array


def check_pose(name: str, pose: Any) -> np.ndarray:
    """A rigid (4, 4) float64 pose, or ObstacleError naming the shape. Its rotation is the one nearest to that given."""
    pose = check_lengths(name, "the pose", pose)
    if pose.shape != (4, 4):
        raise ObstacleError(f"'{name}': the pose must have shape (4, 4), got {pose.shape}")
    R = pose[:3, :3]
    off = np.abs(R @ R.T - np.eye(3)).max()
    if off > RIGID or np.linalg.det(R) < 0 or np.abs(pose[3] - [0, 0, 0, 1]).max() > 1e-6:
        raise ObstacleError(
            f"'{name}': the pose must be a rigid transform (a rotation, a translation, last row 0 0 0 1)"
        )
    if off > EXACT:  # nearest in the Frobenius norm (Schoenemann 1966)
        U, _, Vt = np.linalg.svd(R)
        pose[:3, :3] = U @ Vt
    pose[3] = 0, 0, 0, 1
    return pose


def _positive(name, what, value, count):
    values = np.atleast_1d(check_lengths(name, what, value))
    if values.shape != (count,) or (values <= 0).any():
        raise ObstacleError(
            f"'{name}': {what} must be {count} number{'s' * (count > 1)} above 0 (metres), got {shown(value)}"
        )
    return values


def _primitive(name, kind, pose, half_extents):
    none = np.zeros(0, dtype=np.int32)
    return ConvexShape(name, kind, check_pose(name, pose), half_extents, np.zeros((0, 3)), none, none)
