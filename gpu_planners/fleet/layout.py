"""The map as a fleet sees it: where agents that cover more than a tile may be, and what moves cost there."""

import numpy as np

from ..grid.maps.grid_map import GridMap
from .fields import Lanes
from .guidance import Guidance
from .motion import Motion


def footprint_free(free: np.ndarray, size: int) -> np.ndarray:
    """May the middle of an agent that covers size x size tiles be there? An even side reaches farther down and right.

    free: (rows, cols) bool -> the same shape; tiles beyond the map are blocked
    """
    low = (size - 1) // 2
    padded = np.pad(free, size)
    rows, cols = free.shape
    every = range(size - low, 2 * size - low)
    return np.logical_and.reduce([padded[r : r + rows, c : c + cols] for r in every for c in every])


def lanes_of(grid: GridMap, motion: Motion, size: int, guidance: Guidance, pad: int) -> Lanes:
    """The map as fields see it, for agents of a size, with a border of `pad` blocked tiles."""
    free = np.pad(footprint_free(grid.costs > 0, size), pad)
    moves = np.ones((*free.shape, 4), np.uint8)
    moves[pad:-pad, pad:-pad] = guidance.moves
    numbers = guidance.turn, guidance.unit, motion.headings, free.shape[1]
    return Lanes(free.astype(np.uint8).ravel(), moves.reshape(-1, 4), *numbers)
