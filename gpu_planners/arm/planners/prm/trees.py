"""The host's side of `growth`: the calls that let two trees grow, their graph, and their path."""

from typing import Any

import numpy as np

from ....device import njit
from ....parallel.team import Worker, borrowed, deadline_in, left_ms
from ...spaces.interface import space_of
from ..node_store import new_desk, whole_tiles
from ..query import Query, dry_query
from ..warm import warm_once
from .growth import grow
from .roadmap import Graph, collect
from .settings import Settings
from .state import NONE, UNTRIED, GrowthCall, Report, buffer_sizes, open_job, open_report

FIRST_CAPACITY = 8192  # nodes of a tree that there is room for at first
ROUNDS = {"cpu": 1, "cuda": 32}  # rounds between two returns to Python, so that Ctrl-C is noticed


class GrowingTrees:
    """Two trees of one query.  met: has a motion joined them;  drawn: samples so far

    batch: samples of a round
    """

    def __init__(self, checker, query: Query, settings: Settings, batch: int, seed: int):
        goals = len(query.goals)
        self._checker, self._deadline = checker, query.deadline
        if checker.device == "cpu":
            self._buffers: Any = PrmOnCpu()
        else:
            from .cuda import cuda_buffers

            self._buffers = cuda_buffers(checker.device, checker.scratch_sizes)
        self._ask = GrowthCall(
            dof=len(query.start),
            first=1,
            counts_0=1,
            counts_1=goals,
            drawn=0,
            until=0,
            batch=batch,
            tried=settings.connections,
            capacity=whole_tiles(max(FIRST_CAPACITY, 2 * batch, 2 * goals)),
            lazy=int(settings.lazy),
            left_ms=0,
            seed=seed,
            radius=np.float32(settings.radius),
            near=np.float32(settings.near),
        )
        self.met, self.drawn = False, 0
        self._buffers.allocate(self._ask)
        self._report = self._buffers.report(self._ask)
        self._report.bounds[:] = np.concatenate([query.lower, query.upper])
        nodes, parents, neighbours = _by_tree(self._ask, self._report)
        nodes[0, 0], nodes[1, :goals] = query.start, query.goals
        for of in (parents, neighbours):
            of[0, 0], of[1, :goals] = NONE, NONE

    def grow(self, most: int) -> None:
        """Some rounds, up to `most` samples in all."""
        ask, rounds = self._ask, ROUNDS[self._checker.device.partition(":")[0]]
        if max(ask.counts_0, ask.counts_1) + (ask.batch + 1) // 2 > ask.capacity:
            ask = self._double()
        until = min(most, self.drawn + rounds * ask.batch)
        ask = ask._replace(drawn=self.drawn, until=until, left_ms=left_ms(self._deadline))
        self._buffers.grow(self._checker, ask)
        report = self._report
        self.met, self.drawn = bool(report.met[0]), int(report.drawn[0])
        self._ask = ask._replace(first=0, counts_0=int(report.counts[0]), counts_1=int(report.counts[1]))

    def graph(self, weights: np.ndarray) -> tuple[Graph, int]:
        """-> the Graph that has grown, the start first, and the first goal's number. If time is up, it has no edges."""
        return Graph(*collect(self._ask, self._report, weights, self._deadline)), self._ask.counts_0

    def way(self) -> tuple[np.ndarray, int]:
        """-> (K, dof) the way through a motion that joined the trees, along both trees, and the number of its goal: a
        path that is known at once, seldom the shortest."""
        ask, parents, edges = self._ask, self._report.parents, self._report.neighbours.reshape(-1, self._ask.tried)
        for first, count in ((0, ask.counts_0), (ask.capacity, ask.counts_1)):
            near = edges[first : first + count]
            joins = np.argwhere((near >= 0) & ((near >= ask.capacity) != (first > 0)))
            if len(joins):
                ends = sorted((first + int(joins[0, 0]), int(near[tuple(joins[0])])))
                break
        ways = [[end] for end in ends]
        for way in ways:
            while parents[way[-1]] != NONE:
                way.append(int(parents[way[-1]]))
        return self._report.nodes.reshape(-1, ask.dof)[ways[0][::-1] + ways[1]], ways[1][-1] - ask.capacity

    def _double(self):
        """Twice the room; the trees move over."""
        old, ask = self._ask, self._ask._replace(first=2, capacity=2 * self._ask.capacity)
        kept = Report(*(part.copy() for part in self._report))
        self._buffers.allocate(ask)
        self._report = self._buffers.report(ask)
        self._report.bounds[:] = kept.bounds
        moved = {name: _moved(getattr(kept, name), old.capacity) for name in ("parents", "neighbours")}
        for part, values in zip(_by_tree(ask, self._report), _by_tree(old, kept._replace(**moved))):
            part[:, : old.capacity] = values
        return ask


def warm_up(checker) -> None:
    """Compile the growth for a kind of checker, or load it from the cache, before the clock of a query starts."""

    def run():
        nothing = dry_query(checker)
        trees = GrowingTrees(checker, nothing, Settings(connections=1), 1, 0)
        trees.grow(0)
        trees.graph(nothing.weights)[0].shortest_path(0, [1], checker)

    warm_once("prm", checker, run)


def _by_tree(ask, report):
    """-> nodes (2, capacity, dof), parents (2, capacity), neighbours (2, capacity, tried): views of the report."""
    return (
        report.nodes.reshape(2, ask.capacity, ask.dof),
        report.parents.reshape(2, ask.capacity),
        report.neighbours.reshape(2, ask.capacity, ask.tried),
    )


def _moved(entries, capacity):
    """Node numbers for twice the capacity."""
    entries = entries.copy()
    tree_1, untried = entries >= capacity, entries <= UNTRIED - capacity
    entries[tree_1] += capacity
    entries[untried] -= capacity
    return entries


class PrmOnCpu:
    """New for each query: memory is only touched as far as the trees grow. One worker, one lane."""

    def allocate(self, ask: GrowthCall) -> None:
        """Room for the trees of a query; what the buffers held is lost."""
        n_floats, n_ints, n_told, n_found = buffer_sizes(ask, 1)
        self._floats, self._ints = np.empty(n_floats, dtype=np.float32), np.empty(n_ints, dtype=np.int32)
        self._told, self._found = np.empty(n_told, dtype=np.float32), np.empty(n_found, dtype=np.int32)

    def report(self, ask: GrowthCall) -> Report:
        """What host and compiled code tell each other."""
        return open_report.py_func(self._told, self._found, ask.dof, ask.tried, ask.capacity)

    def grow(self, checker, ask: GrowthCall) -> None:
        """Some rounds."""
        desk = new_desk(space_of(checker), ask.dof)
        _grow(ask, self._floats, self._ints, self._told, self._found, desk)


@njit
def _grow(ask, floats, ints, told, found, desk):
    worker = Worker(0, 1, 0, 0, 1, borrowed(ints), borrowed(ints))
    buffers = borrowed(floats), borrowed(told), borrowed(found)
    grow(open_job(ask, buffers, borrowed(desk), deadline_in(ask.left_ms), worker))
