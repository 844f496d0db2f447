"""What the nodes take from ROS: quality of service, packages that may be missing, clocks and times.

Where nothing else is said here, topics are reliable with depth 10.
"""

import importlib
from typing import Any

import numpy as np
import rclpy.duration
import rclpy.time
from builtin_interfaces.msg import Duration, Time
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from scipy.spatial.transform import Rotation

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
BEST_EFFORT = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
DEEP = QoSProfile(history=HistoryPolicy.KEEP_ALL)  # for requests that come at once: what is beyond a depth is lost


def of_durability(name: str, depth: int) -> QoSProfile:
    """Reliable QoS with a durability given by a parameter: "volatile" or "transient_local"."""
    return QoSProfile(depth=depth, durability=DurabilityPolicy[name.upper()])


def optional_module(name: str, what: str) -> tuple[Any, str]:
    """(module or None, text on what is missing; empty when it is there). what: what there is not without the package"""
    try:
        return importlib.import_module(name), ""
    except ImportError:
        return None, f"the ROS package {name.split('.')[0]} is not installed: no {what}"


def steady_clock() -> Clock:
    """For timers that count real seconds also with use_sim_time."""
    return Clock(clock_type=ClockType.STEADY_TIME)


def seconds(duration: Duration | Time) -> float:
    """A Duration or Time as a number."""
    return duration.sec + 1e-9 * duration.nanosec


def duration_message(value: float) -> Duration:
    """Seconds as a Duration, rounded to the nanosecond."""
    return Duration(**_parts(value))


def time_message(value: float) -> Time:
    """Seconds on a clock as a Time, rounded to the nanosecond."""
    return Time(**_parts(value))


def _parts(value):
    seconds, nanoseconds = divmod(round(value * 1e9), 10**9)
    return {"sec": seconds, "nanosec": nanoseconds}


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
            when = rclpy.time.Time() if stamp is None else rclpy.time.Time.from_msg(stamp)
            transform = self._buffer.lookup_transform(target, source, when, rclpy.duration.Duration()).transform
        except Exception as error:  # tf2 has an exception for each cause; each has a text
            raise KeyError(f"tf2 has no transform from it to '{target}': {error}") from error
        t, q = transform.translation, transform.rotation
        T = np.eye(4)
        T[:3, :3] = Rotation.from_quat([q.x, q.y, q.z, q.w]).as_matrix()
        T[:3, 3] = t.x, t.y, t.z
        return T
