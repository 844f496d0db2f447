"""Arrays of tiles [row, col] and of points that callers give."""

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import array_of
from ..errors import GridMapError

TILE_TYPES = np.int32, np.int64, np.float32, np.float64  # for which code is compiled; others convert to one of them


def as_pairs(name: str, values: ArrayLike, words: str = "") -> np.ndarray:
    """(N, 2) numbers or booleans; GridMapError for any other. [] is (0, 2). words: on the columns, for the error"""
    array = array_of(name, values, GridMapError)
    if array.shape == (0,):
        array = array.reshape(0, 2)
    if array.ndim != 2 or array.shape[1] != 2:
        raise GridMapError(f"{name} has the shape {array.shape}; allowed: (N, 2){words}")
    return array


def as_tiles(name: str, tiles: ArrayLike) -> np.ndarray:
    """Tiles [row, col], or one of them, as (N, 2), contiguous, of one of TILE_TYPES."""
    array = array_of(name, tiles, GridMapError)
    if array.dtype.kind == "b":
        raise GridMapError(f"{name} has the type bool; allowed: numbers [row, col]")
    if array.shape == (0,):
        array = array.reshape(0, 2)
    array = array[None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[1] != 2:
        raise GridMapError(f"{name} has shape {array.shape}; allowed: (N, 2) [row, col]")
    kind = array.dtype.newbyteorder("=")
    if kind not in TILE_TYPES:
        kind = np.int64 if np.can_cast(kind, np.int64) else np.float64
    return np.ascontiguousarray(array, kind)
