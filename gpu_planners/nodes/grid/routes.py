"""Ways of one robot, from a pose to another or through several, and whether a path is still free."""

import math
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path

from ...errors import shown
from ...grid import GridMap
from ..common import map_codes as codes
from ..common.map_messages import LETHAL, UNKNOWN, Poses, as_poses, pose_of
from ..common.map_scene import Frames
from ..common.request_error import RequestError
from .agent_planning import AgentsPlan, check_orientations
from .conversions import CODES, path_message
from .footprints import blocked_outlines, read_footprint
from .leaving import parts_of, ways_out
from .pose_routes import blocked_poses
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


class Route(NamedTuple):
    """What is planned between.

    poses: begin and goals in their order, in the map's frame
    out: (K, 2) tiles from the start's to that of the begin, where only the footprint blocks them; (0, 2): none
    texts: on each pose that was moved
    """

    poses: Poses
    out: np.ndarray
    texts: list[str]


def route(scene: GridScene, way: Poses, tolerance: float, start_tolerance: float, cut_off: bool = False) -> Route:
    """The way between poses that can be reached.

    way: start and goals in their order, in the map's frame
    start_tolerance: metres, as of ways_out; tolerance, cut_off: as of `reached`
    """
    grid, none = scene.require_map(), np.empty((0, 2), np.int64)
    start = grid.tiles_of(way.points[:1, :2])[0]
    if not _is_inside(grid, start) or not grid.blocked[tuple(start.astype(int))]:
        poses, texts = reached(grid, way, tolerance, cut_off)
        return Route(poses, none, texts)
    found = Route(way, none, [])
    for out in ways_out(grid, scene.obstacles, tuple(start.astype(int)), start_tolerance):
        points, quaternions = way.points.copy(), way.quaternions.copy()
        points[0, :2], quaternions[0] = grid.centres_of(out[-1:])[0], 0
        poses, texts = reached(grid, Poses(points, quaternions, way.frame), tolerance, True)
        (x, y), metres = way.points[0, :2], np.hypot(*np.diff(out, axis=0).T).sum() * grid.resolution
        texts.insert(0, f"start ({x:.2f}, {y:.2f}) is too near to an obstacle: the path leaves by {metres:.2f} m")
        found = found if len(found.out) else Route(poses, out, texts)
        goal = grid.tiles_of(poses.points[1:2, :2])[0]
        if _is_inside(grid, goal) and parts_of(grid)[tuple(goal.astype(int))] == parts_of(grid)[tuple(out[-1])]:
            return Route(poses, out, texts)
    return found


def _is_inside(grid, tile):
    return bool((0 <= tile).all() and (tile < grid.shape).all())


def reached(grid: GridMap, way: Poses, tolerance: float, cut_off: bool = False) -> tuple[Poses, list[str]]:
    """Move occupied goals to the centres of tiles near them that can be reached -> poses, a text for each moved.

    way: start and goals in their order, in the map's frame
    tolerance: metres that a pose may be moved, from its tile's centre to the other's
    cut_off: move free goals that cannot be reached, too
    """
    if not tolerance >= 0:
        raise RequestError(codes.INVALID_REQUEST, f"tolerance is {tolerance}; allowed: 0 or more metres")
    points, texts = way.points.copy(), []
    for k in range(1, len(points)) if tolerance else ():
        start, goal = grid.tiles_of(points[k - 1 : k, :2]), grid.tiles_of(points[k : k + 1, :2])
        near = near_goal(grid, start, goal, tolerance, cut_off)
        if not np.array_equal(near, goal, equal_nan=True):
            points[k, :2] = grid.centres_of(near)[0]
            (x, y), (there, up) = way.points[k, :2], points[k, :2]
            why = "is occupied" if grid.blocked[tuple(goal[0].astype(int))] else "cannot be reached"
            texts.append(f"goal ({x:.2f}, {y:.2f}) {why}: the path ends at ({there:.2f}, {up:.2f})")
    return Poses(points, way.quaternions, way.frame), texts


