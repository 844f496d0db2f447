"""Messages about a map to types and back, as pure functions: maps, updates, poses. GridMapError names what is wrong.

Long arrays go through array.array and np.frombuffer, which copy bytes and make no Python objects.
"""

import array
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, Pose, PoseArray, PoseStamped, Quaternion
from nav_msgs.msg import MapMetaData, OccupancyGrid
from numpy.typing import ArrayLike, DTypeLike
from std_msgs.msg import Header

from ...errors import GridMapError
from ...grid import GridMap

LEVEL = 1e-3  # rad that a map's origin may be tilted out of the plane
Origin = tuple[float, float, float]  # x, y, yaw
TYPE_CODES = {
    np.dtype(t): c
    for t, c in (("i1", "b"), ("u1", "B"), ("u2", "H"), ("i4", "i"), ("u4", "I"), ("u8", "Q"), ("f8", "d"))
}


@dataclass(frozen=True)
class Poses:
    """Poses of agents: points (N, 3) metres, quaternions (N, 4) x, y, z, w, zeros where none is given, their frame."""

    points: np.ndarray
    quaternions: np.ndarray
    frame: str

    def __len__(self):
        return len(self.points)

    def one(self, index: int) -> "Poses":
        """The pose of an agent, as Poses of one. A single pose is that of every agent."""
        k = index if len(self) > 1 else 0
        return Poses(self.points[k : k + 1], self.quaternions[k : k + 1], self.frame)


def as_array(values: ArrayLike, kind: DTypeLike) -> array.array:
    """The array.array that a message field of the NumPy type `kind` takes without looking at each value."""
    data = np.ascontiguousarray(values, kind)
    result = array.array(TYPE_CODES[data.dtype])
    result.frombytes(data.data.cast("B") if data.size else b"")
    return result


def occupancy(message: OccupancyGrid) -> tuple[np.ndarray, float, Origin]:
    """A map -> data (rows, cols) int8, resolution, origin (x, y, yaw)."""
    return grid_cells(message.info, message.data, np.int8)


def grid_cells(info: MapMetaData, cells: array.array, kind: DTypeLike) -> tuple[np.ndarray, float, Origin]:
    """The cells of a map -> (rows, cols) of the NumPy type `kind`, resolution, origin (x, y, yaw)."""
    data = np.frombuffer(cells, kind)
    if not info.width or not info.height:
        raise GridMapError(f"the map is empty: width {info.width}, height {info.height}; allowed: at least 1 each")
    if len(data) != (count := info.width * info.height):
        product = f"{info.width} * {info.height} = {count}"
        raise GridMapError(f"the map has {len(data)} cells; allowed: width * height = {product}")
    if not (math.isfinite(info.resolution) and info.resolution > 0):
        raise GridMapError(f"the map's resolution is {info.resolution}; allowed: above 0 (metres a tile), finite")
    return data.reshape(info.height, info.width), _metres(info.resolution), _planar_origin(info.origin)


def _metres(resolution):
    """A float32 of a message as the short decimal that was meant: 0.05, not 0.05000000074505806."""
    return float(str(np.float32(resolution)))


def _planar_origin(pose):
    """The pose of a map -> (x, y, yaw). A quaternion of zeros counts as no rotation, as in RViz."""
    p, o = pose.position, pose.orientation
    x, y, z, w = o.x, o.y, o.z, o.w
    norm = math.sqrt(x * x + y * y + z * z + w * w)
    if not all(map(math.isfinite, (p.x, p.y, norm))):
        raise GridMapError("the map's origin is not finite; allowed: finite position and orientation")
    if norm and math.hypot(x, y) > LEVEL * norm:
        raise GridMapError(
            f"the map's origin is tilted, orientation ({x}, {y}, {z}, {w}); allowed: a rotation about z only"
        )
    return p.x, p.y, 2 * math.atan2(z, w) if norm else 0.0


def map_update(message: Any, shape: tuple[int, int]) -> tuple[int, int, np.ndarray]:
    """map_msgs/OccupancyGridUpdate on a map (rows, cols) -> first row and column, data (height, width) int8."""
    return window_cells((message.x, message.y, message.width, message.height), message.data, np.int8, shape)


def window_cells(
    window: tuple[int, int, int, int], cells: array.array, kind: DTypeLike, shape: tuple[int, int]
) -> tuple[int, int, np.ndarray]:
    """The cells of a window on a map (rows, cols) -> first row and column, data (height, width) of the type `kind`.

    window: first column and row, width and height
    """
    x, y, width, height = window
    data = np.frombuffer(cells, kind)
    if len(data) != width * height:
        raise GridMapError(f"the map update has {len(data)} cells; allowed: width * height = {width} * {height}")
    if min(x, y) < 0 or y + height > shape[0] or x + width > shape[1]:
        raise GridMapError(
            f"the map update covers columns {x} to {x + width - 1} and rows {y} to "
            f"{y + height - 1}; allowed: inside the map of {shape[1]} columns and {shape[0]} rows"
        )
    return y, x, data.reshape(height, width)


def poses_of(message: PoseArray) -> Poses:
    """The poses of a message."""
    return as_poses(message.poses, message.header.frame_id)


def as_poses(poses: Sequence[Pose], frame: str) -> Poses:
    """Messages of poses in a frame."""
    parts = ((pose.position, pose.orientation) for pose in poses)
    numbers = (v for p, o in parts for v in (p.x, p.y, p.z, o.x, o.y, o.z, o.w))
    values = np.fromiter(numbers, float, 7 * len(poses)).reshape(-1, 7)
    return Poses(values[:, :3], values[:, 3:], frame)


def pose_of(message: PoseStamped) -> Poses:
    """The pose of a message, as Poses of one."""
    return as_poses([message.pose], message.header.frame_id)


def geometry_message(grid: GridMap) -> MapMetaData:
    """Where a map lies, without its time."""
    x, y, yaw = grid.origin
    origin = Pose(position=Point(x=x, y=y, z=0.0), orientation=turned(yaw))
    return MapMetaData(resolution=grid.resolution, width=grid.cols, height=grid.rows, origin=origin)


def pose_list(points: np.ndarray, yaws: np.ndarray) -> list[Pose]:
    """(N, 2 or more) metres, of which x and y count, and (N,) rad as messages; equal yaws share a Quaternion."""
    looks = {yaw: turned(yaw) for yaw in set(yaws.tolist())}
    return [
        Pose(position=Point(x=x, y=y, z=0.0), orientation=looks[yaw])
        for (x, y, *_), yaw in zip(points.tolist(), yaws.tolist(), strict=True)
    ]


def turned(yaw: float) -> Quaternion:
    """Quaternion of a rotation about z."""
    return Quaternion(x=0.0, y=0.0, z=math.sin(yaw / 2), w=math.cos(yaw / 2))


def map_message(grid: GridMap, header: Header) -> OccupancyGrid:
    """A map that shows what is planned on: 100 blocked, 0 the least cost, up to 99 the highest."""
    free = ~grid.blocked
    low, high = grid.least_cost, int(grid.costs.max())
    shown = np.full(grid.shape, 100, np.int8)
    shown[free] = (grid.costs[free].astype(np.int32) - low) * 99 // max(high - low, 1)
    return OccupancyGrid(header=header, info=geometry_message(grid), data=as_array(shown, np.int8))
