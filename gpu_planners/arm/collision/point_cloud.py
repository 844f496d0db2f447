"""Point clouds to voxels: of the points that a camera or a laser sees, those that are not the robot's.

Pure functions of arrays; `CollisionWorld.add_voxels` takes what comes out.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ObstacleError
from ...ranges import GREATEST_LENGTH
from ..geometry.bricks import cells_of
from ..robot.model import RobotModel
from .near_robot import near_robot

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
