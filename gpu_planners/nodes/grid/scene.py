"""The map that is planned on, and the planners that know it. It belongs to the worker, and each planner to one of its
threads: those only plan while requests are answered beside each other."""

from collections.abc import Callable
from typing import Any

from builtin_interfaces.msg import Time

from ...grid import BlockPlanner, GridMap
from ..common import map_codes as codes
from ..common.map_kinds import MAP_KINDS, cost_table
from ..common.map_scene import MapScene, both, differences
from ..common.request_error import RequestError
from ..common.worker import seat
from .inflation import inflated, inflation_cells
from .parameters import ALGORITHMS, GridParameters

INFLATION = ("footprint_radius", "inflation_radius", "cost_scaling_factor")


class GridScene(MapScene):
    """The map, and planners for each algorithm in use, one for each device. They are told of changes when they are next
    asked for."""

    _values: GridParameters

    def __init__(self, values: GridParameters, now: Callable[[], Time] = Time) -> None:
        super().__init__(values, now)
        self.kind = MAP_KINDS[values.map_kind]
        self._planners: dict[tuple[int, str], BlockPlanner] = {}  # by number of the device, algorithm
        # likewise: the map that the planner has, and the window where `grid` may differ
        self._behind: dict[tuple[int, str], tuple[GridMap, Any]] = {}

    def cells_to_grid(self, cells, resolution=1.0, origin=(0.0, 0.0, 0.0)) -> GridMap:
        if not self.kind.costmap:
            return super().cells_to_grid(cells, resolution, origin)
        values = self._values
        special = {"free": values.neutral_cost, "blocked": 0}
        unknown = special[values.unknown] if values.unknown in special else int(values.unknown)
        table = cost_table(values.neutral_cost, values.cost_factor, unknown)
        return GridMap(table[cells], values.connectivity, resolution, origin)

    def reach(self, values) -> float:
        cell = self._read.resolution if self._read is not None else 1.0
        return max(values.footprint_radius, inflation_cells(values.inflation_radius, cell) * cell)

    def inflated(self, grid) -> GridMap:
        values = self._values
        table = cost_table(values.neutral_cost, values.cost_factor, 0)
        return inflated(grid, values.footprint_radius, values.inflation_radius, values.cost_scaling_factor, table)

    def inflates_alike(self, one, other) -> bool:
        return all(getattr(one, name) == getattr(other, name) for name in INFLATION)

    def renewed(self) -> None:
        self._planners, self._behind = {}, {}

    def tiles_changed(self, before, window, tiles) -> None:
        for key in self._planners:
            known, behind = self._behind.get(key, (before, None))
            self._behind[key] = known, both(behind, window)

    def configure(self, values) -> None:
        """Take other parameters: planners and inflation are made anew where they depend on them."""
        before = self._values
        super().configure(values)
        if any(getattr(before, name) != getattr(values, name) for name in ("device", "block_size", *ALGORITHMS)):
            self.renewed()

    def planners(self, algorithm: str) -> list[BlockPlanner]:
        """The planners of an algorithm on the present map, one for each device. For the worker alone."""
        return [self.planner(algorithm, number) for number in range(len(self._values.devices))]

    def planner(self, algorithm: str, number: int | None = None) -> BlockPlanner:
        """The planner of an algorithm on the present map: made when first asked for, then changed with the map.

        number: of the device; None: that of the worker's thread that calls this
        """
        grid, devices = self.require_map(), self._values.devices
        number = seat() % len(devices) if number is None else number
        if algorithm not in ALGORITHMS:
            raise RequestError(
                codes.INVALID_PLANNER, f"unknown algorithm '{algorithm}'; known are {', '.join(ALGORITHMS)}"
            )
        key = number, algorithm
        planner = self._planners.pop(key, None)  # one that fails is made anew
        if planner is None:
            planner = BlockPlanner(
                grid,
                algorithm=algorithm,
                block_size=self._values.block_size,
                device=devices[number],
                settings=self._values.algorithm_settings(algorithm),
            )
        elif key in self._behind:
            known, window = self._behind[key]
            planner.update(*differences(known.costs[window], grid.costs[window], window))
        self._behind.pop(key, None)
        self._planners[key] = planner
        return planner
