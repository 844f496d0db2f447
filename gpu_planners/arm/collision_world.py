"""CollisionWorld: named obstacles, each one or several convex shapes in the world frame (the root frame of the robot)."""

import trimesh

from ..errors import ObstacleError
from ..files import shown
from .decomposition import convex_pieces
from .mesh_files import load_mesh
from .shapes import ConvexShape, check_pose


class CollisionWorld:
    """Obstacles by name. Adding a name again replaces it; a malformed obstacle raises ObstacleError and changes nothing.

    All poses are (4, 4), metres, in the root frame of the robot's URDF. `version` grows with every change.
    """

    def __init__(self):
        self._obstacles = {}
        self.version = 0

    @property
    def names(self):
        return tuple(self._obstacles)

    @property
    def shapes(self):
        """All convex shapes; an obstacle of several pieces gives 'name#0', 'name#1', ..."""
        return tuple(shape for pieces in self._obstacles.values() for shape in pieces)

    def add_box(self, name, size, pose):
        """size: (3,) edge lengths along the pose's x, y, z."""
        self._put(name, (ConvexShape.box(name, size, pose),))

    def add_cylinder(self, name, radius, height, pose):
        """Centred, its axis along the pose's z."""
        self._put(name, (ConvexShape.cylinder(name, radius, height, pose),))

    def add_sphere(self, name, radius, pose):
        self._put(name, (ConvexShape.sphere(name, radius, pose),))

    def add_convex(self, name, vertices, pose):
        """Convex hull of vertices (V, 3)."""
        self._put(name, (ConvexShape.convex_hull(name, vertices, pose),))

    def add_mesh(self, name, mesh, pose):
        """mesh: trimesh.Trimesh, or the path of a mesh file (see mesh_files); metres; convex pieces that cover it

        A mesh of more than mesh_files.MOST_TRIANGLES is refused, as is one with a vertex that is not finite.
        """
        pose = check_pose(name, pose)
        if not isinstance(mesh, trimesh.Trimesh):
            mesh = load_mesh(name, mesh)
        self._put(name, tuple(convex_pieces(name, mesh, pose)))

    def remove(self, name):
        if not isinstance(name, str) or name not in self._obstacles:
            raise ObstacleError(f"no obstacle is named {shown(name)}; there are: {', '.join(self._obstacles) or 'none'}")
        del self._obstacles[name]
        self.version += 1

    def clear(self):
        self._obstacles.clear()
        self.version += 1

    def copy(self):
        """An independent world with the same obstacles."""
        other = CollisionWorld()
        other._obstacles = dict(self._obstacles)
        return other

    def _put(self, name, pieces):
        if not isinstance(name, str) or not name:
            raise ObstacleError(f"an obstacle's name must be a non-empty text, got {shown(name)}")
        self._obstacles[name] = pieces
        self.version += 1
