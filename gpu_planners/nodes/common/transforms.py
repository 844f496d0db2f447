"""What tf2 knows, where tf2_ros is installed."""

from typing import Any

import numpy as np
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.time import Time
from scipy.spatial.transform import Rotation

from .optional import optional_module

NO_WAIT = Duration()


class Transforms:
    """The transforms that a node has heard of; without a node there are none.

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
