"""Ways of one robot, from a pose to another or through several, and whether a path is still free."""

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path

from ..common import map_codes as codes
from ..common.frames import Frames
from ..common.map_messages import Poses, as_poses, pose_of
from ..common.request_error import RequestError
from .agent_planning import Plan, check_orientations
from .path_checks import nearest, unreachable_poses
from .scene import GridScene


def robot_pose(frames: Frames, map_frame: str, robot_frame: str) -> Poses:
    """Where the robot stands, in the map's frame; RequestError where nobody says."""
    return frames.origin_of(robot_frame, map_frame, "the start")


def way(frames: Frames, map_frame: str, start: PoseStamped | None, goals: list[PoseStamped], robot_frame: str) -> Poses:
    """Start (None: where the robot stands) and goals in their order, in the map's frame."""
    poses = [_checked(frames, map_frame, start, "start") if start else robot_pose(frames, map_frame, robot_frame)]
    poses += [_checked(frames, map_frame, goal, "goal") for goal in goals]
    return Poses(
        np.concatenate([pose.points for pose in poses]), np.concatenate([pose.quaternions for pose in poses]), map_frame
    )


def _checked(frames, map_frame, message, what):
    pose = pose_of(message)
    check_orientations(pose, what)
    return frames.to_map(pose, map_frame, f"the {what}")


def legs(way: Poses) -> tuple[Poses, Poses]:
    """Starts and goals of agents that go from each of some poses (K + 1) to the next."""
    return (
        Poses(way.points[:-1], way.quaternions[:-1], way.frame),
        Poses(way.points[1:], way.quaternions[1:], way.frame),
    )


def joined(plan: Plan) -> Path:
    """The paths of a plan of legs as one: where one ends and the next begins is one pose.

    RequestError where a leg has no path; of several the text says which.
    """
    failed = np.flatnonzero(~plan.paths.solved)
    if len(failed):
        code, text = plan.failure(int(failed[0]))
        several = len(plan.paths) > 1
        raise RequestError(code, f"on the way to goal {failed[0]} of {len(plan.paths)}: {text}" if several else text)
    paths = plan.paths_of(list(range(len(plan.paths))))
    for path in paths[1:]:
        paths[0].poses.extend(path.poses[1:])
    return paths[0]


def blocked_ahead(scene: GridScene, frames: Frames, path: Path, robot_frame: str) -> list[int]:
    """Indices of the poses of a path, from the one nearest to the robot on, that it cannot get to now.

    All of the path counts where nobody knows where the robot is.
    """
    if not path.poses:
        raise RequestError(codes.INVALID_REQUEST, "the path has no poses; allowed: 1 or more")
    grid = scene.require_map()
    frame = path.header.frame_id or path.poses[0].header.frame_id
    poses = as_poses([pose.pose for pose in path.poses], frame)
    points = frames.to_map(poses, scene.frame, "the path").points[:, :2]
    try:
        first = nearest(points, robot_pose(frames, scene.frame, robot_frame).points[0, :2])
    except RequestError:
        first = 0
    return (first + unreachable_poses(grid, points[first:])).tolist()
