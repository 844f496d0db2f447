"""The answers of batches of agents, put together as one PathSet."""

import numpy as np

from ..device import njit
from .agents import AgentStatus, PathSet, check_words, step_bits

SOLVED = int(AgentStatus.SOLVED)


class Answers:
    """Of N agents, who are answered in batches. A batch of all of them is taken as it is, not copied."""

    def __init__(self, count):
        self._count, self._columns, self._words = count, None, []

    def put(self, agents, *columns, words):
        """agents: (M,) who was answered, or a slice; an answer that an agent had before does not count any more

        columns: status (M,) uint8, length (M,) int32, costs of the straight and of the diagonal steps (M,) int64, first (M,) int64
        index into words, the packed steps
        """
        if len(columns[0]) == self._count:
            self._columns, self._words = list(columns), [words]
            return
        if self._columns is None:
            self._columns = self._empty()
        check_words(sum(map(len, self._words)) + len(words))
        *columns, first = columns
        for kept, new in zip(self._columns, (*columns, first + sum(map(len, self._words))), strict=True):
            kept[agents] = new
        self._words.append(np.array(words))  # a copy: it may be page-locked memory, which is scarce

    def _empty(self):
        return [np.zeros(self._count, kind) for kind in (np.uint8, np.int32, np.int64, np.int64, np.int64)]

    def path_set(self, starts, connectivity):
        """starts: (N, 2) int32 [row, col] -> PathSet"""
        status, length, straight, diagonal, first = self._columns or self._empty()
        words = self._words[0] if len(self._words) == 1 else np.concatenate([np.zeros(0, np.uint32), *self._words])
        return PathSet(starts, status, _costs(status, straight, diagonal), length, first, words, step_bits(connectivity))


@njit
def _costs(status, straight, diagonal):
    """(N,) float64 in tile lengths, inf where there is no path."""
    cost = np.full(len(status), np.inf)
    for i in range(len(status)):
        if status[i] == SOLVED:
            cost[i] = straight[i] + np.sqrt(2.0) * diagonal[i]
    return cost
