"""Places, headings and numbers of agents as callers give them."""

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import array_of, integers, refuse_rows, whole
from ..errors import GridMapError, SettingsError
from ..grid.tiles import as_pairs
from .motion import Motion, speed_of

MOST_SIZE = 15  # tiles of a side
FARTHEST = 2**31 - 1  # of a row or column, either way


def checked_places(name: str, places: ArrayLike) -> np.ndarray:
    """(N, 2) [row, col], whole numbers or not finite -> float64; GridMapError for any other. [] is (0, 2)."""
    array = as_pairs(name, places, " [row, col]")
    if array.dtype.kind == "b":
        raise GridMapError(f"{name} has the type bool; allowed: whole numbers [row, col]")
    array = array.astype(np.float64)
    right = (array == np.floor(array)) | ~np.isfinite(array)
    refuse_rows(name, array, right, "whole numbers [row, col]", GridMapError)
    return array


def checked_tiles(name: str, places: ArrayLike) -> np.ndarray:
    """(N, 2) [row, col], whole numbers of 32 bits -> int64; GridMapError for any other. [] is (0, 2)."""
    array, allowed = checked_places(name, places), f"whole numbers [row, col] from -{FARTHEST} to {FARTHEST}"
    refuse_rows(name, array, np.abs(array) <= FARTHEST, allowed, GridMapError)
    return array.astype(np.int64)


def checked_headings(headings: ArrayLike | None, agents: int, of_state: int) -> np.ndarray:
    """(N,) int, None: all face east -> (N,) int32; all 0 without headings. of_state: how many there are"""
    if headings is None:
        return np.zeros(agents, np.int32)
    array = integers("headings", headings, (agents,), f"({agents},)", GridMapError)
    if agents and not ((array >= 0) & (array < 4)).all():
        agent = int(np.argmin((array >= 0) & (array < 4)))
        raise GridMapError(
            f"the heading of agent {agent} is {array[agent]}; allowed: 0 .. 3 (east, south, west, north)"
        )
    return (array % of_state).astype(np.int32)


def checked_numbers(name: str, numbers: ArrayLike, there: np.ndarray) -> np.ndarray:
    """Numbers of agents on the map: (K,) int -> (K,) int64; GridMapError for any other.

    there: (N,) does an agent with that number take part?
    """
    if array_of(name, numbers, GridMapError).shape == (0,):
        return np.zeros(0, np.int64)
    array, agents = integers(name, numbers, (None,), "(K,), numbers of agents", GridMapError), len(there)
    span = f"0 .. {agents - 1}" if agents else "none, since there are no agents"
    refuse_rows(name, array, (array >= 0) & (array < agents), f"whole numbers {span}", GridMapError)
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
    array = integers("speeds", speeds, (agents, 2), f"({agents}, 2), ticks of a move and of a turn", GridMapError)
    most = settings.least_horizon
    refuse_rows("speeds", array, (array >= 1) & (array <= most), f"1 .. {most} ticks, the horizon", GridMapError)
    array = array.astype(np.int32)
    if motion.headings == 1:
        array[:, 1] = 1
    return array


def all_sizes(settings, sizes) -> tuple[int, ...]:
    """Sides of the agents of a fleet: that of the settings, then the others, upward. Raises SettingsError."""
    given = array_of("sizes", sizes)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise SettingsError(f"sizes is {given.dtype} {given.shape}; allowed: whole numbers, (K,)")
    others = {whole(f"sizes[{k}]", size, 1, MOST_SIZE) for k, size in enumerate(given.tolist())}
    return (settings.size, *sorted(others - {settings.size}))


def checked_sizes(sizes: ArrayLike | None, agents: int, allowed: tuple[int, ...]) -> np.ndarray:
    """(N,) int sides of agents, None: the first of those that are allowed -> (N,) int64; GridMapError for any other."""
    if sizes is None:
        return np.full(agents, allowed[0], np.int64)
    array = integers("sizes", sizes, (agents,), f"({agents},), tiles", GridMapError).astype(np.int64)
    words = f"{', '.join(map(str, allowed))}, the planner's `sizes`"
    refuse_rows("sizes", array, np.isin(array, allowed), words, GridMapError)
    return array
