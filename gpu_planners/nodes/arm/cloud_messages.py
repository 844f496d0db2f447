"""Messages of points and voxels to arrays, as pure functions: PointCloud2, OctoMap's Octomap, Nav2's VoxelGrid."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sensor_msgs.msg import PointCloud2, PointField

from ...arm.geometry.bricks import Bricks
from ...arm.geometry.octree import octree_leaves
from ...errors import ObstacleError

DTYPES = {PointField.FLOAT32: "f4", PointField.FLOAT64: "f8"}
LEVELS = 16  # of a column of a VoxelGrid
Near = Callable[[np.ndarray, float], np.ndarray]  # (N, 3) points in the root frame, metres -> (N,) are they near?


def cloud_points(message: PointCloud2) -> np.ndarray:
    """(N, 3) float32 or float64 x, y, z of a PointCloud2, in its frame, with those that are not finite."""
    fields = {one.name: one for one in message.fields}
    for axis in "xyz":
        if axis not in fields or fields[axis].datatype not in DTYPES:
            has = ", ".join(f"{one.name} (datatype {one.datatype})" for one in message.fields) or "none"
            raise ObstacleError(f"a point cloud needs fields x, y, z of FLOAT32 or FLOAT64; it has {has}")
    order = ">" if message.is_bigendian else "<"
    step, width, height = message.point_step, message.width, message.height
    end = max(fields[axis].offset + np.dtype(DTYPES[fields[axis].datatype]).itemsize for axis in "xyz")
    row_step = message.row_step or width * step
    if end > step or row_step < width * step or len(message.data) < height * row_step:
        raise ObstacleError(
            f"a point cloud of {height} rows of {width} points, {step} bytes each and {row_step} a row, needs x, y, z "
            f"within each point and {height * row_step} bytes; it has {len(message.data)}"
        )
    kind = np.dtype(
        {
            "names": list("xyz"),
            "formats": [order + DTYPES[fields[axis].datatype] for axis in "xyz"],
            "offsets": [fields[axis].offset for axis in "xyz"],
            "itemsize": step,
        }
    )
    rows = np.ndarray((height, width), kind, np.frombuffer(message.data, np.uint8), strides=(row_step, step))
    return np.stack([rows[axis].ravel() for axis in "xyz"], axis=1)


def octomap_bricks(name: str, message: Any, T_root_frame: np.ndarray, near: Near | None = None) -> Bricks:
    """The occupied voxels of an octomap_msgs/Octomap, binary or full. near: leaves out those that are the robot's"""
    data = np.frombuffer(message.data, np.uint8)
    cells, extents = octree_leaves(name, data, message.binary, message.id)
    if near is not None:
        cells, extents = without_own(cells, extents, message.resolution, T_root_frame, near)
    return Bricks.of_voxels(name, cells, message.resolution, T_root_frame, extents)


def voxel_grid_bricks(name: str, message: Any, T_root_frame: np.ndarray, near: Near | None = None) -> Bricks:
    """The marked voxels, not the unknown ones, of a nav2_msgs/VoxelGrid: in a column's number, bits z and z + 16 are
    set. near: leaves out those that are the robot's"""
    nx, ny, nz = message.size_x, message.size_y, message.size_z
    columns = np.array(message.data, np.uint32)
    if len(columns) != nx * ny or nz > LEVELS:
        raise ObstacleError(
            f"'{name}': a voxel grid of {nx} x {ny} x {nz} has {len(columns)} columns; allowed: {nx * ny}, "
            f"of up to {LEVELS} voxels"
        )
    marked = (columns & (columns >> np.uint32(LEVELS))).reshape(ny, nx)
    y, x, z = np.nonzero((marked[..., None] >> np.arange(nz, dtype=np.uint32)) & 1)
    size = np.array([message.resolutions.x, message.resolutions.y, message.resolutions.z])
    T_frame_grid = np.eye(4)
    T_frame_grid[:3, 3] = message.origin.x, message.origin.y, message.origin.z
    cells, T_root_grid = np.column_stack([x, y, z]), T_root_frame @ T_frame_grid
    if near is not None:
        cells, _ = without_own(cells, 1, size, T_root_grid, near)
    return Bricks.of_voxels(name, cells, size, T_root_grid)


def without_own(
    cells: np.ndarray, extents: np.ndarray | int, size: np.ndarray | float, T_root_grid: np.ndarray, near: Near
) -> tuple[np.ndarray, np.ndarray]:
    """(cells, extents) of the voxels that are not near the robot; larger voxels that may be near are split.

    cells, size: as of Bricks.of_voxels; extents: as there, powers of two
    near: whether the robot, and the padding about it, comes within so many metres of points
    """
    size = np.broadcast_to(size, 3)
    extents = np.broadcast_to(extents, len(cells))
    kept = [(np.zeros((0, 3), np.int64), np.zeros(0, np.int64))]
    for extent in sorted(2 ** np.arange(int(extents.max(initial=1)).bit_length()), reverse=True):
        these, others = cells[extents == extent], extents != extent
        centres = ((these + extent / 2) * size) @ T_root_grid[:3, :3].T + T_root_grid[:3, 3]
        own = near(centres, float(np.linalg.norm(size)) * extent / 2) if len(these) else np.zeros(0, bool)
        kept.append((these[~own], np.full(np.count_nonzero(~own), extent)))
        half = extent // 2
        corners = half * np.stack(np.meshgrid(*3 * [[0, 1]]), axis=-1).reshape(-1, 3)
        parts = (these[own][:, None] + corners).reshape(-1, 3) if half else np.zeros((0, 3), np.int64)
        cells = np.concatenate([cells[others], parts])
        extents = np.concatenate([extents[others], np.full(len(parts), half)])
    return np.concatenate([one for one, _ in kept]), np.concatenate([one for _, one in kept])
