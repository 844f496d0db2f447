"""The map as a fleet sees it: with a border of blocked tiles, the places of larger agents, and costs of moves.

Agents of unlike sizes move on one *layer* of the map for each size, all below each other as one tall map: so each has
the places and fields of its size, and who is too near to whom on other layers is a matter of offsets.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...device import lean_njit
from ...errors import GridMapError
from ...grid.maps.grid_map import GridMap
from ..arguments import checked_tiles
from ..guidance import MOST_DIFFERENCE, Guidance
from ..motion import Motion


class Lanes(NamedTuple):
    """The map with its border, for compiled code."""

    free: np.ndarray  # (tiles,) uint8
    forward: np.ndarray  # (tiles, 4) uint8 cost of a move out of a tile, by direction
    turn: int  # cost of a quarter turn
    unit: int  # cost of an ordinary move
    headings: int  # 1 or 4
    width: int  # tiles of a row


@lean_njit
def ahead(direction, width):
    """-> offset of the next tile to the east, south, west or north"""
    if direction == 0:
        return 1
    if direction == 1:
        return width
    return -1 if direction == 2 else -width


def footprint_free(free: np.ndarray, size: int) -> np.ndarray:
    """May the middle of an agent that covers size x size tiles be there? An even side reaches farther down and right.

    free: (rows, cols) bool -> the same shape; tiles beyond the map are blocked
    """
    low = (size - 1) // 2
    padded = np.pad(free, size)
    rows, cols = free.shape
    every = range(size - low, 2 * size - low)
    return np.logical_and.reduce([padded[r : r + rows, c : c + cols] for r in every for c in every])


def too_near(one: int, other: int, apart: int) -> int:
    """Rows or columns that the tile of an agent of side `other` may lie ahead of that of one of side `one` so that less
    than `apart` tiles are between them."""
    return apart + one - 1 + (other - 1) // 2 - (one - 1) // 2


class PaddedMap:
    """A map with a border of tiles, once for each size of agents. Tiles are numbered row by row.

    sizes: sides of agents, each with a layer of its own; apart: tiles that stay free between agents
    rows, cols: with the border, of all layers; layer: tiles of one
    """

    def __init__(self, shape: tuple[int, int], sizes: tuple[int, ...], apart: int):
        self.shape, self.sizes = shape, sizes
        self.near = max(too_near(one, other, apart) for one in sizes for other in sizes)
        pad = self.pad = max(1, self.near)
        self._rows, self.cols = shape[0] + 2 * pad, shape[1] + 2 * pad
        self.rows, self.layer = len(sizes) * self._rows, self._rows * self.cols
        self.clearance: np.ndarray = self._clearance(apart)

    def _clearance(self, apart):
        """(layers, K) int32 offsets around an agent where another one is too near, the nearest of its own size first"""
        found = []
        for k, one in enumerate(self.sizes):
            offsets = []
            for m, other in enumerate(self.sizes):
                span = np.arange(-too_near(other, one, apart), too_near(one, other, apart) + 1)
                near = (span[:, None] * self.cols + span).ravel()
                offsets.append((near + (m - k) * self.layer)[np.argsort(np.abs(near))])
            found.append(np.concatenate([offsets[k], *offsets[:k], *offsets[k + 1 :]]))
        most = max(map(len, found))
        return np.array([np.append(one, np.zeros(most - len(one))) for one in found], np.int32)  # 0: itself

    def layers(self, sizes: np.ndarray) -> np.ndarray:
        """(N,) sizes -> (N,) numbers of their layers"""
        return np.array([self.sizes.index(size) for size in sizes.tolist()], np.int64)

    def layer_of(self, tiles: np.ndarray) -> np.ndarray:
        """(N,) tiles -> (N,) numbers of their layers"""
        return tiles.astype(np.int64) // self.layer

    def tiles(self, places: np.ndarray, layer: np.ndarray | int = 0) -> np.ndarray:
        """(N, 2) [row, col] and (N,) layers -> (N,) int32"""
        return (layer * self.layer + (places[:, 0] + self.pad) * self.cols + places[:, 1] + self.pad).astype(np.int32)

    def places(self, tiles: np.ndarray) -> np.ndarray:
        """(N,) -> (N, 2) int32 [row, col]"""
        within = tiles % self.layer
        return np.stack([within // self.cols - self.pad, within % self.cols - self.pad], axis=1).astype(np.int32)

    def refuse_outside(self, places: np.ndarray, numbers: np.ndarray, what: str = "agent {} is at") -> None:
        """Raise GridMapError where a place is outside. numbers, what: of the agents, for the text"""
        inside = np.all((places >= 0) & (places < self.shape), axis=1)
        if not inside.all():
            k, (rows, cols) = int(np.argmin(inside)), self.shape
            where = f"{what.format(numbers[k])} {places[k].tolist()}"
            raise GridMapError(f"{where}, outside the {rows} x {cols} map")

    def goal_tiles(self, goals: ArrayLike, there: np.ndarray, layer: np.ndarray) -> np.ndarray:
        """(N, 2) goals, as `FleetPlanner.step` takes them, and (N,) layers -> (N,) int32 tiles, -1 where an agent has
        none"""
        places = checked_tiles("goals", goals)
        if len(places) != len(there):
            raise GridMapError(f"goals has {len(places)} rows; allowed: {len(there)}, one for each agent")
        none = (places[:, 0] < 0) | (there == 0)
        places = np.where(none[:, None], 0, places)
        self.refuse_outside(places, np.arange(len(places)), "the goal of agent {} is")
        return np.where(none, -1, self.tiles(places, layer)).astype(np.int32)

    def cut_off(self, tiles: np.ndarray, goals: np.ndarray, parts: np.ndarray) -> np.ndarray:
        """(N,) bool, does no path lead an agent to its goal, or beside a blocked goal? goals: (N,), -1 none"""
        near = np.array([0, 1, -1, self.cols, -self.cols])
        around = parts[np.where(goals < 0, self.pad * self.cols + self.pad, goals)[:, None] + near]
        around[around[:, 0] > 0, 1:] = 0
        return (parts[tiles] > 0) & (around != parts[tiles][:, None]).all(axis=1)

    def lanes(self, grid: GridMap, motion: Motion, guidance: Guidance, barred: Sequence[np.ndarray] = ()) -> Lanes:
        """barred: of each size, (rows, cols, 4) bool moves that are as dear as can be, beside those of the guidance"""
        pad = self.pad
        free = np.concatenate([np.pad(footprint_free(grid.costs > 0, size), pad) for size in self.sizes])
        moves = np.ones((*free.shape, 4), np.uint8)
        for layer, first in enumerate(range(0, self.rows, self._rows)):
            dearest = MOST_DIFFERENCE - 4 * guidance.turn
            costs = np.where(barred[layer], dearest, guidance.moves) if len(barred) else guidance.moves
            moves[first + pad : first + self._rows - pad, pad:-pad] = costs
        numbers = guidance.turn, guidance.unit, motion.headings, free.shape[1]
        return Lanes(free.astype(np.uint8).ravel(), moves.reshape(-1, 4), *numbers)


def parts_of(free: np.ndarray) -> np.ndarray:
    """(rows, cols) -> (rows, cols) int32, the number of the connected part of each tile, 0 where it is blocked"""
    from scipy.ndimage import label

    return label(free)[0].astype(np.int32)
