"""The host's side of `growth`: the calls that let two trees grow, their graph, and their path."""

from typing import Any

import numpy as np

from ....parallel.sampling import halves
from ....parallel.team import left_ms
from ..blocked import read_log
from ..host import alone, host_for
from ..message import head_of
from ..node_store import whole_tiles
from ..query import Query, dry_query, warm_once
from .growth import (
    CALL_FLOATS,
    CALL_INTS,
    NONE,
    UNTRIED,
    GrowthCall,
    Report,
    grow_trees,
    message_sizes,
    open_report,
    own_sizes,
    write_call,
)
from .roadmap import Graph, collect
from .settings import Settings

FIRST_CAPACITY = 8192  # nodes of a tree that there is room for at first
ROUNDS = {"cpu": 1, "cuda": 32}  # rounds between two returns to Python, so that Ctrl-C is noticed


class GrowingTrees:
    """Two trees of one query.  met: has a motion joined them;  drawn: samples so far

    batch: samples of a round
    """

    def __init__(self, query: Query, settings: Settings, batch: int, seed: int):
        goals, checker = len(query.goals), query.checker
        self._checker, self._deadline = checker, query.deadline
        self._host = host_for(checker, grow_trees)
        low, high = halves(seed)
        ask = GrowthCall(
            **head_of(checker),
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
            seed_low=low,
            seed_high=high,
            radius=np.float32(settings.radius),
            near=np.float32(settings.near),
        )
        self.met, self.drawn = False, 0
        self._allocate(ask, np.concatenate([query.lower, query.upper]))
        self._report.log_seen[:] = 0
        nodes, parents, neighbours = _by_tree(ask, self._report)
        nodes[0, 0], nodes[1, :goals] = query.start, query.goals
        for of in (parents, neighbours):
            of[0, 0], of[1, :goals] = NONE, NONE

    def _allocate(self, ask, bounds):
        """Room for the trees of a GrowthCall; what the buffers held is lost."""
        self._message = floats, ints = self._host.message(*message_sizes(ask))
        self._host.memory(*own_sizes(ask, self._host.workers))
        report = open_report.py_func(floats[CALL_FLOATS:], ints[CALL_INTS:], ask.dof, ask.tried, ask.capacity)
        self._ask, self._report = ask, report
        self._report.bounds[:] = bounds

    def grow(self, most: int) -> None:
        """Some rounds, up to `most` samples in all."""
        ask, rounds = self._ask, ROUNDS[self._checker.device.partition(":")[0]]
        if max(ask.counts_0, ask.counts_1) + (ask.batch + 1) // 2 > ask.capacity:
            self._double()
        until = min(most, self.drawn + rounds * ask.batch)
        ask = self._ask._replace(drawn=self.drawn, until=until, left_ms=left_ms(self._deadline))
        write_call(*self._message, **ask._asdict())
        self._host.run(self._checker)
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

    def log(self) -> dict[str, Any]:
        """The blocked extensions, as `read_log` has them."""
        return read_log(self._report)

    def _double(self):
        """Twice the room; the trees move over."""
        old, kept = self._ask, Report(*(part.copy() for part in self._report))
        for numbers in (kept.parents, kept.neighbours):  # of nodes, for twice the capacity
            tree_1, untried = numbers >= old.capacity, numbers <= UNTRIED - old.capacity
            numbers[tree_1] += old.capacity
            numbers[untried] -= old.capacity
        self._allocate(old._replace(first=2, capacity=2 * old.capacity), kept.bounds)
        for part, values in zip(_by_tree(self._ask, self._report), _by_tree(old, kept)):
            part[:, : old.capacity] = values
        for part, values in zip(self._report[-3:], kept[-3:]):  # the log
            part[:] = values


def warm_up_trees(checker) -> None:
    """Compile the growth for a kind of checker, or load it from the cache, before the clock of a query starts."""

    def run():
        nothing = dry_query(checker)
        with alone(checker, grow_trees):
            trees = GrowingTrees(nothing, Settings(connections=1), 1, 0)
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
