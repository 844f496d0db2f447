"""The map that is planned on, and the planners that know it.

The scene belongs to the worker; each planner belongs to one of its threads while requests are answered in parallel.
"""

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from builtin_interfaces.msg import Time
from scipy.ndimage import distance_transform_edt

from ...errors import GridMapError, SettingsError
from ...grid import BlockPlanner, GridMap, PoseGrid, PosePlanner
from ...grid.maps.grid_map import looked_up
from ..common import map_codes as codes
from ..common.map_messages import HIGHEST, INSCRIBED, LETHAL, MAP_KINDS, UNKNOWN, cost_table
from ..common.map_scene import MapScene, both, differences
from ..common.request_error import RequestError
from ..common.worker import seat
from .parameters import ALGORITHMS, GridParameters


class GridScene(MapScene):
    """The map, and for each algorithm in use a planner on each device, which catches up with the map when asked for.

    With the parameter footprint only obstacles are blocked, and PosePlanner plans.
    """

    _values: GridParameters
    INFLATION = ("footprint_radius", "footprint", "inflation_radius", "cost_scaling_factor")
    PLANNERS = (
        *("device", "block_size", *ALGORITHMS),
        *("motion_model", "minimum_turning_radius", "angle_quantization_bins", "lattice_filepath", "move_costs"),
    )

    def __init__(self, values: GridParameters, now: Callable[[], Time] = Time) -> None:
        super().__init__(values, now)
        self.kind = MAP_KINDS[values.map_kind]
        # by number of the device, algorithm
        self._planners: dict[tuple[int, str], Any] = {}
        self._behind: dict[tuple[int, str], tuple[GridMap, Any]] = {}  # the planner's map, the window where it differs
        # costs of Nav2 (rows, cols) uint8: of what came, where occupancies are 0, LETHAL or UNKNOWN; the same of the
        # latest map that came whole; of the map after so many changes, with inflation
        self._cells = self._whole_cells = np.zeros((0, 0), np.uint8)
        self._nav2_costs: tuple[int, np.ndarray] | None = None

    def cells_to_grid(self, cells, resolution=1.0, origin=(0.0, 0.0, 0.0)) -> GridMap:
        if self.kind.costs is None:
            return super().cells_to_grid(cells, resolution, origin)
        values = self._values
        special = {"free": values.neutral_cost, "blocked": 0}
        unknown = special[values.unknown] if values.unknown in special else int(values.unknown)
        table = cost_table(values.neutral_cost, values.cost_factor, unknown)
        if values.outline is not None:  # whether the robot's centre may be there is its planner's business
            table[INSCRIBED] = table[HIGHEST]
        return GridMap(looked_up(table, cells), values.connectivity, resolution, origin)

    def cells_came(self, cells, window=None, of_file=False) -> None:
        if of_file or self.kind.costs is None:
            table = np.zeros(256, np.uint8)
            table[self._values.occupied_from : 101], table[255] = LETHAL, UNKNOWN
            cells = looked_up(table, cells)
        if window is None:
            self._cells = self._whole_cells = cells
            return
        if self._cells is self._whole_cells:
            self._cells = self._cells.copy()
        self._cells[window] = cells

    def clear(self) -> None:
        super().clear()
        if self.kind.costs is None:
            self._cells = self._whole_cells

    @property
    def outline(self) -> np.ndarray | None:
        """(V, 2) metres of the robot with a footprint, or None."""
        return self._values.outline

    @property
    def unknown(self) -> np.ndarray:
        """(rows, cols) bool"""
        return self._cells == UNKNOWN

    @property
    def obstacles(self) -> np.ndarray:
        """(rows, cols) bool: the tiles that are blocked without any footprint, of the node's or in a costmap."""
        obstacles = self._cells == LETHAL
        return obstacles | self.unknown if self._values.unknown == "blocked" else obstacles

    @property
    def nav2_costs(self) -> np.ndarray:
        """(rows, cols) uint8 costs of Nav2, 0 to 255, of the map as it is planned on."""
        values, grid = self._values, self.require_map()
        if self._nav2_costs is None or self._nav2_costs[0] != self.changes:
            added = inflation(
                cast(GridMap, self._read), values.inscribed_radius, values.inflation_radius, values.cost_scaling_factor
            )
            costs = np.where(self._cells <= HIGHEST, np.maximum(self._cells, added), self._cells)
            costs[grid.blocked & (costs <= HIGHEST)] = INSCRIBED
            self._nav2_costs = self.changes, costs
        return self._nav2_costs[1]

    def reach(self, values) -> float:
        cell = self._read.resolution if self._read is not None else 1.0
        return max(values.footprint_radius, _cells(values.inflation_radius, cell) * cell)

    def inflated(self, grid) -> GridMap:
        values = self._values
        table = cost_table(values.neutral_cost, values.cost_factor, 0)
        return inflated(
            grid,
            values.inscribed_radius,
            values.inflation_radius,
            values.cost_scaling_factor,
            table,
            blocks=values.outline is None,
        )

    def renewed(self) -> None:
        self._planners, self._behind = {}, {}

    def tiles_changed(self, before, window, tiles) -> None:
        for key in self._planners:
            known, behind = self._behind.get(key, (before, None))
            self._behind[key] = known, both(behind, window)

    def configure(self, values) -> None:
        """Take other parameters: planners and inflation are made anew where they depend on them."""
        before = self._values
        if self._read is not None and (before.outline is None) != (values.outline is None):
            costs = self._read.costs.copy()
            table = cost_table(values.neutral_cost, values.cost_factor, 0)
            costs[self._cells == INSCRIBED] = table[INSCRIBED if values.outline is None else HIGHEST]
            self._read = GridMap(costs, self._read.connectivity, self._read.resolution, self._read.origin)
        super().configure(values)
        if any(getattr(before, name) != getattr(values, name) for name in self.PLANNERS):
            self.renewed()

    def planners(self, algorithm: str) -> list[Any]:
        """The planners of an algorithm on the present map, one for each device. For the worker alone."""
        return [self.planner(algorithm, number) for number in range(len(self._values.devices))]

    def planner(self, algorithm: str, number: int | None = None) -> Any:
        """The planner of an algorithm on the present map: made when first asked for, then changed with the map; a
        BlockPlanner, with the parameter footprint a PosePlanner.

        number: of the device; None: that of the worker's thread that calls this
        """
        grid, values = self.require_map(), self._values
        number = seat() % len(values.devices) if number is None else number
        if algorithm not in values.route_algorithms:
            text = f"unknown algorithm '{algorithm}'; known are {', '.join(values.route_algorithms)}"
            raise RequestError(codes.INVALID_PLANNER, text)
        key = number, algorithm
        planner = self._planners.pop(key, None)  # one that fails is made anew
        if planner is None:
            planner = self._new_planner(algorithm, values.devices[number])
        elif key in self._behind:
            known, window = self._behind[key]
            planner.update(*differences(known.costs[window], grid.costs[window], window))
        self._behind.pop(key, None)
        self._planners[key] = planner
        return planner

    def _new_planner(self, algorithm, device):
        grid, values = self.require_map(), self._values
        if values.outline is None:
            return BlockPlanner(grid, algorithm, values.block_size, device, getattr(values, algorithm))
        try:
            poses = PoseGrid(
                grid.costs,
                values.outline,
                values.angle_quantization_bins,
                values.pose_model,
                values.minimum_turning_radius,
                grid.resolution,
                grid.origin,
                values.move_costs,
            )
        except GridMapError as error:
            raise SettingsError(f"the robot's parameters and the map: {error}") from error
        return PosePlanner(poses, algorithm, device)


