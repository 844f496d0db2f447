"""RRT-Connect (Kuffner and LaValle, ICRA 2000): two trees, from the start and from all goals, that grow towards
samples and then towards each other until they meet.

Departures: nodes farther than `range` are approached in steps of that length, each proven free as a whole; the
smaller tree is extended; a node that failed to extend takes only samples near it (the dynamic domain of Yershova
et al., ICRA 2005).

On the CPU one thread takes a sample at a time, compiled (`grow`). On CUDA a round takes `batch` samples: all their
extensions are checked in one launch, then all steps of all connections in another (`grow_batch`).
"""

from dataclasses import dataclass

import numpy as np

from ..device import njit
from .collision import motion_valid, new_scratch
from .nearest import BLOCK, nearest, nearest_each
from .path import Status
from .query import Query, check_budgets, check_setting, open_query
from .sampling import sample, samples
from .shortcut import shortcut

CHUNK = 64  # samples between two looks at the clock
FIRST_NODES, ROOM = 4096, 256  # nodes of storage at first; what must be free before a sample is drawn
FAR = np.float32(3e38)


@dataclass(frozen=True)
class Settings:
    """range: longest motion added at once, joint-space L2, rad
    dynamic_domain: radius in rad within which a node that failed to extend still takes samples; 0: no restriction
    batch: samples per round on CUDA; the CPU takes one at a time
    max_samples: configurations drawn at most;  time_limit_s: seconds for the search at most
    shortcut_rounds: rounds of shortening afterwards; 0 returns the raw path
    weights: one number per joint for the cost of a motion, sqrt(sum of weight * change squared); none: 1 each
    """

    range: float = 1.0
    dynamic_domain: float = 4.0
    batch: int = 128
    max_samples: int = 1_000_000
    time_limit_s: float = 10.0
    shortcut_rounds: int = 12
    weights: tuple = ()

    def __post_init__(self):
        check_setting(self, "range", 1e-3, 100.0)
        check_setting(self, "dynamic_domain", 0.0, 1000.0)
        check_setting(self, "batch", 1, 100_000, integer=True)
        check_budgets(self)


def solve(start, goals, checker, settings=Settings(), seed=0):
    """Plan from start (dof,) to the goal that is reached first of goals, (dof,) or (G, dof); rad or m.

    -> PlanningResult. The same seed, settings and device give the same path unless the time limit ends the search.
    """
    _warm_up(checker)
    query = open_query(start, goals, checker, settings.weights)
    if not isinstance(query, Query):
        return query
    trees = Trees(query)
    advance = grow_batch if checker.device != "cpu" else _grow_on_cpu
    while not trees.met:
        drawn = trees.progress[0]
        if drawn >= settings.max_samples:
            return query.failed(Status.SAMPLES_EXHAUSTED, f"no path after {drawn} samples", drawn)
        if query.elapsed() > settings.time_limit_s:
            return query.failed(Status.TIMED_OUT, f"no path after {settings.time_limit_s:g} s ({drawn} samples)", drawn)
        advance(trees, query, checker, settings, seed)
    path, goal = trees.path()
    path = shortcut(path, checker, settings.shortcut_rounds, seed)
    return query.solved(path, goal, trees.progress[0])


def _warm_up(checker):
    """Compile `grow`, or load it from the cache, before the clock of a query starts."""
    if checker.device == "cpu" and not grow.signatures:
        q = np.zeros((1, checker.robot.dof))
        nothing = Query(q[0], q, np.zeros(1), q[0].astype(np.float32), q[0].astype(np.float32), q[0].astype(np.float32), 0.0)
        trees = Trees(nothing)
        trees.progress[0] = 1
        _grow_on_cpu(trees, nothing, checker, Settings(max_samples=1), 0)


def _grow_on_cpu(trees, query, checker, settings, seed):
    trees.make_room(ROOM)
    until = min(trees.progress[0] + CHUNK, settings.max_samples)
    trees.met = grow(trees.nodes, trees.parents, trees.domain, trees.counts, trees.progress, until, np.uint64(seed), query.lower,
                     query.upper, np.float32(settings.range), np.float32(settings.dynamic_domain), *checker.motion_args,
                     *checker.packed_scene)


def grow_batch(trees, query, checker, settings, seed):
    """One round: extend the smaller tree towards a batch of samples, then connect the other tree to every new node."""
    a = 0 if trees.counts[0] <= trees.counts[1] else 1
    b = 1 - a
    count = min(settings.batch, settings.max_samples - trees.progress[0])
    q = samples(np.uint64(seed), trees.progress[0], count, query.lower, query.upper)
    trees.progress[0] += count
    near, distance = trees.nearest(a, q)
    taken = distance <= trees.domain[a, near]
    q, near, distance = q[taken], near[taken], distance[taken]
    base = trees.nodes[a][:, near].T
    q = base + np.minimum(1, settings.range / np.maximum(distance, 1e-9))[:, None].astype(np.float32) * (q - base)
    free = checker.motions_valid(base, q)
    if settings.dynamic_domain:
        blocked = near[~free]
        trees.domain[a, blocked] = np.minimum(trees.domain[a, blocked], np.float32(settings.dynamic_domain))
    q = q[free]
    first = trees.add(a, q, near[free])
    if not len(q):
        return
    near, distance = trees.nearest(b, q)
    steps = np.maximum(1, np.ceil(distance / settings.range)).astype(int)
    owner = np.repeat(np.arange(len(q)), steps)
    step = np.arange(len(owner)) - np.repeat(np.cumsum(steps) - steps, steps)
    base = trees.nodes[b][:, near].T
    part = (1 / steps)[owner, None].astype(np.float32)
    delta = q[owner] - base[owner]
    q_to = np.where((step + 1 == steps[owner])[:, None], q[owner], base[owner] + (step + 1)[:, None] * part * delta).astype(np.float32)
    q_from = np.where((step == 0)[:, None], base[owner], np.roll(q_to, 1, axis=0))
    free = checker.motions_valid(q_from, q_to)
    reached = np.minimum.reduceat(np.where(free, steps[owner], step), np.cumsum(steps) - steps)
    kept = step < reached[owner]
    starts = np.cumsum(reached) - reached
    parents = np.where(step[kept] == 0, near[owner[kept]], trees.counts[b] + np.arange(kept.sum()) - 1)
    first_kept = trees.add(b, q_to[kept], parents)
    joined = np.flatnonzero(reached == steps)
    if len(joined):
        best = joined[0]
        trees.progress[1 + a] = first + best
        trees.progress[1 + b] = first_kept + starts[best] + reached[best] - 1
        trees.met = True


