"""RRT-Connect (Kuffner and LaValle, ICRA 2000): two trees, from the start and from all goals, that grow towards
samples and then towards each other until they meet.

Departures: nodes farther than `range` are approached in steps of that length, each proven free as a whole; the
smaller tree is extended; a node that failed to extend takes only samples near it (the dynamic domain of Yershova
et al., ICRA 2005, with the adaptation of Jaillet et al., IROS 2005).
"""

from dataclasses import dataclass

import numpy as np

from ..device import njit
from .collision import motion_valid, scratch_size
from .nearest import BLOCK, nearest
from .path import Status
from .query import Query, check_setting, open_query
from .sampling import sample
from .shortcut import shortcut

CHUNK = 64  # samples between two looks at the clock
FIRST_NODES, ROOM = 4096, 256  # nodes of storage at first; what must be free before a sample is drawn
ONE, FAR = np.float32(1.0), np.float32(3e38)


@dataclass(frozen=True)
class Settings:
    """range: longest motion added at once, joint-space L2, rad
    dynamic_domain: radius in rad within which a node that failed to extend still takes samples; 0: no restriction
    max_samples: configurations drawn at most;  time_limit_s: seconds for the search at most
    shortcut_rounds: rounds of shortening afterwards; 0 returns the raw path
    """

    range: float = 0.5
    dynamic_domain: float = 4.0
    max_samples: int = 1_000_000
    time_limit_s: float = 10.0
    shortcut_rounds: int = 12

    def __post_init__(self):
        check_setting(self, "range", 1e-3, 100.0)
        check_setting(self, "dynamic_domain", 0.0, 1000.0)
        check_setting(self, "max_samples", 1, 100_000_000, integer=True)
        check_setting(self, "time_limit_s", 1e-3, 86_400.0)
        check_setting(self, "shortcut_rounds", 0, 10_000, integer=True)


def solve(start, goals, checker, settings=Settings(), seed=0):
    """Plan from start (dof,) to the goal that is reached first of goals, (dof,) or (G, dof); rad or m.

    -> PlanningResult. The same seed, settings and device give the same path unless the time limit ends the search.
    """
    query = open_query(start, goals, checker)
    if not isinstance(query, Query):
        return query
    trees = Trees(query)
    joined = 0
    scratch = np.empty(scratch_size(checker.packed_robot.ints) + 2 * checker.robot.dof + BLOCK, dtype=np.float32)
    scene = checker.packed_scene
    while not joined:
        trees.make_room()
        if trees.progress[0] >= settings.max_samples:
            return query.failed(Status.SAMPLES_EXHAUSTED, f"no path after {trees.progress[0]} samples", trees.progress[0])
        if query.elapsed() > settings.time_limit_s:
            return query.failed(Status.TIMED_OUT, f"no path after {settings.time_limit_s:g} s ({trees.progress[0]} samples)", trees.progress[0])
        until = min(trees.progress[0] + CHUNK, settings.max_samples)
        joined = grow(trees.nodes, trees.parents, trees.domain, trees.counts, trees.progress, until, np.uint64(seed), query.lower,
                      query.upper, np.float32(settings.range), np.float32(settings.dynamic_domain), *checker.motion_args,
                      *scene, scratch)
    path, goal = trees.path()
    path = shortcut(path, checker, settings.shortcut_rounds, seed)
    return query.solved(path, goal, trees.progress[0])


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
        self.nodes[0, :, 0] = query.start
        self.nodes[1, :, :goals] = query.goals.T

    def make_room(self):
        if self.counts.max() + ROOM >= self.nodes.shape[2]:
            self.nodes, self.parents, self.domain = (np.concatenate([a, np.empty_like(a)], axis=-1)
                                                     for a in (self.nodes, self.parents, self.domain))

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
def grow(nodes, parents, domain, counts, progress, until, seed, lower, upper, reach, radius, mode, step, F, I, scratch):
    """Draw samples until `until` or until the trees meet; -> 1 when they do, progress[1:] naming the two nodes."""
    dof, capacity = nodes.shape[1], nodes.shape[2]
    q, near, distances, S = scratch[:dof], scratch[dof:2 * dof], scratch[2 * dof:2 * dof + BLOCK], scratch[2 * dof + BLOCK:]
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
        if not motion_valid(near, q, mode, step, F, I, S):
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
            if not motion_valid(near, q, mode, step, F, I, S):
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
