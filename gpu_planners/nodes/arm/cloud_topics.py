"""What sensors see as obstacles: ~/points (PointCloud2), ~/octomap (octomap_msgs), ~/voxel_grid (nav2_msgs), and what
nvblox publishes (nvblox_topics).

A thread of its own filters a message and makes voxels of it; the worker only puts the result into the scene. Of the
messages of one topic in one frame that wait, the latest counts, so several cameras may publish on one topic; of layers,
whose messages are pieces, all of them count. A map in a
frame that is not known yet is kept, since it is sent but once, and taken when the frame is known. The functions behind
the class make arrays of the messages.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import PointCloud2, PointField

from ...arm.collision.packing import pack_robot
from ...arm.collision.point_cloud import EVERYWHERE, PADDING, near_robot, obstacle_voxels, points_in_root
from ...arm.collision.scene_packing import pack_bricks
from ...arm.geometry.bricks import Bricks
from ...arm.geometry.octree import octree_leaves
from ...errors import ObstacleError, error_text
from ..common.request_error import RequestError, check_count
from ..common.ros import of_durability, optional_module, seconds, steady_clock
from . import codes
from .arm_services import ArmServices
from .conversions import configuration, frame_transform, moved_by
from .nvblox_topics import LayerKeeper, cells_in, layer_bricks, slice_bricks
from .scene_objects import ALWAYS, SceneObject, Source

TRANSFORM_WAIT_S = 0.2  # a transform at the time of a cloud often comes a little after it
POLL_S = 0.01
LOOK_S = 1.0  # between two looks at whether a map can be placed by now
MOST_UNPLACED = 20  # maps that are kept for it
NVBLOX = QoSProfile(depth=100)  # it latches nothing, and a piece that is lost leaves a hole


class CloudTopics:
    """Subscriptions of the arm node. They read its scene, and hand objects to `take_object`."""

    def __init__(self, arm: ArmServices) -> None:
        self._arm, self._scene = arm, arm.scene
        self._waiting: dict[str, Any] = {}  # messages by "topic/frame"
        self._unplaced: dict[str, Any] = {}  # maps whose frame is not known
        self._converters: dict[str, Callable[[str, Any], SceneObject]] = {}  # by topic: of a message's name and itself
        self._lock, self._closed = threading.Lock(), False
        self._thread = ThreadPoolExecutor(1, "clouds")
        self._subscribe(PointCloud2, "points", self._cloud, qos_profile_sensor_data)
        qos = of_durability(arm.values.voxels_durability, depth=1)
        for package, name, topic, read in (
            ("octomap_msgs.msg", "Octomap", "octomap", octomap_bricks),
            ("nav2_msgs.msg", "VoxelGrid", "voxel_grid", voxel_grid_bricks),
        ):
            if kind := getattr(optional_module(package, topic)[0], name, None):
                self._subscribe(kind, topic, partial(self._voxels, read), qos)
        nvblox = optional_module("nvblox_msgs.msg", "distance_slice")[0]
        self._layers = LayerKeeper(lambda: arm.values.points_max)
        for name, topic, convert in (
            ("DistanceMapSlice", "distance_slice", self._slice),
            ("VoxelBlockLayer", "voxel_blocks", self._layer),
        ):
            if kind := getattr(nvblox, name, None):
                self._subscribe(kind, topic, convert, NVBLOX)
        arm.node.create_timer(LOOK_S, self._look, clock=steady_clock())

    def robot_is_there(self) -> None:
        self._look()
        self._work(len(self._waiting))

    def forget(self, *names: str) -> None:
        """Forget the kept maps of these names, by default all."""
        with self._lock:
            for name in names or [*self._unplaced]:
                self._unplaced.pop(name, None)
            for name in names or [*self._layers.layers]:
                self._layers.forget(name)

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
                self._waiting[name] = self._layers.take(name, message) if topic == "voxel_blocks" else message
                self._unplaced.pop(name, None)
            self._work()

        self._converters[topic] = convert
        self._arm.node.create_subscription(kind, f"~/{topic}", arrived, qos)

    def _work(self, count=1):
        """Queue the conversion of so many messages."""
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
            for bricks in seen.placed:  # for the robot and the margin of requests that give none
                pack_bricks(bricks, pack_robot(self._scene.require_robot()), self._arm.values.margin)
            self._arm.worker.do(self._arm.take_object, seen)
        except Exception as error:  # whatever it is, the next message may be right
            if not self._closed:
                self._refuse(name, message, error)

    def _refuse(self, name, message, error):
        topic = name.split("/")[0]
        lost = isinstance(error, RequestError) and error.code == codes.FRAME_TRANSFORM_FAILURE
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

    def _cloud(self, name, message):
        values, robot = self._arm.values, self._scene.require_robot()
        count, stamp = message.width * message.height, seconds(message.header.stamp)
        if not count:  # nothing is there, whatever the frame
            return _object(name, Bricks.of_voxels(name, np.zeros((0, 3), int), 1.0, np.eye(4)), ALWAYS)
        age = self._arm.now() - stamp
        if stamp and age > values.points_max_age_s:
            raise RequestError(
                codes.FAILURE,
                f"the cloud is {age:.3g} s old; allowed: {values.points_max_age_s:g} s, parameter points_max_age_s",
            )
        check_count("points in a cloud", count, "points_max", values, codes.FAILURE)
        T_root_frame = self._transform(message.header, name)
        box = np.array(values.points_box).reshape(2, 3) if values.points_box else EVERYWHERE
        points = points_in_root(cloud_points(message), T_root_frame, box)
        q = self._where(robot, "points_padding") if values.points_padding >= 0 else None
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

    def _slice(self, name, message):
        T_root_frame = self._transform(message.header, name) if message.data else np.eye(4)
        bricks, near = slice_bricks(name, message, T_root_frame, self._arm.values), self._own()
        if near is not None:
            cells, extents = without_own(cells_in(bricks), 1, bricks.size, bricks.pose, near)
            bricks = Bricks.of_voxels(name, cells, bricks.size, bricks.pose, extents)
        return _object(name, bricks, ALWAYS)

    def _layer(self, name, layer):
        T_root_frame, near = self._transform(layer.header, name) if layer.data else np.eye(4), self._own()
        left = None if near is None else lambda *of_cells: without_own(*of_cells, near)
        return _object(name, layer_bricks(name, layer, T_root_frame, left), ALWAYS)

    def _own(self):
        """Near, which tells the robot's own voxels; None where all count."""
        robot, padding = self._scene.require_robot(), self._arm.values.voxels_padding
        if padding < 0:
            return None
        q = self._where(robot, "voxels_padding")
        return lambda points, distance: near_robot(robot, q, points, min(padding + distance, PADDING.high))

    def _where(self, robot, parameter):
        """(dof,) the configuration by joint states. parameter: that asks for it"""
        positions = self._arm.measured()
        if positions is None:
            raise RequestError(
                codes.ROBOT_STATE_STALE,
                "what of it is the robot's own is not known: joint_states has brought none lately "
                f"(parameter {parameter} -1: nothing is)",
            )
        return configuration(robot, positions, "joint_states", codes.START_STATE_INVALID)

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


