"""What P-BA* and P-RTAA* share: tiles as one number, the heuristic, memory for moves, the answers of batches.

A tile of the map is the number row << 16 | column. Moves of unknown length lie in an arena: each worker takes pieces of
a page of its own.
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit, njit
from ...errors import GridMapError
from ...grid.astar import least_cost_between
from ...grid.maps.grid_map import GridMap
from ...grid.paths import SOLVED, PathSet, step_bits
from ...parallel.team import add

COL_BITS = 16
COL_MASK = (1 << COL_BITS) - 1
MOST_SIDE = 1 << (COL_BITS - 1)  # of a map: packed tiles are int32 and not negative
PAGES = 64  # of an arena
MOST_PAGE_WORDS = 2**32 // PAGES  # a word's number in an arena is a uint32


def check_sides(grid: GridMap, algorithm: str):
    """Raises GridMapError where the tiles of a GridMap cannot be packed."""
    if max(grid.shape) > MOST_SIDE:
        raise GridMapError(f"the map has {grid.rows} rows and {grid.cols} cols; {algorithm} allows {MOST_SIDE} each")


def units_of(moves: int, length: int) -> tuple[int, int]:
    """-> cost of a straight step and of a diagonal one onto a tile of cost 1, as searches count

    length: units of a tile length where diagonals are allowed; fixed point
    """
    return (1, 0) if moves == 4 else (length, round(length * 2**0.5))


def pack_all(tiles: np.ndarray) -> np.ndarray:
    """(N, 2) int32 [row, col] -> (N,) int32"""
    return tiles[:, 0] << COL_BITS | tiles[:, 1]


@njit
def pack(row, col):
    """-> the tile as one number."""
    return row << COL_BITS | col


@njit
def row_of(tile):
    return tile >> COL_BITS


@njit
def col_of(tile):
    return tile & COL_MASK


@njit
def heuristic(tile, goal, world):
    """What a way from a tile to the goal costs at least, both packed. world: has moves, one, diagonal and h_cost"""
    down, right = row_of(tile) - row_of(goal), col_of(tile) - col_of(goal)
    return least_cost_between(down, right, world.moves, world.one, world.diagonal) * world.h_cost


class Arena(NamedTuple):
    """An arena as one worker sees it.

    words: (W,) uint32 of all pages
    used: (PAGES,) int32 items asked of each page, also those that did not fit
    page: of this worker
    room: items of a page; an item is a word, or a chunk of words
    """

    words: np.ndarray
    used: np.ndarray
    page: int
    room: int


class MovesDoNotFit(Exception):
    """The moves of several goals' links take more memory than is allowed: fewer goals at once."""


def checked_page(words: int, goals: int, memory_mb: int) -> int:
    """-> words, of each page of an arena for the links toward some goals

    Raises MovesDoNotFit; for one goal, which is always taken, MemoryError where there are more than can be numbered.
    """
    if goals > 1 and 4 * PAGES * words > memory_mb * 2**20:
        raise MovesDoNotFit
    if words > MOST_PAGE_WORDS:
        most = 4 * PAGES * MOST_PAGE_WORDS
        raise MemoryError(
            f"the moves of P-BA*'s links take more than {most} bytes; allowed: fewer agents, smaller blocks"
        )
    return words


@lean_njit
def take(arena, count):
    """Take some items of the worker's page -> number of the first one, -1 where they do not fit"""
    first = np.int64(add(arena.used, arena.page, count))
    return first + np.int64(arena.page) * arena.room if first + count <= arena.room else np.int64(-1)


def path_set(
    starts: np.ndarray,
    connectivity: int,
    status: np.ndarray,
    length: np.ndarray,
    straight: np.ndarray,
    diagonal: np.ndarray,
    first: np.ndarray,
    words: np.ndarray,
) -> PathSet:
    """Answers of N agents. straight, diagonal: (N,) int64 costs of the straight and of the diagonal steps; the others:
    as of PathSet"""
    cost = _costs(status, straight, diagonal)
    return PathSet(starts, status, cost, length, first, words, step_bits(connectivity))


@njit
def _costs(status, straight, diagonal):
    """(N,) float64 in tile lengths, inf where there is no path."""
    cost = np.full(len(status), np.inf)
    for i in range(len(status)):
        if status[i] == SOLVED:
            cost[i] = straight[i] + np.sqrt(2.0) * diagonal[i]
    return cost
