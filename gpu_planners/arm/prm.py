"""PRM as [DL14] algorithm 1: a graph grown around start and goals until they are connected, then its shortest path.

`solve` grows two trees (prm_growth), compiled as a whole: one thread on the CPU, one kernel on CUDA. `Settings.version`
1 to 3 are the paper's own parallelizations (prm_versions). `build` makes a roadmap for many queries.

Departures: p_G moves a uniform draw to the nearest node, so that nodes with much unexplored space around them are
preferred; a new node is tried with its nearest neighbours within the radius, not with all.
"""

from dataclasses import dataclass

import numpy as np

from ..errors import SettingsError
from ..team import clock_ns
from . import prm_versions
from .prm_trees import Trees, growth_of
from .query import Query, check_call, check_flag, check_setting, check_shared, in_pieces, open_query
from .roadmap import FREE, Roadmap
from .roadmap import warm_up as warm_up_roadmaps
from .sampling import folded_seed, samples
from .shortcut import shortcut

BATCH, BATCH_BY_VERSION = {"cpu": 32, "cuda": 512}, {"cpu": 256, "cuda": 512}  # where Settings.batch is 0
BUILD_BATCH = 1024  # configurations of a roadmap drawn at once


@dataclass(frozen=True)
class Settings:
    """radius: d_0: a new node lies at most so far from the graph, and is tried with nodes within it, joint-space L2, rad
    near: share of samples that are moved to within the radius of the graph; the others count only where they fall near it
    connections: nodes within the radius that a new node is tried with, besides the one that it came from
    neighbour_factor: a node of a roadmap is tried with neighbour_factor * e (1 + 1 / dof) log(n) others; 1 is PRM*'s constant
    batch: samples between two looks at the graph; 0: 32 on the CPU (256 in versions 1 to 3), 512 on CUDA; long searches gain from 2048 there
    lazy: check motions inside a tree (version 0), or of a roadmap, only where the shortest path needs them
    version: 0: all of the search compiled; 1, 2, 3: the parallelizations of [DL14] 3.2 over `workers` workers
    roadmap_nodes: configurations that `build` keeps
    max_samples: configurations drawn at most;  time_limit_s: seconds for the search at most
    shortcut_rounds: passes of shortening afterwards; 0 returns the raw path
    weights: one number per joint for the cost of a motion, sqrt(sum of weight * change squared); none: 1 each
    limit_tolerance: values of start and goals so far outside the joint limits are taken to the limit, rad or m
    """

    radius: float = 1.0
    near: float = 1.0
    connections: int = 3
    neighbour_factor: float = 0.5
    batch: int = 0
    lazy: bool = False
    version: int = 0
    workers: int = 1
    roadmap_nodes: int = 2000
    max_samples: int = 200_000
    time_limit_s: float = 10.0
    shortcut_rounds: int = 3
    weights: tuple = ()
    limit_tolerance: float = 1e-3

    def __post_init__(self):
        check_setting(self, "radius", 1e-3, 100.0)
        check_setting(self, "near", 0.0, 1.0)
        check_setting(self, "connections", 1, 64, integer=True)
        check_setting(self, "neighbour_factor", 0.01, 100.0)
        check_setting(self, "batch", 0, 1_000_000, integer=True)
        check_flag(self, "lazy")
        check_setting(self, "version", 0, 3, integer=True)
        check_setting(self, "workers", 1, 64, integer=True)
        check_setting(self, "roadmap_nodes", 1, 1_000_000, integer=True)
        check_shared(self)

    def neighbours(self, n, dof):
        """Neighbours that a node of a roadmap of n nodes is tried with."""
        return int(np.ceil(self.neighbour_factor * np.e * (1 + 1 / dof) * np.log(max(n, 2))))


