"""Planning blocks: square pieces of the map whose side is a power of two ([CE12] section III.A).

Blocks are numbered row by row over the map and a ring of empty blocks around it, so that every block of the map has eight
neighbours: block b's are b - width, b + 1, b + width, b - 1 and the four between.
"""

from dataclasses import dataclass

import numpy as np

from ..errors import SettingsError

BLOCK_SIZES = (4, 8, 16, 32)


@dataclass(frozen=True)
class Blocks:
    """How a map of rows x cols tiles is cut.

    rows, cols: of the map in tiles
    size: side of a block in tiles, one of BLOCK_SIZES
    """

    rows: int
    cols: int
    size: int

    def __post_init__(self):
        if self.size not in BLOCK_SIZES:
            raise SettingsError(f"block_size is {self.size!r}: use one of {BLOCK_SIZES}")

    @property
    def width(self):
        """Blocks in a row, with the ring."""
        return -(-self.cols // self.size) + 2

    @property
    def height(self):
        """Blocks in a column, with the ring."""
        return -(-self.rows // self.size) + 2

    @property
    def count(self):
        """Blocks of the map and of the ring."""
        return self.width * self.height

    def of_tiles(self, rows, cols):
        """-> (block, tile within the block) of tiles; all (N,) int64"""
        size = self.size
        block = (np.asarray(rows, np.int64) // size + 1) * self.width + np.asarray(cols, np.int64) // size + 1
        return block, np.asarray(rows, np.int64) % size * size + np.asarray(cols, np.int64) % size

    def inner(self):
        """(number of blocks without the ring,) int32"""
        return np.arange(self.count, dtype=np.int32).reshape(self.height, self.width)[1:-1, 1:-1].ravel()

    def free_rows(self, free):
        """free (rows, cols) bool -> (count, size) uint32: bit c of [b, r] is set where tile (r, c) of block b is free."""
        padded = np.zeros((self.height * self.size, self.width * self.size), np.uint8)
        padded[self.size : self.size + self.rows, self.size : self.size + self.cols] = free
        octets = np.packbits(padded.reshape(-1, 8), axis=1, bitorder="little") if self.size >= 8 else _nibbles(padded)
        per_row = max(1, self.size // 8)
        octets = octets.reshape(self.height, self.size, self.width, per_row).transpose(0, 2, 1, 3)
        wide = np.zeros((self.count, self.size, 4), np.uint8)
        wide[:, :, :per_row] = octets.reshape(self.count, self.size, per_row)
        return wide.view(np.uint32)[:, :, 0]


def _nibbles(padded):
    return (padded.reshape(-1, 4) * np.array([1, 2, 4, 8], np.uint8)).sum(axis=1, dtype=np.uint8)
