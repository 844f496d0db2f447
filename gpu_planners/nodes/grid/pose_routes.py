"""Ways of one robot with a footprint, by PosePlanner, and whether a path is free for it."""

import math
import time

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from std_msgs.msg import Header

from ...compiling import pose_parts
from ...grid import AgentStatus, GridMap, PoseSettings
from ...grid.paths import STATUS_TEXT
from ...grid.poses.masks import along_free, convex_pieces
from ...parts import Part
from ..common import map_codes as codes
from ..common.map_messages import Poses, pose_list
from ..common.request_error import RequestError
from .conversions import CODES
from .parameters import GridParameters
from .pose_ends import Way, ways
from .scene import GridScene

SAME = 1e-9  # metres, rad: poses that differ by less are one
NEAR = 2.0  # metres that it may cost to leave, or to enter, a pose of which only the margin meets an obstacle
MARGIN = "the footprint with its margin, a tile and half a heading, meets a blocked tile at the"
WHY = {AgentStatus.START_BLOCKED: f"{MARGIN} start", AgentStatus.GOAL_BLOCKED: f"{MARGIN} goal"}


def yaws_of(poses: Poses) -> np.ndarray:
    """(N,) rad; NaN where a pose has no orientation."""
    x, y, z, w = poses.quaternions.T
    yaws = np.arctan2(2 * (w * z + x * y), w * w + x * x - y * y - z * z)
    return np.where(poses.quaternions.any(axis=1), yaws, np.nan)


def route(scene: GridScene, values: GridParameters, way: Poses, algorithm: str, tolerance: float) -> tuple[Path, str]:
    """The path from a start through goals -> message, a text about it.

    It begins at the start exactly, and passes each goal exactly where PosePathSet.path does; the next leg goes on from
    there.

    way: start and goals in their order, in the map's frame; a goal without an orientation is reached with any
    tolerance: metres from a goal that is occupied or cut off, where a leg may end
    RequestError where a leg has no path; of several the text says which.
    """
    if not tolerance >= 0:
        raise RequestError(codes.INVALID_REQUEST, f"tolerance is {tolerance}; allowed: 0 or more metres")
    given = np.column_stack([way.points[:, :2], yaws_of(way)])
    if math.isnan(given[0, 2]):
        text = "the start has no orientation; allowed with the parameter footprint: one"
        raise RequestError(codes.INVALID_REQUEST, text)
    planner, header, began = scene.planner(algorithm), scene.header(), time.perf_counter()
    poses, cost, texts, count = given[:1], 0.0, [], len(given) - 1
    for leg, goal in enumerate(given[1:]):
        reach = NEAR + values.start_tolerance
        path, leg_cost, status = _leg(planner, poses[-1], goal, tolerance, values.heading_tolerance, reach)
        if status != AgentStatus.SOLVED:
            which = f"on the way to goal {leg} of {count}: " if count > 1 else ""
            raise RequestError(int(CODES[status]), which + WHY.get(status, STATUS_TEXT[status]))
        if math.dist(path[-1, :2], goal[:2]) > SAME:
            (x, y), (there, up) = goal[:2], path[-1, :2]
            texts.append(f"goal ({x:.2f}, {y:.2f}) cannot be reached: the path ends at ({there:.2f}, {up:.2f})")
        poses, cost = _joined(poses, path), cost + leg_cost
    took = f"{1e3 * (time.perf_counter() - began):.1f} ms"
    text = f"path of {len(poses)} poses, cost {cost:.2f} m, by {algorithm} on {planner.device} in {took}"
    return path_message(poses, header), "; ".join((text, *texts))