def solve(start, goals, checker, settings=Settings(), seed=0, roadmap=None):
    """Plan from start (dof,) to the goal that is nearest along the graph of goals, (dof,) or (G, dof); rad or m.

    roadmap: as `build` made it: searched first, checked again where obstacles have changed, and extended by the path where
        it has none; for the weights it was built with

    -> PlanningResult. The same seed, settings and device give the same path unless the time limit ends the search. seed: any
    integer
    """
    check_call(checker, settings, Settings)
    seed = folded_seed(seed)
    if roadmap is not None and (not isinstance(roadmap, Roadmap) or roadmap.nodes.shape[1] != checker.robot.dof):
        raise SettingsError("roadmap is none of prm.build for a robot of as many joints; allowed: such a one, or None")
    growth_of(checker)  # compile before the clock starts
    warm_up_roadmaps()
    if settings.version:
        prm_versions.warm_up()
    query = open_query(start, goals, checker, settings)
    if not isinstance(query, Query):
        return query
    path, goal, drawn = None, -1, 0
    if roadmap is not None:
        path, goal = _through(roadmap, query, checker, settings)
    if path is None:
        path, goal, drawn = _search(query, checker, settings, seed)
        if path is None:
            return query.timed_out(drawn) if query.late() else query.exhausted(drawn)
        if roadmap is not None:
            _remember(roadmap, path)
    return query.solved(shortcut(path, checker, settings.shortcut_rounds, seed, query.weights, query.deadline), goal, drawn)


def build(checker, settings=Settings(), seed=0):
    """-> Roadmap of `settings.roadmap_nodes` free configurations, drawn uniformly, each tried with its nearest ones, whatever
    the radius. It ends early at max_samples or time_limit_s. A continuous joint has the turn around zero. seed: any integer
    """
    check_call(checker, settings, Settings)
    seed = folded_seed(seed)
    robot = checker.robot
    lower, upper = (np.asarray(bound, dtype=np.float32) for bound in (robot.lower, robot.upper))
    checker.warm_up()
    warm_up_roadmaps()
    samples(np.uint64(0), 0, 0, lower, upper)  # compile before the clock starts
    deadline = clock_ns() + int(1e9 * settings.time_limit_s)
    roadmap = Roadmap(lower, upper, settings.weights or np.ones(robot.dof), checker.version)
    while len(roadmap.nodes) < settings.roadmap_nodes:
        count = min(BUILD_BATCH, settings.max_samples - roadmap.drawn)
        q = samples(np.uint64(seed), roadmap.drawn, count, lower, upper)
        free = in_pieces(checker.configurations_valid, deadline, q)
        if len(free) < count or count == 0:
            break
        roadmap.drawn += count
        first = roadmap.add_nodes(q[free][:settings.roadmap_nodes - len(roadmap.nodes)])
        roadmap.connect(first, settings.neighbours(len(roadmap.nodes), robot.dof), checker, settings.lazy, deadline)
    return roadmap


def _search(query, checker, settings, seed):
    """-> path (K, dof) or None, number of its goal, samples."""
    device = "cpu" if checker.device == "cpu" else "cuda"
    batch = settings.batch or (BATCH_BY_VERSION if settings.version else BATCH)[device]
    if settings.version:
        return prm_versions.grow_by_version(query, checker, settings, seed, batch)
    trees = Trees(checker, query, batch, settings.connections, settings.radius, settings.near, settings.lazy, seed)
    while not trees.met:
        if trees.drawn >= settings.max_samples or query.late():
            return None, -1, trees.drawn
        trees.grow(settings.max_samples)
    graph, first_goal = trees.graph(query.weights)
    chain = graph.shortest_path(0, first_goal + np.arange(len(query.goals)), checker, query.deadline)
    path, goal = (graph.nodes[chain], chain[-1] - first_goal) if chain else trees.way()  # there was no time for the shortest path
    return path, goal, trees.drawn


def _through(roadmap, query, checker, settings):
    """-> path (K, dof) through a roadmap and the number of its goal, or None, -1."""
    roadmap.revalidate(checker, settings.lazy, query.deadline)
    dof, ends = len(query.start), len(query.goals) + 1
    near = settings.neighbours(len(roadmap.nodes), dof)
    with roadmap.visitors(np.concatenate([query.start[None], query.goals]), near, checker, settings.lazy, query.deadline) as first:
        chain = roadmap.shortest_path(first, first + np.arange(1, ends), checker, query.deadline)
        return (roadmap.nodes[chain], chain[-1] - first - 1) if chain else (None, -1)


def _remember(roadmap, path):
    """A roadmap learns the path that it lacked."""
    first = roadmap.add_nodes(path)
    numbers = np.arange(first, len(roadmap.nodes))
    roadmap.add_edges(np.stack([numbers[:-1], numbers[1:]], axis=1), np.full(len(path) - 1, FREE))
