"""Poses in the map's frame: through tf2 where tf2_ros is installed, otherwise only the map's own frame is known."""

import numpy as np
from rclpy.node import Node
from rclpy.time import Time
from scipy.spatial.transform import Rotation

from .map_codes import TF_ERROR
from .map_messages import Poses
from .optional import optional_module
from .request_error import RequestError


class Frames:
    """Moves poses to the map's frame.

    missing: why poses in other frames are refused; empty when they are not
    """

    def __init__(self, node: Node | None) -> None:
        tf2_ros, self.missing = optional_module("tf2_ros", "transforms of poses in other frames")
        self._buffer = tf2_ros.Buffer() if tf2_ros else None
        self._listener = tf2_ros.TransformListener(self._buffer, node) if tf2_ros else None

    def to_map(self, poses: Poses, map_frame: str, what: str) -> Poses:
        """Poses moved to the map's frame. An empty frame is the map's."""
        if poses.frame in ("", map_frame):
            return poses
        translation, rotation = self._transform(poses.frame, map_frame, what)
        given = np.isfinite(poses.quaternions).all(axis=1) & poses.quaternions.any(axis=1)
        turned = np.zeros_like(poses.quaternions)
        if given.any():
            turned[given] = (rotation * Rotation.from_quat(poses.quaternions[given])).as_quat()
        return Poses(poses.points @ rotation.as_matrix().T + translation, turned, map_frame)

    def origin_of(self, frame: str, map_frame: str, what: str) -> Poses:
        """Where the origin of a frame (a robot's, say) stands in the map, as Poses of one."""
        return self.to_map(Poses(np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0, 1.0]]), frame), map_frame, what)

    def _transform(self, frame, map_frame, what):
        """translation (3,), Rotation that move points of a frame to the map's, by the latest transform."""
        if self._buffer is None:
            raise RequestError(
                TF_ERROR, f"{what}: frame '{frame}' is not the map's frame '{map_frame}', and {self.missing}"
            )
        try:
            transform = self._buffer.lookup_transform(map_frame, frame, Time()).transform
        except Exception as error:  # tf2 has an exception for each cause; each has a text
            raise RequestError(
                TF_ERROR, f"{what}: no transform from frame '{frame}' to the map's frame '{map_frame}': {error}"
            ) from error
        t, q = transform.translation, transform.rotation
        return np.array([t.x, t.y, t.z]), Rotation.from_quat([q.x, q.y, q.z, q.w])
