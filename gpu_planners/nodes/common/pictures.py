"""Pictures for RViz: latched messages that are costly to make, made only where someone looks."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import Point
from rclpy.node import Node
from rclpy.serialization import serialize_message
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from .ros import LATCHED, steady_clock


class Pictures:
    """Topics of a node whose latest message is made once somebody has subscribed.

    topics: {name: type of its messages}; do: does the job that makes them, or queues it for the worker
    period_s: between two looks for subscribers
    """

    def __init__(self, node: Node, topics: dict[str, Any], do: Callable[..., None], period_s: float) -> None:
        self._publishers = {name: node.create_publisher(kind, f"~/{name}", LATCHED) for name, kind in topics.items()}
        self._pending: dict[str, Callable[[], Any]] = {}  # by name: makes the message that nobody has asked for yet
        self._do = do
        self._timer = node.create_timer(period_s, self._look, clock=steady_clock())

    def look_every(self, period_s: float) -> None:
        self._timer.timer_period_ns = round(1e9 * period_s)

    def show(self, name: str, make: Callable[[], Any]) -> None:
        """Have `make` called for the message of a topic, in place of what it shows or would show."""
        self._pending[name] = make

    def _wanted(self):
        return [name for name in list(self._pending) if self._publishers[name].get_subscription_count()]

    def _look(self):
        if self._wanted():
            self._do(self._publish)

    def _publish(self):
        for name in self._wanted():
            self._publishers[name].publish(self._pending.pop(name)())


NOWHERE = np.zeros((0, 3))
SAMPLE = np.array([-1.25e-300, 3.75e300, -7.5e-301])  # no other field of a marker has these bytes


def serialized_with_points(marker: Marker, points: np.ndarray) -> bytes:
    """serialize_message of a MarkerArray of one marker that has these points (N, 3) metres.

    The marker is serialized with one point, whose bytes are replaced by those of all: to make and serialize 400,000
    Point objects (10,000 paths) would take 3 s.
    """
    without = serialize_message(MarkerArray(markers=[marker]))
    if not len(points):
        return without
    marker.points = [Point(x=SAMPLE[0], y=SAMPLE[1], z=SAMPLE[2])]
    data = serialize_message(MarkerArray(markers=[marker]))
    first = data.index(SAMPLE.tobytes())
    padding = len(data) - len(without) - SAMPLE.nbytes  # between the number of points and the first, which CDR aligns
    count = first - padding - 4
    number, all_points = np.uint32(len(points)).tobytes(), np.ascontiguousarray(points, float).tobytes()
    return data[:count] + number + data[count + 4 : first] + all_points + data[first + SAMPLE.nbytes :]


def marker_of(
    namespace: str, number: int, kind: int, colour: ColorRGBA, size: Sequence[float], points: np.ndarray = NOWHERE
) -> Marker:
    """A marker at the origin of a frame that is not named yet. size: x, y, z; points: (N, 3); metres"""
    marker = Marker(ns=namespace, id=number, type=kind, action=Marker.ADD, color=colour)
    marker.scale.x, marker.scale.y, marker.scale.z = size
    marker.points = [Point(x=x, y=y, z=z) for x, y, z in points.tolist()]
    marker.pose.orientation.w = 1.0
    return marker


class PosedMarkers:
    """A MarkerArray of which only the poses change: their bytes are written anew in microseconds, where the points of a
    robot's hulls would take a tenth of a second."""

    def __init__(self, message: MarkerArray) -> None:
        samples = [1e-300 * (np.arange(7) + 1.5 + 8 * number) for number in range(len(message.markers))]
        for marker, sample in zip(message.markers, samples, strict=True):
            place, turn = marker.pose.position, marker.pose.orientation
            place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w = sample.tolist()
        self._data = bytearray(serialize_message(message))
        self._starts = [self._data.index(sample.tobytes()) for sample in samples]

    def at(self, positions: np.ndarray, quaternions: np.ndarray) -> bytes:
        """The serialized message with its markers at (N, 3) metres, turned by (N, 4) x, y, z, w."""
        poses = np.hstack([positions, quaternions]).astype(np.float64)
        for start, pose in zip(self._starts, poses, strict=True):
            self._data[start : start + pose.nbytes] = pose.tobytes()
        return bytes(self._data)
