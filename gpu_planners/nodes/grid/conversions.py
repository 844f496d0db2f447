"""Grid messages to types and back, as pure functions: maps, updates, poses of agents, paths, clouds.

Long arrays go through array.array and np.frombuffer, which copy bytes and make no Python objects. Every failure is a
RequestError or a GridMapError whose text names the offender.
"""

import array
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, Pose, PoseArray, PoseStamped, Quaternion
from nav_msgs.msg import MapMetaData, OccupancyGrid, Path
from numpy.typing import ArrayLike, DTypeLike
from sensor_msgs.msg import PointCloud2, PointField
from std_msgs.msg import Header

from gpu_planners_msgs.srv import PlanAgents

from ...errors import GridMapError
from ...grid import AgentStatus, GridMap, PathSet
from ...grid.paths import COL_STEP, ROW_STEP
from ..common.request_error import RequestError
from . import codes

LEVEL = 1e-3  # rad that a map's origin may be tilted out of the plane
CODES = np.zeros(256, np.uint16)
for _status, _code in codes.CODE_OF_STATUS.items():
    CODES[_status] = _code
TYPE_CODES = {
    np.dtype(t): c
    for t, c in (("i1", "b"), ("u1", "B"), ("u2", "H"), ("i4", "i"), ("u4", "I"), ("u8", "Q"), ("f8", "d"))
}
CLOUD = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("code", "<u2"), ("agent", "<u4"), ("cost", "<f4")])
CLOUD_FIELDS = {"<f4": PointField.FLOAT32, "<u2": PointField.UINT16, "<u4": PointField.UINT32}


@dataclass(frozen=True)
class Poses:
    """Poses of agents: points (N, 3) metres, quaternions (N, 4) x, y, z, w, zeros where none is given, their frame."""

    points: np.ndarray
    quaternions: np.ndarray
    frame: str

    def __len__(self):
        return len(self.points)


def as_array(values: ArrayLike, kind: DTypeLike) -> array.array:
    """The array.array that a message field of the NumPy type `kind` takes without looking at each value."""
    data = np.ascontiguousarray(values, kind)
    result = array.array(TYPE_CODES[data.dtype])
    result.frombytes(data.data.cast("B") if data.size else b"")
    return result


def occupancy(message: OccupancyGrid) -> tuple[np.ndarray, float, tuple[float, float, float]]:
    """A map -> data (rows, cols) int8, resolution, origin (x, y, yaw)."""
    info = message.info
    data = np.frombuffer(message.data, np.int8)
    if not info.width or not info.height:
        raise GridMapError(f"the map is empty: width {info.width}, height {info.height}; allowed: at least 1 each")
    if len(data) != info.width * info.height:
        raise GridMapError(
            f"the map has {len(data)} cells; allowed: width * height = {info.width} * {info.height} = "
            f"{info.width * info.height}"
        )
    if not (math.isfinite(info.resolution) and info.resolution > 0):
        raise GridMapError(f"the map's resolution is {info.resolution}; allowed: above 0 (metres a tile), finite")
    return data.reshape(info.height, info.width), metres(info.resolution), planar_origin(info.origin)


def metres(resolution: float) -> float:
    """A float32 of a message as the short decimal that was meant: 0.05, not 0.05000000074505806."""
    return float(str(np.float32(resolution)))


def planar_origin(pose: Pose) -> tuple[float, float, float]:
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
    data = np.frombuffer(message.data, np.int8)
    if len(data) != message.width * message.height:
        raise GridMapError(
            f"the map update has {len(data)} cells; allowed: width * height = {message.width} * {message.height}"
        )
    if min(message.x, message.y) < 0 or message.y + message.height > shape[0] or message.x + message.width > shape[1]:
        raise GridMapError(
            f"the map update covers columns {message.x} to {message.x + message.width - 1} and rows {message.y} to "
            f"{message.y + message.height - 1}; allowed: inside the map of {shape[1]} columns and {shape[0]} rows"
        )
    return message.y, message.x, data.reshape(message.height, message.width)


def poses_of(message: PoseArray) -> Poses:
    """The poses of a message."""
    values = np.fromiter(
        (
            v
            for pose in message.poses
            for p, o in ((pose.position, pose.orientation),)
            for v in (p.x, p.y, p.z, o.x, o.y, o.z, o.w)
        ),
        float,
        7 * len(message.poses),
    ).reshape(-1, 7)
    return Poses(values[:, :3], values[:, 3:], message.header.frame_id)


