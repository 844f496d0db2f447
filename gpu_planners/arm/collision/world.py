"""CollisionWorld: named obstacles, each of one or several convex shapes, in the root frame of the robot."""

import os

import trimesh
from numpy.typing import ArrayLike

from ...errors import ObstacleError, shown
from ..geometry.decomposition import convex_pieces
from ..geometry.meshes import load_mesh
from ..geometry.shapes import ConvexShape, check_pose


class CollisionWorld:
    """Obstacles by name.

    Adding a name again replaces the obstacle; a malformed one raises ObstacleError and changes nothing.
    All poses are (4, 4), metres, in the root frame of the robot's URDF. `version` grows with every change.
    """

    def __init__(self) -> None:
        self._obstacles: dict[str, tuple[ConvexShape, ...]] = {}
        self.version = 0

    @property
    def names(self) -> tuple[str, ...]:
        """In the order in which they were added."""
        return tuple(self._obstacles)

    @property
    def shapes(self) -> tuple[ConvexShape, ...]:
        """All convex shapes; an obstacle of several pieces gives 'name#0', 'name#1', ..."""
        return tuple(shape for pieces in self._obstacles.values() for shape in pieces)

    def add_box(self, name: str, size: ArrayLike, pose: ArrayLike) -> None:
        """size: (3,) edge lengths along the pose's x, y, z, metres."""
        self._put(name, (ConvexShape.box(name, size, pose),))

    def add_cylinder(self, name: str, radius: float, height: float, pose: ArrayLike) -> None:
        """A cylinder centred at the pose, its axis along z; metres."""
        self._put(name, (ConvexShape.cylinder(name, radius, height, pose),))

    def add_sphere(self, name: str, radius: float, pose: ArrayLike) -> None:
        """A sphere centred at the pose; metres."""
        self._put(name, (ConvexShape.sphere(name, radius, pose),))

    def add_convex(self, name: str, vertices: ArrayLike, pose: ArrayLike) -> None:
        """The convex hull of vertices (V, 3), metres in the frame of the pose."""
        self._put(name, (ConvexShape.convex_hull(name, vertices, pose),))

    def add_mesh(self, name: str, mesh: trimesh.Trimesh | str | os.PathLike, pose: ArrayLike) -> None:
        """Convex pieces that cover a mesh, or the mesh of a file (see geometry.meshes), metres.

        A mesh of more than meshes.MOST_TRIANGLES triangles is refused, as is one with a vertex that is not finite.
        """
        pose = check_pose(name, pose)
        if not isinstance(mesh, trimesh.Trimesh):
            mesh = load_mesh(name, mesh)
        self._put(name, tuple(convex_pieces(name, mesh, pose)))

    def remove(self, name: str) -> None:
        """Raises ObstacleError when there is no obstacle of that name."""
        if not isinstance(name, str) or name not in self._obstacles:
            raise ObstacleError(
                f"no obstacle is named {shown(name)}; there are: {', '.join(self._obstacles) or 'none'}"
            )
        del self._obstacles[name]
        self.version += 1

    def clear(self) -> None:
        """Remove all obstacles."""
        self._obstacles.clear()
        self.version += 1

    def copy(self) -> "CollisionWorld":
        """An independent world with the same obstacles."""
        other = CollisionWorld()
        other._obstacles = dict(self._obstacles)
        return other

    def _put(self, name, pieces):
        if not isinstance(name, str) or not name:
            raise ObstacleError(f"an obstacle's name must be a non-empty text, got {shown(name)}")
        self._obstacles[name] = pieces
        self.version += 1
