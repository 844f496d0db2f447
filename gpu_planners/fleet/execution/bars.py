"""Where nobody may be sent: tiles that something may cover, whether the plan has it there or not."""

import numpy as np

from ..action_graph import ActionGraph
from ..fields.lanes import too_near
from .places import Places

ANYTHING = -1


def between(one: np.ndarray, other: np.ndarray, most: float) -> np.ndarray:
    """Places (2,) in tiles -> (K, 2) places along the line from one to the other, half a tile apart at most; of a line
    longer than `most` tiles so much of it"""
    way = other - one
    way = way * min(1.0, most / max(np.abs(way).max(), 1e-9))
    count = int(np.ceil(2 * np.abs(way).max())) + 1
    return one + np.linspace(0.0, 1.0, count + 1)[:, None] * way


class Bars:
    """Tiles that agents keep away from, in an ActionGraph; who bars them itself may enter.

    tiles: (K, 2) of bodies that may be there; owners: (K,) agents, or ANYTHING; sizes: (K,) of the bodies
    """

    def __init__(self) -> None:
        self.tiles, self.owners = np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
        self.sizes = self.owners
        self._around = np.zeros((0, 3), np.int64)

    def put(self, graph: ActionGraph, places: Places, apart: int, found: list[tuple[np.ndarray, int, int]]) -> bool:
        """Bar tiles, and open what was barred before. True if the set changed.

        apart: tiles that stay free between agents; found: [(tiles (K, 2), owner, size)]
        """
        tiles = np.concatenate([tiles for tiles, *_ in found]) if found else np.zeros((0, 2), np.int64)
        numbers = np.array([more for _, *more in found], np.int64).reshape(-1, 2)
        owners, sizes = np.repeat(numbers, [len(tiles) for tiles, *_ in found], axis=0).T
        if all(map(np.array_equal, (tiles, owners, sizes), (self.tiles, self.owners, self.sizes))):
            return False
        graph.barred[tuple(self._around.T)] = 0
        self.tiles, self.owners, self.sizes = tiles, owners, sizes
        everywhere = [np.zeros((0, 3), np.int64)]
        for owner, size in np.unique(np.stack([owners, sizes], axis=1), axis=0).tolist():
            own, mark = tiles[(owners == owner) & (sizes == size)], owner + 1 if owner >= 0 else ANYTHING
            for kind, one in enumerate(graph.sizes):
                around = places.around(own, too_near(one, size, apart), too_near(size, one, apart))
                at = np.insert(around, 0, kind, axis=1)
                graph.barred[tuple(at.T)] = np.where(graph.barred[tuple(at.T)] == 0, mark, ANYTHING)
                everywhere.append(at)
        self._around = np.concatenate(everywhere)
        return True
