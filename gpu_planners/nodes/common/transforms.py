"""What tf2 knows, where tf2_ros is installed; without it only the map's own frame is known."""

from typing import Any

import numpy as np
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.time import Time
from scipy.spatial.transform import Rotation

from .map_codes import TF_ERROR
from .map_messages import Poses
from .optional import optional_module
from .request_error import RequestError

NO_WAIT = Duration()


class Transforms:
    """The transforms that a node has heard of; None for a node: none.

    missing: why there are none; empty when there are
    """

    def __init__(self, node: Node | None) -> None:
        tf2_ros, self.missing = optional_module("tf2_ros", "transforms of other frames")
        if node is None or not tf2_ros:
            self._buffer = None
            return
        self._buffer = tf2_ros.Buffer(node=node)
        self._listener = tf2_ros.TransformListener(self._buffer, node)

    def look_up(self, target: str, source: str, stamp: Any = None) -> np.ndarray:
        """(4, 4) T_target_source at a builtin_interfaces Time, by default the latest that is known.

        KeyError with a text when there is none.
        """
        if self._buffer is None:
            raise KeyError(self.missing or "nothing listens to tf2")
        try:
            when = Time() if stamp is None else Time.from_msg(stamp)
            transform = self._buffer.lookup_transform(target, source, when, NO_WAIT).transform
        except Exception as error:  # tf2 has an exception for each cause; each has a text
            raise KeyError(f"tf2 has no transform from it to '{target}': {error}") from error
        t, q = transform.translation, transform.rotation
        T = np.eye(4)
        T[:3, :3] = Rotation.from_quat([q.x, q.y, q.z, q.w]).as_matrix()
        T[:3, 3] = t.x, t.y, t.z
        return T


class Frames:
    """Moves poses to the map's frame.

    missing: why poses in other frames are refused; empty when they are not
    """

    def __init__(self, node: Node | None) -> None:
        self._transforms = Transforms(node)
        self.missing = self._transforms.missing

    def to_map(self, poses: Poses, map_frame: str, what: str) -> Poses:
        """Poses moved to the map's frame. An empty frame is the map's."""
        if poses.frame in ("", map_frame):
            return poses
        T_map_frame = self._transform(poses.frame, map_frame, what)
        rotation = Rotation.from_matrix(T_map_frame[:3, :3])
        given = np.isfinite(poses.quaternions).all(axis=1) & poses.quaternions.any(axis=1)
        turned = np.zeros_like(poses.quaternions)
        if given.any():
            turned[given] = (rotation * Rotation.from_quat(poses.quaternions[given])).as_quat()
        return Poses(poses.points @ T_map_frame[:3, :3].T + T_map_frame[:3, 3], turned, map_frame)

    def origin_of(self, frame: str, map_frame: str, what: str) -> Poses:
        """Where the origin of a frame (a robot's, say) stands in the map, as Poses of one."""
        return self.to_map(Poses(np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0, 1.0]]), frame), map_frame, what)

    def _transform(self, frame, map_frame, what):
        """(4, 4) T_map_frame, the latest that is known."""
        try:
            return self._transforms.look_up(map_frame, frame)
        except KeyError as error:
            raise RequestError(
                TF_ERROR, f"{what}: frame '{frame}' is not the map's frame '{map_frame}', and {error.args[0]}"
            ) from error