def _leg(planner, start, goal, tolerance, heading_tolerance, reach) -> tuple[np.ndarray, float, AgentStatus]:
    """The path (K, 3) from pose to pose, what it costs, and SOLVED or what is wrong.

    Where nothing leads to the goal it ends near it, if that is asked for. reach: of `ways`
    """
    anyhow = math.isnan(goal[2])
    wanted = np.append(goal[:2], start[2] if anyhow else goal[2])
    exactly = PoseSettings(heading_tolerance=math.pi if anyhow else 0.0)
    nearly = PoseSettings(tolerance, math.pi if anyhow else heading_tolerance)
    begins = ways(planner, start, reach)
    itself = [Way(wanted[None], 0.0)]
    attempts = [(exactly, itself if anyhow else ways(planner, wanted, reach, into=True))]
    for settings, ends in [*attempts, (nearly, itself)] if tolerance else attempts:
        planner.settings, found = settings, list[tuple]()
        for end in ends if begins else ():
            paths = planner.plan(np.array([begin.poses[-1] for begin in begins]), end.poses[0])
            for k, begin in enumerate(begins):
                if paths.solved[k] and (len(end.poses) == 1 or paths.ends_at_goal(k)):
                    found.append((begin.cost + paths.cost[k] + end.cost, len(found), begin, paths, k, end))
        if found:
            cost, _, begin, paths, k, end = min(found, key=lambda each: each[:2])
            path = paths.path(k)
            if not anyhow and paths.ends_at_goal(k):
                path[-1] = end.poses[0]
            return _joined(begin.poses, path, end.poses[1:]), float(cost), AgentStatus.SOLVED
    planner.settings = exactly
    begin = begins[0].poses[-1] if begins else start
    return start[None], math.inf, AgentStatus(planner.plan(begin, wanted).status[0])


def _joined(*parts):
    """Poses one after the other, each once."""
    poses = np.concatenate(parts)
    new = [True, *(np.abs(_apart(b, a)).max() >= SAME for a, b in zip(poses, poses[1:]))]
    return poses[new]


def _apart(a, b):
    turn = (a[2] - b[2] + math.pi) % (2 * math.pi) - math.pi
    return np.array([*(a[:2] - b[:2]), turn])


def path_message(poses: np.ndarray, header: Header) -> Path:
    """(K, 3) x, y metres, heading rad"""
    return Path(
        header=header, poses=[PoseStamped(header=header, pose=pose) for pose in pose_list(poses[:, :2], poses[:, 2])]
    )


def blocked_poses(grid: GridMap, forbidden: np.ndarray, poses: Poses, outline: np.ndarray) -> np.ndarray:
    """Indices (M,) of the poses at which the outline may meet a forbidden tile or leave the map, or on the way to which
    it may. What is not among them is proven: between two poses the robot turns about one point, or moves straight.

    forbidden: (rows, cols) bool; poses: in the map's frame; outline: (V, 2) metres
    """
    yaws = yaws_of(poses)
    if np.isnan(yaws[poses.quaternions.any(axis=1) == 0]).any():
        k = int(np.argmin(poses.quaternions.any(axis=1)))
        text = f"pose {k} of the path has no orientation; allowed with a footprint: one for each pose"
        raise RequestError(codes.INVALID_REQUEST, text)
    pieces = [piece / grid.resolution for piece in convex_pieces(outline)]
    costs = np.where(forbidden, np.uint8(0), np.uint8(1))
    tiles = np.column_stack([grid.places_of(poses.points[:, :2])[:, ::-1], yaws - grid.origin[2]])
    with np.errstate(invalid="ignore"):
        inside = ((tiles[:, :2] >= 0) & (tiles[:, :2] < grid.shape[::-1])).all(axis=1) & np.isfinite(yaws)
    blocked = ~inside
    for k in range(len(tiles)):
        first = k - 1 if k and inside[k - 1] else k
        blocked[k] = blocked[k] or not along_free(pieces, _unwrapped(tiles[first : k + 1]), costs, 0.0)
    return np.flatnonzero(blocked)


def _unwrapped(tiles):
    """Poses that turn the shorter way."""
    tiles = tiles.copy()
    tiles[:, 2] = np.unwrap(tiles[:, 2])
    return tiles


def parts(values: GridParameters) -> list[Part]:
    """What requests need, on each device."""
    return [part for device in dict.fromkeys(values.devices) for part in pose_parts(device)]
