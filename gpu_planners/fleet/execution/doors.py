"""Doors, and doors of lifts: tiles that nobody is told to enter before they are open.

A door is asked to open when somebody's next tile is behind it, and as long as somebody is on its tiles, or may be.
Plans lead through doors; only what agents may do waits. The car of a lift is a tile, which holds one at a time.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from ...errors import SettingsError, shown
from ..action_graph import ActionGraph
from ..fields.lanes import footprint_free
from .places import Places


class Doors:
    """tiles: {name: (K, 2) tiles}, each door's own; open: names of those that are open. Raises SettingsError."""

    def __init__(self, tiles: Mapping[str, np.ndarray], shape: tuple[int, int]) -> None:
        self.tiles = {name: np.array(each, np.int64).reshape(-1, 2) for name, each in tiles.items()}
        self.open: set[str] = set()
        self.shape = tuple(shape)  # of the map
        self._number = np.zeros(shape, np.int32)  # of each tile's door, from 1
        for k, (name, each) in enumerate(self.tiles.items()):
            inside = ((each >= 0) & (each < shape)).all(axis=1)
            if not len(each) or not inside.all() or self._number[tuple(each.T)].any():
                raise SettingsError(
                    f"door {shown(name)} has the tiles {each.tolist()}; allowed: tiles of its own, on the map"
                )
            self._number[tuple(each.T)] = k + 1

    def tell(self, name: str, is_open: bool) -> None:
        """A door is open from now on, or not. Raises SettingsError."""
        if name not in self.tiles:
            raise SettingsError(f"door {shown(name)} is not known; allowed: {', '.join(self.tiles) or 'none'}")
        (self.open.add if is_open else self.open.discard)(name)

    def shut(self) -> np.ndarray:
        """(rows, cols) bool, tiles of doors that are not open"""
        known = np.array([False, *(name not in self.open for name in self.tiles)])
        return known[self._number]

    def wanted(self, graph: ActionGraph, places: Places) -> Iterable[str]:
        """Names of the doors that have to open, or to stay open."""
        soon = (np.arange(graph.most + 1) <= _next(graph)[:, None]) & graph.there[:, None]
        covered = places.covered(graph.tiles[soon], graph.sizes_of(np.nonzero(soon)[0]))
        found = np.unique(self._number[tuple(covered.T)])
        names = list(self.tiles)
        return [names[k - 1] for k in found.tolist() if k]

    def waited_for(self, graph: ActionGraph) -> np.ndarray:
        """(N,) bool, who is to go through a door that is not open?"""
        states = np.arange(graph.most + 1)
        soon = (states <= _next(graph)[:, None]) & (states > graph.allowed[:, None]) & graph.there[:, None]
        agents, k = np.nonzero(soon)
        waits, shut = np.zeros(len(graph.planned), bool), self.shut()
        for size in set(graph.sizes_of(agents).tolist()):
            some = graph.sizes_of(agents) == size
            closed = ~footprint_free(~shut, size)
            waits[agents[some]] |= closed[tuple(graph.tiles[agents[some], k[some]].T)]
        return waits


def _next(graph):
    """(N,) the last state of each agent for which doors open: the one after all that it may do, or, where that is in a
    no-stopping zone, through which it goes at once or not at all, the one by which it is out again"""
    last, every = np.minimum(graph.allowed + 1, graph.planned), np.arange(len(graph.planned))
    while True:
        goes_on = (last < graph.planned) & graph.no_stop(every, graph.tiles[every, last])
        if not goes_on.any():
            return last
        last = last + goes_on