class Trees:
    """The two trees of a query in flat arrays: tree 0 from the start, tree 1 from the goals.

    nodes (2, dof, capacity) float32; parents (2, capacity) int32, -1 at roots; domain (2, capacity) float32;
    counts (2,) int64; progress (3,) int64: samples drawn, and the two nodes that met
    """

    def __init__(self, query):
        dof, goals = len(query.start), len(query.goals)
        capacity = FIRST_NODES + goals
        self.nodes = np.empty((2, dof, capacity), dtype=np.float32)
        self.parents = np.full((2, capacity), -1, dtype=np.int32)
        self.domain = np.full((2, capacity), FAR, dtype=np.float32)
        self.counts = np.array([1, goals])
        self.progress = np.zeros(3, dtype=np.int64)
        self.met = False
        self.nodes[0, :, 0] = query.start
        self.nodes[1, :, :goals] = query.goals.T

    def make_room(self, room):
        """Storage for `room` more nodes in each tree."""
        while self.counts.max() + room >= self.nodes.shape[2]:
            self.nodes, self.parents, self.domain = (np.concatenate([a, np.empty_like(a)], axis=-1)
                                                     for a in (self.nodes, self.parents, self.domain))

    def nearest(self, tree, q):
        """-> for each q (n, dof) the number of the closest node of a tree, and its distance."""
        return nearest_each(self.nodes[tree], self.counts[tree], q)

    def add(self, tree, q, parents):
        """Append nodes q (n, dof); -> the number of the first one."""
        self.make_room(len(q))
        first = self.counts[tree]
        self.nodes[tree, :, first:first + len(q)] = q.T
        self.parents[tree, first:first + len(q)] = parents
        self.domain[tree, first:first + len(q)] = FAR
        self.counts[tree] += len(q)
        return first

    def path(self):
        """-> (K, dof), index of the goal at its end."""
        chains = []
        for tree in range(2):
            node, chain = self.progress[1 + tree], []
            while node >= 0:
                chain.append(node)
                node = self.parents[tree, node]
            chains.append(chain)
        outward = self.nodes[0][:, chains[0][::-1]]
        return np.concatenate([outward, self.nodes[1][:, chains[1][1:]]], axis=1).T, chains[1][-1]


@njit
def grow(nodes, parents, domain, counts, progress, until, seed, lower, upper, reach, radius, mode, step, F, I):
    """Draw samples until `until` or until the trees meet; -> 1 when they do, progress[1:] naming the two nodes."""
    dof, capacity = nodes.shape[1], nodes.shape[2]
    q, near, distances = np.empty(dof, dtype=np.float32), np.empty(dof, dtype=np.float32), np.empty(BLOCK, dtype=np.float32)
    S = new_scratch(I)
    while progress[0] < until and max(counts[0], counts[1]) + ROOM // 2 < capacity:
        a = 0 if counts[0] <= counts[1] else 1
        sample(seed, progress[0], lower, upper, q)
        progress[0] += 1
        i, squared = nearest(nodes[a], counts[a], q, distances)
        distance = np.sqrt(squared)
        if distance > domain[a, i]:
            continue
        take(nodes[a], i, near)
        steer(near, q, distance, reach)
        if not motion_valid(near, q, mode, step, F, I, S, 0):
            if radius > 0:
                domain[a, i] = min(radius, domain[a, i])
            continue
        progress[1 + a] = add(nodes[a], parents[a], domain[a], counts, a, q, i)
        b = 1 - a
        j, squared = nearest(nodes[b], counts[b], q, distances)
        distance = np.sqrt(squared)
        while counts[b] < capacity:
            take(nodes[b], j, near)
            steer(near, q, distance, reach)
            if not motion_valid(near, q, mode, step, F, I, S, 0):
                break
            j = add(nodes[b], parents[b], domain[b], counts, b, q, j)
            if distance <= reach:
                progress[1 + b] = j
                return 1
            take(nodes[a], progress[1 + a], q)
            distance -= reach
    return 0


@njit
def take(nodes, i, q):
    for k in range(len(q)):
        q[k] = nodes[k, i]


@njit
def steer(near, q, distance, reach):
    """Move q along the line from `near` so that it is at most `reach` away."""
    if distance > reach:
        t = reach / distance
        for k in range(len(q)):
            q[k] = near[k] + t * (q[k] - near[k])


@njit
def add(nodes, parents, domain, counts, tree, q, parent):
    n = counts[tree]
    for k in range(len(q)):
        nodes[k, n] = q[k]
    parents[n] = parent
    domain[n] = FAR
    counts[tree] = n + 1
    return n
