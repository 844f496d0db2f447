"""The map that is planned on. It belongs to the worker thread."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from std_msgs.msg import Header

from ...errors import GridMapError
from ...grid import GridMap
from ...grid.maps.map_files import load_map_yaml
from ...grid.maps.movingai import load_movingai_map
from .map_codes import NO_MAP
from .map_kinds import MAP_KINDS, MapKind
from .map_parameters import MapParameters
from .request_error import RequestError


def load_map(path: str | Path, connectivity: int, **occupancy: Any) -> GridMap:
    """GridMap of a map_server YAML file or a MovingAI .map file; ~ is the home folder.

    occupancy: as for GridMap.from_occupancy
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise GridMapError(f"no map file '{path}'; allowed: a map_server .yaml or a MovingAI .map")
    if path.suffix.lower() in (".yaml", ".yml"):
        return load_map_yaml(path, connectivity, **occupancy)
    if path.suffix.lower() == ".map":
        return load_movingai_map(path, connectivity)
    raise GridMapError(f"map file '{path}' ends with '{path.suffix}'; allowed: a map_server .yaml or a MovingAI .map")


class MapScene:
    """The latest map as it came and inflated by the footprint (`grid`).

    Maps and updates are collected by `load_file`, `take_map`, `take_update`, and count after `apply`, all at once. A
    subclass hears of a change by `renewed` and `tiles_changed`.

    frame, stamp: of the map; changes: number of changes of `grid`; kind: of the messages that maps come in
    """

    kind: MapKind = MAP_KINDS["occupancy"]

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

    def renewed(self) -> None:
        """`grid` has nothing to do with the one before."""

    def tiles_changed(self, before: GridMap, window: tuple[slice, slice], tiles: tuple[np.ndarray, ...]) -> None:
        """`before` has become `grid`: inside a window, its tiles (rows, cols, costs (M,)) are new."""

    def cells_to_grid(
        self, cells: np.ndarray, resolution: float = 1.0, origin: tuple[float, float, float] = (0.0, 0.0, 0.0)
    ) -> GridMap:
        """GridMap of the cells (rows, cols) of a message."""
        return GridMap.from_occupancy(cells, resolution, origin, **self._values.occupancy_rules)

    def reach(self, values: MapParameters) -> float:
        """How far from an obstacle `inflated` changes tiles, metres."""
        return values.footprint_radius

    def inflated(self, grid: GridMap) -> GridMap:
        """A map with tiles blocked or dearer by obstacles up to `reach` away."""
        return grid.inflated(self._values.footprint_radius)

    def inflates_alike(self, one: MapParameters, other: MapParameters) -> bool:
        """Does `inflated` do the same with both?"""
        return one.footprint_radius == other.footprint_radius

    def header(self) -> Header:
        """Of messages that are made now."""
        return Header(frame_id=self.frame, stamp=self._now())

    def map_header(self) -> Header:
        """Of messages that show the map: when it came."""
        return Header(frame_id=self.frame, stamp=self.stamp)

    def load_file(self, path: str) -> None:
        """Collect the map of a file; GridMapError when it holds none."""
        self._collect(load_map(path, **self._values.occupancy_rules))

    def take_map(self, message: Any) -> None:
        """Collect a map of the scene's kind. One that lies where the last one lay counts as a change of its tiles."""
        grid = self.cells_to_grid(*self.kind.read(message))
        self.frame, self.stamp = message.header.frame_id or self._values.map_frame, message.header.stamp
        self._collect(grid)

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
        if self._read is not None and not self.inflates_alike(before, values):
            self._renew()

    def clear(self) -> None:
        """Collect the latest map that came whole, without the updates since. Costmaps are cleared by who makes them."""
        if self._whole is not None and not self.kind.costmap:
            self._collect(self._whole)

    def forget(self) -> None:
        """Have no map any more."""
        self._read = self.grid = self._whole = self._coming = None
        self._costs, self._window = None, None
        self.frame, self.stamp = self._values.map_frame, Time()
        self.renewed()

    def require_map(self) -> GridMap:
        """The map that is planned on; RequestError while there is none."""
        if self.grid is None:
            text = "there is no map yet: publish one on the topic map, or give the parameter map_file"
            raise RequestError(NO_MAP, text)
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
    rows, cols = np.nonzero(old != new)
    return rows + window[0].start, cols + window[1].start, new[rows, cols]


def both(one: Any, other: Any) -> Any:
    """The least window around two; None is none."""
    if one is None:
        return other
    return tuple(slice(min(a.start, b.start), max(a.stop, b.stop)) for a, b in zip(one, other))


def _wider(part, by, size):
    return slice(max(part.start - by, 0), min(part.stop + by, size))
