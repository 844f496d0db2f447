"""The map that is planned on, and the planners that know it. It belongs to the worker thread."""

from collections.abc import Callable
from typing import Any

from builtin_interfaces.msg import Time

from ...device import resolve_device
from ...grid import BlockPlanner, GridMap
from ..common import map_codes as codes
from ..common.map_scene import MapScene, both, differences
from ..common.request_error import RequestError
from .parameters import ALGORITHMS, GridParameters


class GridScene(MapScene):
    """The map, and a planner for each algorithm in use, which is told of changes when it is next asked for."""

    _values: GridParameters

    def __init__(self, values: GridParameters, now: Callable[[], Time] = Time) -> None:
        super().__init__(values, now)
        self._planners: dict[str, BlockPlanner] = {}  # by algorithm
        # by algorithm: the map that its planner has, and the window where `grid` may differ
        self._behind: dict[str, tuple[GridMap, Any]] = {}

    def renewed(self) -> None:
        self._planners, self._behind = {}, {}

    def tiles_changed(self, before, window, tiles) -> None:
        for algorithm in self._planners:
            known, behind = self._behind.get(algorithm, (before, None))
            self._behind[algorithm] = known, both(behind, window)

    def configure(self, values) -> None:
        """Take other parameters: planners and inflation are made anew where they depend on them."""
        before = self._values
        super().configure(values)
        if any(getattr(before, name) != getattr(values, name) for name in ("device", "block_size", *ALGORITHMS)):
            self.renewed()

    def planner(self, algorithm: str) -> BlockPlanner:
        """The planner of an algorithm on the present map: made when first asked for, then changed with the map."""
        grid = self.require_map()
        if algorithm not in ALGORITHMS:
            raise RequestError(
                codes.INVALID_PLANNER, f"unknown algorithm '{algorithm}'; known are {', '.join(ALGORITHMS)}"
            )
        planner = self._planners.pop(algorithm, None)  # one that fails is made anew
        if planner is None:
            planner = BlockPlanner(
                grid,
                algorithm=algorithm,
                block_size=self._values.block_size,
                device=resolve_device(self._values.device),
                settings=self._values.algorithm_settings(algorithm),
            )
        elif algorithm in self._behind:
            known, window = self._behind[algorithm]
            planner.update(*differences(known.costs[window], grid.costs[window], window))
        self._behind.pop(algorithm, None)
        self._planners[algorithm] = planner
        return planner
