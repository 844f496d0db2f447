"""Poses in the map's frame: through tf2 where tf2_ros is installed, otherwise only the map's own frame is known."""

import numpy as np
from rclpy.node import Node
from scipy.spatial.transform import Rotation

from .map_codes import TF_ERROR
from .map_messages import Poses
from .request_error import RequestError
from .transforms import Transforms


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
