"""The answers of batches of agents, put together as one PathSet."""

import numpy as np

from ...device import njit
from ...grid.paths import SOLVED, PathSet, check_words, step_bits


class Answers:
    """Answers of N agents, batch by batch. A batch of all agents is kept without a copy."""

    def __init__(self, count: int):
        self._count = count
        self._columns: list[np.ndarray] | None = None
        self._words: list[np.ndarray] = []

    def put(self, agents: np.ndarray | slice, *columns: np.ndarray, words: np.ndarray):
        """Take the answers of a batch, in place of earlier ones of its agents.

        agents: (M,) who was answered, or a slice
        columns: status (M,) uint8, length (M,) int32, costs of the straight and of the diagonal steps (M,) int64, first
        (M,) int64 index into words, the packed steps
        """
        if len(columns[0]) == self._count:
            self._columns, self._words = list(columns), [words]
            return
        if self._columns is None:
            self._columns = self._empty()
        check_words(sum(map(len, self._words)) + len(words))
        *others, first = columns
        for kept, new in zip(self._columns, (*others, first + sum(map(len, self._words))), strict=True):
            kept[agents] = new
        self._words.append(np.array(words))  # a copy: it may be page-locked memory, which is scarce

    def _empty(self):
        return [np.zeros(self._count, kind) for kind in (np.uint8, np.int32, np.int64, np.int64, np.int64)]

    def path_set(self, starts: np.ndarray, connectivity: int) -> PathSet:
        """All answers. starts: (N, 2) int32 [row, col]"""
        status, length, straight, diagonal, first = self._columns or self._empty()
        words = self._words[0] if len(self._words) == 1 else np.concatenate([np.zeros(0, np.uint32), *self._words])
        return PathSet(
            starts, status, _costs(status, straight, diagonal), length, first, words, step_bits(connectivity)
        )


@njit
def _costs(status, straight, diagonal):
    """(N,) float64 in tile lengths, inf where there is no path."""
    cost = np.full(len(status), np.inf)
    for i in range(len(status)):
        if status[i] == SOLVED:
            cost[i] = straight[i] + np.sqrt(2.0) * diagonal[i]
    return cost
