"""Frames of messages to the arm: those fixed to the robot's root are known, others come through tf2 where it is."""

from typing import Any

import numpy as np
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.time import Time
from scipy.spatial.transform import Rotation

from ..common.optional import optional_module

NO_WAIT = Duration()


class Transforms:
    """What tf2 knows, if it is installed.

    missing: why there is none; empty when there is
    """

    def __init__(self, node: Node | None) -> None:
        tf2_ros, self.missing = optional_module("tf2_ros", "transforms of frames that are not fixed to the root")
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
            raise KeyError(self.missing)
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


class RobotFrames(dict[str, np.ndarray]):
    """{frame: (4, 4) T_root_frame} of the frames that are fixed to the robot's root, "" among them; a frame that is not
    is asked of tf2 each time, and a KeyError with a text says why there is none.

    root: name of the root frame
    """

    def __init__(self, fixed: dict[str, np.ndarray], root: str, transforms: Transforms | None = None) -> None:
        super().__init__(fixed)
        self.root, self._transforms = root, transforms

    @property
    def asks_tf2(self) -> bool:
        """Is tf2 there to ask?"""
        return self._transforms is not None and not self._transforms.missing

    def __missing__(self, frame: str) -> np.ndarray:
        return self.at(frame, None)

    def at(self, frame: str, stamp: Any) -> np.ndarray:
        """(4, 4) T_root_frame at a time; KeyError with a text. A frame that is fixed has the same one at all times."""
        if frame in self:
            return self[frame]
        if self._transforms is None:
            raise KeyError("there is no tf2")
        return self._transforms.look_up(self.root, frame, stamp)
