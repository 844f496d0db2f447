"""Shapes of MoveIt's messages to convex shapes and back, and to the volumes that a point of a link shall be in.

A cone becomes a polytope that contains it, a plane the solid half-space behind it, cut off at PLANE_REACH.
"""

from dataclasses import dataclass

import numpy as np
import trimesh
from geometry_msgs.msg import Point, Pose, Transform
from moveit_msgs.msg import BoundingVolume, CollisionObject
from scipy.spatial import ConvexHull, QhullError
from scipy.spatial.transform import Rotation
from shape_msgs.msg import Mesh, MeshTriangle, SolidPrimitive

from ...arm.collision.world import Piece
from ...arm.constraints import Volume as KeptVolume
from ...arm.geometry.decomposition import convex_pieces
from ...arm.geometry.polytope import outward_triangles
from ...arm.geometry.shapes import ConvexShape, ShapeKind
from ...errors import ObstacleError
from ..arm.conversions import points_of, pose_messages, pose_of

CONE_SIDES = 64  # of the polytope for a cone, whose radius is 0.12 % larger so that the cone is inside
PLANE_REACH = 50.0  # metres from the plane's origin to the sides of the box that stands for a half-space
DIMENSIONS = {  # of a SolidPrimitive: its name, and what each number is
    SolidPrimitive.BOX: ("BOX", ("x", "y", "z")),
    SolidPrimitive.SPHERE: ("SPHERE", ("radius",)),
    SolidPrimitive.CYLINDER: ("CYLINDER", ("height", "radius")),
    SolidPrimitive.CONE: ("CONE", ("height", "radius")),
}


def read_pose(message: Pose, name: str) -> np.ndarray:
    """(4, 4) of a geometry_msgs/Pose. A quaternion of zeros is no rotation, as in MoveIt. ObstacleError names it."""
    o = message.orientation
    return pose_of(message if any((o.x, o.y, o.z, o.w)) else Pose(position=message.position), name)


def read_transform(message: Transform, name: str) -> np.ndarray:
    """(4, 4) of a geometry_msgs/Transform, read as a pose is."""
    t = message.translation
    return read_pose(Pose(position=Point(x=t.x, y=t.y, z=t.z), orientation=message.rotation), name)


def read_shapes(message: CollisionObject) -> tuple[tuple[Piece, ...], np.ndarray]:
    """(pieces in the object's frame, (4, 4) pose of the object in the message's frame).

    As in MoveIt, the pose of an object's only shape is the object's pose where the message gives the object none.
    """
    name = message.id
    kinds = (
        ("primitives", message.primitives, message.primitive_poses, _primitive),
        ("meshes", message.meshes, message.mesh_poses, _mesh),
        ("planes", message.planes, message.plane_poses, _plane),
    )
    shapes = []
    for what, given, poses, make in kinds:
        if len(poses) not in (len(given), 0):
            text = f"{len(given)} {what} have {len(poses)} poses; allowed: one for each, or none"
            raise ObstacleError(f"'{name}': {text}")
        placed = [read_pose(pose, name) for pose in poses] or [np.eye(4)] * len(given)
        shapes += [(make, shape, pose) for shape, pose in zip(given, placed, strict=True)]
    pose = read_pose(message.pose, name)
    if len(shapes) == 1 and np.array_equal(pose, np.eye(4)):
        make, shape, pose = shapes[0]
        shapes = [(make, shape, np.eye(4))]
    return tuple(piece for make, shape, T in shapes for piece in make(name, shape, T)), pose


def dimensions(message: SolidPrimitive, name: str) -> tuple[int, list[float]]:
    """(type, numbers above 0 in metres) of a SolidPrimitive; ObstacleError names `name`."""
    if message.type not in DIMENSIONS:
        known = ", ".join(f"{kind} ({number})" for number, (kind, _) in DIMENSIONS.items())
        raise ObstacleError(f"'{name}': solid primitive type {message.type} is not known; allowed: {known}")
    kind, parts = DIMENSIONS[message.type]
    numbers = list(message.dimensions)[: len(parts)]
    if len(numbers) < len(parts) or not all(0 < number < np.inf for number in numbers):
        text = f"a {kind} needs the dimensions {', '.join(parts)}, finite and above 0 m; got {numbers}"
        raise ObstacleError(f"'{name}': {text}")
    return message.type, numbers


def vertices(message: Mesh, name: str) -> np.ndarray:
    """(V, 3) of a shape_msgs/Mesh, metres."""
    points = points_of(message.vertices)
    if not len(points) or not np.isfinite(points).all():
        raise ObstacleError(f"'{name}': a mesh needs vertices, all of them finite")
    return points


def write_shapes(message: CollisionObject, pieces: tuple[Piece, ...]) -> None:
    """Put pieces into a CollisionObject: primitives as such, polytopes as meshes."""
    shapes = [shape for piece in pieces for shape in ((piece,) if isinstance(piece, ConvexShape) else piece.shapes)]
    poses = pose_messages(np.array([shape.pose for shape in shapes]).reshape(-1, 4, 4))
    for shape, pose in zip(shapes, poses, strict=True):
        if shape.kind == ShapeKind.POLYTOPE:
            message.meshes.append(_mesh_message(shape.vertices))
            message.mesh_poses.append(pose)
        else:
            message.primitives.append(_primitive_message(shape))
            message.primitive_poses.append(pose)


