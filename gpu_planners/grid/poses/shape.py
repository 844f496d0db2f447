"""How a map's states lie in arrays, and the arrays of a field.

The map lies in arrays of rows x cols cells with a blocked border around it, so wide that no move and no mask looks
beyond it. A word holds 32 cells of a row; a block is `height` rows of one word in all layers. The border is a ring of
blocks that nobody ever has to visit.
"""

import math
from typing import NamedTuple

import numpy as np

from .masks import Mask
from .pose_grid import PoseGrid

WORD = 32
HEIGHT = 16  # rows of a block on the CPU, a power of two


class Runs(NamedTuple):
    """Masks as compiled code reads them: (R, 4) int32 row, level, first column, second column; (masks + 1,) int32.

    A run of n bits is two overlapping ones of 2^level: what is blocked in one of these is a bit of `Layout.near`.
    """

    runs: np.ndarray
    first: np.ndarray
    levels: int


class Layout(NamedTuple):
    """Sizes of a map's arrays: border: cells around it;  rows, cols, words: with the border"""

    map_rows: int
    map_cols: int
    border: int
    rows: int
    cols: int
    words: int
    layers: int
    planes: int
    levels: int

    @property
    def states(self) -> int:
        return self.layers * self.rows * self.cols

    @property
    def blocks(self) -> int:
        """Of HEIGHT rows of one word."""
        return self.rows // HEIGHT * self.words

    def field_bytes(self) -> int:
        """Memory of one field."""
        return 4 * (self.states + self.blocks * (3 * self.layers + 5))


def layout_of(poses: PoseGrid, runs: Runs) -> Layout:
    """The sizes of a PoseGrid's arrays."""
    map_rows, map_cols = poses.map.shape
    border = WORD * math.ceil((poses.reach + 1) / WORD)
    rows, cols = (WORD * math.ceil(n / WORD) + 2 * border for n in (map_rows, map_cols))
    layers, planes = poses.headings * poses.gears, len(poses.masks)
    return Layout(map_rows, map_cols, border, rows, cols, cols // WORD, layers, planes, runs.levels)


def runs_table(masks: tuple[Mask, ...]) -> Runs:
    """Masks for `free`."""
    parts, first = [], [0]
    for mask in masks:
        row, left, right = mask.runs.T
        level = np.log2(right - left + 1).astype(np.int32)
        parts.append(np.column_stack([row, level, left, right - (1 << level) + 1]))
        first.append(first[-1] + len(row))
    runs = np.concatenate(parts).astype(np.int32)
    return Runs(runs, np.array(first, np.int32), int(runs[:, 1].max()) + 1)


def padded_costs(costs: np.ndarray, layout: Layout) -> np.ndarray:
    """(rows, cols) uint8 with the border."""
    padded = np.zeros((layout.rows, layout.cols), np.uint8)
    border = layout.border
    padded[border : border + layout.map_rows, border : border + layout.map_cols] = costs
    return padded


def blocked_words(padded: np.ndarray) -> np.ndarray:
    """(rows, words) uint32: bit c of a word is set where its cell c is blocked."""
    return np.packbits(padded == 0, axis=1, bitorder="little").view(np.uint32)
