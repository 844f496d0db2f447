"""Checks of an arm's path: free of collision by pinocchio and coal, and within the URDF's limits."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import checked
from ..errors import ConfigurationError
from .limits import broken_rules
from .scene import CoalScene, Meeting
from .shapes import encloses, is_mesh, point_in


@dataclass(frozen=True)
class PathReport:
    """What pinocchio and coal say of a path.

    contact: where two bodies first overlap by more than the tolerance, None where the path is free
    nearest: where two bodies come nearest, or overlap most, None where none could meet; within the spacing of the check
    configurations: how many were looked at
    broken: the limits of joints that it breaks, as texts
    """

    contact: Meeting | None
    nearest: Meeting | None
    configurations: int
    broken: tuple[str, ...]

    @property
    def free(self) -> bool:
        """No two bodies overlap by more than the tolerance."""
        return self.contact is None

    @property
    def within_limits(self) -> bool:
        """Every row is within the limits of the joints."""
        return not self.broken


@checked(ConfigurationError)
def check_path(
    path: ArrayLike,
    urdf: CoalScene | str | os.PathLike,
    srdf: str | os.PathLike | None = None,
    obstacles: str | os.PathLike | Sequence[Mapping[str, Any]] = (),
    spacing: float = 0.001,
    tolerance: float = 0.0,
    **options: Any,
) -> PathReport:
    """What pinocchio and coal say of a path (K, dof), straight in joint space between rows, rad or m.

    urdf, srdf, obstacles, options: of a CoalScene, or the scene itself in place of the URDF
    spacing: of the check, metres: between two looks at a pair of bodies no point moves farther relative to the other
        body, unless the pair cannot meet, nor come nearer than others did
    tolerance: overlaps of less, metres, count as free
    """
    scene = urdf if isinstance(urdf, CoalScene) else CoalScene(urdf, srdf, obstacles, **options)
    contact = nearest = last = None
    configurations = 0
    for each in scene.measured(path, spacing, least=True):
        configurations += each[:2] != last
        last = each[:2]
        if nearest is None or each.distance < nearest.distance:
            nearest = each
        if contact is None and each.distance <= -tolerance:
            contact = each
    rows = np.atleast_2d(np.asarray(path, dtype=float))
    if inside := _first_inside(scene, rows[0]):  # later none gets in without a contact
        contact = nearest = inside
    return PathReport(contact, nearest, configurations, broken_rules(scene, rows))


def _first_inside(scene, q):
    """Meeting of two bodies of which one is wholly inside the other's mesh."""
    poses, objects = scene.placed(q), scene.geometry.geometryObjects
    for i, pair in enumerate(scene.geometry.collisionPairs):
        for a, b in ((pair.first, pair.second), (pair.second, pair.first)):
            mesh = objects[a].geometry
            if is_mesh(mesh):
                point = poses[a].actInv(poses[b].act(point_in(objects[b].geometry)))
                mesh.computeLocalAABB()
                if np.linalg.norm(point - mesh.aabb_center) <= mesh.aabb_radius and encloses(mesh, point):
                    return Meeting(0, 0.0, scene.pair_names[i], -abs(scene.pair_distances(q)[i]))
    return None
