"""Where nobody may be sent: tiles that something may cover, whether the plan has it there or not."""

import numpy as np

from ..action_graph import ActionGraph
from .places import Places

ANYTHING = -1


def between(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Places (2,) in tiles -> (K, 2) places along the line from one to the other, half a tile apart at most"""
    count = int(np.ceil(2 * np.abs(other - one).max())) + 1
    return one + np.linspace(0.0, 1.0, count + 1)[:, None] * (other - one)


class Bars:
    """Tiles that agents keep away from, in an ActionGraph; who bars them itself may enter.

    tiles: (K, 2) that bodies may reach into; owners: (K,) agents, or ANYTHING
    """

    def __init__(self) -> None:
        self.tiles, self.owners = np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
        self._around = self.tiles

    def put(self, graph: ActionGraph, places: Places, near: int, found: list[tuple[np.ndarray, int]]) -> bool:
        """Bar tiles, and open what was barred before. True if the set changed.

        near: agents conflict which differ by so many rows and columns; found: [(tiles (K, 2), owner)]
        """
        tiles = np.concatenate([tiles for tiles, _ in found]) if found else np.zeros((0, 2), np.int64)
        owners = np.repeat([owner for _, owner in found], [len(tiles) for tiles, _ in found]).astype(np.int64)
        if np.array_equal(tiles, self.tiles) and np.array_equal(owners, self.owners):
            return False
        graph.barred[tuple(self._around.T)] = 0
        self.tiles, self.owners = tiles, owners
        everywhere = []
        for owner in np.unique(owners):
            around = tuple(places.around(tiles[owners == owner], near, near).T)
            mark = owner + 1 if owner >= 0 else ANYTHING
            graph.barred[around] = np.where(graph.barred[around] == 0, mark, ANYTHING)
            everywhere.append(np.stack(around, axis=1))
        self._around = np.concatenate(everywhere) if everywhere else np.zeros((0, 2), np.int64)
        return True