def _primitive(name, message, pose):
    kind, numbers = dimensions(message, name)
    if kind == SolidPrimitive.BOX:
        return [ConvexShape.box(name, numbers, pose)]
    if kind == SolidPrimitive.SPHERE:
        return [ConvexShape.sphere(name, numbers[0], pose)]
    height, radius = numbers
    if kind == SolidPrimitive.CYLINDER:
        return [ConvexShape.cylinder(name, radius, height, pose)]
    turns = 2 * np.pi * np.arange(CONE_SIDES) / CONE_SIDES
    rim = radius / np.cos(np.pi / CONE_SIDES) * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    base = np.column_stack([rim, np.full(CONE_SIDES, -height / 2)])
    return [ConvexShape.convex_hull(name, np.vstack([base, [[0.0, 0.0, height / 2]]]), pose)]


def _mesh(name, message, pose):
    points = vertices(message, name)
    triangles = np.array([t.vertex_indices for t in message.triangles], dtype=np.int64).reshape(-1, 3)
    if not len(triangles) or triangles.max() >= len(points):
        text = f"a mesh needs triangles whose indices are below the number of its vertices, {len(points)}"
        raise ObstacleError(f"'{name}': {text}")
    return convex_pieces(name, trimesh.Trimesh(points, triangles), pose)


def _plane(name, message, pose):
    a, b, c, d = np.array(message.coef, dtype=np.float64)
    normal = np.array([a, b, c])
    length = np.linalg.norm(normal)
    if not np.isfinite([a, b, c, d]).all() or not length > 0:
        text = f"a plane needs four finite coefficients, not all of a, b, c 0; got {list(message.coef)}"
        raise ObstacleError(f"'{name}': {text}")
    T = np.eye(4)
    T[:3, :3] = Rotation.align_vectors([normal / length], [[0.0, 0.0, 1.0]])[0].as_matrix()
    T[:3, 3] = -d / length**2 * normal - PLANE_REACH / 2 * normal / length
    return [ConvexShape.box(name, [2 * PLANE_REACH, 2 * PLANE_REACH, PLANE_REACH], pose @ T)]


def _primitive_message(shape):
    x, y, z = (2 * shape.half_extents).tolist()
    kind, numbers = {
        ShapeKind.BOX: (SolidPrimitive.BOX, [x, y, z]),
        ShapeKind.CYLINDER: (SolidPrimitive.CYLINDER, [z, x / 2]),
        ShapeKind.SPHERE: (SolidPrimitive.SPHERE, [x / 2]),
    }[shape.kind]
    return SolidPrimitive(type=kind, dimensions=numbers)


def _mesh_message(points):
    triangles = outward_triangles(points)
    corners, numbers = np.unique(triangles.reshape(-1, 3), axis=0, return_inverse=True)
    return Mesh(
        vertices=[Point(x=x, y=y, z=z) for x, y, z in corners.tolist()],
        triangles=[MeshTriangle(vertex_indices=row.astype(np.uint32)) for row in numbers.reshape(-1, 3)],
    )


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

    def to_keep(self) -> KeptVolume:
        """The same for constraints of motions; SettingsError where it is too thin."""
        T, (x, _, z) = self.T_root_volume, self.half
        if len(self.faces):
            return KeptVolume.bounded(self.faces, T)
        if self.kind == SolidPrimitive.SPHERE:
            return KeptVolume.sphere(x, T)
        if self.kind in (SolidPrimitive.CYLINDER, SolidPrimitive.CONE):
            return (KeptVolume.cylinder if self.kind == SolidPrimitive.CYLINDER else KeptVolume.cone)(x, 2 * z, T)
        return KeptVolume.box(-self.half, self.half, T)

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
        volumes += [make(shape, T_root_frame @ read_pose(pose, what), what) for shape, pose in zip(given, poses)]
    if not volumes:
        raise ObstacleError(f"{what}: the region has neither primitives nor meshes")
    return tuple(volumes)


def _solid(message, T_root_volume, what):
    kind, numbers = dimensions(message, what)
    if kind == SolidPrimitive.BOX:
        half = np.array(numbers) / 2
    elif kind == SolidPrimitive.SPHERE:
        half = np.full(3, numbers[0])
    else:
        half = np.array([numbers[1], numbers[1], numbers[0] / 2])
    return Volume(kind, T_root_volume, half, np.zeros((0, 4)))


def _hull(message, T_root_volume, what):
    points = vertices(message, what)
    middle = points.mean(axis=0)
    T = T_root_volume.copy()
    T[:3, 3] = T_root_volume[:3, :3] @ middle + T_root_volume[:3, 3]
    try:
        faces = ConvexHull(points - middle).equations
    except (QhullError, ValueError) as error:
        raise ObstacleError(f"{what}: the vertices of a mesh of the region span no volume") from error
    return Volume(0, T, np.abs(points - middle).max(axis=0), faces)
