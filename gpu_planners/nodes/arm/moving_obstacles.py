"""Obstacles that move, as messages tell of them, as pure functions."""

from typing import Any

import numpy as np

from gpu_planners_msgs import msg as interfaces

from ...errors import ObstacleError, shown
from ..common.ros import seconds
from .conversions import frame_transform, pose_of
from .scene_objects import Drift, SceneObjects

MovingObstacles: Any = getattr(interfaces, "MovingObstacles", None)  # interfaces built before lack it
WHAT = "moving_obstacles"


def with_velocities(
    objects: SceneObjects, message: Any, frames: dict[str, np.ndarray], now: float, horizon: float
) -> SceneObjects:
    """The objects, of which those that a MovingObstacles message names move; ObstacleError or RequestError.

    frames: {frame: (4, 4) T_root_frame}; now: seconds on the node's clock; horizon: seconds after which they stand
    """
    names, poses, stamp = list(message.names), list(message.poses), seconds(message.header.stamp)
    counts = len(names), len(message.velocities), len(poses)
    if counts[0] != counts[1] or counts[2] not in (0, counts[0]) or len(set(names)) != counts[0]:
        text = f"{WHAT} has {counts[0]} names, {counts[1]} velocities and {counts[2]} poses"
        raise ObstacleError(f"{text}; allowed: as many of each, or no pose, and each name once")
    if stamp and abs(now - stamp) > max(horizon, 1.0):
        text = f"{WHAT}: its stamp is {now - stamp:.3g} s old by the node's clock"
        raise ObstacleError(f"{text}; allowed: up to {max(horizon, 1.0):g} s, and as many ahead")
    T_root_frame = frame_transform(frames, message.header.frame_id, WHAT)
    for number, (name, given) in enumerate(zip(names, message.velocities, strict=True)):
        velocity = np.array([given.x, given.y, given.z], dtype=float)
        if not np.isfinite(velocity).all():
            raise ObstacleError(f"'{name}': its velocity is {shown(velocity.tolist())}; allowed: finite numbers")
        drift = Drift(T_root_frame[:3, :3] @ velocity, stamp or now, horizon) if velocity.any() else None
        objects = objects.drifting(name, drift, T_root_frame @ pose_of(poses[number], name) if poses else None)
    return objects
