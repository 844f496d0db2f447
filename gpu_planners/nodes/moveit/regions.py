"""Convex regions of space in which a point of a link shall be: what a position constraint names."""

from dataclasses import dataclass

import numpy as np
from moveit_msgs.msg import BoundingVolume
from scipy.spatial import ConvexHull, QhullError
from shape_msgs.msg import SolidPrimitive

from ...errors import ObstacleError
from . import shapes

LEAST = 1e-6  # metres: a region is never taken to be thinner
TRIES = 64  # rounds of drawing points in the bounding box


@dataclass(frozen=True, eq=False)
class Volume:
    """A convex volume.

    kind: a type of SolidPrimitive, or 0 for a convex hull
    T_root_volume: (4, 4), metres
    half: (3,) half of the sides of its bounding box about its origin
    faces: (F, 4) outward normals and offsets of a hull, its frame; (0, 4) for others
    """

    kind: int
    T_root_volume: np.ndarray
    half: np.ndarray
    faces: np.ndarray

    @property
    def centre(self) -> np.ndarray:
        """(3,) in the root frame, a point of the volume."""
        return self.T_root_volume[:3, 3]

    @property
    def thinness(self) -> float:
        """A radius about the centre within which all points belong to it, metres."""
        if len(self.faces):
            return max(LEAST, float(-self.faces[:, 3].max()))
        return max(LEAST, float(self.half.min()) / (4 if self.kind == SolidPrimitive.CONE else 1))

    def contains(self, points: np.ndarray) -> np.ndarray:
        """(N,) bool of points (N, 3) in the root frame, LEAST beyond its surface included."""
        return self._contains((points - self.centre) @ self.T_root_volume[:3, :3], LEAST)

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """(count, 3) points in the root frame, evenly spread."""
        found = np.zeros((0, 3))
        for _ in range(TRIES):
            drawn = rng.uniform(-self.half, self.half, (2 * count, 3))
            found = np.concatenate([found, drawn[self._contains(drawn, 0.0)]])[:count]
            if len(found) == count:
                break
        found = np.concatenate([found, np.zeros((count - len(found), 3))])
        return found @ self.T_root_volume[:3, :3].T + self.centre

    def _contains(self, p, slack):
        if len(self.faces):
            return (p @ self.faces[:, :3].T + self.faces[:, 3] <= slack).all(axis=1)
        within = (np.abs(p) <= self.half + slack).all(axis=1)
        if self.kind == SolidPrimitive.SPHERE:
            return np.linalg.norm(p, axis=1) <= self.half[0] + slack
        if self.kind == SolidPrimitive.CYLINDER:
            return within & (np.hypot(p[:, 0], p[:, 1]) <= self.half[0] + slack)
        if self.kind == SolidPrimitive.CONE:
            radius = self.half[0] * (self.half[2] - p[:, 2]) / np.maximum(2 * self.half[2], LEAST)
            return within & (np.hypot(p[:, 0], p[:, 1]) <= radius + slack)
        return within


def read_volumes(message: BoundingVolume, T_root_frame: np.ndarray, what: str) -> tuple[Volume, ...]:
    """What a moveit_msgs/BoundingVolume is the union of. A mesh counts as its convex hull, as in MoveIt."""
    volumes = []
    for given, poses, make in (
        (message.primitives, message.primitive_poses, _solid),
        (message.meshes, message.mesh_poses, _hull),
    ):
        if len(given) != len(poses):
            raise ObstacleError(f"{what}: the region has {len(given)} shapes but {len(poses)} poses")
        volumes += [make(shape, T_root_frame @ shapes.read_pose(pose, what), what) for shape, pose in zip(given, poses)]
    if not volumes:
        raise ObstacleError(f"{what}: the region has neither primitives nor meshes")
    return tuple(volumes)


def _solid(message, T_root_volume, what):
    kind, numbers = shapes.dimensions(message, what)
    if kind == SolidPrimitive.BOX:
        half = np.array(numbers) / 2
    elif kind == SolidPrimitive.SPHERE:
        half = np.full(3, numbers[0])
    else:
        half = np.array([numbers[1], numbers[1], numbers[0] / 2])
    return Volume(kind, T_root_volume, half, np.zeros((0, 4)))


def _hull(message, T_root_volume, what):
    points = shapes.vertices(message, what)
    middle = points.mean(axis=0)
    T = T_root_volume.copy()
    T[:3, 3] = T_root_volume[:3, :3] @ middle + T_root_volume[:3, 3]
    try:
        faces = ConvexHull(points - middle).equations
    except (QhullError, ValueError) as error:
        raise ObstacleError(f"{what}: the vertices of a mesh of the region span no volume") from error
    return Volume(0, T, np.abs(points - middle).max(axis=0), faces)