def _object(name, bricks, expires):
    return SceneObject(name, (bricks,), np.eye(4), Source.CLOUD, expires)


# ---- messages to arrays ----

DTYPES = {PointField.FLOAT32: "f4", PointField.FLOAT64: "f8"}
LEVELS = 16  # of a column of a VoxelGrid
Near = Callable[[np.ndarray, float], np.ndarray]  # (N, 3) points in the root frame, metres -> (N,) are they near?


def cloud_points(message: PointCloud2) -> np.ndarray:
    """(N, 3) float32 or float64 x, y, z of a PointCloud2, in its frame; some may not be finite."""
    fields = {one.name: one for one in message.fields}
    for axis in "xyz":
        if axis not in fields or fields[axis].datatype not in DTYPES:
            has = ", ".join(f"{one.name} (datatype {one.datatype})" for one in message.fields) or "none"
            raise ObstacleError(f"a point cloud needs fields x, y, z of FLOAT32 or FLOAT64; it has {has}")
    order = ">" if message.is_bigendian else "<"
    step, width, height = message.point_step, message.width, message.height
    formats = [order + DTYPES[fields[axis].datatype] for axis in "xyz"]
    offsets = [fields[axis].offset for axis in "xyz"]
    end = max(offset + np.dtype(kind).itemsize for offset, kind in zip(offsets, formats, strict=True))
    row_step = message.row_step or width * step
    if end > step or row_step < width * step or len(message.data) < height * row_step:
        raise ObstacleError(
            f"a point cloud of {height} rows of {width} points, {step} bytes each and {row_step} a row, needs x, y, z "
            f"within each point and {height * row_step} bytes; it has {len(message.data)}"
        )
    kind = np.dtype({"names": list("xyz"), "formats": formats, "offsets": offsets, "itemsize": step})
    rows = np.ndarray((height, width), kind, np.frombuffer(message.data, np.uint8), strides=(row_step, step))
    return np.stack([rows[axis].ravel() for axis in "xyz"], axis=1)