def points_of(numbers: array.array, frame: str, what: str) -> Poses:
    """x, y, x, y, ... as poses without orientation."""
    if len(numbers) % 2:
        raise RequestError(codes.INVALID_REQUEST, f"{what} has {len(numbers)} numbers; allowed: x and y of each agent")
    points = np.zeros((len(numbers) // 2, 3))
    points[:, :2] = np.frombuffer(numbers, float).reshape(-1, 2)
    return Poses(points, np.zeros((len(points), 4)), frame)


def agent_count(request: PlanAgents.Request, name: str) -> int:
    """How many starts or goals a PlanAgents request gives, without a look at them. name: "starts" or "goals" """
    return max(len(getattr(request, name).poses), len(getattr(request, f"{name[:-1]}_points")) // 2)


def request_poses(request: PlanAgents.Request, name: str) -> Poses:
    """The starts or goals of a PlanAgents request. name: "starts" or "goals" """
    poses, numbers = getattr(request, name), getattr(request, f"{name[:-1]}_points")
    if poses.poses and len(numbers):
        raise RequestError(
            codes.INVALID_REQUEST, f"the request gives {name} twice, as poses and as points; allowed: one of them"
        )
    if len(numbers):
        return points_of(numbers, poses.header.frame_id, f"{name[:-1]}_points")
    return poses_of(poses)


def pose_of(message: PoseStamped) -> Poses:
    """The pose of a message, as poses of one agent."""
    p, o = message.pose.position, message.pose.orientation
    return Poses(np.array([[p.x, p.y, p.z]]), np.array([[o.x, o.y, o.z, o.w]]), message.header.frame_id)


def geometry_message(grid: GridMap) -> MapMetaData:
    """Where a map lies, without its time."""
    x, y, yaw = grid.origin
    return MapMetaData(
        resolution=grid.resolution,
        width=grid.cols,
        height=grid.rows,
        origin=Pose(position=Point(x=x, y=y, z=0.0), orientation=turned(yaw)),
    )


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


def path_message(grid: GridMap, tiles: np.ndarray, header: Header, goal_quaternion: np.ndarray | None = None) -> Path:
    """A path at the centres of tiles (K, 2), each pose looking at the next, the last one as the goal does.

    goal_quaternion: (4,) in the map's frame; None or zeros: as the pose before
    """
    if not len(tiles):
        return Path(header=header)
    moves = np.diff(tiles, axis=0)
    moves = np.concatenate([moves, moves[-1:] if len(moves) else [[0, 1]]])  # rows, columns
    looks = {
        (dr, dc): turned(math.atan2(dr, dc) + grid.origin[2]) for dr, dc in zip(ROW_STEP.tolist(), COL_STEP.tolist())
    }
    orientations = [looks[dr, dc] for dr, dc in moves.tolist()]
    if goal_quaternion is not None and np.isfinite(goal_quaternion).all() and np.any(goal_quaternion):
        x, y, z, w = (goal_quaternion / np.linalg.norm(goal_quaternion)).tolist()
        orientations[-1] = Quaternion(x=x, y=y, z=z, w=w)
    return Path(
        header=header,
        poses=[
            PoseStamped(header=header, pose=Pose(position=Point(x=x, y=y, z=0.0), orientation=orientation))
            for (x, y), orientation in zip(grid.centres_of(tiles).tolist(), orientations, strict=True)
        ],
    )


def fill_paths(response: PlanAgents.Response, paths: PathSet, with_steps: bool) -> None:
    """Put a PathSet into a PlanAgents response."""
    response.codes = as_array(CODES[paths.status], np.uint16)
    response.costs, response.lengths = as_array(paths.cost, float), as_array(paths.length, np.uint32)
    present = [AgentStatus(status) for status in np.unique(paths.status)]
    response.text_codes = as_array([codes.CODE_OF_STATUS[status] for status in present], np.uint16)
    response.code_texts = [paths.message(int(np.argmax(paths.status == status))) for status in present]
    response.bits = paths.bits
    if with_steps:
        response.start_tiles = as_array(paths.starts, np.int32)
        response.first, response.words = as_array(paths.first, np.uint64), as_array(paths.words, np.uint32)


def path_set_of(response: PlanAgents.Response) -> PathSet:
    """The paths of a response; ValueError when it holds no steps."""
    if len(response.first) != len(response.codes):
        raise ValueError("the response holds no steps: the request asked for none, or was refused")
    status_of = {code: int(status) for status, code in codes.CODE_OF_STATUS.items()}
    return PathSet(
        np.frombuffer(response.start_tiles, np.int32).reshape(-1, 2),
        np.array([status_of[code] for code in response.codes], np.uint8),
        np.frombuffer(response.costs, float),
        np.frombuffer(response.lengths, np.uint32).astype(np.int32),
        np.frombuffer(response.first, np.uint64).astype(np.int64),
        np.frombuffer(response.words, np.uint32),
        response.bits,
        response.planning_time_s,
    )


def agents_message(points: np.ndarray, paths: PathSet, header: Header) -> PointCloud2:
    """The agents at points (N, 2) as a cloud, with code, index and cost of each."""
    cloud = np.zeros(len(points), CLOUD)
    cloud["x"], cloud["y"] = points.T
    cloud["code"], cloud["agent"], cloud["cost"] = CODES[paths.status], np.arange(len(points)), paths.cost
    fields = [
        PointField(name=name, offset=offset, datatype=CLOUD_FIELDS[kind.str], count=1)
        for name, (kind, offset, *_) in (CLOUD.fields or {}).items()
    ]
    return PointCloud2(
        header=header,
        height=1,
        width=len(cloud),
        fields=fields,
        point_step=CLOUD.itemsize,
        row_step=cloud.nbytes,
        data=as_array(cloud.view(np.uint8), np.uint8),
        is_dense=bool(np.isfinite(points).all()),
    )