def near_goal(
    grid: GridMap, start: np.ndarray, goal: np.ndarray, tolerance: float, cut_off: bool = False
) -> np.ndarray:
    """(1, 2) the goal, or where it is occupied the nearest tile in the tolerance that the start can reach.

    start, goal: (1, 2) tiles; tolerance: metres; cut_off: also where it is free, but the start cannot reach it
    """
    if not _is_inside(grid, start[0]) or not _is_inside(grid, goal[0]):
        return goal
    begin, end = (tuple(tile[0].astype(int)) for tile in (start, goal))
    if not grid.blocked[end] and not (cut_off and parts_of(grid)[begin] != parts_of(grid)[end]):
        return goal
    parts = parts_of(grid)
    reach = min(tolerance / grid.resolution, max(grid.shape))
    low = np.maximum(goal[0] - np.ceil(reach), 0).astype(int)
    high = np.minimum(goal[0] + np.ceil(reach) + 1, grid.shape).astype(int)
    window = parts[low[0] : high[0], low[1] : high[1]]
    near = np.argwhere((window == parts[begin]) & (window > 0)) + low
    distance = np.linalg.norm(near - goal[0], axis=1)
    if not len(near) or distance.min() > reach:
        return goal
    return near[np.argmin(distance)][None].astype(float)


def joined(plan: AgentsPlan, out: np.ndarray, start: Poses) -> Path:
    """The paths of a plan's legs as one path, in which the end of a leg and the begin of the next are one pose.

    out: of a Route; start: the pose that it leaves
    RequestError where a leg has no path; of several the text says which.
    """
    count = len(plan.paths)
    for leg in np.flatnonzero(~plan.paths.solved):
        which = f"on the way to goal {leg} of {count}: " if count > 1 else ""
        raise RequestError(int(CODES[plan.paths.status[leg]]), which + plan.paths.message(int(leg)))
    first, *others = plan.paths_of(list(range(count)))
    for leg, path in enumerate(others, 1):
        if len(path.poses) == 1 and plan.goals.one(leg).quaternions.any():  # the robot stands there already
            first.poses[-1] = path.poses[0]
        first.poses.extend(path.poses[1:])
    if len(out):
        first.poses[:0] = path_message(plan.grid, out, plan.header, start).poses[:-1]
    return first


class PathCheck(NamedTuple):
    """What a request of is_path_valid asks for, beside its path: the fields that some releases of Nav2 have."""

    max_cost: int = LETHAL
    consider_unknown_as_obstacle: bool = False
    layer_name: str = ""
    footprint: str = ""
    stop_at_first_collision: bool = False
    max_lookahead_distance: float = -1.0

    @classmethod
    def of(cls, request: Any) -> "PathCheck":
        """RequestError where it asks for what there is not."""
        check = cls()._replace(**{name: getattr(request, name) for name in cls._fields if hasattr(request, name)})
        if check.layer_name:
            text = f"layer_name is {shown(check.layer_name)}; allowed: an empty text, for the map has no layers"
            raise RequestError(codes.INVALID_REQUEST, text)
        if math.isnan(check.max_lookahead_distance):
            raise RequestError(
                codes.INVALID_REQUEST, "max_lookahead_distance is nan; allowed: metres, all if not above 0"
            )
        return check

    def floor(self, scene: GridScene) -> GridMap:
        """The map without the tiles that the request forbids a disc's centre."""
        grid, forbidden = scene.require_map(), self.forbidden(scene)
        if not forbidden.any():
            return grid
        return GridMap(np.where(forbidden, 0, grid.costs), grid.connectivity, grid.resolution, grid.origin)

    def forbidden(self, scene: GridScene) -> np.ndarray:
        """(rows, cols) bool or (): the tiles of too high a cost, and unknown ones where these count."""
        forbidden: np.ndarray = np.zeros((), bool)
        if self.max_cost < LETHAL:
            costs = scene.nav2_costs
            forbidden = (costs >= self.max_cost) & (costs != UNKNOWN) | (self.max_cost == 0)
        return forbidden | scene.unknown if self.consider_unknown_as_obstacle else forbidden


def blocked_ahead(scene: GridScene, frames: Frames, request: Any, robot_frame: str) -> list[int]:
    """Indices of the poses of a request's path, from the one nearest to the robot on, that it cannot get to now.

    All of the path counts where nobody knows where the robot is. request: of is_path_valid
    """
    path, check = request.path, PathCheck.of(request)
    if not path.poses:
        raise RequestError(codes.INVALID_REQUEST, "the path has no poses; allowed: 1 or more")
    scene.require_map()
    outline = read_footprint(check.footprint) if check.footprint else scene.outline
    poses = as_poses([pose.pose for pose in path.poses], path.header.frame_id or path.poses[0].header.frame_id)
    poses = frames.to_map(poses, scene.frame, "the path")
    try:
        first = nearest(poses.points[:, :2], frames.origin_of(robot_frame, scene.frame, "the start").points[0, :2])
    except RequestError:
        first = 0
    poses, metres = poses[first:], check.max_lookahead_distance
    points = poses.points[:, :2]
    if outline is None:
        found = unreachable_poses(check.floor(scene), cut(points, metres) if metres > 0 else points)
    else:
        forbidden = scene.obstacles | check.forbidden(scene)
        count = count_within(points, metres) if metres > 0 else len(points)
        blocked_by = blocked_outlines if check.footprint else blocked_poses
        found = blocked_by(scene.require_map(), forbidden, poses[:count], outline)
    blocked = (first + found).tolist()
    return blocked[:1] if check.stop_at_first_collision else blocked


