"""GridMap: integer tile costs on a regular grid, 4- or 8-connected, and where the grid lies in the map frame.

[CE12] III-A: tiles are states, an integer is the cost of moving into a tile. Here it is an uint8, 0 is an obstacle, and
a diagonal step (8-connected) costs sqrt(2) times as much and needs both orthogonal neighbours free.
"""

import numbers
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import array_of, number, whole
from ...device import njit
from ...errors import GridMapError, shown
from ..tiles import as_pairs

HIGHEST_COST = 255
RESOLUTIONS = 1e-6, 1e6  # metres a tile
FARTHEST = 1e9  # metres, of x and y of an origin: there float64 still tells tiles apart
MOST_TURNED = 1e6  # rad, of an origin's yaw
MOST_TILES = 2_000_000_000  # of a map: steps, tiles and blocks are counted in int32, with some to spare
UNKNOWN_COST = {"free": 1, "blocked": 0}
_number = partial(number, error=GridMapError)


@dataclass(frozen=True, eq=False)
class GridMap:
    """A map. It does not change: `changed` and `inflated` give new ones (`WorkingMap` does).

    costs: (rows, cols) uint8, or what converts to it exactly: 0 blocked, 1..255 cost of entering the tile, per tile
        length; at most MOST_TILES
    connectivity: 4 or 8; 8: a diagonal step only when both orthogonal neighbours are free
    resolution: metres a tile, 1e-6..1e6
    origin: (x, y, yaw) metres (up to 1e9) and rad (up to 1e6), the pose in the map frame of the outer corner of tile
        (0, 0); x grows with the columns, y with the rows, as in nav_msgs/OccupancyGrid

    Raises GridMapError.
    """

    costs: np.ndarray
    connectivity: int = 8
    resolution: float = 1.0
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self):
        if not isinstance(self.connectivity, numbers.Real) or self.connectivity not in (4, 8):
            raise GridMapError(f"connectivity is {shown(self.connectivity)}; allowed: 4 or 8")
        object.__setattr__(self, "connectivity", int(self.connectivity))
        object.__setattr__(self, "resolution", _number("resolution", self.resolution, *RESOLUTIONS, " (metres a tile)"))
        try:
            x, y, yaw = self.origin
        except Exception:  # whatever an object of the caller raises
            raise GridMapError(
                f"origin is {shown(self.origin)}; allowed: three numbers x, y (metres), yaw (rad)"
            ) from None
        place = (_number("origin", value, -FARTHEST, FARTHEST) for value in (x, y))
        object.__setattr__(self, "origin", (*place, _number("origin", yaw, -MOST_TURNED, MOST_TURNED)))
        costs = _as_costs(self.costs)
        costs.flags.writeable = False
        object.__setattr__(self, "costs", costs)

    @classmethod
    def from_occupancy(
        cls,
        data: ArrayLike,
        resolution: float = 1.0,
        origin: tuple[float, float, float] = (0.0, 0.0, 0.0),
        connectivity: int = 8,
        shape: tuple[int, int] | None = None,
        unknown: str | int = "blocked",
        occupied_from: int = 65,
        free_below: int = 1,
        highest_cost: int = 1,
    ) -> "GridMap":
        """A map from the values of nav_msgs/OccupancyGrid.

        It takes what the message holds, and by name, also from `load_map_yaml`, what each value costs: nine arguments.

        data: (rows, cols) int8, or (rows * cols,) with `shape`: -1 unknown, 0 free .. 100 occupied
        unknown: "free", "blocked" or a cost 0..255, 0 blocked
        occupied_from: values from here on (1..100) are blocked
        free_below, highest_cost: values below free_below (0..occupied_from) cost 1; those from there to occupied_from -
            1 rise evenly to highest_cost (1..255)
        """
        values = _as_rows(data, shape, "data")
        _refuse_outside(values, -1, 100, "data", "-1 (unknown), 0 .. 100")
        cost_of = _occupancy_costs(unknown, occupied_from, free_below, highest_cost)
        return cls(looked_up(cost_of, values.astype(np.int8)), connectivity, resolution, origin)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, cols)"""
        return self.costs.shape

    @property
    def rows(self) -> int:
        return self.costs.shape[0]

    @property
    def cols(self) -> int:
        return self.costs.shape[1]

    @cached_property
    def blocked(self) -> np.ndarray:
        """(rows, cols) bool"""
        blocked = self.costs == 0
        blocked.flags.writeable = False
        return blocked

    @property
    def uniform_cost(self) -> int:
        """The one cost of all free tiles; 0 when they differ or none is free."""
        used = np.flatnonzero(self._counts[1:])
        return int(used[0]) + 1 if len(used) == 1 else 0

    @property
    def least_cost(self) -> int:
        """The least cost of a free tile; 0 when none is free."""
        used = np.flatnonzero(self._counts[1:])
        return int(used[0]) + 1 if len(used) else 0

    @cached_property
    def _counts(self):
        return cost_counts(self.costs)

    def tiles_of(self, points: ArrayLike) -> np.ndarray:
        """Tiles that points lie in. points: (N, 2) x, y metres in the map frame
        -> (N, 2) float64 [row, col], whole numbers; outside of the map where the point is, NaN stays NaN"""
        return np.floor(self.places_of(points))

    def places_of(self, points: ArrayLike) -> np.ndarray:
        """As tiles_of, with fractions: tile (0, 0) covers 0 to 1."""
        xy = as_pairs("points", points).astype(np.float64)
        x, y, cos, sin = self._frame
        dx, dy = xy[:, 0] - x, xy[:, 1] - y
        with np.errstate(invalid="ignore", over="ignore"):
            return np.stack([cos * dy - sin * dx, cos * dx + sin * dy], axis=1) / self.resolution

    def centres_of(self, tiles: ArrayLike) -> np.ndarray:
        """Centres of tiles. tiles: (N, 2) [row, col] -> (N, 2) float64 x, y metres in the map frame"""
        down, across = ((as_pairs("tiles", tiles).astype(np.float64) + 0.5) * self.resolution).T
        x, y, cos, sin = self._frame
        return np.stack([x + cos * across - sin * down, y + sin * across + cos * down], axis=1)

    @property
    def _frame(self):
        x, y, yaw = self.origin
        return x, y, np.cos(yaw), np.sin(yaw)

    def inflated(self, radius: float) -> "GridMap":
        """A map with every tile blocked whose centre is nearer than radius (metres) to a blocked tile's centre."""
        radius = _number("radius", radius, 0.0, FARTHEST)
        reach = radius / self.resolution * (1 - 1e-9)  # three tiles of 0.1 m are not nearer than 0.3 m
        if reach <= 1 or not self.blocked.any():
            return self
        from scipy.ndimage import distance_transform_edt

        return self._with(np.where(distance_transform_edt(~self.blocked) < reach, np.uint8(0), self.costs))

    def changed(self, rows: ArrayLike, cols: ArrayLike, costs: ArrayLike) -> "GridMap":
        """A map with some tiles replaced.

        rows, cols: (M,) integers; costs: (M,), or one for all; the last one of a tile counts
        """
        rows, cols, costs = self._checked_changes(rows, cols, costs)
        new = self.costs.copy()
        new[rows, cols] = costs
        return self._with(new)

    def _checked_changes(self, rows, cols, costs):
        """What `changed` takes, checked -> rows (M,) int64, cols (M,) int64, costs (M,) uint8. Errors name the tile."""
        rows, cols, costs = (
            array_of(f"{name} of changed tiles", values, GridMapError)
            for name, values in (("rows", rows), ("cols", cols), ("costs", costs))
        )
        rows, cols = np.atleast_1d(rows), np.atleast_1d(cols)
        if rows.ndim != 1 or rows.shape != cols.shape or costs.shape not in ((), rows.shape):
            raise GridMapError(
                f"changed tiles have rows {rows.shape}, cols {cols.shape}, costs {costs.shape}; "
                "allowed: (M,) each, costs also one number"
            )
        for name, index in (("rows", rows), ("cols", cols)):
            if len(index) and index.dtype.kind not in "iu":
                raise GridMapError(f"changed tiles have {name} of type {index.dtype}; allowed: integers")
        costs = np.broadcast_to(costs, rows.shape)
        inside = (rows >= 0) & (rows < self.rows) & (cols >= 0) & (cols < self.cols)
        if not inside.all():
            outside = np.argmin(inside)
            raise GridMapError(
                f"changed tile {outside} is ({rows[outside]}, {cols[outside]}); "
                f"allowed: rows 0 .. {self.rows - 1}, cols 0 .. {self.cols - 1}"
            )
        good = (costs >= 0) & (costs <= HIGHEST_COST) & (costs == np.floor(costs))
        if not good.all():
            bad = np.argmin(good)
            raise GridMapError(
                f"changed tile ({rows[bad]}, {cols[bad]}) gets the cost {costs[bad]}; "
                f"allowed: whole numbers 0 .. {HIGHEST_COST}"
            )
        return rows.astype(np.int64), cols.astype(np.int64), costs.astype(np.uint8)

    def _with(self, costs):
        """This grid with other costs, which are not copied: nobody else may hold them."""
        grid = object.__new__(GridMap)
        costs.flags.writeable = False
        grid.__dict__.update(
            costs=costs, connectivity=self.connectivity, resolution=self.resolution, origin=self.origin
        )
        return grid


