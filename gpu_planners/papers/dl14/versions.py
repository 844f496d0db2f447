"""The three parallelizations of [DL14] section 3.2. Every worker holds its own graph and asks for motions on its own.

1   Everybody draws its own samples and checks their motions. New nodes are exchanged after each round, edges at the
end.
2   Everybody draws the same samples from the same seed. Their motions are split, and only the answers are exchanged.
3   As 2, with two rounds under way: while the device checks one, the next is drawn, on the graph without the first.

Workers are threads that share one device, which answers one request after the other, or MPI ranks with a device each.
Graphs are the same in all workers, since all append the same nodes in the same order.
"""

import functools
import zlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from ...arm.planners.prm.block_index import nearest
from ...arm.planners.prm.roadmap import FREE, Roadmap
from ...arm.planners.prm.settings import Settings
from ...arm.planners.query import Query, in_pieces
from ...device import njit
from ...distributed.exchange import Exchange, run
from ...errors import RanksError
from ...parallel.sampling import sample, uniform01
from ...parallel.team import NEVER, clock_ns

ROUNDED = np.float32(1.0001)  # a sample that was moved to the radius is within it, whatever the rounding
DIFFERENT = "their processors round differently, or their versions of gpu_planners, Numba or NumPy differ"


class Drawing(NamedTuple):
    """How samples of p_G are drawn. lower, upper: (dof,) float32; tried: nodes of a tree that a sample is tried with"""

    lower: np.ndarray
    upper: np.ndarray
    radius: np.float32
    near: np.float32
    tried: int
    deadline: int


@functools.cache
def warm_up() -> None:
    """Compile what a version needs, or load it from the cache, before the clock of a query starts."""
    lower, upper = np.array([[0], [1]], dtype=np.float32)
    roadmap, one = Roadmap(lower, upper, np.ones(1), 0), np.float32(1)
    roadmap.add_nodes([[0]])
    how = Drawing(roadmap.nodes[0], roadmap.nodes[0], one, one, 1, NEVER)
    _draw(roadmap.blocks, roadmap.nodes, np.zeros(1, dtype=np.int32), np.uint64(0), 0, 1, how)


def grow_by_version(
    query: Query, checker, settings: Settings, seed: int, batch: int, ranks: Exchange | None = None
) -> tuple[np.ndarray | None, int, int]:
    """-> path (K, dof) or None, number of its goal, samples.

    settings: of prm;  batch: samples a round, of all workers together;  ranks: this process is one worker, the others
        are elsewhere; none: `settings.workers` threads
    """
    work = partial(
        {1: _own_samples, 2: _same_samples, 3: _same_samples}[settings.version],
        query=query,
        settings=settings,
        seed=np.uint64(seed),
        batch=batch,
    )
    with ThreadPoolExecutor(1) as device:

        def ask(graph, pairs):
            """pairs: (P, dof) configurations and (P,) nodes -> Future of (P,) bool; what found no time is False"""
            return device.submit(known, pairs[0], graph.nodes[pairs[1]])

        def known(q_from, q_to):
            free = in_pieces(checker.motions_valid, query.deadline, q_from, q_to)
            return np.concatenate([free, np.zeros(len(q_from) - len(free), dtype=bool)])

        return run(settings.workers, lambda each: work(each, ask))[0] if ranks is None else work(ranks, ask)


class _Graph:
    """The roadmap of one query as a worker holds it.  labels: (n,) int32, 0 in the start's tree, 1 in the goals'"""

    def __init__(self, query, tried):
        self.roadmap = Roadmap(query.lower, query.upper, query.weights, query.version)
        self.goals = 1 + np.arange(len(query.goals))
        self.labels, self._tried, self.met = np.zeros(0, dtype=np.int32), tried, False
        self.append(np.concatenate([query.start[None], query.goals]), np.minimum(np.arange(1 + len(query.goals)), 1))

    @property
    def nodes(self):
        return self.roadmap.nodes

    def append(self, q, labels):
        self.labels = np.concatenate([self.labels, np.asarray(labels, dtype=np.int32)])
        return self.roadmap.add_nodes(q)

    def draw(self, seed, first, count, query, settings):
        """-> q (N, dof) of p_G and the pairs to check, numbers of samples and of nodes (P,); fewer if time is up."""
        radius, near = np.float32(settings.radius), np.float32(settings.near)
        how = Drawing(query.lower, query.upper, radius, near, self._tried, query.deadline)
        return _draw(self.roadmap.blocks, self.nodes, self.labels, seed, first, count, how)

    def judged(self, samples, nodes, free, count):
        """-> which of `count` samples become nodes, and their labels; notes when one joins the trees."""
        joined = np.zeros((2, count), dtype=bool)
        joined[self.labels[nodes[free]], samples[free]] = True
        self.met |= bool(joined.all(axis=0).any())
        return np.flatnonzero(joined.any(axis=0)), joined[1].astype(np.int32)

    def join_goals(self, exchange, ask):
        """The motions from the start to the goals, checked by the first worker."""
        free = None
        if exchange.rank == 0:
            free = ask(self, (np.repeat(self.nodes[:1], len(self.goals), axis=0), self.goals)).result()
        free = exchange.all_gather(free)[0]
        self.met = bool(free.any())
        self.connect(np.zeros(free.sum(), dtype=int), self.goals[free])

    def connect(self, new, old):
        self.roadmap.add_edges(np.stack([new, old], axis=1), np.full(len(new), FREE))

    def answer(self, exchange, drawn):
        found = exchange.all_gather((len(self.nodes), zlib.crc32(self.nodes)))
        if len(set(found)) > 1:
            raise RanksError(f"the workers built different graphs ({_by_rank(found)}): {DIFFERENT}")
        chain = self.roadmap.shortest_path(0, self.goals, None)
        return self.nodes[chain], chain[-1] - 1, drawn


