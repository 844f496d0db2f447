"""The rows of a large map, of which each rank asks only for those of its band."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...arguments import checked, number, whole
from ...errors import GridMapError, shown
from ...files import read_array
from ..maps.grid_map import GridMap

STRIP = 64  # rows of a generated map that share a generator of random numbers
MOST_SIDE = 2**31 - 1  # rows, or columns: starts and goals are int32
MOST_SEED = 2**63 - 1


@dataclass(frozen=True, eq=False)
@checked(GridMapError)
class MapRows:
    """A map, given by its rows.

    rows, cols: of the whole map in tiles
    read: (first, last) -> (last - first, cols) costs of the rows first .. last - 1: whole numbers, 0 blocked, 1..255
        cost of entering a tile, as of GridMap. It is called for rows in rising order, and must say the same each time
        and on every rank
    """

    rows: int
    cols: int
    read: Callable[[int, int], np.ndarray]

    def __post_init__(self):
        for name in ("rows", "cols"):
            whole(f"number of {name}", getattr(self, name), 1, MOST_SIDE, error=GridMapError)
        if not callable(self.read):
            raise GridMapError(f"read is {shown(self.read)}; allowed: a function (first, last) -> rows")

    @staticmethod
    def of_array(costs: np.ndarray) -> "MapRows":
        """Of anything that has a shape (rows, cols) and can be cut into slices of rows: an array, one in a file
        (`numpy.memmap`), a data set of h5py or zarr."""
        shape = getattr(costs, "shape", None)
        if shape is None or len(shape) != 2:
            raise GridMapError(f"costs has the shape {shape}; allowed: an array (rows, cols)")
        return MapRows(int(shape[0]), int(shape[1]), lambda first, last: costs[first:last])

    @staticmethod
    def of_grid(grid: GridMap) -> "MapRows":
        """Of a map that fits into memory."""
        return MapRows.of_array(grid.costs)

    @staticmethod
    def of_file(path: str | os.PathLike) -> "MapRows":
        """Of a NumPy file (.npy) of costs (rows, cols), uint8, which every rank's machine must see. Only the rows asked
        for are read. Raises GridMapError."""
        costs = read_array(path, "the map", GridMapError, sys.maxsize, mapped=True)
        if costs.ndim != 2 or costs.dtype != np.uint8:
            what = f"an array {costs.shape} of {costs.dtype}"
            raise GridMapError(f"{path} holds {what}; allowed: an array (rows, cols) of uint8 costs")
        return MapRows.of_array(costs)

    @staticmethod
    def random(rows: int, cols: int, density: float = 0.2, seed: int = 0) -> "MapRows":
        """Each tile is an obstacle with probability `density` ([CE12] V). Strips of rows have generators of their own,
        so that the map does not depend on how it is cut; it is another one than that of `random_map`."""
        number("density", density, 0, 1, error=GridMapError)
        whole("seed", seed, 0, MOST_SEED, error=GridMapError)

        def read(first, last):
            begin, end = first // STRIP, -(-last // STRIP)
            costs = np.empty(((end - begin) * STRIP, cols), np.uint8)
            for strip in range(begin, end):
                drawn = np.random.default_rng((seed, strip)).random((STRIP, cols), np.float32)
                costs[(strip - begin) * STRIP :][:STRIP] = drawn >= np.float32(density)
            return costs[first - begin * STRIP :][: last - first]

        return MapRows(rows, cols, read)

    def checked(self, first: int, last: int) -> np.ndarray:
        """-> (last - first, cols) uint8 of the rows first .. last - 1, looked at. Raises GridMapError."""
        if not 0 <= first < last <= self.rows:
            raise GridMapError(f"rows {shown(first)} .. {shown(last)} were asked for; allowed: from 0 to {self.rows}")
        costs = self.read(first, last)
        if getattr(costs, "shape", None) != (last - first, self.cols):
            raise GridMapError(
                f"rows {first} .. {last - 1} of the map have the shape {getattr(costs, 'shape', None)}; allowed: "
                f"({last - first}, {self.cols})"
            )
        if costs.dtype == np.uint8:
            return costs
        try:
            return GridMap(costs).costs
        except GridMapError as error:
            raise GridMapError(f"rows {first} .. {last - 1} of the map, counted from 0: {error}") from None


def read_rows(source: MapRows, first: int, last: int, tiles_a_time: int = 1 << 22) -> np.ndarray:
    """-> (last - first, cols) uint8, read piece by piece"""
    costs = np.empty((last - first, source.cols), np.uint8)
    step = max(STRIP, tiles_a_time // source.cols // STRIP * STRIP)
    row = first
    while row < last:
        end = min(last, (row // step + 1) * step)
        costs[row - first : end - first] = source.checked(row, end)
        row = end
    return costs
