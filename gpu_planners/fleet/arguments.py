"""Maps, places, headings and numbers of agents as callers give them."""

import numpy as np
from numpy.typing import ArrayLike

from ..errors import GridMapError, shown
from ..grid.checks import array_of
from ..grid.maps.grid_map import GridMap
from .motion import Motion, speed_of

FARTHEST = 2**31 - 1  # of a row or column, either way


def checked_grid(grid: GridMap) -> GridMap:
    """The map itself. Raises GridMapError for anything else."""
    if not isinstance(grid, GridMap):
        raise GridMapError(f"grid is a {type(grid).__name__}; allowed: a GridMap")
    return grid


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
    _refuse(name, array, (array == np.floor(array)) | ~np.isfinite(array), "whole numbers [row, col]")
    return array


def checked_tiles(places: ArrayLike, name: str) -> np.ndarray:
    """(N, 2) [row, col], whole numbers of 32 bits -> int64; GridMapError for any other. [] is (0, 2)."""
    array = checked_places(places, name)
    _refuse(name, array, np.abs(array) <= FARTHEST, f"whole numbers [row, col] from -{FARTHEST} to {FARTHEST}")
    return array.astype(np.int64)


def _refuse(name, array, right, allowed):
    """Raise GridMapError, which names the first row that is not right. right: bool, of the array's shape"""
    if not right.all():
        row = int(np.argmin(right.reshape(len(right), -1).all(axis=1)))
        raise GridMapError(f"{name}[{row}] is {shown(array[row].tolist())}; allowed: {allowed}")


def _integers(values, name, shape, words=""):
    array = array_of(values, name)
    if array.shape != shape or array.dtype.kind not in "iu":
        raise GridMapError(f"{name} is {array.dtype} {array.shape}; allowed: integers {shape}{words}")
    return array


def checked_headings(headings: ArrayLike | None, agents: int, ways: int) -> np.ndarray:
    """(N,) int, None: all face east -> (N,) int32; all 0 where a state has no heading. ways: headings of a state"""
    if headings is None:
        return np.zeros(agents, np.int32)
    array = _integers(headings, "headings", (agents,))
    if agents and not ((array >= 0) & (array < 4)).all():
        agent = int(np.argmin((array >= 0) & (array < 4)))
        raise GridMapError(
            f"the heading of agent {agent} is {array[agent]}; allowed: 0 .. 3 (east, south, west, north)"
        )
    return (array % ways).astype(np.int32)


def checked_numbers(numbers: ArrayLike, name: str, there: np.ndarray) -> np.ndarray:
    """Numbers of agents on the map: (K,) int -> (K,) int64; GridMapError for any other.

    there: (N,) does an agent with that number take part?
    """
    array, agents = array_of(numbers, name), len(there)
    if array.shape == (0,):
        return np.zeros(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise GridMapError(f"{name} is {array.dtype} {array.shape}; allowed: integers (K,), numbers of agents")
    span = f"0 .. {agents - 1}" if agents else "none, since there are no agents"
    _refuse(name, array, (array >= 0) & (array < agents), f"whole numbers {span}")
    gone = np.flatnonzero(there[array.astype(np.int64)] == 0)
    if len(gone):
        raise GridMapError(
            f"{name}[{gone[0]}] is {array[gone[0]]}, an agent that was removed; allowed: those on the map"
        )
    return array.astype(np.int64)


def checked_speeds(speeds: ArrayLike | None, agents: int, motion: Motion, settings) -> np.ndarray:
    """(N, 2) int ticks of a move and of a turn, None: those of the settings -> (N, 2) int32

    Turns count as 1 where nobody turns. Raises GridMapError, which names the agent.
    """
    if speeds is None:
        return np.tile(np.array(speed_of(motion, settings), np.int32), (agents, 1))
    array = _integers(speeds, "speeds", (agents, 2), ", ticks of a move and of a turn")
    most = settings.least_horizon
    _refuse("speeds", array, (array >= 1) & (array <= most), f"1 .. {most} ticks, the horizon")
    array = array.astype(np.int32)
    if motion.headings == 1:
        array[:, 1] = 1
    return array
