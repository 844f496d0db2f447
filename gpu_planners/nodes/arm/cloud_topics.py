"""What sensors see as obstacles: ~/points (PointCloud2), ~/octomap (octomap_msgs) and ~/voxel_grid (nav2_msgs).

A thread of its own filters a message and makes voxels of it; the worker only puts the result into the scene. Of the
messages of one topic in one frame that wait, the latest counts, so several cameras may publish on one topic. A map in a
frame that is not known yet is kept, since it is sent but once, and taken when the frame is known.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import PointCloud2

from ...arm import RobotModel
from ...arm.collision.near_robot import PADDING, near_robot
from ...arm.collision.packing import pack_robot
from ...arm.collision.point_cloud import EVERYWHERE, obstacle_voxels, points_in_root
from ...arm.collision.scene_packing import pack_bricks
from ...arm.geometry.bricks import Bricks
from ..common.request_error import RequestError, check_count, error_text
from ..common.ros import of_durability, optional_module, seconds, steady_clock
from . import codes as error_codes
from .arm_services import ArmServices
from .cloud_messages import cloud_points, octomap_bricks, voxel_grid_bricks
from .conversions import configuration, frame_transform
from .scene_objects import ALWAYS, SceneObject, Source

TRANSFORM_WAIT_S = 0.2  # a transform at the time of a cloud often comes a little after it
POLL_S = 0.01
LOOK_S = 1.0  # between two looks at whether a map can be placed by now
MOST_UNPLACED = 20  # maps that are kept for it


class CloudTopics:
    """Subscriptions of the arm node, whose scene is only looked at."""

    def __init__(self, arm: ArmServices) -> None:
        self._arm, self._scene = arm, arm.scene
        self._waiting: dict[str, Any] = {}  # messages by "topic/frame"
        self._unplaced: dict[str, Any] = {}  # maps whose frame is not known
        self._converters: dict[str, Callable[[str, Any], SceneObject]] = {}  # by topic: of a message's name and itself
        self._lock, self._closed = threading.Lock(), False
        self._thread = ThreadPoolExecutor(1, "clouds")
        self._subscribe(PointCloud2, "points", self._cloud, qos_profile_sensor_data)
        durability = arm.values.voxels_durability
        for package, kind, topic, read in (
            ("octomap_msgs.msg", "Octomap", "octomap", octomap_bricks),
            ("nav2_msgs.msg", "VoxelGrid", "voxel_grid", voxel_grid_bricks),
        ):
            messages, _ = optional_module(package, topic)
            if messages and hasattr(messages, kind):
                convert, qos = partial(self._voxels, read), of_durability(durability, depth=1)
                self._subscribe(getattr(messages, kind), topic, convert, qos)
        arm.node.create_timer(LOOK_S, self._look, clock=steady_clock())

    def robot_is_there(self) -> None:
        self._look()
        self._work(len(self._waiting))

    def forget(self, *names: str) -> None:
        """Forget the kept maps of these names, by default all."""
        with self._lock:
            for name in names or [*self._unplaced]:
                self._unplaced.pop(name, None)

    def close(self) -> None:
        """Take nothing more, and tell of no message under way."""
        with self._lock:
            self._waiting.clear()
            self._closed = True
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _subscribe(self, kind, topic, convert, qos):
        def arrived(message):
            with self._lock:
                name = f"{topic}/{message.header.frame_id}"
                self._waiting[name] = message
                self._unplaced.pop(name, None)
            self._work()

        self._converters[topic] = convert
        self._arm.node.create_subscription(kind, f"~/{topic}", arrived, qos)

    def _work(self, count=1):
        """Have so many messages converted."""
        for _ in range(count if self._scene.robot is not None else 0):
            self._thread.submit(self._convert)

    def _convert(self):
        with self._lock:
            if not self._waiting:  # one has taken the place of another
                return
            name = next(iter(self._waiting))
            message = self._waiting.pop(name)
        try:
            seen = self._converters[name.split("/")[0]](name, message)
            self._arm.worker.do(self._arm.take_object, self._packed(seen))
        except Exception as error:  # whatever it is, the next message may be right
            if not self._closed:
                self._refuse(name, message, error)

    def _refuse(self, name, message, error):
        topic = name.split("/")[0]
        lost = isinstance(error, RequestError) and error.code == error_codes.FRAME_TRANSFORM_FAILURE
        if lost and topic != "points":
            with self._lock:
                self._unplaced = dict([*self._unplaced.items()][1 - MOST_UNPLACED :]) | {name: message}
        expires = self._end_of_life() if topic == "points" else ALWAYS
        self._arm.refuse(name, f"a message on ~/{topic} was refused: {error_text(error)}", expires)

    def _look(self):
        """Take the maps whose frame is known by now."""
        with self._lock:
            known = {name: one for name, one in self._unplaced.items() if self._knows(one.header)}
            self._unplaced = {name: one for name, one in self._unplaced.items() if name not in known}
            self._waiting = known | self._waiting
        self._work(len(known))

    def _knows(self, header):
        try:
            self._scene.frames.at(header.frame_id, header.stamp if seconds(header.stamp) else None)
        except KeyError:
            return False
        return True

    def _packed(self, one):
        """An object, its bricks packed for the robot and the margin of requests that give none."""
        for bricks in one.placed:
            pack_bricks(bricks, pack_robot(self._scene.require_robot()), self._arm.values.margin)
        return one

    def _cloud(self, name, message):
        values, robot = self._arm.values, self._scene.require_robot()
        count, stamp = message.width * message.height, seconds(message.header.stamp)
        if not count:  # nothing is there, whatever the frame
            return _object(name, Bricks.of_voxels(name, np.zeros((0, 3), int), 1.0, np.eye(4)), ALWAYS)
        age = self._arm.now() - stamp
        if stamp and age > values.points_max_age_s:
            raise RequestError(
                error_codes.FAILURE,
                f"the cloud is {age:.3g} s old; allowed: {values.points_max_age_s:g} s, parameter points_max_age_s",
            )
        check_count("points in a cloud", count, "points_max", values, error_codes.FAILURE)
        T_root_frame = self._transform(message.header, name)
        box = np.array(values.points_box).reshape(2, 3) if values.points_box else EVERYWHERE
        points = points_in_root(cloud_points(message), T_root_frame, box)
        q = _where(robot, self._arm.measured(), "points_padding") if values.points_padding >= 0 else None
        voxels = obstacle_voxels(
            points, values.points_voxel_size, robot, q, max(values.points_padding, 0.0), values.points_max_voxels
        )
        bricks = Bricks.of_voxels(name, voxels.cells, voxels.size, np.eye(4))
        return _object(name, bricks, self._end_of_life())

    def _end_of_life(self):
        lifetime = self._arm.values.points_lifetime_s
        return self._arm.now() + lifetime if lifetime > 0 else ALWAYS

    def _voxels(self, read, name, message):
        T_root_frame = self._transform(message.header, name) if message.data else np.eye(4)
        return _object(name, read(name, message, T_root_frame, self._own()), ALWAYS)

    def _own(self):
        """Near, which tells the robot's own voxels; None where all count."""
        robot, padding = self._scene.require_robot(), self._arm.values.voxels_padding
        if padding < 0:
            return None
        q = _where(robot, self._arm.measured(), "voxels_padding")
        return lambda points, distance: near_robot(robot, q, points, min(padding + distance, PADDING.high))

    def _transform(self, header, name):
        """(4, 4) T_root_frame at the stamp of a message; waits a little for a transform that may still come."""
        frames, frame, until = self._scene.frames, header.frame_id, time.monotonic() + TRANSFORM_WAIT_S
        if (frame in frames and frame not in frames.moved) or not seconds(header.stamp):
            return frame_transform(frames, frame, f"'{name}'")
        while True:
            try:
                return frames.at(frame, header.stamp)
            except KeyError:
                if not frames.asks_tf2 or time.monotonic() > until:
                    return frame_transform(frames, frame, f"'{name}'")
                time.sleep(POLL_S)


def _where(robot: RobotModel, positions: dict[str, float] | None, parameter: str) -> np.ndarray:
    """(dof,) the configuration by joint states. parameter: that asks for it"""
    if positions is None:
        raise RequestError(
            error_codes.ROBOT_STATE_STALE,
            "what of it is the robot's own is not known: joint_states has brought none lately "
            f"(parameter {parameter} -1: nothing is)",
        )
    return configuration(robot, positions, "joint_states", error_codes.START_STATE_INVALID)


def _object(name, bricks, expires):
    return SceneObject(name, (bricks,), np.eye(4), Source.CLOUD, expires)
