"""PRM (Kavraki et al., IEEE T-RA 1996) for one query, as [DL14] algorithm 1: a roadmap grown around start and
goals until they are connected, then the shortest path on it.

Departures: nodes come in batches, drawn uniformly, so that their checks fill all cores or a GPU; each is tried
with its k nearest nodes, k growing as PRM* asks (Karaman and Frazzoli, IJRR 2011).
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import cKDTree

from .path import Status
from .query import Query, check_budgets, check_setting, open_query
from .sampling import samples
from .shortcut import shortcut


@dataclass(frozen=True)
class Settings:
    """batch: configurations drawn between two looks at the graph
    neighbour_factor: a node is tried with neighbour_factor * e (1 + 1 / dof) log(n) neighbours; 1 is PRM*'s constant
    max_samples: configurations drawn at most;  time_limit_s: seconds for the search at most
    shortcut_rounds: rounds of shortening afterwards; 0 returns the raw path
    weights: one number per joint for the cost of a motion, sqrt(sum of weight * change squared); none: 1 each
    """

    batch: int = 256
    neighbour_factor: float = 0.5
    max_samples: int = 200_000
    time_limit_s: float = 10.0
    shortcut_rounds: int = 12
    weights: tuple = ()

    def __post_init__(self):
        check_setting(self, "batch", 1, 1_000_000, integer=True)
        check_setting(self, "neighbour_factor", 0.01, 100.0)
        check_budgets(self)


def solve(start, goals, checker, settings=Settings(), seed=0):
    """Plan from start (dof,) to the goal that is nearest along the roadmap of goals, (dof,) or (G, dof); rad or m.

    -> PlanningResult. The same seed, settings and device give the same path unless the time limit ends the search.
    """
    query = open_query(start, goals, checker, settings.weights)
    if not isinstance(query, Query):
        return query
    roadmap = Roadmap(query)
    drawn = 0
    roadmap.connect(0, checker, settings)
    while not (connected := roadmap.connected_goals()).any():
        if drawn >= settings.max_samples:
            return query.failed(Status.SAMPLES_EXHAUSTED, f"no path after {drawn} samples", drawn)
        if query.elapsed() > settings.time_limit_s:
            return query.failed(Status.TIMED_OUT, f"no path after {settings.time_limit_s:g} s ({drawn} samples)", drawn)
        count = min(settings.batch, settings.max_samples - drawn)
        q = samples(np.uint64(seed), drawn, count, query.lower, query.upper)
        drawn += count
        q = q[checker.configurations_valid(q)]
        first = roadmap.add(q)
        roadmap.connect(first, checker, settings)
    path, goal = roadmap.shortest_path(connected)
    return query.solved(shortcut(path, checker, settings.shortcut_rounds, seed), goal, drawn)


class Roadmap:
    """nodes: (n, dof) float64, the start first, then the goals; edges: (m, 2) int, lengths: (m,) joint-space L2."""

    def __init__(self, query):
        self.nodes = np.concatenate([query.start[None], query.goals])
        self.goals = len(query.goals)
        self.edges = np.zeros((0, 2), dtype=int)
        self.lengths = np.zeros(0)

    def add(self, q):
        """Append configurations; -> the number of the first one."""
        self.nodes = np.concatenate([self.nodes, q])
        return len(self.nodes) - len(q)

    def connect(self, first, checker, settings):
        """Try to connect every node from `first` on with its nearest nodes."""
        n, dof = self.nodes.shape
        k = int(np.ceil(settings.neighbour_factor * np.e * (1 + 1 / dof) * np.log(n))) + 1
        if first == n:
            return
        _, near = cKDTree(self.nodes).query(self.nodes[first:], k=min(k + 1, n))
        pairs = np.stack([np.repeat(np.arange(first, n), near.shape[1]), near.ravel()], axis=1)
        pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
        pairs = pairs[checker.motions_valid(self.nodes[pairs[:, 0]], self.nodes[pairs[:, 1]])]
        self.edges = np.concatenate([self.edges, pairs])
        self.lengths = np.concatenate([self.lengths, np.linalg.norm(self.nodes[pairs[:, 0]] - self.nodes[pairs[:, 1]], axis=1)])

    def connected_goals(self):
        """(G,) bool: which goals the start reaches."""
        _, component = connected_components(self._graph(), directed=False)
        return component[1:1 + self.goals] == component[0]

    def shortest_path(self, connected):
        """-> (K, dof) path to the nearest of the connected goals, and its number."""
        distance, previous = dijkstra(self._graph(), directed=False, indices=0, return_predecessors=True)
        goal = int(np.argmin(np.where(connected, distance[1:1 + self.goals], np.inf)))
        chain = [1 + goal]
        while chain[-1] != 0:
            chain.append(previous[chain[-1]])
        return self.nodes[chain[::-1]], goal

    def _graph(self):
        n = len(self.nodes)
        return coo_array((self.lengths, (self.edges[:, 0], self.edges[:, 1])), shape=(n, n)).tocsr()
