"""Obstacle markers as objects of the scene, as pure functions.

Every failure is an ObstacleError or a RequestError whose text names the marker.
"""

from collections.abc import Sequence

import numpy as np
import trimesh
from visualization_msgs.msg import Marker

from ...arm.geometry.decomposition import convex_pieces
from ...arm.geometry.shapes import ConvexShape
from ...errors import ObstacleError
from ..common.request_error import check_count
from ..common.ros import seconds
from . import codes
from .conversions import frame_transform, moved_by, points_of, pose_of
from .parameters import ArmParameters
from .scene_objects import ALWAYS, SceneObject, Source

MARKER_TYPES = {
    Marker.CUBE: "CUBE",
    Marker.CYLINDER: "CYLINDER",
    Marker.SPHERE: "SPHERE",
    Marker.TRIANGLE_LIST: "TRIANGLE_LIST",
    Marker.CUBE_LIST: "CUBE_LIST",
}
ROUND = {Marker.CYLINDER: (2, "x and y"), Marker.SPHERE: (3, "x, y and z")}  # how many axes have one scale; which


def obstacle_name(marker: Marker) -> str:
    """What the scene and all texts call the obstacle of a marker."""
    return f"{marker.ns}/{marker.id}"


def check_markers(markers: Sequence[Marker], values: ArmParameters) -> None:
    """Refuse obstacles that are more than the node's parameters allow, before anything is made of them."""
    count = sum(max(len(marker.points), 1) if marker.type == Marker.CUBE_LIST else 1 for marker in markers)
    check_obstacles(count, sum(triangle_count(marker) for marker in markers), values)


def check_obstacles(count: int, triangles: int, values: ArmParameters) -> None:
    """Refuse more obstacles, or triangles in them, than the node's parameters allow."""
    check_count("obstacles", count, "max_obstacles", values, codes.INVALID_OBJECT_NAME)
    check_count("triangles in obstacles", triangles, "max_triangles", values, codes.INVALID_OBJECT_NAME)


def triangle_count(marker: Marker) -> int:
    """Triangles of a TRIANGLE_LIST, else 0."""
    return len(marker.points) // 3 if marker.type == Marker.TRIANGLE_LIST else 0


def marker_object(marker: Marker, frames: dict[str, np.ndarray], now: float) -> SceneObject:
    """The object of a marker. now: seconds on the node's clock, from which its lifetime counts"""
    name, lifetime = obstacle_name(marker), seconds(marker.lifetime)
    T_root_frame = frame_transform(frames, marker.header.frame_id, f"obstacle '{name}'")
    return SceneObject(
        name,
        marker_shapes(marker, name, np.eye(4)),
        T_root_frame @ pose_of(marker.pose, name),
        Source.MARKERS,
        expires=now + lifetime if lifetime > 0 else ALWAYS,
        group=marker.ns,
        triangles=triangle_count(marker),
    )


def marker_shapes(marker: Marker, name: str, pose: np.ndarray) -> tuple[ConvexShape, ...]:
    """ConvexShapes of a marker at a pose (4, 4), whatever the marker's own pose is.

    Spheres and cylinders must be round, for the checker treats no ellipsoid exactly. Triangles become convex pieces
    that cover them.
    """
    if marker.type not in MARKER_TYPES:
        known = ", ".join(MARKER_TYPES.values())
        raise ObstacleError(f"'{name}': marker type {marker.type} is not an obstacle; known are {known}")
    kind, scale = MARKER_TYPES[marker.type], np.array([marker.scale.x, marker.scale.y, marker.scale.z])
    if not np.isfinite(scale).all() or (scale <= 0).any():
        raise ObstacleError(f"'{name}': the scale of a {kind} must be 3 finite numbers above 0, got {scale.tolist()}")
    count, axes = ROUND.get(marker.type, (1, ""))
    if np.ptp(scale[:count]) > 1e-6 * np.max(scale[:count]):
        raise ObstacleError(
            f"'{name}': a {kind} obstacle must be round, its scale in {axes} equal; got {scale[:count].tolist()}. "
            "Send an elliptic one as TRIANGLE_LIST"
        )
    if marker.type == Marker.CUBE:
        return (ConvexShape.box(name, scale, pose),)
    if marker.type == Marker.CYLINDER:
        return (ConvexShape.cylinder(name, scale[0] / 2, scale[2], pose),)
    if marker.type == Marker.SPHERE:
        return (ConvexShape.sphere(name, scale[0] / 2, pose),)
    if marker.type == Marker.CUBE_LIST:
        return tuple(ConvexShape.box(name, scale, pose @ moved_by(point)) for point in marker.points)
    return tuple(convex_pieces(name, _triangles(marker, name, scale), pose))


def _triangles(marker, name, scale):
    points = points_of(marker.points) * scale
    if not len(points) or len(points) % 3:
        raise ObstacleError(f"'{name}': a TRIANGLE_LIST needs 3 points for each triangle, got {len(points)}")
    if not np.isfinite(points).all():
        raise ObstacleError(f"'{name}': the points of the TRIANGLE_LIST must be finite")
    return trimesh.Trimesh(points, np.arange(len(points)).reshape(-1, 3))
