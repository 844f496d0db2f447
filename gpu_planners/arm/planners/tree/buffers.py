"""The two buffers of a tree: how a query begins, how they grow, and on the CPU what lets the tree grow."""

from typing import Any

import numpy as np

from ....device import njit
from ....parallel.layout import on_host
from ....parallel.team import Worker, borrowed, deadline_in
from ...spaces.interface import space_of
from ..node_store import new_desk, whole_tiles
from .growth import grow
from .state import INT_HEAD, Growth, TreeAsk, TreeBoard, TreeJob, growth_sizes, open_board, open_growth, tree_end

growth_on_host = on_host(open_growth)


class TreeBuffers:
    """The two buffers of a Growth, in the host's memory.

    floats, ints: the beginnings of both, as the last rounds left them
    """

    checker: Any
    ask: TreeAsk
    floats: np.ndarray
    ints: np.ndarray

    def begin(self, checker, ask: TreeAsk, floats: np.ndarray, ints: np.ndarray) -> None:
        """A new tree, whose buffers begin so."""
        self.checker, self.ask = checker, ask
        self._hosts = self._allocate(*growth_sizes(ask))
        self.floats, self.ints = self._hosts[0][: len(floats)], self._hosts[1][:INT_HEAD]
        self.floats[:], self.ints[:] = floats, ints
        self._send(len(floats), INT_HEAD)

    def make_room(self, nodes: int) -> None:
        """For so many nodes in all."""
        if nodes > self.ask.capacity:
            kept, floats, ints = [part.copy() for part in self.growth().tree], self.floats.copy(), self.ints.copy()
            larger = self.ask._replace(capacity=whole_tiles(max(nodes, 2 * self.ask.capacity)))
            ints[1 + TreeAsk._fields.index("capacity")] = larger.capacity
            self.begin(self.checker, larger, floats, ints)
            for values, part in zip(kept, growth_on_host(*self._hosts).tree):
                part[: len(values)] = values
            self._send(*map(len, self._hosts))

    @property
    def board(self) -> TreeBoard:
        """As the last rounds left it."""
        return open_board.py_func(self.floats, self.ints)

    def growth(self) -> Growth:
        """All of it, as the last rounds left it."""
        self._fetch(*tree_end(self.ask))
        return growth_on_host(*self._hosts)

    def _allocate(self, n_floats, n_ints):
        """Memory is only touched as far as the tree grows."""
        self._desk = new_desk(space_of(self.checker), int(self.ask.dof))
        return np.empty(n_floats, dtype=np.float32), np.empty(n_ints, dtype=np.int32)

    def _send(self, n_floats, n_ints):
        """Bring the beginnings of both to where the tree grows."""

    def _fetch(self, n_floats, n_ints):
        """Bring the beginnings of both to the host."""

    def grow(self, rounds: int, left_ms: int, seed: np.uint64) -> None:
        """Some rounds of samples, for at most so long."""
        _grow(*self._hosts, rounds, left_ms, seed, self._desk)


@njit
def _grow(floats, ints, rounds, left_ms, seed, desk):
    worker = Worker(0, 1, 0, 0, 1, borrowed(ints), borrowed(ints))
    growth = open_growth(borrowed(floats), borrowed(ints))
    grow(TreeJob(growth, borrowed(desk), seed, deadline_in(left_ms), worker), rounds)
