"""The map that is planned on, and the planners that know it. It belongs to the worker thread."""

import math
from dataclasses import dataclass

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
        return cls(unknown_cells(values["unknown"]), *(values[name] for name in list(cls.__dataclass_fields__)[1:]))

    def grid(self, data, resolution=1.0, origin=(0.0, 0.0, 0.0)):
        """GridMap of occupancy values (rows, cols) int8"""
        return GridMap.from_occupancy(
            data,
            resolution,
            origin,
            self.connectivity,
            unknown=self.unknown,
            occupied_from=self.occupied_from,
            free_below=self.free_below,
            highest_cost=self.highest_cost,
        )


class GridScene:
    """The latest map as it came (`read`) and inflated by the footprint (`grid`), and a planner for each algorithm in use.

    now: gives the time for what is planned, builtin_interfaces/Time
    """

    def __init__(self, values, now=Time):
        self._reading = MapReading.of_parameters(values)
        self._values, self._planners = values, {}
        self.read = self.grid = None
        self.frame, self.stamp, self.changes = values["map_frame"], Time(), 0
        self._now = now

    def header(self):
        """Of messages that are made now."""
        return Header(frame_id=self.frame, stamp=self._now())

    def map_header(self):
        return Header(frame_id=self.frame, stamp=self.stamp)

    def load_file(self, path):
        r = self._reading
        how = dict(unknown=r.unknown, occupied_from=r.occupied_from, free_below=r.free_below, highest_cost=r.highest_cost)
        self._take(load_map(path, r.connectivity, **how))

    def take_map(self, message):
        """nav_msgs/OccupancyGrid. A map that lies where the last one lay is taken as a change of its tiles."""
        grid = self._reading.grid(*occupancy(message))
        self.frame, self.stamp = message.header.frame_id or self._values["map_frame"], message.header.stamp
        self._take(grid)

    def take_update(self, message):
        """map_msgs/OccupancyGridUpdate"""
        if self.read is None:
            raise GridMapError("a map update came before any map")
        if message.header.frame_id not in ("", self.frame):
            raise GridMapError(f"the map update is given in frame '{message.header.frame_id}'; allowed: the map's, '{self.frame}'")
        row, col, data = map_update(message, self.read.shape)
        if data.size:
            window = slice(row, row + data.shape[0]), slice(col, col + data.shape[1])
            costs = self.read.costs.copy()
            costs[window] = self._reading.grid(data).costs
            self._change(costs, window)
        self.stamp = message.header.stamp

    def configure(self, values):
        """Take other parameters: planners and inflation are made anew where they depend on them."""
        before, self._values = self._values, values
        if self.read is not None and before["footprint_radius"] != values["footprint_radius"]:
            self.grid = self.read.inflated(values["footprint_radius"])
            self.changes += 1
            self._planners.clear()
        kept = ("device", "block_size", *(name for name in values if "." in name))
        if any(before[name] != values[name] for name in kept):
            self._planners.clear()

    def planner(self, algorithm):
        """The planner of an algorithm on the present map, with its device; made when it is first asked for."""
        if self.grid is None:
            raise RequestError(codes.NO_MAP, "there is no map yet: publish one on the topic map, or give the parameter map_file")
        if algorithm not in ALGORITHMS:
            known = ", ".join(ALGORITHMS)
            raise RequestError(codes.INVALID_PLANNER, f"unknown algorithm '{algorithm}'; known are {known}")
        if algorithm not in self._planners:
            self._planners[algorithm] = BlockPlanner(
                self.grid,
                algorithm=algorithm,
                block_size=self._values["block_size"],
                device=resolve_device(self._values["device"]),
                settings=settings_of(self._values, algorithm),
            )
        return self._planners[algorithm]

    def _take(self, grid):
        if self.read is not None and _place(grid) == _place(self.read):
            differs = grid.costs != self.read.costs
            rows, cols = np.flatnonzero(differs.any(axis=1)), np.flatnonzero(differs.any(axis=0))
            if len(rows):
                self._change(grid.costs, (slice(rows[0], rows[-1] + 1), slice(cols[0], cols[-1] + 1)))
            return
        self._planners.clear()
        self.read, self.grid = grid, grid.inflated(self._values["footprint_radius"])
        self.changes += 1

    def _change(self, costs, window):
        """New costs of the map as it came, which differ from the old inside a window only; planners repair what that affects."""
        radius = self._values["footprint_radius"]
        reach = math.ceil(radius / self.read.resolution)
        affected, seen = (tuple(_wider(part, by, n) for part, n in zip(window, costs.shape)) for by in (reach, 2 * reach))
        self.read = GridMap(costs, self.read.connectivity, self.read.resolution, self.read.origin)
        part = GridMap(costs[seen], self.read.connectivity, self.read.resolution).inflated(radius).costs
        inside = tuple(slice(a.start - s.start, a.stop - s.start) for a, s in zip(affected, seen))
        rows, cols = np.nonzero(part[inside] != self.grid.costs[affected])
        changed = part[inside][rows, cols]
        rows, cols = rows + affected[0].start, cols + affected[1].start
        if not len(rows):
            return
        self.grid = self.grid.changed(rows, cols, changed)
        self.changes += 1
        planners, self._planners = self._planners, {}
        for planner in planners.values():
            planner.update(rows, cols, changed)
        self._planners = planners  # one that fails is made anew


def _place(grid):
    return grid.shape, grid.resolution, grid.origin, grid.connectivity


def _wider(part, by, size):
    return slice(max(part.start - by, 0), min(part.stop + by, size))