def inflated(
    grid: GridMap, footprint: float, radius: float, scaling: float, table: np.ndarray, blocks: bool = True
) -> GridMap:
    """A map with tiles nearer than `footprint` to a blocked one blocked, and those up to `radius` from it dearer.

    A free tile costs what the map says or what Nav2's inflation layer gives it, whichever is more.

    footprint, radius: metres between tiles' centres; scaling: the layer's cost_scaling_factor, 1 / metres
    table: as of cost_table; blocks: False: tiles nearer than `footprint` are the dearest, not blocked
    """
    blocked = grid.inflated(footprint) if blocks else grid
    if not radius:
        return blocked
    added = table[inflation(grid, footprint, radius, scaling)]
    costs = np.where(blocked.costs > 0, np.maximum(blocked.costs, added), np.uint8(0))
    return GridMap(costs, grid.connectivity, grid.resolution, grid.origin)


def inflation(grid: GridMap, footprint: float, radius: float, scaling: float) -> np.ndarray:
    """(rows, cols) uint8: costs 0 to HIGHEST of Nav2's inflation layer; arguments as of `inflated`"""
    costs = np.zeros(grid.shape, np.uint8)
    if radius and grid.blocked.any():
        distance = distance_transform_edt(~grid.blocked)
        near = distance <= _cells(radius, grid.resolution)
        beyond = np.maximum(distance[near] * grid.resolution - footprint, 0)
        with np.errstate(under="ignore"):
            costs[near] = (HIGHEST * np.exp(-scaling * beyond)).astype(np.uint8)
    return costs


def _cells(radius, resolution):
    """How many cells far costs reach, rounded up as by Nav2's layer."""
    return math.ceil(radius / resolution)