def octomap_bricks(name: str, message: Any, T_root_frame: np.ndarray, near: Near | None = None) -> Bricks:
    """The occupied voxels of an octomap_msgs/Octomap, binary or full. near: leaves out those that are the robot's"""
    data = np.frombuffer(message.data, np.uint8)
    cells, extents = octree_leaves(name, data, message.binary, message.id)
    if near is not None:
        cells, extents = without_own(cells, extents, message.resolution, T_root_frame, near)
    return Bricks.of_voxels(name, cells, message.resolution, T_root_frame, extents)


def voxel_grid_bricks(name: str, message: Any, T_root_frame: np.ndarray, near: Near | None = None) -> Bricks:
    """The marked voxels, not the unknown ones, of a nav2_msgs/VoxelGrid: in a column's number, bits z and z + 16 are
    set. near: leaves out those that are the robot's"""
    nx, ny, nz = message.size_x, message.size_y, message.size_z
    columns = np.array(message.data, np.uint32)
    if len(columns) != nx * ny or nz > LEVELS:
        raise ObstacleError(
            f"'{name}': a voxel grid of {nx} x {ny} x {nz} has {len(columns)} columns; allowed: {nx * ny}, "
            f"of up to {LEVELS} voxels"
        )
    marked = (columns & (columns >> np.uint32(LEVELS))).reshape(ny, nx)
    y, x, z = np.nonzero((marked[..., None] >> np.arange(nz, dtype=np.uint32)) & 1)
    size = np.array([message.resolutions.x, message.resolutions.y, message.resolutions.z])
    cells, T_root_grid = np.column_stack([x, y, z]), T_root_frame @ moved_by(message.origin)
    if near is not None:
        cells, _ = without_own(cells, 1, size, T_root_grid, near)
    return Bricks.of_voxels(name, cells, size, T_root_grid)


def without_own(
    cells: np.ndarray, extents: np.ndarray | int, size: np.ndarray | float, T_root_grid: np.ndarray, near: Near
) -> tuple[np.ndarray, np.ndarray]:
    """(cells, extents) of the voxels that are not near the robot; larger voxels that may be near are split.

    cells, size: as of Bricks.of_voxels; extents: as there, powers of two
    near: whether the robot, and the padding about it, comes within so many metres of points
    """
    size = np.broadcast_to(size, 3)
    extents = np.broadcast_to(extents, len(cells))
    kept = [(np.zeros((0, 3), np.int64), np.zeros(0, np.int64))]
    for extent in sorted(2 ** np.arange(int(extents.max(initial=1)).bit_length()), reverse=True):
        these, others = cells[extents == extent], extents != extent
        centres = ((these + extent / 2) * size) @ T_root_grid[:3, :3].T + T_root_grid[:3, 3]
        own = near(centres, float(np.linalg.norm(size)) * extent / 2) if len(these) else np.zeros(0, bool)
        kept.append((these[~own], np.full(np.count_nonzero(~own), extent)))
        half = extent // 2
        corners = half * np.stack(np.meshgrid(*3 * [[0, 1]]), axis=-1).reshape(-1, 3)
        parts = (these[own][:, None] + corners).reshape(-1, 3) if half else np.zeros((0, 3), np.int64)
        cells = np.concatenate([cells[others], parts])
        extents = np.concatenate([extents[others], np.full(len(parts), half)])
    return np.concatenate([one for one, _ in kept]), np.concatenate([one for _, one in kept])
