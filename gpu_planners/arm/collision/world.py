"""CollisionWorld: named obstacles, each of one or several convex shapes, in the root frame of the robot."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import lazy_loader
import numpy as np
from numpy.typing import ArrayLike

from ...arguments import checked
from ...errors import ObstacleError, shortened, shown
from ..geometry.bricks import Bricks
from ..geometry.decomposition import convex_pieces
from ..geometry.meshes import load_mesh
from ..geometry.shapes import ConvexShape, check_pose

if TYPE_CHECKING:
    import trimesh
else:  # takes a fifth of a second, and only meshes need it
    trimesh = lazy_loader.load("trimesh")

Piece = ConvexShape | Bricks
_versions = itertools.count(1)  # of all worlds, so that no two of them have the same


@checked(ObstacleError)
class CollisionWorld:
    """Obstacles by name.

    Adding a name again replaces the obstacle; a malformed one raises ObstacleError and changes nothing.
    All poses are (4, 4), metres, in the root frame of the robot's URDF. `version` grows with every change, and no
    two worlds have the same.
    """

    def __init__(self) -> None:
        self._obstacles: dict[str, tuple[Piece, ...]] = {}
        self._poses: dict[str, np.ndarray] = {}
        self.version = next(_versions)

    def __getstate__(self) -> dict:
        return {"_obstacles": self._obstacles, "_poses": self._poses}

    def __setstate__(self, state: dict) -> None:
        self._obstacles, self._poses, self.version = state["_obstacles"], state["_poses"], next(_versions)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the obstacles, in the order in which they were added."""
        return tuple(self._obstacles)

    @property
    def shapes(self) -> tuple[ConvexShape, ...]:
        """All convex shapes; an obstacle of several pieces gives 'name#0', 'name#1', ..."""
        return tuple(
            shape for piece in self.pieces for shape in (piece.shapes if isinstance(piece, Bricks) else (piece,))
        )

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """`shapes`, with the voxels of an obstacle still together."""
        return tuple(piece for pieces in self._obstacles.values() for piece in pieces)

    def shape_name(self, index: int) -> str:
        """The name of shapes[index], at once also among many voxels; ObstacleError for an index that none has."""
        asked = index
        for piece in self.pieces:
            count = len(piece) if isinstance(piece, Bricks) else 1
            if 0 <= index < count:
                return f"{piece.name}#{index}" if isinstance(piece, Bricks) else piece.name
            index -= count
        raise ObstacleError(f"there is no shape {asked}; allowed: 0 to {asked - index - 1}")

    def pieces_of(self, name: str) -> tuple[Piece, ...]:
        """Those of one obstacle; ObstacleError when there is none of that name."""
        if name not in self._obstacles:
            known = shortened(", ".join(self._obstacles) or "none")
            raise ObstacleError(f"no obstacle is named {shown(name)}; there are: {known}")
        return self._obstacles[name]

    def pose_of(self, name: str) -> np.ndarray:
        """(4, 4) the pose that an obstacle was added with; of `add_shapes`, whose shapes have their own, the identity.
        ObstacleError when there is none of that name."""
        self.pieces_of(name)  # raises where there is none
        return self._poses[name].copy()

    def add_box(self, name: str, size: ArrayLike, pose: ArrayLike) -> None:
        """size: (3,) edge lengths along the pose's x, y, z, metres."""
        self._put(name, (ConvexShape.box(name, size, pose),), pose)

    def add_cylinder(self, name: str, radius: float, height: float, pose: ArrayLike) -> None:
        """A cylinder centred at the pose, its axis along z; metres."""
        self._put(name, (ConvexShape.cylinder(name, radius, height, pose),), pose)

    def add_sphere(self, name: str, radius: float, pose: ArrayLike) -> None:
        """A sphere centred at the pose; metres."""
        self._put(name, (ConvexShape.sphere(name, radius, pose),), pose)

    def add_convex(self, name: str, vertices: ArrayLike, pose: ArrayLike) -> None:
        """The convex hull of vertices (V, 3), metres in the frame of the pose."""
        self._put(name, (ConvexShape.convex_hull(name, vertices, pose),), pose)

    def add_mesh(self, name: str, mesh: trimesh.Trimesh | str | os.PathLike, pose: ArrayLike) -> None:
        """Convex pieces that cover a mesh, or the mesh of a file (see geometry.meshes), metres.

        A mesh of more than meshes.MOST_TRIANGLES triangles is refused, as is one with a vertex that is not finite.
        """
        pose = check_pose(name, pose)
        if not isinstance(mesh, trimesh.Trimesh):
            mesh = load_mesh(name, mesh)
        self._put(name, tuple(convex_pieces(name, mesh, pose)), pose)

    def add_voxels(self, name: str, cells: ArrayLike, size: ArrayLike, pose: ArrayLike, extents: ArrayLike = 1) -> None:
        """Voxels of a grid as one obstacle, exact: those that touch are merged into boxes whose union is the same.

        cells: (N, 3) whole numbers, in any order; voxel i spans cells[i] * size to (cells[i] + extents[i]) * size in
            the frame of `pose`. Of points (M, 3): np.floor(points / size), see geometry.bricks.cells_of
        size: edge length of a cell, or (3,) along x, y and z, metres
        extents: (N,) or one whole number from 1: edge lengths in cells, as of the leaves of an octree
        """
        self._put(name, (Bricks.of_voxels(name, cells, size, pose, extents),), pose)

    def add_shapes(self, name: str, shapes: Iterable[Piece], pose: ArrayLike | None = None) -> None:
        """One obstacle of shapes that keep their names, posed in the frame of `pose`, or in the root frame already."""
        pieces, at = tuple(shapes), np.eye(4) if pose is None else check_pose(name, pose)
        if not all(isinstance(piece, Piece) for piece in pieces):
            raise ObstacleError(f"'{name}': shapes must be ConvexShapes or Bricks, got {shown(pieces)}")
        if pose is not None:
            if any(isinstance(piece, Bricks) for piece in pieces):
                raise ObstacleError(f"'{name}': voxels are posed by add_voxels; allowed with a pose: ConvexShapes")
            pieces = tuple(piece.moved(at) for piece in pieces)
        self._put(name, pieces, at)

    def remove(self, name: str) -> None:
        """Raises ObstacleError when there is no obstacle of that name."""
        self.pieces_of(name)  # raises where there is none
        del self._obstacles[name], self._poses[name]
        self.version = next(_versions)

    def clear(self) -> None:
        """Remove all obstacles."""
        self._obstacles.clear()
        self._poses.clear()
        self.version = next(_versions)

    def copy(self) -> CollisionWorld:
        """An independent world with the same obstacles."""
        other = CollisionWorld()
        other._obstacles, other._poses = dict(self._obstacles), dict(self._poses)
        return other

    def _put(self, name, pieces, pose):
        if not isinstance(name, str) or not name:
            raise ObstacleError(f"an obstacle's name must be a non-empty text, got {shown(name)}")
        self._obstacles[name], self._poses[name] = pieces, check_pose(name, pose)
        self.version = next(_versions)
