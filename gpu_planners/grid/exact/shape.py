"""The shape of a map's fields: their arrays, and how the map lies in them."""

import math
from dataclasses import dataclass

import numpy as np

from ...device import njit
from ..maps.grid_map import GridMap
from .blocks import Blocks, Kind, kind_of

BITS, VALUES = 0, 1  # layouts: `bits` for uniform 4-connected maps, `values` for all others
QUEUE_ROWS = 5  # see `rounds`


@dataclass(frozen=True)
class FieldShape:
    """layout: BITS or VALUES;  blocks: of the map;  connectivity: 4 or 8"""

    layout: int
    blocks: Blocks
    connectivity: int

    @staticmethod
    def of(grid: GridMap, block_size: int) -> "FieldShape":
        """The shape of a map's fields."""
        layout = BITS if grid.uniform_cost and grid.connectivity == 4 else VALUES
        return FieldShape(layout, Blocks(*grid.shape, block_size), grid.connectivity)

    @property
    def kind(self) -> Kind:
        """What compiled code knows of the blocks."""
        return kind_of(self.blocks.size, self.connectivity)

    @property
    def padded(self) -> tuple[int, int]:
        """Rows and columns of the arrays of a `ValueField`."""
        return (self.blocks.height - 2) * self.blocks.size + 2, (self.blocks.width - 2) * self.blocks.size + 2

    @property
    def map_shape(self) -> tuple:
        """-> shape, type of the array that holds the map: `free` of BITS, `cost` of VALUES"""
        if self.layout == BITS:
            return (self.blocks.count, self.blocks.size), np.uint32
        return self.padded, np.uint8

    def map_array(self, grid: GridMap) -> np.ndarray:
        """The map as its fields take it."""
        if self.layout == BITS:
            return self.blocks.free_rows(grid.costs > 0)
        cost = np.zeros(*self.map_shape)
        cost[1 : grid.rows + 1, 1 : grid.cols + 1] = grid.costs
        return cost

    def change_map(self, array: np.ndarray, grid: GridMap, rows: np.ndarray, cols: np.ndarray) -> tuple[int, int]:
        """Bring some tiles (N,) of the map's array up to date -> its first and its last row that changed"""
        if self.layout == BITS:
            return _set_bits(array, rows, cols, grid.costs, self.blocks.width)
        return _set_costs(array, rows, cols, grid.costs)

    def blocks_near(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """The blocks of some tiles (N,) and of the tiles beside them -> (n,) int32"""
        blocks = self.blocks
        return _blocks_near(rows, cols, (blocks.rows, blocks.cols), blocks.size, blocks.width, blocks.count)

    def field_shapes(self, slots: int) -> dict:
        """-> {name: (shape, type)} of the arrays of so many fields

        values: `bits` of BITS, `value` of VALUES; edge: of BITS; goals: see `request`; queue: see `rounds`
        """
        size, items, bits = self.blocks.size, slots * self.blocks.count, self.layout == BITS
        return {
            "values": ((items, 2, size), np.uint32) if bits else ((slots, *self.padded), np.int64),
            "edge": ((items, 4, size) if bits else (1, 1, 1), np.int32),
            "directions": ((items, size * size // 8), np.uint32),
            "queue": ((QUEUE_ROWS, items), np.int32),
            "goals": ((slots, 4), np.int32),
        }

    def parts_of(self, slot: int) -> dict[str, slice]:
        """Where one slot lies in the arrays that hold its values."""
        items = slice(slot * self.blocks.count, (slot + 1) * self.blocks.count)
        return {"values": items, "edge": items} if self.layout == BITS else {"values": slice(slot, slot + 1)}

    @property
    def field_bytes(self) -> int:
        """Memory of one field."""
        return sum(_bytes(shape, kind) for shape, kind in self.field_shapes(1).values())

    @property
    def bytes_with_map(self) -> int:
        """Memory of one field and of the map."""
        return self.field_bytes + _bytes(*self.map_shape)


def _bytes(shape, kind):
    return math.prod(shape) * np.dtype(kind).itemsize


@njit
def _block_of(row, col, size, width):
    """The block of a tile, as `Blocks.of_tiles` has it."""
    return (row // size + 1) * width + col // size + 1


@njit
def _set_bits(free, rows, cols, costs, width):
    size, first, last = free.shape[1], free.shape[0], 0
    for i in range(len(rows)):
        block, row = _block_of(rows[i], cols[i], size, width), rows[i] % size
        bit = np.uint32(1) << np.uint32(cols[i] % size)
        free[block, row] = free[block, row] | bit if costs[rows[i], cols[i]] > 0 else free[block, row] & ~bit
        first, last = min(first, block), max(last, block)
    return first, last


@njit
def _set_costs(padded, rows, cols, costs):
    first, last = padded.shape[0], 0
    for i in range(len(rows)):
        padded[rows[i] + 1, cols[i] + 1] = costs[rows[i], cols[i]]
        first, last = min(first, rows[i] + 1), max(last, rows[i] + 1)
    return first, last


@njit
def _blocks_near(rows, cols, map_shape, size, width, count):
    near = np.zeros(count, np.bool_)
    for i in range(len(rows)):
        for row in range(max(rows[i] - 1, 0), min(rows[i] + 2, map_shape[0])):
            for col in range(max(cols[i] - 1, 0), min(cols[i] + 2, map_shape[1])):
                near[_block_of(row, col, size, width)] = True
    return np.flatnonzero(near).astype(np.int32)
