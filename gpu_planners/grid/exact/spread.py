"""Plans of many goals that workers share: each plans the fields of some goals, and its agents' paths."""

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np

from ...distributed.executors import Split, devices_of, least_on, spread
from ...distributed.progress import Progress
from ..maps.grid_map import GridMap
from ..paths import PathSet, check_words, step_bits
from .fields import Exact, Settings


class SharedMap:
    """The map and how it is planned on, which each worker gets once; it keeps the engine that it makes for it."""

    def __init__(self, grid: GridMap, block_size: int, settings: Settings):
        self._made_of = grid, block_size, settings
        self._engines: dict[str, Exact] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"_made_of": self._made_of, "_engines": {}}

    def engine(self, device: str) -> Exact:
        """On a device: made once."""
        if device not in self._engines:
            grid, block_size, settings = self._made_of
            self._engines[device] = Exact(grid, block_size, device, settings)
        return self._engines[device]


def plan_spread(
    engine: Exact,
    grid: GridMap,
    starts: np.ndarray,
    goals: np.ndarray,
    executor: Executor | None,
    devices: str | Sequence[str] | None,
    progress: Progress | None,
) -> PathSet:
    """`Exact.plan` by workers. engine: whose settings count; grid: its map; executor, devices, progress: as `spread`
    takes them, None: the engine's kind of device"""
    keys, which = np.unique(goals[:, 0].astype(np.int64) * grid.cols + goals[:, 1], return_inverse=True)
    order = np.argsort(which, kind="stable")
    firsts = np.searchsorted(which[order], np.arange(len(keys) + 1))  # of each goal's agents, in `order`
    shared, names = SharedMap(grid, engine.block_size, engine.settings), devices_of(devices, engine.device)

    def cut(first: int, last: int) -> tuple:
        agents = order[firsts[first] : firsts[last]]
        return starts[agents], goals[agents]

    split = Split("goals", len(keys), cut, _plan, shared, least_on(names))
    return _joined(list(spread(split, executor, names, progress)), starts, order, grid)


def _plan(shared, piece, device):
    return shared.engine(device).plan(*piece)


def _joined(parts: list[PathSet], starts, order, grid):
    """The PathSet of all agents. order: (N,) agents in the order in which the parts have them"""
    n = len(starts)
    status, cost = np.empty(n, np.uint8), np.empty(n)
    length, first = np.empty(n, np.int32), np.empty(n, np.int64)
    begin, words = 0, 0
    for part in parts:
        agents = order[begin : begin + len(part)]
        status[agents], cost[agents], length[agents] = part.status, part.cost, part.length
        first[agents] = part.first + words
        begin, words = begin + len(part), words + len(part.words)
        check_words(words)
    packed = np.concatenate([np.zeros(0, np.uint32), *(part.words for part in parts)])
    return PathSet(starts, status, cost, length, first, packed, step_bits(grid.connectivity))
