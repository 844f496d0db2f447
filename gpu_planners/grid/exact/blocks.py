"""Planning blocks: square pieces of the map whose side is a power of two ([CE12] section III.A), and fields' arrays.

Blocks are numbered row by row over the map and a ring of empty blocks around it, so that every block of the map has
eight neighbours: those of block b are b - width, b + 1, b + width, b - 1 and the four between.
"""

import itertools
import math
import numbers
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...device import njit
from ...errors import SettingsError, shown
from ..maps.grid_map import GridMap

BLOCK_SIZES = (4, 8, 16, 32)
# layouts of fields
BITS = 0  # `bits`, for uniform 4-connected maps
VALUES = 1  # `values`, for all others
QUEUE_ROWS = 5  # see `rounds`
CHANGED = 256  # in an answer, beside the bits 0 to 7 of the neighbours: something in the block has changed
# direction codes beside the moves 0 to 7
AT_GOAL = 8
NOWHERE = 15


def inner_njit(function, **options):
    """lean_njit for what only compiled code calls: without the code that unpacks Python's arguments, of which a record
    of many arrays needs more than most functions here."""
    return njit(function, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)


class Kind(NamedTuple):
    """The sizes of blocks as a type, so that the compiler knows them: they are the lengths of two tuples."""

    shift: tuple  # as many () as a tile's row in a block has bits: 2 to 5
    moves: tuple  # 4 or 8 ()


def kind_of(size: int, connectivity: int) -> Kind:
    """The Kind of blocks whose side has so many tiles."""
    return Kind(((),) * (size.bit_length() - 1), ((),) * connectivity)


@inner_njit
def size_of(kind):
    """-> tiles along a block's side"""
    return 1 << len(kind.shift)


@inner_njit
def octile(kind):
    """Are there diagonal moves?"""
    return len(kind.moves) == 8


class Visit(NamedTuple):
    """A block of one goal's field, on which a worker works."""

    item: int  # slot * blocks + block
    slot: int  # of the goal's field
    block: int  # its number
    seed: int  # the goal's tile in the block, row * size + column; -1: the goal lies in another block
    odd: int  # parity of the distance of the block's tile (0, 0)


@inner_njit
def bits_of(flags):
    """-> int32, bit k set where flag k of a tuple is true"""
    bits = np.int32(0)
    for k in range(len(flags)):
        bits = np.int32(bits | np.int32(flags[k]) << np.int32(k))
    return bits


def checked_size(size: float) -> int:
    """A block size. Raises SettingsError."""
    if not isinstance(size, numbers.Real) or size not in BLOCK_SIZES:
        raise SettingsError(f"block_size is {shown(size)}: use one of {', '.join(map(str, BLOCK_SIZES))}")
    return BLOCK_SIZES[BLOCK_SIZES.index(size)]


@dataclass(frozen=True)
class Blocks:
    """How a map of rows x cols tiles is cut.

    rows, cols: of the map in tiles
    size: side of a block in tiles, one of BLOCK_SIZES
    """

    rows: int
    cols: int
    size: int

    @property
    def width(self) -> int:
        """Blocks in a row, with the ring."""
        return -(-self.cols // self.size) + 2

    @property
    def height(self) -> int:
        """Blocks in a column, with the ring."""
        return -(-self.rows // self.size) + 2

    @property
    def count(self) -> int:
        """Blocks of the map and of the ring."""
        return self.width * self.height

    def of_tiles(self, rows: ArrayLike, cols: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """The block of each tile, and the tile's number row * size + column in it. All (N,) int64"""
        size = self.size
        block = (np.asarray(rows, np.int64) // size + 1) * self.width + np.asarray(cols, np.int64) // size + 1
        return block, np.asarray(rows, np.int64) % size * size + np.asarray(cols, np.int64) % size

    def inner(self) -> np.ndarray:
        """The numbers of the blocks without the ring, (N,) int32."""
        return np.arange(self.count, dtype=np.int32).reshape(self.height, self.width)[1:-1, 1:-1].ravel()

    def free_rows(self, free: np.ndarray) -> np.ndarray:
        """(count, size) uint32: bit c of [b, r] is set where tile (r, c) of block b is free. free: (rows, cols) bool"""
        padded = np.zeros((self.height * self.size, self.width * self.size), np.uint8)
        padded[self.size : self.size + self.rows, self.size : self.size + self.cols] = free
        octets = np.packbits(padded.reshape(-1, min(8, self.size)), axis=1, bitorder="little")
        per_row = max(1, self.size // 8)
        octets = octets.reshape(self.height, self.size, self.width, per_row).transpose(0, 2, 1, 3)
        wide = np.zeros((self.count, self.size, 4), np.uint8)
        wide[:, :, :per_row] = octets.reshape(self.count, self.size, per_row)
        return wide.view(np.uint32)[:, :, 0]


@dataclass(frozen=True)
class FieldShape:
    """The arrays of a map's fields, and how the map lies in them.

    layout: BITS or VALUES;  blocks: of the map;  connectivity: 4 or 8
    """

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
        costs, changed = grid.costs[rows, cols], rows + 1
        if self.layout == VALUES:
            array[changed, cols + 1] = costs
        else:
            (changed, tiles), size = self.blocks.of_tiles(rows, cols), self.blocks.size
            at, bits = (changed, tiles // size), np.uint32(1) << (tiles % size).astype(np.uint32)
            np.bitwise_and.at(array, at, ~bits)
            np.bitwise_or.at(array, at, np.where(costs > 0, bits, np.uint32(0)))
        return int(changed.min()), int(changed.max())

    def blocks_near(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """The blocks of some tiles (N,) and of the tiles beside them -> (n,) int32"""
        blocks, size = self.blocks, self.blocks.size  # three tiles in a row lie in two blocks at most
        above, below = np.maximum(rows - 1, 0) // size, np.minimum(rows + 1, blocks.rows - 1) // size
        left, right = np.maximum(cols - 1, 0) // size, np.minimum(cols + 1, blocks.cols - 1) // size
        near = np.zeros(blocks.count, bool)
        for row, col in itertools.product((above, below), (left, right)):
            near[(row + 1) * blocks.width + col + 1] = True
        return np.flatnonzero(near).astype(np.int32)

    def field_shapes(self, slots: int) -> dict:
        """-> {name: (shape, type)} of the arrays of so many fields

        values: `bits` of BITS, `value` of VALUES; edge: of BITS; goals: as of `rounds.Request`; queue: see `rounds`
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
