"""Places and headings of agents as callers give them."""

import numpy as np
from numpy.typing import ArrayLike

from ...errors import GridMapError
from ..checks import array_of, shown


def checked_places(places: ArrayLike, name: str) -> np.ndarray:
    """(N, 2) [row, col], whole numbers or not finite -> float64; GridMapError for any other. [] is (0, 2)."""
    array = array_of(places, name)
    if array.shape == (0,):
        array = array.reshape(0, 2)
    if array.ndim != 2 or array.shape[1] != 2:
        raise GridMapError(f"{name} has the shape {array.shape}; allowed: (N, 2) [row, col]")
    if array.dtype.kind == "b":
        raise GridMapError(f"{name} has the type bool; allowed: whole numbers [row, col]")
    array = array.astype(np.float64)
    _refuse(name, array, (array == np.floor(array)) | ~np.isfinite(array))
    return array


def checked_tiles(places: ArrayLike, name: str) -> np.ndarray:
    """(N, 2) [row, col], whole numbers -> int64, those beyond 32 bits at their ends; GridMapError for any other"""
    array = checked_places(places, name)
    _refuse(name, array, ~np.isnan(array))
    return np.clip(array, -(2**31), 2**31 - 1).astype(np.int64)


def _refuse(name, array, right):
    if not right.all():
        row = int(np.argmin(right.all(axis=1)))
        raise GridMapError(f"{name}[{row}] is {shown(array[row].tolist())}; allowed: whole numbers [row, col]")


def checked_headings(headings: ArrayLike | None, agents: int, ways: int) -> np.ndarray:
    """(N,) int, None: all face east -> (N,) int32; all 0 where a state has no heading. ways: headings of a state"""
    if headings is None:
        return np.zeros(agents, np.int32)
    array = array_of(headings, "headings")
    if array.shape != (agents,) or array.dtype.kind not in "iu":
        raise GridMapError(f"headings is {array.dtype} {array.shape}; allowed: integers ({agents},)")
    if agents and not ((array >= 0) & (array < 4)).all():
        agent = int(np.argmin((array >= 0) & (array < 4)))
        raise GridMapError(
            f"the heading of agent {agent} is {array[agent]}; allowed: 0 .. 3 (east, south, west, north)"
        )
    return (array % ways).astype(np.int32)
