"""The three parallelizations of [DL14] section 3.2. Every worker holds its own graph and asks for motions on its own.

1   Everybody draws its own samples and checks their motions. New nodes are exchanged after each round, edges at the
end.
2   Everybody draws the same samples from the same seed. Their motions are split, and only the answers are exchanged.
3   As 2, with two rounds under way: while the device checks one, the next is drawn, on the graph without the first.

Workers are threads that share one device, which answers one request after the other, or MPI ranks with a device each.
Graphs are the same in all workers, since all append the same nodes in the same order. Ranks agree before and after the
search: on the problem, when its clock starts, what is wrong with it (`begin`, `opened`), and the result (`ended`). Each
looks at its own clock, and each checker at its own obstacles, so that what follows from them may differ; the first
rank's answer counts, and any rank's failure.
"""

import functools
import zlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from typing import NamedTuple

import numpy as np

from ....device import njit
from ....distributed.exchange import Exchange, run
from ....errors import RanksError, SettingsError, shown
from ....parallel.sampling import sample, uniform01
from ....parallel.team import NEVER, clock_ns
from ....settings import title
from ..query import Query, in_pieces
from ..result import PlanningResult, Status
from .block_index import EVERYWHERE, nearest
from .roadmap import FREE, Roadmap
from .settings import Settings

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


def begin(
    ranks: Exchange, start, goals, checker, settings: Settings, seed: int, batch: int, warm_up: Callable[[], None]
) -> int:
    """-> the samples of a round. Returns at about the same time in all ranks, when all have compiled: the first rank of
    each machine does so while the others of it wait, and load it then.

    Raises SettingsError for version 0; RanksError where ranks have different problems.
    """
    if not settings.version:
        raise SettingsError("prm.Settings.version is 0; allowed with ranks: 1, 2, 3")
    if ranks.local_rank == 0:
        warm_up()
    problem = {
        "start": _numbers(start),
        "goals": _numbers(goals),
        "robot": getattr(checker.robot, "joint_names", checker.robot.dof),
        "limits": np.stack([checker.robot.lower, checker.robot.upper]),
        "checksum of shapes and obstacles": [zlib.crc32(part) for part in checker.packed_scene],
        "check of motions (mode, step)": tuple(map(float, checker.motion_args)),
        "seed": int(seed),
        **{f"{title(Settings)}.{name}": value for name, value in asdict(replace(settings, workers=1)).items()},
    }
    gathered = ranks.all_gather((problem, batch))
    first = gathered[0][0]
    for rank, (other, _) in enumerate(gathered):
        for what, value in other.items():
            if not _same(value, first[what]):
                raise RanksError(
                    f"the ranks must solve one problem, but {what} of rank 0 is {shown(first[what])}, and of rank "
                    f"{rank} {shown(value)}"
                )
    if ranks.local_rank != 0:
        warm_up()
    ranks.all_gather(None)
    return gathered[0][1]


def opened(ranks: Exchange, query: Query | PlanningResult) -> Query | PlanningResult:
    """-> this rank's query, or the same failure in all ranks where one has a failure."""
    failures = [each for each in ranks.all_gather(query if isinstance(query, PlanningResult) else None) if each]
    return failures[0] if failures else query


def ended(ranks: Exchange, query: Query, result: Callable[[], PlanningResult]) -> PlanningResult:
    """-> the first rank's result in all ranks; or a failure, where obstacles changed in one."""
    own = result() if ranks.rank == 0 else None
    if query.checker.version != query.version:
        own = query.failed(Status.WORLD_CHANGED, f"obstacles of rank {ranks.rank} changed during the search; ask again")
    results = ranks.all_gather(own)
    return next((each for each in results if each and each.status is Status.WORLD_CHANGED), results[0])


def _numbers(values):
    """An array, or the text of what is none: open_query says what is wrong with it."""
    try:
        return np.asarray(values, dtype=np.float64)
    except Exception:
        return shown(values)


