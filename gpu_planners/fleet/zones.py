"""Zones of a map: tiles where nobody may stop, and tiles where nobody may go fast.

Nobody stands in a no-stopping zone: an agent enters it only by an option that leads out of it again, turning on its way
but never waiting, and an ActionGraph allows it to enter together with all that it does until it is out. So a zone is
crossed within the ticks that are looked ahead. One that is too large for that is crossed straight, by each tile's
shorter way that leads through; what cannot be reached then is refused by name.

Slow zones make moves dearer, and robots take longer for them; a planner's ticks stay whole.
"""

import math
from collections import deque
from dataclasses import dataclass, replace

import numpy as np
from scipy import ndimage

from ..arguments import array_of, checked, number
from ..errors import GridMapError
from ..grid.maps.grid_map import GridMap
from .fields.lanes import footprint_free
from .guidance import MOST_DIFFERENCE, Guidance
from .motion import COLS_AHEAD, ROWS_AHEAD, Motion, values_ahead

LONGEST = 5  # ticks that can be looked ahead
SMALL = 25  # tiles of a zone of which all ways are looked at


@dataclass(frozen=True, eq=False)
@checked(GridMapError)
class Zones:
    """Of a map of (rows, cols) tiles.

    no_stopping: (rows, cols) bool, where nobody may stop; None: nowhere
    speeds: (rows, cols) m/s that nobody may exceed, infinity: no limit; None: no limit anywhere
    usual: m/s at which agents go where there is no limit: what a slow zone costs more follows from it

    Raises GridMapError.
    """

    no_stopping: np.ndarray | None = None
    speeds: np.ndarray | None = None
    usual: float = math.inf

    def __post_init__(self):
        if self.no_stopping is not None:
            tiles = array_of("no_stopping", self.no_stopping, GridMapError)
            if tiles.ndim != 2 or tiles.dtype.kind != "b":
                raise GridMapError(f"no_stopping is {tiles.dtype} {tiles.shape}; allowed: bool (rows, cols)")
            object.__setattr__(self, "no_stopping", tiles.copy() if tiles.any() else None)
        if self.speeds is not None:
            speeds = array_of("speeds", self.speeds, GridMapError)
            if speeds.ndim != 2 or speeds.dtype.kind not in "fiu" or not (speeds > 0).all():
                raise GridMapError(f"speeds is {speeds.dtype} {speeds.shape}; allowed: (rows, cols), more than 0 m/s")
            speeds = np.array(speeds, float)
            object.__setattr__(self, "speeds", speeds if np.isfinite(speeds).any() else None)
        number("usual", self.usual, 0.0, math.inf, " m/s", GridMapError)
        if self.usual == 0:
            raise GridMapError("usual is 0; allowed: more than 0 m/s")

    def __bool__(self) -> bool:
        """Are there any?"""
        return self.no_stopping is not None or self.speeds is not None

    def fitting(self, grid: GridMap) -> "Zones":
        """These zones, if they are of a map of this size. Raises GridMapError."""
        for name, tiles in (("no_stopping", self.no_stopping), ("speeds", self.speeds)):
            if tiles is not None and tiles.shape != grid.shape:
                raise GridMapError(f"{name} is for a map of {tiles.shape} tiles; this one has {grid.shape}")
        return self

    def stops_refused(self, size: int) -> np.ndarray | None:
        """(rows, cols) bool, where an agent of this size may not stop, by its tile; None: it may everywhere"""
        return None if self.no_stopping is None else ~footprint_free(~self.no_stopping, size)

    def slowest(self, grid: GridMap) -> float:
        """m/s that nobody may exceed on the slowest of a map's free tiles; infinity: there is no limit"""
        return math.inf if self.speeds is None else float(self.speeds[grid.costs > 0].min(initial=math.inf))

    def limits(self, size: int) -> np.ndarray | None:
        """(rows, cols) m/s that an agent of this size may go where it is, by its tile; None: no limit"""
        if self.speeds is None or size == 1:
            return self.speeds
        filtered = ndimage.minimum_filter(
            self.speeds, size, mode="constant", cval=np.inf, origin=(size - 1) // 2 - size // 2
        )
        return np.asarray(filtered)

    def guided(self, guidance: Guidance) -> Guidance:
        """The guidance with moves into slow zones as many times as dear as they take longer."""
        if self.speeds is None or not np.isfinite(self.usual):
            return guidance
        slower = np.maximum(self.usual / self.speeds, 1.0)
        into = np.stack([values_ahead(slower, way, 1.0) for way in range(4)], axis=-1)
        most = MOST_DIFFERENCE - 4 * guidance.turn
        dear = np.rint(guidance.moves * np.maximum(into, slower[..., None]))
        return replace(guidance, moves=np.clip(dear, 1, most).astype(np.uint8))


@dataclass(frozen=True, eq=False)
class Crossings:
    """How no-stopping zones are crossed.

    tiles: (rows, cols) bool, where nobody may stop; ticks: that have to be looked ahead
    barred: (rows, cols, 4) bool, moves that nobody may make because of them
    """

    tiles: np.ndarray
    ticks: int
    barred: np.ndarray


