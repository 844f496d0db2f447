"""The two buffers of a tree on the host: how a query begins, how they grow, and on the CPU what lets the tree grow."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ....device import njit
from ....parallel.team import Worker, borrowed, deadline_in
from ...spaces.interface import space_of
from ..node_store import new_desk, whole_tiles
from .growth import grow
from .state import INT_HEAD, Ask, Board, Growth, Job, growth_sizes, new_ints, open_board, open_growth


class Buffers:
    """The two buffers of a Growth and what works on them.

    floats, ints: the beginning of both on the host: after `grow` as it left them
    begin(checker, ask, floats, ints): a new tree; grow(rounds, left_ms, seed): some rounds; growth(): all of it, on the
    host
    """

    checker: Any
    ask: Ask
    floats: np.ndarray
    ints: np.ndarray
    begin: Callable
    growth: Callable
    put: Callable

    def start(self, checker, ask: Ask, floats: np.ndarray) -> None:
        """A new tree. floats: the beginning of the float32 buffer, up to the points."""
        self.begin(checker, ask, floats, new_ints(ask))

    def make_room(self, nodes: int) -> None:
        """For so many nodes in all."""
        if nodes > self.ask.capacity:
            kept, floats, ints = [part.copy() for part in self.growth().tree], self.floats.copy(), self.ints.copy()
            larger = self.ask._replace(capacity=whole_tiles(max(nodes, 2 * self.ask.capacity)))
            ints[1 : 1 + len(larger)] = larger
            self.begin(self.checker, larger, floats, ints)
            self.put(kept)

    @property
    def board(self) -> Board:
        """As the last rounds left it."""
        return open_board.py_func(self.floats, self.ints)

    def sizes(self, ask: Ask) -> tuple[int, int]:
        """Lengths of both buffers."""
        return growth_sizes(ask.dof, ask.goals, ask.capacity, ask.batch)


def growth_on_host(floats: np.ndarray, ints: np.ndarray) -> Growth:
    """The two buffers as a Growth of views. Compiled code would hand whole arrays to Python (`lean_njit`)."""
    return open_growth.py_func(floats, ints)._replace(board=open_board.py_func(floats, ints))


class CpuBuffers(Buffers):
    """In the host's memory; one thread grows the tree."""

    def begin(self, checker, ask: Ask, floats: np.ndarray, ints: np.ndarray) -> None:
        """New buffers; memory is only touched as far as the tree grows."""
        self.checker, self.ask, self._desk = checker, ask, new_desk(space_of(checker), ask.dof)
        n_floats, n_ints = self.sizes(ask)
        self._floats, self._ints = np.empty(n_floats, dtype=np.float32), np.empty(n_ints, dtype=np.int32)
        self.floats, self.ints = self._floats[: len(floats)], self._ints[:INT_HEAD]
        self.floats[:], self.ints[:] = floats, ints

    def put(self, kept: list[np.ndarray]) -> None:
        """The parts of a smaller tree move over."""
        for values, part in zip(kept, self.growth().tree):
            part[: len(values)] = values

    def grow(self, rounds: int, left_ms: int, seed: np.uint64) -> None:
        """Some rounds of samples, for at most so long."""
        _grow(self._floats, self._ints, rounds, left_ms, seed, self._desk)

    def growth(self) -> Growth:
        """The buffers as a Growth."""
        return growth_on_host(self._floats, self._ints)


@njit
def _grow(floats, ints, rounds, left_ms, seed, desk):
    worker = Worker(0, 1, 0, 0, 1, borrowed(ints), borrowed(ints))
    growth = open_growth(borrowed(floats), borrowed(ints))
    grow(Job(growth, borrowed(desk), seed, deadline_in(left_ms), worker), rounds)
