"""The map that is planned on, which belongs to the worker thread, and the topics or the file that it comes from."""

import collections
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from builtin_interfaces.msg import Time
from scipy.spatial.transform import Rotation
from std_msgs.msg import Header

from ...errors import GridMapError, error_text
from ...grid import GridMap
from ...grid.maps.map_files import SINCE, read_map_yaml
from ...grid.maps.movingai import load_movingai_map
from .map_codes import NO_MAP, TF_ERROR
from .map_messages import MAP_KINDS, MapKind, Poses
from .parameters import MapParameters
from .planner_node import PlannerNode
from .request_error import RequestError
from .ros import Transforms, of_durability, optional_module


def load_map(path: str | Path, connectivity: int, rules: str = SINCE, **occupancy: Any) -> GridMap:
    """GridMap of a map_server YAML file or a MovingAI .map file; ~ is the home folder.

    rules: as for read_map_yaml; occupancy: as for GridMap.from_occupancy
    """
    return _read_map(path, connectivity, rules, **occupancy)[0]


def _read_map(path, connectivity, rules, **occupancy):
    """As load_map -> the map, its cells (rows, cols) int8 as of an OccupancyGrid"""
    path = Path(path).expanduser()
    if not path.is_file():
        raise GridMapError(f"no map file '{path}'; allowed: a map_server .yaml or a MovingAI .map")
    if path.suffix.lower() in (".yaml", ".yml"):
        cells, *place = read_map_yaml(path, rules)
        return GridMap.from_occupancy(cells, *place, connectivity, **occupancy), cells
    if path.suffix.lower() == ".map":
        grid = load_movingai_map(path, connectivity)
        return grid, np.where(grid.blocked, np.int8(100), np.int8(0))
    raise GridMapError(f"map file '{path}' ends with '{path.suffix}'; allowed: a map_server .yaml or a MovingAI .map")


