"""Convex shapes: what robots' links and obstacles are made of.

A shape is a polytope (the vertices and edges of a convex hull), a box, a cylinder or a sphere. The last three are
exact through their support functions, never tessellated. What depends on the kind is in kinds.py.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import Numbers, checked, numbers
from ...errors import GpuPlannersError, ObstacleError, shown
from ...ranges import GREATEST_LENGTH

Pose = Annotated[ArrayLike, Numbers((4, 4))]
RIGID = 1e-4  # how far R R^T may be from the identity, and the last row from 0 0 0 1; float32 poses are off by 1e-6
EXACT = 1e-14  # below this a rotation is one in float64
IDENTITY, IDENTITY_ROW = np.eye(3), np.array([0.0, 0.0, 0.0, 1.0])
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
    """A pose (4, 4) as `rigid_poses` has it, or ObstacleError naming the shape."""
    pose = check_numbers(name, "the pose", pose)
    if pose.shape != (4, 4):
        raise ObstacleError(f"'{name}': the pose must have shape (4, 4), got {pose.shape}")
    return rigid_poses(pose[None], lambda _: f"'{name}': the pose", ObstacleError)[0]


def rigid_poses(T: np.ndarray, named: Callable[[int], str], error: type[GpuPlannersError]) -> np.ndarray:
    """T: (P, 4, 4) float64, changed in place: rotations become the nearest ones, last rows 0 0 0 1.

    Otherwise `error`, which names the first pose that is not finite, not rigid or too far out. named: a pose, by its
    number
    """
    R = T[:, :3, :3]
    with np.errstate(all="ignore"):  # what is not finite is named below
        off = np.abs(R @ R.transpose(0, 2, 1) - IDENTITY).max(axis=(1, 2))
        leans, away = np.abs(T[:, 3] - IDENTITY_ROW).max(axis=1), np.abs(T[:, :3, 3]).max(axis=1)
        mirrors = np.linalg.det(R) < 0
    right = (off <= RIGID) & (leans <= RIGID) & (away <= GREATEST_LENGTH) & ~mirrors
    if not right.all():
        faults = {
            "holds a value that is not finite": ~np.isfinite(T).all(axis=(1, 2)),
            "has a last row other than 0 0 0 1": leans > RIGID,
            "is no rigid transform: its rotation is not orthonormal": off > RIGID,
            "is no rigid transform: it mirrors": mirrors,
            f"is over {GREATEST_LENGTH:g} m away": away > GREATEST_LENGTH,
        }
        what, wrong = next((what, wrong) for what, wrong in faults.items() if wrong.any())
        k = int(np.argmax(wrong))
        raise error(
            f"{named(k)} {what}: {shown(T[k].tolist())}; allowed: a finite rigid transform at most "
            f"{GREATEST_LENGTH:g} m away"
        )
    rounded = off > EXACT  # nearest in the Frobenius norm (Schoenemann 1966)
    if rounded.any():
        U, _, Vt = np.linalg.svd(R[rounded])
        T[rounded, :3, :3] = U @ Vt
    T[:, 3] = IDENTITY_ROW
    return T


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
