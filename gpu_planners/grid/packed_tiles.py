"""What the searches of [CE12] and A* share: a tile of the map as one number, row << 16 | column, and the heuristic."""

import numpy as np

from ..device import njit
from ..errors import GridMapError

COL_BITS = 16
COL_MASK = (1 << COL_BITS) - 1
MOST_SIDE = 1 << (COL_BITS - 1)  # of a map: packed tiles are int32 and not negative


def check_sides(grid, algorithm):
    """Raises GridMapError where the tiles of a GridMap cannot be packed."""
    if max(grid.shape) > MOST_SIDE:
        raise GridMapError(f"the map has {grid.rows} rows and {grid.cols} cols; {algorithm} allows {MOST_SIDE} each")


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
def pack_all(tiles):
    """(N, 2) int32 [row, col] -> (N,) int32"""
    packed = np.empty(len(tiles), np.int32)
    for i in range(len(tiles)):
        packed[i] = pack(tiles[i, 0], tiles[i, 1])
    return packed


@njit
def least_cost_between(down, right, moves, one, diagonal):
    """Cost of the way to a tile some rows and columns off where all tiles are free and cost 1: `one` for a straight step.

    The Manhattan distance, as in [CE12] III-A; the octile distance where there are 8 moves.
    """
    down, right = np.int64(abs(down)), np.int64(abs(right))
    if moves == 4:
        return (down + right) * one
    return max(down, right) * one + min(down, right) * (diagonal - one)