class MapScene:
    """The latest map: as it came, and inflated by the footprint, as it is planned on (`grid`).

    Maps and updates are collected by `load_file`, `take_map`, `take_update`, and count after `apply`, all at once. A
    subclass hears of a change by `renewed` and `tiles_changed`.

    frame, stamp: of the map; changes: number of changes of `grid`; kind: of the messages that maps come in
    INFLATION: the parameters on which `inflated` depends
    """

    kind: MapKind = MAP_KINDS["occupancy"]
    INFLATION: ClassVar[tuple[str, ...]] = ("footprint_radius",)

    def __init__(self, values: MapParameters, now: Callable[[], Time] = Time) -> None:
        self._values, self._now = values, now
        self._whole: GridMap | None = None  # the latest one that came whole, without updates
        self._read: GridMap | None = None  # as it came
        self.grid: GridMap | None = None
        # collected: a map, costs on it, where it may differ from `_read`
        self._coming: GridMap | None = None
        self._costs: np.ndarray | None = None
        self._window: Any = None
        self.frame, self.stamp, self.changes = values.map_frame, Time(), 0
        self._refused = ""  # why map_file was

    def renewed(self) -> None:
        """`grid` has nothing to do with the one before."""

    def tiles_changed(self, before: GridMap, window: tuple[slice, slice], tiles: tuple[np.ndarray, ...]) -> None:
        """`before` has become `grid`: inside a window, its tiles (rows, cols, costs (M,)) are new."""

    def cells_to_grid(
        self, cells: np.ndarray, resolution: float = 1.0, origin: tuple[float, float, float] = (0.0, 0.0, 0.0)
    ) -> GridMap:
        """GridMap of the cells (rows, cols) of a message."""
        return GridMap.from_occupancy(cells, resolution, origin, **self._values.occupancy_rules)

    def cells_came(self, cells: np.ndarray, window: Any = None, of_file: bool = False) -> None:
        """The cells of a map, or of a window of it, have been collected: as MapKind.read gives them, or a file's
        occupancies."""

    def reach(self, values: MapParameters) -> float:
        """How far from an obstacle `inflated` changes tiles, metres."""
        return values.footprint_radius

    def inflated(self, grid: GridMap) -> GridMap:
        """A map with tiles blocked or dearer by obstacles up to `reach` away."""
        return grid.inflated(self._values.footprint_radius)

    def header(self) -> Header:
        """Of messages that are made now."""
        return Header(frame_id=self.frame, stamp=self._now())

    def map_header(self) -> Header:
        """Of messages that show the map: when it came."""
        return Header(frame_id=self.frame, stamp=self.stamp)

    def load_file(self, path: str) -> None:
        """Collect the map of a file; GridMapError when it holds none."""
        try:
            grid, cells = _read_map(path, rules=self._values.map_rules, **self._values.occupancy_rules)
        except Exception as error:
            text = f"there is no map: map_file was refused: {error_text(error)}"
            self._refused = f"{text}; correct it, and start or configure the node again"
            raise GridMapError(self._refused) from error
        self._collect(grid)
        self.cells_came(cells, of_file=True)

    def take_map(self, message: Any) -> None:
        """Collect a map of the scene's kind. One that lies where the last one lay counts as a change of its tiles."""
        cells, resolution, origin = self.kind.read(message)
        grid = self.cells_to_grid(cells, resolution, origin)
        self.frame, self.stamp = message.header.frame_id or self._values.map_frame, message.header.stamp
        self._collect(grid)
        self.cells_came(cells)

    def take_update(self, message: Any) -> None:
        """Collect an update of the scene's kind."""
        latest = self._coming or self._read
        if latest is None:
            raise GridMapError("a map update came before any map")
        if message.header.frame_id not in ("", self.frame):
            raise GridMapError(
                f"the map update is given in frame '{message.header.frame_id}'; allowed: the map's, '{self.frame}'"
            )
        row, col, cells = self.kind.read_update(message, latest.shape)
        if cells.size:
            window = slice(row, row + cells.shape[0]), slice(col, col + cells.shape[1])
            costs = self.cells_to_grid(cells).costs
            if self._costs is None:
                self._costs = latest.costs.copy()
            self._costs[window] = costs
            self._window = both(self._window, window)
            self.cells_came(cells, window)
        self.stamp = message.header.stamp

    def apply(self) -> None:
        """Plan on what was collected from now on."""
        grid = self._coming or self._read
        if grid is None or self._window is None:
            return
        if self._costs is not None:
            grid = GridMap(self._costs, grid.connectivity, grid.resolution, grid.origin)
        before, self._read, window = self._read, grid, self._window
        self._coming, self._costs, self._window = None, None, None
        if before is None or _place(grid) != _place(before):
            self._renew()
        else:
            self._change(before, window)

    def configure(self, values: MapParameters) -> None:
        """Take other parameters: the map is inflated anew where that depends on them."""
        before, self._values = self._values, values
        if self._read is not None and any(getattr(before, name) != getattr(values, name) for name in self.INFLATION):
            self._renew()

    def clear(self) -> None:
        """Collect the latest map that came whole, without the updates since. Costmaps are cleared by who makes them."""
        if self._whole is not None and self.kind.costs is None:
            self._collect(self._whole)

    def forget(self) -> None:
        self._read = self.grid = self._whole = self._coming = None
        self._costs, self._window, self._refused = None, None, ""
        self.frame, self.stamp = self._values.map_frame, Time()
        self.renewed()

    def require_map(self) -> GridMap:
        if self.grid is None:
            text = "there is no map yet: publish one on the topic map, or give the parameter map_file"
            raise RequestError(NO_MAP, self._refused or text)
        return self.grid

    def _collect(self, grid):
        self._coming = self._whole = grid
        self._costs = None
        self._window = slice(0, grid.rows), slice(0, grid.cols)

    def _renew(self):
        self.grid = self.inflated(self._read)
        self.changes += 1
        self.renewed()

    def _change(self, before, window):
        """Bring `grid` up to date after a change inside a window of the map as it came."""
        rows, cols, _ = differences(before.costs[window], self._read.costs[window], window)
        if not len(rows):
            return
        window = slice(rows.min(), rows.max() + 1), slice(cols.min(), cols.max() + 1)
        reach = math.ceil(self.reach(self._values) / before.resolution)
        affected, seen = (
            tuple(_wider(part, by, n) for part, n in zip(window, before.shape)) for by in (reach, 2 * reach)
        )
        part = self.inflated(GridMap(self._read.costs[seen], before.connectivity, before.resolution)).costs
        inside = tuple(slice(a.start - s.start, a.stop - s.start) for a, s in zip(affected, seen))
        tiles = differences(self.grid.costs[affected], part[inside], affected)
        if len(tiles[0]):
            known, self.grid = self.grid, self.grid.changed(*tiles)
            self.changes += 1
            self.tiles_changed(known, affected, tiles)


def _place(grid):
    return grid.shape, grid.resolution, grid.origin, grid.connectivity