class WorkingMap(GridMap):
    """A planner's own map, which changes in place, so that a change takes as long on a large map as on a small one.

    grid: GridMap, which stays as it is
    """

    _own: np.ndarray

    def __init__(self, grid: GridMap):
        own = grid.costs.copy()  # `costs` is a view that cannot be written, for Numba of the type of any map's costs
        self.__dict__.update(vars(grid._with(own.view())), _counts=grid._counts.copy(), _own=own)

    def change(self, rows: ArrayLike, cols: ArrayLike, costs: ArrayLike) -> tuple[np.ndarray, ...]:
        """Replace tiles; takes and raises what `changed` does
        -> rows (M,) int64, cols (M,) int64, costs before (M,) uint8 of those that are different now"""
        row, col, cost = self._checked_changes(rows, cols, costs)
        different, before = _replace(self._own, self._counts, row, col, cost)
        self.__dict__.pop("blocked", None)
        return row[different], col[different], before[different]

    def snapshot(self) -> GridMap:
        """A GridMap as it is now."""
        return self._with(self._own.copy())


@njit
def cost_counts(costs):
    """-> (HIGHEST_COST + 1,) int64 tiles of each cost. costs: (rows, cols) uint8"""
    counts = np.zeros(HIGHEST_COST + 1, np.int64)
    for row in range(costs.shape[0]):
        for col in range(costs.shape[1]):
            counts[costs[row, col]] += 1
    return counts