def _same(a, b):
    arrays = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    return np.array_equal(a, b, equal_nan=True) if arrays else type(a) is type(b) and a == b


def grow_by_version(
    query: Query, settings: Settings, seed: int, batch: int, ranks: Exchange | None = None
) -> tuple[np.ndarray | None, int, int]:
    """-> path (K, dof) or None, number of its goal, samples.

    settings: of prm;  batch: samples a round, of all workers together;  ranks: this process is one worker, the others
        are elsewhere; none: `settings.workers` threads
    """
    with ThreadPoolExecutor(1) as device:

        def known(q_from, q_to):
            free = in_pieces(query.checker.motions_valid, query.deadline, q_from, q_to)
            return np.concatenate([free, np.zeros(len(q_from) - len(free), dtype=bool)])

        def ask(graph, pairs):
            """pairs: (P, dof) configurations and (P,) nodes -> Future of (P,) bool; what found no time is False"""
            return device.submit(known, pairs[0], graph.nodes[pairs[1]])

        def work(each):
            version = _own_samples if settings.version == 1 else _same_samples
            return version(each, ask, query, settings, np.uint64(seed), batch)

        return run(settings.workers, work)[0] if ranks is None else work(ranks)


class _Graph:
    """The roadmap of one query as a worker holds it.  labels: (n,) int32, 0 in the start's tree, 1 in the goals'"""

    def __init__(self, query, settings):
        self.roadmap = Roadmap(query.lower, query.upper, query.weights, query.version)
        self.goals = 1 + np.arange(len(query.goals))
        self.labels, self.met = np.zeros(0, dtype=np.int32), False
        radius, near = np.float32(settings.radius), np.float32(settings.near)
        self._how = Drawing(query.lower, query.upper, radius, near, settings.connections, query.deadline)
        self.append(np.concatenate([query.start[None], query.goals]), np.minimum(np.arange(1 + len(query.goals)), 1))

    @property
    def nodes(self):
        return self.roadmap.nodes

    def append(self, q, labels):
        self.labels = np.concatenate([self.labels, np.asarray(labels, dtype=np.int32)])
        return self.roadmap.add_nodes(q)

    def draw(self, seed, first, count):
        """-> q (N, dof) of p_G and the pairs to check, numbers of samples and of nodes (P,); fewer if time is up."""
        return _draw(self.roadmap.blocks, self.nodes, self.labels, seed, first, count, self._how)

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
    graph, drawn, edges = _Graph(query, settings), 0, []
    graph.join_goals(exchange, ask)
    late = False
    while not graph.met:
        if late or drawn >= settings.max_samples:
            return None, -1, drawn
        count = min(batch, settings.max_samples - drawn)
        begin, end = _share(exchange.rank, exchange.size, count)
        q, samples, nodes = graph.draw(seed, drawn + begin, end - begin)
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
    graph, drawn, under_way = _Graph(query, settings), 0, deque()
    graph.join_goals(exchange, ask)
    while not graph.met:
        if not under_way and drawn >= settings.max_samples:
            return None, -1, drawn
        while len(under_way) < at_once and drawn < settings.max_samples:
            count = min(size, settings.max_samples - drawn)
            q, samples, nodes = graph.draw(seed, drawn, count)
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
        nearest(blocks, x, EVERYWHERE, labels, number & 1, found[:1], squared[:1])
        distance = np.sqrt(squared[0])
        if distance > radius:
            if uniform01(seed, number, dof) >= how.near:
                continue
            node = all_nodes[found[0]]
            for k in range(dof):
                x[k] = node[k] + radius / distance * (x[k] - node[k])
        for tree in range(2):
            for i in range(nearest(blocks, x, ROUNDED * radius, labels, tree, found, squared)):
                samples[pairs], nodes[pairs] = n, found[i]
                pairs += 1
        n += 1
    return q[:n], samples[:pairs], nodes[:pairs]
