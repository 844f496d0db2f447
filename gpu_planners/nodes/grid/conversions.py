"""Messages of the grid planner to types and back, as pure functions: poses of agents, paths, clouds.

Every failure is a RequestError whose text names the offender.
"""

import math

import numpy as np
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion
from nav_msgs.msg import Path
from sensor_msgs.msg import PointCloud2, PointField
from std_msgs.msg import Header

from gpu_planners_msgs.srv import PlanAgents

from ...grid import AgentStatus, GridMap, PathSet
from ..common import map_codes as codes
from ..common.map_messages import Poses, as_array, poses_of, turned
from ..common.request_error import RequestError

CODE_OF_STATUS = {
    AgentStatus.SOLVED: codes.NONE,
    AgentStatus.NO_PATH: codes.NO_VALID_PATH,
    AgentStatus.START_OUTSIDE: codes.START_OUTSIDE_MAP,
    AgentStatus.GOAL_OUTSIDE: codes.GOAL_OUTSIDE_MAP,
    AgentStatus.START_BLOCKED: codes.START_OCCUPIED,
    AgentStatus.GOAL_BLOCKED: codes.GOAL_OCCUPIED,
    AgentStatus.START_NOT_FINITE: codes.START_NOT_FINITE,
    AgentStatus.GOAL_NOT_FINITE: codes.GOAL_NOT_FINITE,
    AgentStatus.OUT_OF_MEMORY: codes.OUT_OF_MEMORY,
    AgentStatus.LOOP: codes.LOOP,
    AgentStatus.STEP_LIMIT: codes.STEP_LIMIT,
    AgentStatus.TIMED_OUT: codes.TIMEOUT,
}
ALIKE = 1e-12  # orientations are, whose half angle between them has a cosine so near to 1
CODES = np.zeros(256, np.uint16)  # by status
CODES[list(CODE_OF_STATUS)] = list(CODE_OF_STATUS.values())
CLOUD = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("code", "<u2"), ("agent", "<u4"), ("cost", "<f4")])
CLOUD_FIELDS = {"<f4": PointField.FLOAT32, "<u2": PointField.UINT16, "<u4": PointField.UINT32}


def request_poses(request: PlanAgents.Request, name: str) -> Poses:
    """The starts or goals of a PlanAgents request, given as poses or as numbers x, y, x, y, ...

    name: "starts" or "goals"
    """
    poses, field = getattr(request, name), f"{name[:-1]}_points"
    numbers = getattr(request, field)
    if not len(numbers):
        return poses_of(poses)
    if poses.poses:
        text = f"the request gives {name} twice, as poses and as points; allowed: one of them"
        raise RequestError(codes.INVALID_REQUEST, text)
    if len(numbers) % 2:
        text = f"{field} has {len(numbers)} numbers; allowed: x and y of each agent"
        raise RequestError(codes.INVALID_REQUEST, text)
    points = np.pad(np.frombuffer(numbers, float).reshape(-1, 2), ((0, 0), (0, 1)))
    return Poses(points, np.zeros((len(points), 4)), poses.header.frame_id)


def path_message(
    grid: GridMap, tiles: np.ndarray, header: Header, start: Poses | None = None, goal: Poses | None = None
) -> Path:
    """A path at the centres of tiles (K, 2), each pose looking at the next, the last one as the pose before it.

    start, goal: poses of one agent in the map's frame, in the first and the last tile: the path begins and ends there
        exactly, looking as they do where they have an orientation. In one tile they are two poses, or one where they
        are equal

    A line from any point of a tile to any of the next one's stays in tiles that the step needs free.
    """
    if not len(tiles):
        return Path(header=header)
    if len(tiles) == 1 and start is not None and goal is not None and not _are_equal(start, goal):
        tiles = np.repeat(tiles, 2, axis=0)
    last = len(tiles) - 1
    ends = [(k, pose) for k, pose in ((0, start), (last, goal)) if pose is not None]
    points, moves = np.pad(grid.centres_of(tiles), ((0, 0), (0, 1))), np.diff(tiles, axis=0)
    for k, pose in ends:
        points[k] = pose.points[0]
    yaws = (np.arctan2(moves[:, 0], moves[:, 1]) + grid.origin[2]).tolist()
    for k in {0, last - 1} if last else ():
        x, y, _ = points[k + 1] - points[k]
        yaws[k] = math.atan2(y, x)
    yaws.append(yaws[-1] if last else grid.origin[2])
    looks = {yaw: turned(yaw) for yaw in set(yaws)}
    orientations = [looks[yaw] for yaw in yaws]
    for k, pose in ends:
        if (given := pose.quaternions[0]).any():
            orientations[k] = Quaternion(**dict(zip("xyzw", (given / np.linalg.norm(given)).tolist())))
    return Path(
        header=header,
        poses=[
            PoseStamped(header=header, pose=Pose(position=Point(x=x, y=y, z=z), orientation=orientation))
            for (x, y, z), orientation in zip(points.tolist(), orientations, strict=True)
        ],
    )


def _are_equal(one, other):
    """Is one pose the other, as far as both have an orientation?"""
    a, b = one.quaternions[0], other.quaternions[0]
    turned_alike = abs(a @ b) >= (1 - ALIKE) * np.linalg.norm(a) * np.linalg.norm(b)  # also where one is zeros
    return np.array_equal(one.points[0], other.points[0]) and turned_alike


def fill_paths(response: PlanAgents.Response, paths: PathSet, with_steps: bool) -> None:
    response.codes = as_array(CODES[paths.status], np.uint16)
    response.costs, response.lengths = as_array(paths.cost, float), as_array(paths.length, np.uint32)
    present = [AgentStatus(status) for status in np.unique(paths.status)]
    response.text_codes = as_array([CODE_OF_STATUS[status] for status in present], np.uint16)
    response.code_texts = [paths.message(int(np.argmax(paths.status == status))) for status in present]
    response.bits = paths.bits
    if with_steps:
        response.start_tiles = as_array(paths.starts, np.int32)
        response.first, response.words = as_array(paths.first, np.uint64), as_array(paths.words, np.uint32)


def path_set_of(response: PlanAgents.Response) -> PathSet:
    """The paths of a response; ValueError when it holds no steps."""
    if len(response.first) != len(response.codes):
        raise ValueError("the response holds no steps: the request asked for none, or was refused")
    status_of = {code: int(status) for status, code in CODE_OF_STATUS.items()}
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
