"""What all searches here share: a tile of the map as one number, row << 16 | column, and the heuristic."""

import numpy as np

from ...device import njit
from ...errors import GridMapError
from ...grid.maps.grid_map import GridMap

COL_BITS = 16
COL_MASK = (1 << COL_BITS) - 1
MOST_SIDE = 1 << (COL_BITS - 1)  # of a map: packed tiles are int32 and not negative


def check_sides(grid: GridMap, algorithm: str):
    """Raises GridMapError where the tiles of a GridMap cannot be packed."""
    if max(grid.shape) > MOST_SIDE:
        raise GridMapError(f"the map has {grid.rows} rows and {grid.cols} cols; {algorithm} allows {MOST_SIDE} each")


def units_of(moves: int, length: int) -> tuple[int, int]:
    """-> cost of a straight step and of a diagonal one onto a tile of cost 1, as searches count

    length: units of a tile length where diagonals are allowed; fixed point
    """
    return (1, 0) if moves == 4 else (length, round(length * 2**0.5))


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
    """Cost of the way to a tile some rows and columns off where all tiles are free and cost 1.

    one, diagonal: cost of a straight step, of a diagonal one. The Manhattan distance, as in [CE12] III-A; the octile
        distance where there are 8 moves.
    """
    down, right = np.int64(abs(down)), np.int64(abs(right))
    if moves == 4:
        return (down + right) * one
    return max(down, right) * one + min(down, right) * (diagonal - one)
