"""Messages about a map to types and back: maps and updates of every kind, poses. GridMapError names what is wrong.

Long arrays go through array.array and np.frombuffer, which copy bytes and make no Python objects.
"""

import array
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, Pose, PoseArray, PoseStamped, Quaternion
from nav_msgs.msg import MapMetaData, OccupancyGrid
from numpy.typing import ArrayLike, DTypeLike
from std_msgs.msg import Header

from ...errors import GridMapError
from ...grid import GridMap
from ...grid.maps.grid_map import looked_up

# nav2_costmap_2d has costs 0 to 252, 253 where a robot's centre would touch an obstacle, 254 on one, 255 unknown
INSCRIBED, LETHAL, UNKNOWN = 253, 254, 255
HIGHEST = 252  # of the costs of tiles that a robot's centre may enter
LEVEL = 1e-3  # rad that a map's origin may be tilted out of the plane
Origin = tuple[float, float, float]  # x, y, yaw


@dataclass(frozen=True)
class Poses:
    """Poses of agents: points (N, 3) metres, quaternions (N, 4) x, y, z, w, zeros where none is given, their frame."""

    points: np.ndarray
    quaternions: np.ndarray
    frame: str

    def __len__(self):
        return len(self.points)

    def __getitem__(self, some: slice) -> "Poses":
        return Poses(self.points[some], self.quaternions[some], self.frame)

    def one(self, index: int) -> "Poses":
        """The pose of an agent, as Poses of one. A single pose is that of every agent."""
        return self[index : index + 1] if len(self) > 1 else self


def as_array(values: ArrayLike, kind: DTypeLike) -> array.array:
    """The array.array that a message field of the NumPy type `kind` takes without looking at each value."""
    data = np.ascontiguousarray(values, kind)
    result = array.array(data.dtype.char.replace("L", "Q"))  # messages take uint64 as Q alone
    result.frombytes(data.data.cast("B") if data.size else b"")
    return result


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


def poses_of(message: PoseArray) -> Poses:
    return as_poses(message.poses, message.header.frame_id)


def as_poses(poses: Sequence[Pose], frame: str) -> Poses:
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


@dataclass(frozen=True)
class MapKind:
    """A kind of messages that maps come in.

    map, update: module and name of the messages
    costs: what makes Nav2's costs uint8 of their values int8; None where these are occupancies
    """

    map: tuple[str, str]
    update: tuple[str, str]
    costs: Callable[[np.ndarray], np.ndarray] | None = None

    def read(self, message: Any) -> tuple[np.ndarray, float, Origin]:
        """A map -> cells (rows, cols), resolution, origin (x, y, yaw)"""
        info, values = getattr(message, "info", None) or message.metadata, np.frombuffer(message.data, np.int8)
        width, height = _size(info)
        if not width or not height:
            raise GridMapError(f"the map is empty: width {width}, height {height}; allowed: at least 1 each")
        if len(values) != (count := width * height):
            product = f"{width} * {height} = {count}"
            raise GridMapError(f"the map has {len(values)} cells; allowed: width * height = {product}")
        if not (math.isfinite(info.resolution) and info.resolution > 0):
            raise GridMapError(f"the map's resolution is {info.resolution}; allowed: above 0 (metres a tile), finite")
        resolution = float(str(np.float32(info.resolution)))  # as it was meant: 0.05, not 0.05000000074505806
        return self._cells(values.reshape(height, width)), resolution, _planar_origin(info.origin)

    def read_update(self, message: Any, shape: tuple[int, int]) -> tuple[int, int, np.ndarray]:
        """An update of a map (rows, cols) -> first row and column, cells (height, width)"""
        x, y, (width, height) = message.x, message.y, _size(message)
        values = np.frombuffer(message.data, np.int8)
        if len(values) != width * height:
            raise GridMapError(f"the map update has {len(values)} cells; allowed: width * height = {width} * {height}")
        if min(x, y) < 0 or y + height > shape[0] or x + width > shape[1]:
            raise GridMapError(
                f"the map update covers columns {x} to {x + width - 1} and rows {y} to "
                f"{y + height - 1}; allowed: inside the map of {shape[1]} columns and {shape[0]} rows"
            )
        return y, x, self._cells(values.reshape(height, width))

    def _cells(self, values):
        return values if self.costs is None else self.costs(values)


def _size(message):
    return (message.width, message.height) if hasattr(message, "width") else (message.size_x, message.size_y)


def nav2_costs(values: np.ndarray) -> np.ndarray:
    """Nav2's costs uint8 of the values int8 that nav2_costmap_2d publishes as an OccupancyGrid, 0 to 100."""
    wrong = (values < -1) | (values > 100)
    if wrong.any():
        raise GridMapError(f"the costmap has the value {values[wrong][0]}; allowed: -1 (unknown), 0 .. 100")
    table = np.zeros(256, np.uint8)
    table[1:99] = 1 + np.rint(251 * np.arange(98) / 97)
    table[99:101], table[255] = (INSCRIBED, LETHAL), UNKNOWN
    return looked_up(table, values)


OCCUPANCY = ("nav_msgs.msg", "OccupancyGrid"), ("map_msgs.msg", "OccupancyGridUpdate")
MAP_KINDS = {
    "occupancy": MapKind(*OCCUPANCY),
    "costmap": MapKind(*OCCUPANCY, nav2_costs),
    "costmap_raw": MapKind(
        ("nav2_msgs.msg", "Costmap"), ("nav2_msgs.msg", "CostmapUpdate"), lambda values: values.view(np.uint8)
    ),
}


def cost_table(neutral: int, factor: float, unknown: int) -> np.ndarray:
    """(256,) uint8 tile costs of Nav2's costs: neutral + factor * cost, as in Nav2's NavFn planner, 0 where blocked.

    unknown: cost of unknown tiles, 0 blocked
    """
    costs = np.zeros(256, np.uint8)
    costs[: HIGHEST + 1] = np.clip(np.rint(neutral + factor * np.arange(HIGHEST + 1)), 1, 255)
    costs[UNKNOWN] = unknown
    return costs
