"""What is known of agents, and where they are: points of a map to tiles and headings, and back; closed tiles."""

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from scipy import ndimage

from ...grid.maps.grid_map import GridMap
from ..fields.lanes import footprint_free
from ..guidance import Guidance
from ..planner import FleetPlanner
from .reports import REPORT

QUARTER = math.pi / 2
ROUNDING = 1e-6  # of a cell
AGENT = np.dtype(  # the first fields are those of REPORT
    [
        *REPORT,
        ("heard_step", "i8"),  # how many steps had begun then
        ("size", "i8"),  # side of the square of tiles that it covers; 0: as fleet.size says
        ("busy", "i8"),  # the planner's tick with which its action ends
        ("goal", "i8", 2),  # tile; -1: none, or none that can be reached
        ("reached", "?"),  # has it been at that goal?
        ("there", "?"),  # is it on the map?
        ("silent", "?"),  # was it when the last step began?
        ("late", "?"),  # had it not done what it was told then?
        ("stands", "?"),  # is it, for these or other reasons, taken to stand where it is?
        ("told", "f8"),  # when it was told the action that it does; NaN: not yet
        ("since", "f8"),  # when it had done the one before, or was told this one
        ("number", "i8"),  # of that action
        ("still_since", "f8"),  # while it waits for a place, or is off its way: when it reported another point
        ("axis", "i8"),  # along which it moved last: 0 rows, 1 columns; -1: it has not moved yet
    ]
)


def new_agent() -> np.ndarray:
    """() AGENT of which nothing was heard, nor that it moved"""
    agent = np.zeros((), AGENT)
    agent["heard"], agent["doubted_at"], agent["still_since"], agent["axis"] = -np.inf, np.nan, -np.inf, -1
    return agent


class AgentState(IntEnum):
    """How an agent is; the numbers of gpu_planners_msgs/msg/AgentActions."""

    MOVING = 0  # on the way to its goal; it may wait for others
    AT_GOAL = 1
    NO_GOAL = 2
    STUCK = 3  # on the way for too long
    SILENT = 4  # not heard of for too long: it stands, others go around it
    BAD_STATE = 5  # its reports contradict what it was told, or each other
    BAD_GOAL = 6  # its goal cannot be reached
    LATE = 7  # heard of, but it has not done its action for too long


@dataclass(frozen=True)
class FleetStep:
    """What K agents do. Tiles are [row, col], headings quarter turns to the left from the map's x axis.

    number: counts from 1; ids: K texts; actions: (K,) of the planner; states: (K,) AgentState
    tiles_before, headings_before, tiles, headings: (K, 2), (K,) when the action begins, and when it has ended
    ticks: (K,) steps that the action takes; 0: none is begun
    numbers: (K,) which of its actions each agent does, or does next
    ahead: (K,) how many more an agent may do after it, and of these, agent by agent: actions_ahead (A,), tiles_ahead
        (A, 2), headings_ahead (A,)
    goals: (K, 2) tiles, -1: none
    time_s: of planning
    sizes: (K,) sides of the squares that the agents cover, in tiles
    """

    number: int
    ids: list[str]
    actions: np.ndarray
    states: np.ndarray
    tiles_before: np.ndarray
    headings_before: np.ndarray
    tiles: np.ndarray
    headings: np.ndarray
    ticks: np.ndarray
    numbers: np.ndarray
    ahead: np.ndarray
    actions_ahead: np.ndarray
    tiles_ahead: np.ndarray
    headings_ahead: np.ndarray
    goals: np.ndarray
    time_s: float
    sizes: np.ndarray


class Lanes(NamedTuple):
    """What moves cost on a map, and which of them nobody may make: ActionGraph.one_way"""

    guidance: Guidance
    one_way: np.ndarray | None


class Told(NamedTuple):
    """What an agent may do, and what is planned beyond that.

    tiles: (K, 2) where it is, then after each action that it may do; planned: (L, 2) those after these
    goal: (2,) tile, -1: none; reached: has it been there? stands: is it taken to stand where it is?
    seconds: that it takes for all that it may do, from a stand, by its dynamics; NaN: these are not known
    """

    tiles: np.ndarray
    planned: np.ndarray
    goal: np.ndarray
    reached: bool
    stands: bool
    seconds: float = math.nan


