"""Point clouds to voxels: of the points that a camera or a laser sees, those that are not the robot's.

A camera sees the robot too, which is no obstacle. `CollisionWorld.add_voxels` takes what comes out.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...device import njit
from ...errors import ObstacleError
from ...parallel.threads import in_parts
from ...ranges import GREATEST_LENGTH
from ...settings import Setting
from ..geometry.bricks import cells_of
from ..geometry.kinds import POLYTOPE, bound_distance
from ..geometry.poses import minus
from ..robot.model import RobotModel
from .packing import body
from .separation import closest_on_segment, closest_on_tetrahedron, closest_on_triangle, dot

PADDING = Setting(0.02, "Distance from the robot's shapes within which points are the robot's own", 0.0, 10.0)
STEPS = 64  # of a search, which takes some ten
CONVERGED = 1e-9  # relative, of the squared distance
EVERYWHERE = np.array([[-GREATEST_LENGTH] * 3, [GREATEST_LENGTH] * 3])


class Voxels(NamedTuple):
    """cells: (N, 3) int64, distinct; size: edge length of a cell, metres; cell c spans c * size to (c + 1) * size"""

    cells: np.ndarray
    size: float


def points_in_root(points: np.ndarray, T_root_cloud: ArrayLike, box: np.ndarray = EVERYWHERE) -> np.ndarray:
    """(M, 3) float64, metres in the root frame: the points (N, 3) that are finite and inside a box.

    T_root_cloud: (4, 4); box: (2, 3) lowest and highest x, y, z in the root frame
    """
    if points.ndim != 2 or points.shape[1] != 3:
        raise ObstacleError(f"points must have shape (N, 3), got {points.shape}")
    T = np.asarray(T_root_cloud, dtype=np.float64)
    points = points[np.isfinite(points).all(axis=1)]
    placed = points.astype(np.float64) @ T[:3, :3].T + T[:3, 3]
    return placed[((placed >= box[0]) & (placed <= box[1])).all(axis=1)]


def obstacle_voxels(
    points: np.ndarray,
    size: float,
    robot: RobotModel | None = None,
    q: ArrayLike | None = None,
    padding: float = 0.0,
    most: int | None = None,
) -> Voxels:
    """The voxels that hold a point which is not the robot's own.

    points: (N, 3) finite, metres in the root frame
    size: edge length of a voxel, metres
    robot, q: points within `padding` metres of the robot's shapes at q (dof,) are left out; None: all points count
    most: where there are more voxels than that, they are made twice as large until there are not, so nothing is lost
    """
    if robot is not None and q is not None:
        points = points[~near_robot(robot, q, points, padding)]
    voxels = Voxels(cells_of(points, size), float(size))
    while most is not None and len(voxels.cells) > most:
        voxels = Voxels(cells_of(voxels.cells, 2), 2 * voxels.size)
    return voxels


def near_robot(robot: RobotModel, q: ArrayLike, points: np.ndarray, padding: float = PADDING.default) -> np.ndarray:
    """(N,) bool: is a point within `padding` metres of a shape of the robot, or of what it carries, at q (dof,)?

    points: (N, 3) finite, metres in the root frame
    Distances are exact to a micrometre. Runs on one thread without holding up others.
    """
    padding = PADDING.checked("padding", padding)
    points = np.asarray(points)
    if points.ndim != 2 or points.shape[1] != 3:
        raise ObstacleError(f"points must have shape (N, 3), got {points.shape}")
    near = np.zeros(len(points), bool)
    if not len(robot.shapes) or not len(points):
        return near
    bodies = [body(shape) for shape in robot.shapes]
    T_root_frames = [*robot.frame_poses(q)[0], np.eye(4)]  # the last one for frame -1, the root
    T_root_shapes = [T_root_frames[f] @ one.shape.pose for one, f in zip(bodies, robot.shape_frame, strict=True)]
    vertices = [one.shape.vertices for one in bodies]
    shapes = _Shapes(
        np.linalg.inv(np.array(T_root_shapes)),
        np.array([int(one.shape.kind) for one in bodies]),
        np.array([one.shape.half_extents for one in bodies]),
        np.array([one.ball for one in bodies]),
        np.concatenate(vertices),
        np.concatenate([[0], np.cumsum([len(one) for one in vertices])]),
    )
    for some, marks in in_parts(points, near):
        some = np.ascontiguousarray(some, dtype=np.float64)
        if not np.isfinite(some).all():
            raise ObstacleError("points must be finite")
        _mark_near(some, padding, shapes, marks)
    return near


class _Shapes(NamedTuple):
    """The robot's shapes at one configuration, arrays over all of them.

    poses: (S, 4, 4) T_shape_root; kinds: (S,); halves: (S, 3); balls: (S, 4) in the shape's frame
    vertices: (V, 3) of all polytopes; first: (S + 1,) where those of each shape begin
    """

    poses: np.ndarray
    kinds: np.ndarray
    halves: np.ndarray
    balls: np.ndarray
    vertices: np.ndarray
    first: np.ndarray


@njit
def _mark_near(points, padding, shapes, near):
    for i in range(len(points)):
        for s in range(len(shapes.kinds)):
            T, ball, half = shapes.poses[s], shapes.balls[s], shapes.halves[s]
            x = T[0, 0] * points[i, 0] + T[0, 1] * points[i, 1] + T[0, 2] * points[i, 2] + T[0, 3]
            y = T[1, 0] * points[i, 0] + T[1, 1] * points[i, 1] + T[1, 2] * points[i, 2] + T[1, 3]
            z = T[2, 0] * points[i, 0] + T[2, 1] * points[i, 1] + T[2, 2] * points[i, 2] + T[2, 3]
            dx, dy, dz, reach = x - ball[0], y - ball[1], z - ball[2], ball[3] + padding
            if dx * dx + dy * dy + dz * dz > reach * reach:
                continue
            if bound_distance(shapes.kinds[s], half[0], half[1], half[2], x, y, z) > padding:
                continue
            if shapes.kinds[s] != POLYTOPE or _near_hull(
                (x, y, z), padding, shapes.vertices[shapes.first[s] : shapes.first[s + 1]]
            ):
                near[i] = True
                break


@njit
def _near_hull(point, padding, vertices):
    """Is a point within `padding` of the hull of vertices (V, 3)? By the distance algorithm of Gilbert, Johnson and
    Keerthi (1988); it ends as soon as a bound decides."""
    n = 1
    p0 = p1 = p2 = v = minus(vertices[0], point)
    for _ in range(STEPS):
        squared = dot(v, v)
        if squared <= padding * padding or squared <= 1e-18:
            return True
        best, at = np.inf, 0
        for k in range(len(vertices)):
            value = vertices[k, 0] * v[0] + vertices[k, 1] * v[1] + vertices[k, 2] * v[2]
            if value < best:
                best, at = value, k
        r = minus(vertices[at], point)
        lower = dot(r, v)  # no point of the hull is nearer than this over |v|
        if lower > 0.0 and lower * lower > padding * padding * squared:
            return False
        if squared - lower <= CONVERGED * squared:
            return squared <= padding * padding
        if n == 1:
            n, p0, p1, v = closest_on_segment(r, p0)
        elif n == 2:
            n, p0, p1, p2, v = closest_on_triangle(r, p0, p1)
        else:
            n, p0, p1, p2, v = closest_on_tetrahedron(r, p0, p1, p2)
            if n == 4:  # the point is inside
                return True
    return dot(v, v) <= padding * padding
