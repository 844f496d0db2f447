"""Maps of our own, any size, the same for the same seed: random obstacles, caves among rooms, warehouses.

Only whole-array operations, so that 4096x4096 tiles take seconds. Where corners are not cut, tiles that a diagonal
connects are connected without it too; so components are 4-connected for both connectivities.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import Booleans, checked, number, numbers, whole
from ...errors import GridMapError, shown
from .grid_map import MOST_TILES, GridMap

MOST_DRAWN = 10_000_000  # tiles drawn by one call
TILES_A_TIME = 1 << 24  # random numbers drawn at once
SHARE_OF_ROCK = 0.45  # of caves before smoothing, about: caverns that touch, with walls between them
SMOOTHINGS = 5  # of the coarsest grid of caves
FINER_SMOOTHINGS = 2  # of each finer one
FLIPPED = 0.12  # share of tiles changed before a finer grid is smoothed
LEFT_OUT = 0.12  # share of the walls between rooms that are left out
CLOSED_WALLS = 0.08  # share of them without a door


@checked(GridMapError)
def random_map(
    rows: int,
    cols: int,
    density: float = 0.2,
    seed: int | Sequence[int] = 0,
    connectivity: int = 8,
    free: ArrayLike = (),
) -> GridMap:
    """Each tile is an obstacle with probability `density` ([CE12] V), but the tiles `free`, (K, 2) [row, col]."""
    _check(rows, cols)
    number("density", density, 0, 1, error=GridMapError)
    free = (numbers("free", free, (None, 2), GridMapError) if np.size(free) else np.zeros((0, 2))).astype(int)
    outside = free[((free < 0) | (free >= (rows, cols))).any(axis=1)]
    if len(outside):
        raise GridMapError(
            f"free tile {tuple(outside[0].tolist())} lies outside; allowed: rows 0 .. {rows - 1}, cols 0 .. {cols - 1}"
        )
    rng = _generator(seed)
    costs = np.empty((rows, cols), np.uint8)
    step = max(1, TILES_A_TIME // cols)
    for row in range(0, rows, step):
        part = costs[row : row + step]
        np.greater_equal(rng.random(part.shape, dtype=np.float32), np.float32(density), out=part.view(bool))
    costs[tuple(free.T)] = 1
    return GridMap(costs, connectivity)


@checked(GridMapError)
def caves_and_rooms(rows: int, cols: int, seed: int | Sequence[int] = 0, connectivity: int = 8) -> GridMap:
    """Regions of rooms among caves, all connected: the map of the demo. Rooms and caverns grow with the map."""
    _check(rows, cols)
    rng, size = _generator(seed), min(rows, cols)
    room, passages = max(16, size // 36), max(10, size // 40)
    built = _smooth_noise(rows, cols, max(size / 4, 2.0 * room), rng) > 0.05
    fill = SHARE_OF_ROCK + 0.02 * np.clip(_smooth_noise(rows, cols, max(size / 16, 8.0), rng), -1.5, 1.5)
    rooms = _rooms(rows, cols, rng, room, max(2, room // 16), max(3, room // 8))
    return GridMap(largest_component(np.where(built, rooms, _caves(rows, cols, rng, passages, fill))), connectivity)


@checked(GridMapError)
def warehouse_map(
    rows: int, cols: int, connectivity: int = 8, shelf: tuple[int, int] = (2, 10), aisle: int = 2, apron: int = 8
) -> GridMap:
    """Blocks of shelves, `shelf` (rows, cols) each, in lines with aisles of `aisle` tiles between and about them, and a
    free strip of `apron` tiles on the left and on the right, where goods come and go."""
    _check(rows, cols)
    sizes = {"rows of a shelf": shelf[0], "cols of a shelf": shelf[1], "aisle": aisle, "apron": apron}
    for name, size in sizes.items():
        whole(name, size, 1, MOST_TILES, "tiles ", GridMapError)
    blocked = np.ones((rows, cols), bool)
    for axis, length, border in ((0, shelf[0], aisle), (1, shelf[1], apron)):
        place = np.arange(blocked.shape[axis]) - border
        count = max(0, (blocked.shape[axis] - 2 * border + aisle) // (length + aisle))
        in_shelf = (place >= 0) & (place // (length + aisle) < count) & (place % (length + aisle) < length)
        blocked &= in_shelf[:, None] if axis == 0 else in_shelf
    return GridMap(~blocked, connectivity)


@checked(GridMapError)
def largest_component(free: Booleans | GridMap) -> np.ndarray:
    """The largest set of connected free tiles. free: (rows, cols) bool or GridMap -> (rows, cols) bool"""
    free = ~free.blocked if isinstance(free, GridMap) else np.asarray(free, bool)
    from scipy import ndimage  # it takes longer to import than the rest of gpu_planners.grid

    labels, count = ndimage.label(free)
    if count == 0:
        return free.copy()
    sizes = np.bincount(labels.ravel())
    sizes[0] = 0
    return labels == np.argmax(sizes)


@checked(GridMapError)
def random_free_tiles(grid: GridMap, count: int, seed: int | Sequence[int] = 0) -> np.ndarray:
    """Tiles of the largest component, drawn with replacement. -> (count, 2) int32 [row, col]"""
    tiles = np.flatnonzero(largest_component(grid))
    if len(tiles) == 0:
        raise GridMapError("the map has no free tile; allowed: at least one")
    chosen = _generator(seed).choice(tiles, whole("count", count, 0, MOST_DRAWN, error=GridMapError))
    return np.stack(np.divmod(chosen, grid.cols), axis=1).astype(np.int32)


def _generator(seed):
    seeds = seed if isinstance(seed, list | tuple) else [seed]
    return np.random.default_rng([whole("seed", each, 0, math.inf, error=GridMapError) for each in seeds])


def _caves(rows, cols, rng, passages, fill):
    """(rows, cols) bool, true where free: random tiles, smoothed by a cellular automaton (a tile becomes rock when 5 of
    the 9 about it are rock) on a coarse grid, then on finer ones, so that walls are rough.

    passages: how far caverns are apart, in tiles;  fill: (rows, cols) share of rock before smoothing
    """
    scale = 1 << max(0, int(np.log2(passages / 5)))
    shape = (-(-rows // scale), -(-cols // scale))
    rock = _smoothed(rng.random(shape) < fill[::scale, ::scale], SMOOTHINGS)
    while scale > 1:
        scale //= 2
        rock = rock.repeat(2, axis=0).repeat(2, axis=1)[: -(-rows // scale), : -(-cols // scale)]
        rock = _smoothed(rock ^ (rng.random(rock.shape, dtype=np.float32) < FLIPPED), FINER_SMOOTHINGS)
    return ~rock


def _smoothed(rock, times):
    for _ in range(times):
        padded = np.pad(rock.view(np.uint8), 1, constant_values=1)
        beside = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
        rock = beside[:-2] + beside[1:-1] + beside[2:] >= 5
    return rock


def _rooms(rows, cols, rng, room, wall, door):
    """(rows, cols) bool, true where free: rooms about `room` tiles wide, most walls with a door of `door` tiles"""
    row_walls, col_walls = _wall_lines(rows, room, wall, rng), _wall_lines(cols, room, wall, rng)
    free = np.ones((rows, cols), bool)
    upright = _openings(rows, row_walls, len(col_walls), rng, wall, door)
    level = _openings(cols, col_walls, len(row_walls), rng, wall, door)
    for across in range(min(wall, max(rows, cols))):
        inside = col_walls + across < cols
        free[:, col_walls[inside] + across] &= upright[inside].T
        inside = row_walls + across < rows
        free[row_walls[inside] + across] &= level[inside]
    return free


def _wall_lines(size, room, wall, rng):
    """First tiles of the walls on one axis; the map's border is the first and the last one."""
    gaps = rng.integers(max(2, int(0.6 * room)), max(3, int(1.4 * room)) + 1, size // max(1, room // 2) + 2) + wall
    lines = np.concatenate([[0], np.cumsum(gaps)])
    return np.append(lines[lines < size - wall - room // 2], max(size - wall, 0))


def _openings(size, crossing, count, rng, wall, door):
    """Where `count` walls along an axis of `size` tiles, which crossing walls cut, are open: (count, size) bool"""
    part = np.searchsorted(crossing, np.arange(size), side="right") - 1
    first = crossing + wall
    ends = np.append(crossing[1:], size)
    spare = np.maximum(ends - first - door, 0)
    at = first + (rng.random((count, len(crossing))) * (spare + 1)).astype(int)
    kind = rng.random((count, len(crossing)))
    kind[0] = kind[-1] = 2.0  # the map's border has no opening
    has_door = (kind >= LEFT_OUT) & (kind < 1 - CLOSED_WALLS)
    place = np.arange(size)
    in_door = has_door[:, part] & (place >= at[:, part]) & (place < at[:, part] + door)
    return (in_door | (kind < LEFT_OUT)[:, part]) & (place >= first[part])


def _smooth_noise(rows, cols, length, rng):
    """(rows, cols) float32 noise of mean 0 and deviation 1: random values some tiles apart, joined smoothly."""

    def weights(size):
        place = np.arange(size) / length
        left = place.astype(int)
        share = place - left
        share = share * share * (3 - 2 * share)
        matrix = np.zeros((size, left[-1] + 2), np.float32)
        matrix[np.arange(size), left], matrix[np.arange(size), left + 1] = 1 - share, share
        return matrix

    down, across = weights(rows), weights(cols)
    noise = down @ rng.normal(size=(down.shape[1], across.shape[1])).astype(np.float32) @ across.T
    return (noise - noise.mean()) / max(noise.std(), 1e-6)


def _check(rows, cols):
    if rows < 1 or cols < 1:
        raise GridMapError(f"the map is empty: {rows} rows, {cols} cols; allowed: at least one each")
    if rows * cols > MOST_TILES:
        raise GridMapError(f"the map is {shown((rows, cols))}; allowed: at most {MOST_TILES} tiles in all")