def crossings(tiles: np.ndarray, free: np.ndarray, motion: Motion, most: int, barred: np.ndarray | None) -> Crossings:
    """How zones are crossed within `most` ticks of actions that take a tick each.

    tiles, free: (rows, cols) bool, of an agent's tile; barred: (rows, cols, 4) bool, moves that nobody may make anyway
    Raises GridMapError, which names a tile that cannot be reached, or left, through a zone.
    """
    before = np.zeros((*free.shape, 4), bool) if barred is None else barred
    closed, ticks = np.zeros(before.shape, bool), 2
    zones, count = ndimage.label(tiles & free)
    for k, box in enumerate(ndimage.find_objects(zones), 1):
        needed = most + 1
        if np.count_nonzero(zones[box] == k) <= SMALL:
            needed = _longest_way(np.argwhere(zones == k), tiles, free, before, motion)
        if needed > most:
            needed = _cross_straight(zones == k, tiles, free, most, closed)
        ticks = max(ticks, needed)
    closed &= ~before
    if closed.any():
        _refuse_cut(tiles, free, before, before | closed, most)
    return Crossings(tiles, ticks, closed)


def _longest_way(places, tiles, free, barred, motion):
    """Ticks of the longest of the shortest ways into a zone (K, 2) and out of it again elsewhere"""
    longest = 0
    for place in map(tuple, places.tolist()):
        for way in range(4):
            begin = place[0] - ROWS_AHEAD[way], place[1] - COLS_AHEAD[way]
            if _is_free(begin, free) and not tiles[begin] and not barred[begin + (way,)]:
                longest = max(longest, _ticks_through(begin, place, way, tiles, free, barred, motion))
    return longest


def _ticks_through(begin, place, way, tiles, free, barred, motion):
    """Ticks from a tile beside a zone, into its tile `place`, until one can be at each of its exits"""
    first = place, way if motion.headings > 1 else 0
    queue, seen, exits = deque([(first, 1)]), {first}, {}
    while queue:
        (tile, heading), tick = queue.popleft()
        for action in range(motion.wait):
            down, right, turned = motion.after(action, heading)
            there = tile[0] + down, tile[1] + right
            if there != tile:
                direction = action if motion.headings == 1 else heading
                if not _is_free(there, free) or barred[tile + (direction,)] or there == begin:
                    continue
                if not tiles[there]:
                    exits.setdefault(there, tick + 1)
                    continue
            if (there, turned) not in seen:
                seen.add((there, turned))
                queue.append(((there, turned), tick + 1))
    return max(exits.values(), default=0)


def _is_free(tile, free):
    return 0 <= tile[0] < free.shape[0] and 0 <= tile[1] < free.shape[1] and free[tile]


def _cross_straight(zone, tiles, free, most, closed):
    """Bar all moves of a zone but those along each tile's shorter run that leads through. -> ticks that are needed"""
    runs = np.stack([_runs(tiles & free, free), _runs((tiles & free).T, free.T).T])  # along rows, along columns
    axis, length = runs.argmin(axis=0), runs.min(axis=0)
    crossed = zone & (length + 1 <= most)
    for way in range(4):
        along = crossed & (axis == way % 2)  # east and west lead along rows
        there, zone_there = (values_ahead(values, way, False).astype(bool) for values in (along, zone))
        closed[..., way] |= (zone & ~along) | (zone_there & ~there)
    return int(length[crossed].max(initial=0)) + 1


def _runs(tiles, free):
    """(rows, cols) how many tiles in a row each one belongs to; many where it is none, or a wall is at an end"""
    found = np.full(tiles.shape, 1 << 30)
    leads = np.pad(free, ((0, 0), (1, 1)))
    for row, line in enumerate(tiles):
        edges = np.flatnonzero(np.diff(np.r_[0, line, 0]))
        for begin, end in edges.reshape(-1, 2).tolist():
            if leads[row, begin] and leads[row, end + 1]:  # the tiles before and behind
                found[row, begin:end] = end - begin
    return found


def _refuse_cut(tiles, free, before, after, most):
    """Raise where tiles outside of zones that could reach each other do not any more."""
    was, now = (_strong_parts(free, barred) for barred in (before, after))
    outside = free & ~tiles
    one, other = was[outside], now[outside]
    for part in np.unique(one):
        parts = np.unique(other[one == part])
        if len(parts) > 1:
            row, col = np.argwhere(outside & (was == part) & (now == parts[-1]))[0]
            raise GridMapError(
                f"a no-stopping zone cuts tile [{row}, {col}] off; allowed: zones that are crossed within {most} "
                f"ticks, {most - 1} tiles straight on"
            )


def _strong_parts(free, barred):
    """(rows, cols) numbers of the parts within which every tile reaches every other"""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    rows, cols = free.shape
    number = np.arange(rows * cols).reshape(free.shape)
    starts, ends = [], []
    for way in range(4):
        there = values_ahead(number, way, -1)
        goes = free & values_ahead(free, way, False) & ~barred[..., way]
        starts.append(number[goes])
        ends.append(there[goes])
    start, end = np.concatenate(starts), np.concatenate(ends)
    graph = coo_matrix((np.ones(len(start), bool), (start, end)), (rows * cols, rows * cols))
    return connected_components(graph, connection="strong")[1].reshape(free.shape)
