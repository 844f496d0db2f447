"""The host's side of `prm_growth`: buffers that are kept from query to query, and the calls that let the trees grow."""

import weakref

import numpy as np

from ..team import left_ms
from .prm_growth import H_COUNTS, H_DRAWN, H_FIRST, H_MET, NONE, UNTRIED, Ask, collect, grow, sizes
from .query import dry_query
from .roadmap import Graph

FIRST_CAPACITY = 8192  # nodes of a tree that there is room for at first
ROUNDS = {"cpu": 1, "cuda": 32}  # rounds between two returns to Python, so that Ctrl-C is noticed
_kept = weakref.WeakKeyDictionary()


class Growth:
    """Buffers G and H, see prm_growth, and what calls `grow`."""

    workers = 1

    def __init__(self):
        self.G = self.H = self._A = self._N = None
        self._shape = (0, 0, 0, 0)

    def capacity(self, dof, batch, tried, least):
        """-> nodes of a tree that there is room for, at least `least`; what the buffers held is lost."""
        if self._shape[:3] != (dof, batch, tried) or self._shape[3] < least:
            self._shape = dof, batch, tried, least
            self._allocate(*(int(n) for n in sizes(*self._shape, self.workers)))
        return self._shape[3]


class CpuGrowth(Growth):
    """One worker, one lane."""

    def __init__(self, checker):
        super().__init__()

    def _allocate(self, n_A, n_N, n_G, n_H):
        self._A, self._N = np.empty(n_A, dtype=np.float32), np.zeros(n_N, dtype=np.int32)
        self.G, self.H = np.empty(n_G, dtype=np.float32), np.zeros(n_H, dtype=np.int32)

    def grow(self, checker, ask):
        qa, qb = np.empty((2, ask.dof), dtype=np.float32)
        grow(ask, self._A, self._N, self.G, self.H, *checker.packed_scene, checker.new_scratch(), qa, qb, 0, 1, 0, 0, 1)


class Trees:
    """Two trees of one query.  met: has a motion joined them;  drawn: samples so far

    batch, tried, radius, near, lazy: as Ask has them
    """

    def __init__(self, checker, query, batch, tried, radius, near, lazy, seed):
        dof = len(query.start)
        mode, step = checker.motion_args
        self._checker, self._growth, self._deadline = checker, growth_of(checker), query.deadline
        capacity = self._growth.capacity(dof, batch, tried, max(FIRST_CAPACITY, 2 * batch, 2 * len(query.goals)))
        self._ask = Ask(dof, 1, 1, len(query.goals), 0, 0, batch, tried, capacity, int(lazy), 0, seed, int(mode), np.float32(step),
                        np.float32(radius), np.float32(near))
        self.met, self.drawn = False, 0
        G, H = self._growth.G, self._growth.H
        nodes = G[2 * dof:].reshape(2, capacity, dof)
        G[:dof], G[dof:2 * dof] = query.lower, query.upper
        nodes[0, 0], nodes[1, :len(query.goals)] = query.start, query.goals
        for of in (H[H_FIRST:H_FIRST + 2 * capacity].reshape(2, capacity), H[H_FIRST + 2 * capacity:].reshape(2, capacity, tried)):
            of[0, 0], of[1, :len(query.goals)] = NONE, NONE

    def grow(self, most):
        """Some rounds, up to `most` samples in all."""
        ask, rounds = self._ask, ROUNDS[self._checker.device.partition(":")[0]]
        if max(ask.counts_0, ask.counts_1) + (ask.batch + 1) // 2 > ask.capacity:
            ask = self._double()
        ask = ask._replace(drawn=self.drawn, until=min(most, self.drawn + rounds * ask.batch), left_ms=left_ms(self._deadline))
        self._growth.grow(self._checker, ask)
        H = self._growth.H
        self.met, self.drawn = bool(H[H_MET]), int(H[H_DRAWN])
        self._ask = ask._replace(first=0, counts_0=int(H[H_COUNTS]), counts_1=int(H[H_COUNTS + 1]))

    def graph(self, weights):
        """-> the Graph that has grown, the start first, and the number of the first goal. It has no edges where time was up."""
        ask = self._ask
        return Graph(*collect(ask, self._growth.G, self._growth.H, ask.counts_0, ask.counts_1, weights, self._deadline)), ask.counts_0

    def way(self):
        """-> (K, dof) the way through a motion that joined the trees, along both trees, and the number of its goal: a path
        that is known at once, seldom the shortest."""
        ask, G, H = self._ask, self._growth.G, self._growth.H
        parents, near = H[H_FIRST:H_FIRST + 2 * ask.capacity], H[H_FIRST + 2 * ask.capacity:].reshape(-1, ask.tried)
        for first, count in ((0, ask.counts_0), (ask.capacity, ask.counts_1)):
            edges = near[first:first + count]
            joins = np.argwhere((edges >= 0) & ((edges >= ask.capacity) != (first > 0)))
            if len(joins):
                ends = sorted((first + int(joins[0, 0]), int(edges[tuple(joins[0])])))
                break
        ways = [[end] for end in ends]
        for way in ways:
            while parents[way[-1]] != NONE:
                way.append(int(parents[way[-1]]))
        nodes = G[2 * ask.dof:].reshape(-1, ask.dof)
        return nodes[ways[0][::-1] + ways[1]], ways[1][-1] - ask.capacity

    def _double(self):
        """Twice the room; the trees move over."""
        ask, G, H = self._ask, self._growth.G, self._growth.H
        old, new = ask.capacity, 2 * ask.capacity
        self._growth.capacity(ask.dof, ask.batch, ask.tried, new)
        for source, target, width in ((G[2 * ask.dof:], self._growth.G[2 * ask.dof:], ask.dof),
                                      (_moved(H[H_FIRST:H_FIRST + 2 * old], old), self._growth.H[H_FIRST:H_FIRST + 2 * new], 1),
                                      (_moved(H[H_FIRST + 2 * old:], old), self._growth.H[H_FIRST + 2 * new:], ask.tried)):
            target.reshape(2, new, width)[:, :old] = source.reshape(2, old, width)
        self._growth.G[:2 * ask.dof] = G[:2 * ask.dof]
        return ask._replace(first=2, capacity=new)


def growth_of(checker):
    """The buffers of a checker, compiled code included."""
    if checker not in _kept:
        if checker.device == "cpu":
            growth = CpuGrowth(checker)
        else:
            from .prm_kernels import CudaGrowth

            growth = CudaGrowth(checker)
        nothing = dry_query(checker)
        _kept[checker] = growth
        trees = Trees(checker, nothing, 1, 1, 1.0, 1.0, False, 0)
        trees.grow(0)
        trees.graph(nothing.weights)[0].shortest_path(0, [1], checker)
    return _kept[checker]


def _moved(entries, capacity):
    """Node numbers for twice the capacity."""
    entries = entries.copy()
    tree_1 = entries >= capacity
    untried = entries <= UNTRIED - capacity
    entries[tree_1] += capacity
    entries[untried] -= capacity
    return entries