def differences(old: np.ndarray, new: np.ndarray, window: tuple[slice, slice]) -> tuple[np.ndarray, ...]:
    """Where a window's tiles differ -> rows, cols (N,) on the map, what is new there (N,)"""
    different = old != new
    rows, cols = np.divmod(np.flatnonzero(different), different.shape[1])  # a tenth of the time of np.nonzero
    return rows + window[0].start, cols + window[1].start, new[rows, cols]


def both(one: Any, other: Any) -> Any:
    """The least window around two; None is none."""
    if one is None:
        return other
    return tuple(slice(min(a.start, b.start), max(a.stop, b.stop)) for a, b in zip(one, other))


def _wider(part, by, size):
    return slice(max(part.start - by, 0), min(part.stop + by, size))


UPDATES_DEPTH = 1000  # none of a burst may be lost: what it changed would never be known


class TopicMaps:
    """The topics map and map_updates, of the scene's kind, or a map file. What comes while the worker is busy is one
    change.

    changed: called on the worker when all that came is taken, with whether the map that is planned on has changed
    missing: why there is no map_updates; empty when there is; taken: number of messages that were looked at
    """

    def __init__(self, node: PlannerNode, scene: MapScene, changed: Callable[[bool], None]) -> None:
        self._scene, self._changed, values = scene, changed, node.values
        self._waiting: collections.deque[tuple[Callable[[Any], None], Any]] = collections.deque()
        self._node, self._subscriptions, self.taken = node, [], 0  # type: ignore[var-annotated]
        if values.map_file:
            self._receive(scene.load_file, values.map_file)
        else:
            qos = of_durability(values.map_durability, depth=1)
            if missing := self._listen(scene.kind.map, "map", scene.take_map, qos):
                node.state.set_problem("map", missing)
        self.missing = self._listen(scene.kind.update, "map_updates", scene.take_update, UPDATES_DEPTH)

    def close(self) -> None:
        """Take no more maps. For the executor's thread."""
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)

    def _listen(self, kind, topic, take, qos):
        """Subscribe -> why not; empty when that is done."""
        module, missing = optional_module(kind[0], f"topic {topic} of type {kind[1]}")
        if not missing:
            receive = partial(self._receive, take)
            self._subscriptions.append(self._node.create_subscription(getattr(module, kind[1]), topic, receive, qos))
        return missing

    def _receive(self, take, source):
        self._waiting.append((take, source))
        self._node.worker.do(self._take_all)

    def _take_all(self):
        changes, count = self._scene.changes, 0
        while self._waiting:
            take, source = self._waiting.popleft()
            count += 1
            try:
                take(source)
                self._node.state.set_problem("map", "")
            except Exception as error:  # whatever it is, the next map may be right
                if take == self._scene.load_file:
                    self._node.state.fail(error_text(error))
                    continue
                kept = "; the map before it is used" if self._scene.grid is not None else ""
                self._node.state.set_problem("map", f"a map or an update of it was refused: {error_text(error)}{kept}")
        if count:
            self._scene.apply()
            self._changed(self._scene.changes != changes)
            self.taken += count
            self._node.state.publish()


class Frames(Transforms):
    """Moves poses to the map's frame, through tf2 where it is installed; else only the map's own frame is known."""

    def to_map(self, poses: Poses, map_frame: str, what: str) -> Poses:
        """Poses moved to the map's frame; RequestError where nobody knows how. An empty frame is the map's."""
        if poses.frame in ("", map_frame):
            return poses
        try:
            T_map_frame = self.look_up(map_frame, poses.frame)
        except KeyError as error:
            text = f"{what}: frame '{poses.frame}' is not the map's frame '{map_frame}', and {error.args[0]}"
            raise RequestError(TF_ERROR, text) from error
        rotation = Rotation.from_matrix(T_map_frame[:3, :3])
        given = np.isfinite(poses.quaternions).all(axis=1) & poses.quaternions.any(axis=1)
        turned = np.zeros_like(poses.quaternions)
        if given.any():
            turned[given] = (rotation * Rotation.from_quat(poses.quaternions[given])).as_quat()
        return Poses(poses.points @ T_map_frame[:3, :3].T + T_map_frame[:3, 3], turned, map_frame)

    def origin_of(self, frame: str, map_frame: str, what: str) -> Poses:
        """Where the origin of a frame (a robot's, say) stands in the map, as Poses of one."""
        return self.to_map(Poses(np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0, 1.0]]), frame), map_frame, what)