def _own_samples(exchange, ask, query, settings, seed, batch):
    """Version 1."""
    graph, drawn, edges = _Graph(query, settings.connections), 0, []
    graph.join_goals(exchange, ask)
    late = False
    while not graph.met:
        if late or drawn >= settings.max_samples:
            return None, -1, drawn
        count = min(batch, settings.max_samples - drawn)
        begin, end = _share(exchange.rank, exchange.size, count)
        q, samples, nodes = graph.draw(seed, drawn + begin, end - begin, query, settings)
        drawn += count
        free = ask(graph, (q[samples], nodes)).result()
        kept, labels = graph.judged(samples, nodes, free, len(q))
        everybody = exchange.all_gather((q[kept], labels[kept], graph.met, query.late()))
        every_q, every_label, every_met, every_late = zip(*everybody)
        first = graph.append(np.concatenate(every_q), np.concatenate(every_label))
        first += sum(len(each) for each in every_q[: exchange.rank])
        number = np.full(len(q), -1)
        number[kept] = first + np.arange(len(kept))
        edges.append(np.stack([number[samples[free]], nodes[free]], axis=1))
        graph.met, late = any(every_met), any(every_late)  # the workers end together
    pairs = np.concatenate(exchange.all_gather(np.concatenate([np.zeros((0, 2), dtype=int), *edges])))
    graph.connect(pairs[:, 0], pairs[:, 1])
    return graph.answer(exchange, drawn)


def _same_samples(exchange, ask, query, settings, seed, batch):
    """Versions 2 and 3."""
    at_once = 2 if settings.version == 3 else 1
    size = max(1, batch // at_once)
    graph, drawn, under_way = _Graph(query, settings.connections), 0, deque()
    graph.join_goals(exchange, ask)
    while not graph.met:
        if not under_way and drawn >= settings.max_samples:
            return None, -1, drawn
        while len(under_way) < at_once and drawn < settings.max_samples:
            count = min(size, settings.max_samples - drawn)
            q, samples, nodes = graph.draw(seed, drawn, count, query, settings)
            complete = not query.late()
            drawn += count if complete else 0
            begin, end = _share(exchange.rank, exchange.size, len(samples))
            under_way.append((q, samples, nodes, ask(graph, (q[samples[begin:end]], nodes[begin:end])), complete))
        q, samples, nodes, answer, complete = under_way.popleft()
        bits = np.packbits(answer.result()).tobytes()
        answers, counts, all_complete = zip(*exchange.all_gather((bits, len(samples), complete)))
        if not all(all_complete):  # time was up for one: it drew fewer samples, and the answers do not fit together
            return None, -1, drawn
        if len(set(counts)) > 1:
            raise RanksError(f"the workers drew different samples ({_by_rank(counts)} motions): {DIFFERENT}")
        free = np.concatenate([_unpacked(each, k, exchange.size, len(samples)) for k, each in enumerate(answers)])
        kept, labels = graph.judged(samples, nodes, free, len(q))
        number = np.full(len(q), -1)
        number[kept] = graph.append(q[kept], labels[kept]) + np.arange(len(kept))
        graph.connect(number[samples[free]], nodes[free])
    return graph.answer(exchange, drawn)


def _by_rank(values):
    return ", ".join(f"rank {rank}: {value}" for rank, value in enumerate(values))


def _share(rank, size, count):
    """Which of `count` tasks are those of a worker: from, to."""
    return rank * count // size, (rank + 1) * count // size


def _unpacked(bits, rank, size, count):
    """-> the answers of a worker, bool, of those to `count` questions."""
    begin, end = _share(rank, size, count)
    return np.unpackbits(np.frombuffer(bits, dtype=np.uint8), count=end - begin).astype(bool)


@njit
def _draw(blocks, all_nodes, labels, seed, first, count, how):
    """Samples of p_G, every other one for the same tree, and the nodes of both trees that each is tried with.

    -> q (N, dof) float32, numbers of samples (P,) int64, numbers of nodes (P,) int64
    """
    dof, radius, tried = len(how.lower), how.radius, how.tried
    q = np.empty((count, dof), dtype=np.float32)
    samples, nodes = np.empty(2 * tried * count, dtype=np.int64), np.empty(2 * tried * count, dtype=np.int64)
    found, squared = np.empty(tried, dtype=np.int32), np.empty(tried, dtype=np.float32)
    n, pairs = 0, 0
    for number in range(first, first + count):
        if clock_ns() > how.deadline:
            break
        x = q[n]
        sample(seed, number, how.lower, how.upper, x)
        nearest(blocks, x, np.float32(1e18), labels, number & 1, True, found[:1], squared[:1])
        distance = np.sqrt(squared[0])
        if distance > radius:
            if uniform01(seed, number, dof) >= how.near:
                continue
            node = all_nodes[found[0]]
            for k in range(dof):
                x[k] = node[k] + radius / distance * (x[k] - node[k])
        for tree in range(2):
            for i in range(nearest(blocks, x, ROUNDED * radius, labels, tree, True, found, squared)):
                samples[pairs], nodes[pairs] = n, found[i]
                pairs += 1
        n += 1
    return q[:n], samples[:pairs], nodes[:pairs]