def coarser(grid: GridMap, tile_size: float) -> GridMap:
    """A map of larger tiles; a tile is blocked where any of its cells is, or where it reaches beyond the map.

    tile_size: metres, rounded up to whole cells; up to one cell: the map as it is
    """
    cells = math.ceil(tile_size / grid.resolution - ROUNDING)
    if cells <= 1:
        return grid
    rows, cols = (-(-n // cells) for n in grid.shape)
    blocked = np.ones((rows * cells, cols * cells), bool)
    blocked[: grid.rows, : grid.cols] = grid.blocked
    free = 1 - blocked.reshape(rows, cells, cols, cells).max(axis=(1, 3)).astype(np.uint8)
    return GridMap(free, grid.connectivity, cells * grid.resolution, grid.origin)


class Places:
    """The places of a map for agents that cover a square of tiles; an agent's point is the centre of its square.

    size: side of the square in tiles, of agents whose `sizes` (N,) are not given. A heading counts quarter turns to the
    left from the map's x axis.
    """

    def __init__(self, grid: GridMap, size: int = 1) -> None:
        self.grid, self.size = grid, size
        yaw = grid.origin[2]
        half = 0.5 * grid.resolution * np.array([math.cos(yaw) - math.sin(yaw), math.sin(yaw) + math.cos(yaw)])
        self._half = half  # of a tile, along both axes of the map
        self._parts: dict[int, np.ndarray] = {}
        self._blocked: dict[tuple[int, ...], np.ndarray] = {}

    def _shift(self, sizes):
        """From an agent's tile's centre to that of its square: half a tile for even sizes."""
        return ((np.asarray(self.size if sizes is None else sizes) - 1) % 2)[..., None] * self._half

    def _parts_of(self, size):
        if size not in self._parts:
            self._parts[size] = ndimage.label(footprint_free(~self.grid.blocked, size))[0]
        return self._parts[size]

    def tiles(self, points: np.ndarray, sizes: np.ndarray | None = None) -> np.ndarray:
        """(N, 2) metres -> (N, 2) int64 [row, col]; -1 where a point is outside the map or not finite"""
        tiles = self.float_tiles(points, sizes)
        with np.errstate(invalid="ignore"):
            inside = ((tiles >= 0) & (tiles < self.grid.shape)).all(axis=1, keepdims=True)
        return np.where(inside, tiles, -1).astype(np.int64)

    def float_tiles(self, points: np.ndarray, sizes: np.ndarray | None = None) -> np.ndarray:
        """(N, 2) metres -> (N, 2) float64 [row, col], whole numbers or NaN; outside the map where a point is"""
        return self.grid.tiles_of(points - self._shift(sizes))

    def points(self, tiles: np.ndarray, sizes: np.ndarray | None = None) -> np.ndarray:
        """(N, 2) [row, col] -> (N, 2) metres, the centres of agents"""
        return self.grid.centres_of(tiles)[:, :2] + self._shift(sizes)

    def off_centre(self, points: np.ndarray, tiles: np.ndarray, sizes: np.ndarray | None = None) -> np.ndarray:
        """(N,) distance of points from the centres of tiles, in tiles"""
        return np.linalg.norm(points - self.points(tiles, sizes), axis=1) / self.grid.resolution

    def at(self, points: np.ndarray, sizes: np.ndarray | None = None) -> np.ndarray:
        """(..., 2) metres -> (..., 2) float64 [row, col], whole numbers in the middle of a square"""
        shape = np.shape(points)
        return self.grid.places_of(np.reshape(points - self._shift(sizes), (-1, 2))).reshape(shape) - 0.5

    def touched(self, places: np.ndarray, clearance: float) -> np.ndarray:
        """(N, 2) [row, col] of `at` -> (K, 2) tiles of agents of the same size, whose squares together cover the bodies
        there.

        clearance: tiles between the body of an agent in the middle of its square and the edges of that
        """
        inside = np.abs(places) < self.grid.rows + self.grid.cols  # also not NaN
        places = places[inside.all(axis=1)]
        low, high = np.floor(places + clearance).astype(np.int64), np.ceil(places - clearance).astype(np.int64)
        row, col = np.stack([low[:, 0], high[:, 0]]), np.stack([low[:, 1], high[:, 1]])
        tiles = np.stack(np.broadcast_arrays(row[:, None], col[None]), axis=-1).reshape(-1, 2)
        return self.on_map(np.unique(tiles, axis=0))

    def on_map(self, tiles: np.ndarray) -> np.ndarray:
        """Those of tiles (K, 2) that are on the map."""
        return tiles[((tiles >= 0) & (tiles < self.grid.shape)).all(axis=1)]

    def around(self, tiles: np.ndarray, low: int, high: int) -> np.ndarray:
        """(K, 2) tiles -> (M, 2) all tiles of the map from `low` before to `high` behind each of them"""
        span = np.arange(-low, high + 1)
        if not len(tiles):
            return tiles
        square = np.stack(np.meshgrid(span, span, indexing="ij"), axis=-1).reshape(-1, 2)
        return self.on_map(np.unique((tiles[:, None] + square).reshape(-1, 2), axis=0))

    def covered(self, tiles: np.ndarray, sizes: np.ndarray, apart: int = 0) -> np.ndarray:
        """(K, 2) tiles of agents of sizes (K,) -> (M, 2) tiles of the map that these cover, or that are so near"""
        found = [np.zeros((0, 2), np.int64)]
        for size in np.unique(sizes).tolist():
            low = (size - 1) // 2  # an agent's tile is the middle of those it covers
            found.append(self.around(tiles[sizes == size], low + apart, size - 1 - low + apart))
        return np.concatenate(found)

    def blocked(self, sizes: tuple[int, ...]) -> np.ndarray:
        """(sizes, rows, cols) bool, where an agent of each size cannot be"""
        if sizes not in self._blocked:
            self._blocked[sizes] = np.stack([self._parts_of(size) == 0 for size in sizes])
        return self._blocked[sizes]

    def headings(self, yaws: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
        """(N,) rad -> (N,) int64 nearest quarter turn; that of `otherwise` where a yaw is NaN"""
        given = np.isfinite(yaws)
        quarters = np.rint((np.where(given, yaws, 0.0) - self.grid.origin[2]) / QUARTER) % 4
        return np.where(given, quarters.astype(np.int64), otherwise)

    def yaws(self, headings: np.ndarray) -> np.ndarray:
        """(N,) quarter turns -> (N,) rad"""
        return headings * QUARTER + self.grid.origin[2]

    def part(self, tiles: np.ndarray, sizes: np.ndarray | None = None) -> np.ndarray:
        """(N,) number of the connected part of the map that holds each tile; 0: an agent cannot be there"""
        sizes = np.full(len(tiles), self.size) if sizes is None else np.asarray(sizes)
        row, col = np.maximum(tiles, 0).T
        found = np.zeros(len(tiles), np.int64)
        for size in np.unique(sizes).tolist():
            some = sizes == size
            found[some] = self._parts_of(size)[row[some], col[some]]
        return np.where(tiles.min(axis=1, initial=0) < 0, 0, found)


class ClosedTiles:
    """Keeps a planner's map equal to a map, but for some tiles that are closed: nobody enters them."""

    def __init__(self, planner: FleetPlanner, grid: GridMap) -> None:
        self._planner = planner
        self._tiles: set[tuple[int, int]] = set()
        self._grid: GridMap | None = grid  # that the planner knows; None: a change of it failed

    def close(self, tiles: set[tuple[int, int]], grid: GridMap) -> bool:
        """Close these tiles of a map, and open the others that were closed. True if the set changed."""
        changed, known = sorted(self._tiles ^ tiles), self._grid
        self._tiles, self._grid = tiles, None
        if known is not grid:
            changed = [*map(tuple, np.argwhere(self._planner.grid.costs != grid.costs).tolist()), *sorted(tiles)]
        if changed:
            rows, cols = np.array(changed).T
            self._planner.update(rows, cols, [0 if tile in tiles else grid.costs[tile] for tile in changed])
        self._grid = grid
        return bool(changed)