def count_within(points: np.ndarray, distance: float) -> int:
    """How many points (K, 2) of a line come within so many metres along it."""
    return 1 + int(np.searchsorted(np.cumsum(np.hypot(*np.diff(points, axis=0).T)), distance, side="right"))


def cut(points: np.ndarray, distance: float) -> np.ndarray:
    """The begin of a line through points (K, 2), so long or shorter, with an end of its own."""
    steps = np.hypot(*np.diff(points, axis=0).T)
    along = np.cumsum(steps)
    last = int(np.searchsorted(along, distance))
    if last == len(steps):
        return points
    with np.errstate(invalid="ignore", over="ignore"):
        share = 1 - (along[last] - distance) / steps[last]
        end = points[last] + share * (points[last + 1] - points[last])
    return np.concatenate([points[: last + 1], end[None]])


MOST_CROSSINGS = 1_000_000  # of lines with the borders of tiles, looked at together


def unreachable_poses(grid: GridMap, points: np.ndarray) -> np.ndarray:
    """Indices (M,) of the points of a path that lie outside the map or in a blocked tile, or whose line from the point
    before passes through one. points: (K, 2) metres in the map's frame; may hold NaN"""
    places = grid.places_of(points)
    bad = ~free_at(grid, places)
    lines = np.flatnonzero(~bad[:-1] & ~bad[1:])  # lines to and from bad points are bad themselves
    crossings = np.abs(np.diff(np.floor(np.nan_to_num(places)), axis=0)).sum(axis=1)[lines]
    chunk = np.cumsum(crossings + 2) // MOST_CROSSINGS
    blocked = np.zeros(len(points), bool)
    for part in np.split(lines, np.flatnonzero(np.diff(chunk)) + 1):
        blocked[part + 1] = ~_lines_free(grid, places[part], places[part + 1])
    blocked[1:] |= bad[:-1]
    return np.flatnonzero(bad | blocked)


def nearest(points: np.ndarray, place: np.ndarray) -> int:
    """Index of the point (K, 2) next to a place (2,); points that are not finite are far."""
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.hypot(*(points - place).T)
    return int(np.argmin(np.where(np.isfinite(distance), distance, np.inf)))


def free_at(grid: GridMap, places: np.ndarray) -> np.ndarray:
    """Which places (K, 2) lie in free tiles of the map. -> (K,) bool"""
    with np.errstate(invalid="ignore"):
        inside = np.all((places >= 0) & (places < grid.shape), axis=1)
    free = np.zeros(len(places), bool)
    tiles = places[inside].astype(np.int64)
    free[inside] = grid.costs[tiles[:, 0], tiles[:, 1]] > 0
    return free


def _lines_free(grid, starts, ends):
    """Which lines (L, 2) to (L, 2) between places inside the map pass free tiles only -> (L,) bool

    The borders of tiles cut a line into pieces, each in the tile of its middle.
    """
    fractions, lines = [np.zeros(len(starts)), np.ones(len(starts))], [np.arange(len(starts))] * 2
    for axis in (0, 1):
        low, high = (
            np.floor(edge(starts[:, axis], ends[:, axis])).astype(np.int64) for edge in (np.minimum, np.maximum)
        )
        count = high - low
        line = np.repeat(np.arange(len(starts)), count)
        border = np.repeat(low + 1, count) + np.arange(len(line)) - np.repeat(np.cumsum(count) - count, count)
        fractions.append((border - starts[line, axis]) / (ends[line, axis] - starts[line, axis]))
        lines.append(line)
    fraction, line = np.concatenate(fractions), np.concatenate(lines)
    order = np.lexsort((fraction, line))
    fraction, line = fraction[order], line[order]
    same = line[1:] == line[:-1]
    line, middle = line[1:][same], (0.5 * (fraction[1:] + fraction[:-1]))[same]
    places = starts[line] + middle[:, None] * (ends[line] - starts[line])
    free = np.ones(len(starts), bool)
    free[line[~free_at(grid, places)]] = False
    return free
