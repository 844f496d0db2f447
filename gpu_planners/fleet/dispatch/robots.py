"""The robots that a call tells of."""

import itertools

import numpy as np

from .task import Name


class Robots:
    """names: N; tiles: (N, 2) int64 [row, col]; headings: (N,) int64, -1: any; sizes: (N,) int64 sides of the squares
    of tiles that they cover; number: {name: its place}"""

    def __init__(self, names: list[Name], tiles: np.ndarray, headings: np.ndarray, sizes: np.ndarray):
        self.names, self.tiles, self.headings, self.sizes = names, tiles, headings, sizes
        self.number: dict[Name, int] = {name: k for k, name in enumerate(names)}


def straight(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """(..., 2), (..., 2) tiles -> (...) moves between them on an empty map"""
    return np.abs(one - other).sum(axis=-1)


def rows_of(rows: list[tuple[float, ...]], dtype: type) -> np.ndarray:
    """(K, C) of tuples, of which there is one at least; faster than np.array"""
    columns = len(rows[0])
    return np.fromiter(itertools.chain.from_iterable(rows), dtype, columns * len(rows)).reshape(-1, columns)
