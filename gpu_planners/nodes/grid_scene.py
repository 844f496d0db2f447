"""The map that is planned on, and the planners that know it. It belongs to the worker thread."""

import math
from dataclasses import asdict, dataclass, fields

import numpy as np
from builtin_interfaces.msg import Time
from std_msgs.msg import Header

from ..device import resolve_device
from ..errors import GridMapError
from ..grid import BlockPlanner, GridMap
from . import grid_codes as codes
from .grid_conversions import map_update, occupancy
from .grid_files import load_map
from .grid_parameters import ALGORITHMS, settings_of, unknown_cells
from .request_error import RequestError


@dataclass(frozen=True)
class MapReading:
    """How occupancy values become costs: parameters of the node that are read at start."""

    unknown: object
    occupied_from: int
    free_below: int
    highest_cost: int
    connectivity: int

    @classmethod
    def of_parameters(cls, values):
        given = {field.name: values[field.name] for field in fields(cls)}
        return cls(**given | {"unknown": unknown_cells(values["unknown"])})

    def grid(self, data, resolution=1.0, origin=(0.0, 0.0, 0.0)):
        """GridMap of occupancy values (rows, cols) int8"""
        return GridMap.from_occupancy(data, resolution, origin, **asdict(self))


class GridScene:
    """The latest map as it came and inflated by the footprint (`grid`), and a planner for each algorithm in use.

    Maps and updates are collected by `load_file`, `take_map`, `take_update`, and count after `apply`, all at once. A planner is
    told of changes when it is next asked for.

    now: gives the time for what is planned, builtin_interfaces/Time
    """

    def __init__(self, values, now=Time):
        self._reading = MapReading.of_parameters(values)
        self._values, self._now = values, now
        self._planners, self._behind = {}, {}  # by algorithm; maps that their planners have, and the windows where `grid` may differ
        self._read = self.grid = None
        self._coming, self._costs, self._window = None, None, None  # collected: a map, costs on it, where it may differ from `_read`
        self.frame, self.stamp, self.changes = values["map_frame"], Time(), 0

    def header(self):
        """Of messages that are made now."""
        return Header(frame_id=self.frame, stamp=self._now())

    def map_header(self):
        return Header(frame_id=self.frame, stamp=self.stamp)

    def load_file(self, path):
        self._collect(load_map(path, **asdict(self._reading)))

    def take_map(self, message):
        """nav_msgs/OccupancyGrid. A map that lies where the last one lay counts as a change of its tiles."""
        grid = self._reading.grid(*occupancy(message))
        self.frame, self.stamp = message.header.frame_id or self._values["map_frame"], message.header.stamp
        self._collect(grid)

    def take_update(self, message):
        """map_msgs/OccupancyGridUpdate"""
        latest = self._coming or self._read
        if latest is None:
            raise GridMapError("a map update came before any map")
        if message.header.frame_id not in ("", self.frame):
            raise GridMapError(f"the map update is given in frame '{message.header.frame_id}'; allowed: the map's, '{self.frame}'")
        row, col, data = map_update(message, latest.shape)
        if data.size:
            window = slice(row, row + data.shape[0]), slice(col, col + data.shape[1])
            costs = self._reading.grid(data).costs
            if self._costs is None:
                self._costs = latest.costs.copy()
            self._costs[window] = costs
            self._window = _both(self._window, window)
        self.stamp = message.header.stamp

    def apply(self):
        """Plan on what was collected from now on."""
        if self._window is None:
            return
        grid = self._coming or self._read
        if self._costs is not None:
            grid = GridMap(self._costs, grid.connectivity, grid.resolution, grid.origin)
        before, self._read, window = self._read, grid, self._window
        self._coming, self._costs, self._window = None, None, None
        if before is None or _place(grid) != _place(before):
            self._renew()
        else:
            self._change(before, window)

    def configure(self, values):
        """Take other parameters: planners and inflation are made anew where they depend on them."""
        before, self._values = self._values, values
        if self._read is not None and before["footprint_radius"] != values["footprint_radius"]:
            self._renew()
        kept = ("device", "block_size", *(name for name in values if "." in name))
        if any(before[name] != values[name] for name in kept):
            self._planners, self._behind = {}, {}

    def planner(self, algorithm):
        """The planner of an algorithm on the present map, with its device; made when it is first asked for, then changed with the map."""
        if self.grid is None:
            raise RequestError(codes.NO_MAP, "there is no map yet: publish one on the topic map, or give the parameter map_file")
        if algorithm not in ALGORITHMS:
            known = ", ".join(ALGORITHMS)
            raise RequestError(codes.INVALID_PLANNER, f"unknown algorithm '{algorithm}'; known are {known}")
        planner = self._planners.pop(algorithm, None)  # one that fails is made anew
        if planner is None:
            planner = BlockPlanner(
                self.grid,
                algorithm=algorithm,
                block_size=self._values["block_size"],
                device=resolve_device(self._values["device"]),
                settings=settings_of(self._values, algorithm),
            )
        elif algorithm in self._behind:
            known, window = self._behind[algorithm]
            planner.update(*_differences(known.costs[window], self.grid.costs[window], window))
        self._behind.pop(algorithm, None)
        self._planners[algorithm] = planner
        return planner

    def _collect(self, grid):
        self._coming, self._costs = grid, None
        self._window = slice(0, grid.rows), slice(0, grid.cols)

    def _renew(self):
        """A map that has nothing to do with the one before."""
        self.grid = self._read.inflated(self._values["footprint_radius"])
        self.changes += 1
        self._planners, self._behind = {}, {}

    def _change(self, before, window):
        """The map as it came has changed inside a window, if at all; bring `grid` up to date."""
        rows, cols, _ = _differences(before.costs[window], self._read.costs[window], window)
        if not len(rows):
            return
        window = slice(rows.min(), rows.max() + 1), slice(cols.min(), cols.max() + 1)
        radius = self._values["footprint_radius"]
        reach = math.ceil(radius / before.resolution)
        affected, seen = (tuple(_wider(part, by, n) for part, n in zip(window, before.shape)) for by in (reach, 2 * reach))
        part = GridMap(self._read.costs[seen], before.connectivity, before.resolution).inflated(radius).costs
        inside = tuple(slice(a.start - s.start, a.stop - s.start) for a, s in zip(affected, seen))
        tiles = _differences(self.grid.costs[affected], part[inside], affected)
        if len(tiles[0]):
            for algorithm in self._planners:
                known, window = self._behind.get(algorithm, (self.grid, None))
                self._behind[algorithm] = known, _both(window, affected)
            self.grid = self.grid.changed(*tiles)
            self.changes += 1


def _place(grid):
    return grid.shape, grid.resolution, grid.origin, grid.connectivity


def _differences(old, new, window):
    """Where a window's tiles differ -> rows, cols (N,) on the map, what is new there (N,)"""
    rows, cols = np.nonzero(old != new)
    return rows + window[0].start, cols + window[1].start, new[rows, cols]


def _both(one, other):
    """The least window around two; None is none."""
    if one is None:
        return other
    return tuple(slice(min(a.start, b.start), max(a.stop, b.stop)) for a, b in zip(one, other))


def _wider(part, by, size):
    return slice(max(part.start - by, 0), min(part.stop + by, size))
