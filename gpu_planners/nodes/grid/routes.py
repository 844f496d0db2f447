"""Ways of one robot, from a pose to another or through several, and whether a path is still free."""

import functools

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from scipy import ndimage

from ...grid import GridMap
from ..common import map_codes as codes
from ..common.frames import Frames
from ..common.map_messages import Poses, as_poses, pose_of
from ..common.request_error import RequestError
from .agent_planning import AgentsPlan, check_orientations
from .conversions import CODES
from .path_checks import nearest, unreachable_poses
from .scene import GridScene


def way(frames: Frames, map_frame: str, start: PoseStamped | None, goals: list[PoseStamped], robot_frame: str) -> Poses:
    """Start (None: where the robot stands) and goals in their order, in the map's frame."""
    poses = [_in_map(goal, "goal", frames, map_frame) for goal in goals]
    if start is None:
        poses.insert(0, frames.origin_of(robot_frame, map_frame, "the start"))
    else:
        poses.insert(0, _in_map(start, "start", frames, map_frame))
    points = np.concatenate([pose.points for pose in poses])
    return Poses(points, np.concatenate([pose.quaternions for pose in poses]), map_frame)


def _in_map(message, what, frames, map_frame):
    pose = pose_of(message)
    check_orientations(pose, what)
    return frames.to_map(pose, map_frame, f"the {what}")


def reached(grid: GridMap, way: Poses, tolerance: float) -> tuple[Poses, list[str]]:
    """Move occupied goals to the centres of tiles near them that can be reached -> poses, a text for each moved.

    way: start and goals in their order, in the map's frame
    tolerance: metres that a pose may be moved, from its tile's centre to the other's
    """
    if not tolerance >= 0:
        raise RequestError(codes.INVALID_REQUEST, f"tolerance is {tolerance}; allowed: 0 or more metres")
    points, texts = way.points.copy(), []
    for k in range(1, len(points)) if tolerance else ():
        start, goal = grid.tiles_of(points[k - 1 : k, :2]), grid.tiles_of(points[k : k + 1, :2])
        near = near_goal(grid, start, goal, tolerance)
        if not np.array_equal(near, goal, equal_nan=True):
            points[k, :2] = grid.centres_of(near)[0]
            (x, y), (there, up) = way.points[k, :2], points[k, :2]
            texts.append(f"goal ({x:.2f}, {y:.2f}) is occupied: the path ends at ({there:.2f}, {up:.2f})")
    return Poses(points, way.quaternions, way.frame), texts


def near_goal(grid: GridMap, start: np.ndarray, goal: np.ndarray, tolerance: float) -> np.ndarray:
    """(1, 2) the goal, or where it is occupied the nearest tile within the tolerance that the start is joined to.

    start, goal: (1, 2) tiles; tolerance: metres
    """
    inside = [(0 <= tile[0]).all() and (tile[0] < grid.shape).all() for tile in (start, goal)]
    if not all(inside) or not grid.blocked[tuple(goal[0].astype(int))]:
        return goal
    parts = _parts(grid)
    reach = min(tolerance / grid.resolution, max(grid.shape))
    low = np.maximum(goal[0] - np.ceil(reach), 0).astype(int)
    high = np.minimum(goal[0] + np.ceil(reach) + 1, grid.shape).astype(int)
    window = parts[low[0] : high[0], low[1] : high[1]]
    near = np.argwhere((window == parts[tuple(start[0].astype(int))]) & (window > 0)) + low
    distance = np.linalg.norm(near - goal[0], axis=1)
    if not len(near) or distance.min() > reach:
        return goal
    return near[np.argmin(distance)][None].astype(float)


@functools.lru_cache(maxsize=1)
def _parts(grid):
    """(rows, cols) of the connected part that each tile belongs to, 0 for blocked ones; kept for the latest map.

    4-connected parts serve 8-connected maps too: where a diagonal step is free, two straight ones beside it are.
    """
    return ndimage.label(~grid.blocked)[0]


def legs(way: Poses) -> tuple[Poses, Poses]:
    """Starts and goals of agents that go from each of some poses (K + 1) to the next."""
    return (
        Poses(way.points[:-1], way.quaternions[:-1], way.frame),
        Poses(way.points[1:], way.quaternions[1:], way.frame),
    )


def joined(plan: AgentsPlan) -> Path:
    """The paths of a plan of legs as one: where one ends and the next begins is one pose.

    RequestError where a leg has no path; of several the text says which.
    """
    count = len(plan.paths)
    for leg in np.flatnonzero(~plan.paths.solved):
        which = f"on the way to goal {leg} of {count}: " if count > 1 else ""
        raise RequestError(int(CODES[plan.paths.status[leg]]), which + plan.paths.message(int(leg)))
    first, *others = plan.paths_of(list(range(count)))
    for path in others:
        first.poses.extend(path.poses[1:])
    return first


def blocked_ahead(scene: GridScene, frames: Frames, path: Path, robot_frame: str) -> list[int]:
    """Indices of the poses of a path, from the one nearest to the robot on, that it cannot get to now.

    All of the path counts where nobody knows where the robot is.
    """
    if not path.poses:
        raise RequestError(codes.INVALID_REQUEST, "the path has no poses; allowed: 1 or more")
    grid = scene.require_map()
    poses = as_poses([pose.pose for pose in path.poses], path.header.frame_id or path.poses[0].header.frame_id)
    points = frames.to_map(poses, scene.frame, "the path").points[:, :2]
    try:
        first = nearest(points, frames.origin_of(robot_frame, scene.frame, "the start").points[0, :2])
    except RequestError:
        first = 0
    return (first + unreachable_poses(grid, points[first:])).tolist()