@njit
def _replace(costs, counts, rows, cols, new):
    """One tile after the other -> (M,) bool: has the tile another cost than before? (M,) uint8 costs before"""
    before = np.empty(len(rows), np.uint8)
    for i in range(len(rows)):
        before[i] = costs[rows[i], cols[i]]
    for i in range(len(rows)):
        counts[costs[rows[i], cols[i]]] -= 1
        costs[rows[i], cols[i]] = new[i]
        counts[new[i]] += 1
    different = np.empty(len(rows), np.bool_)
    for i in range(len(rows)):
        different[i] = costs[rows[i], cols[i]] != before[i]
    return different, before


def looked_up(table: np.ndarray, values: np.ndarray) -> np.ndarray:
    """What a table (256,) uint8 says of values, one byte each, read as uint8. It may not be written to.

    In half the time of an index, which NumPy first makes eight times as large.
    """
    return np.frombuffer(values.tobytes().translate(table.tobytes()), np.uint8).reshape(values.shape)


def _as_rows(values, shape, name):
    """values as a numeric array (rows, cols); flat ones take `shape`."""
    values = array_of(name, values, GridMapError)
    if shape is not None:
        try:
            rows, cols = shape
        except Exception:  # whatever an object of the caller raises
            raise GridMapError(f"shape is {shown(shape)}; allowed: (rows, cols)") from None
        for words, n in (("rows", rows), ("cols", cols)):
            whole(f"number of {words}", n, 1, MOST_TILES, error=GridMapError)
        if values.shape not in ((rows * cols,), (rows, cols)):
            raise GridMapError(
                f"{name} has the shape {values.shape}; allowed: ({rows * cols},) for {rows} rows and {cols} cols"
            )
        values = values.reshape(rows, cols)
    if values.ndim != 2:
        raise GridMapError(f"{name} has the shape {values.shape}; allowed: (rows, cols)")
    if values.size == 0:
        raise GridMapError(
            f"the map is empty: {name} has the shape {values.shape}; allowed: at least one row and one column"
        )
    if values.size > MOST_TILES:
        raise GridMapError(
            f"the map has {values.shape[0]} x {values.shape[1]} tiles; allowed: at most {MOST_TILES} in all"
        )
    return values


def _as_costs(costs):
    """-> (rows, cols) uint8, contiguous, a copy"""
    costs = _as_rows(costs, None, "costs")
    if costs.dtype != np.uint8:
        _refuse_outside(costs, 0, HIGHEST_COST, "costs", f"whole numbers 0 (blocked) .. {HIGHEST_COST}")
    return np.array(costs, dtype=np.uint8, order="C")


def _refuse_outside(values, least, most, name, allowed):
    """Raise GridMapError where a value is no whole number from least to most."""
    good = (values >= least) & (values <= most)
    if values.dtype.kind == "f":
        good &= values == np.floor(values)
    if not good.all():
        row, col = np.unravel_index(np.argmin(good), good.shape)
        raise GridMapError(f"{name} at tile ({row}, {col}) is {values[row, col]}; allowed: {allowed}")


def _occupancy_costs(unknown, occupied_from, free_below, highest_cost):
    """(256,) uint8 costs of the int8 values of an OccupancyGrid, read as uint8."""
    cost = UNKNOWN_COST.get(unknown) if isinstance(unknown, str) else unknown
    for name, value, low, high, words in (
        ("unknown", cost if cost is not None else unknown, 0, HIGHEST_COST, "'free', 'blocked' or a cost "),
        ("occupied_from", occupied_from, 1, 100, ""),
        ("free_below", free_below, 0, occupied_from, ""),
        ("highest_cost", highest_cost, 1, HIGHEST_COST, ""),
    ):
        whole(name, value, low, high, words, GridMapError)
    value = np.arange(occupied_from)
    rise = np.clip(value - free_below + 1, 0, None) / max(occupied_from - free_below, 1)
    costs = np.zeros(256, np.uint8)
    costs[:occupied_from] = np.rint(1 + rise * (highest_cost - 1))
    costs[255] = cost
    return costs
