"""PRM as [DL14] algorithm 1: a graph grown around start and goals until they are connected, then its shortest path.

`solve` grows two trees (`growth`), compiled as a whole: one thread on the CPU, one kernel on CUDA. `Settings.version`
1 to 3 are the paper's own parallelizations (`versions`). `build` makes a roadmap for many queries.

Departures: p_G moves a uniform draw to the nearest node, so that nodes with much unexplored space around them are
preferred; a new node is tried with its nearest neighbours within the radius, not with all.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ....distributed.exchange import Exchange
from ....errors import SettingsError
from ....parallel.sampling import folded_seed, samples
from ....parallel.team import clock_ns
from ..blocked import explained
from ..host import alone
from ..query import Query, around, check_call, in_pieces, open_query
from ..result import PlanningResult
from ..shortcut import shortcut, warm_up_shortcut
from . import versions
from .growth import grow_trees
from .roadmap import FREE, Roadmap, warm_up_roadmaps
from .settings import Settings
from .trees import GrowingTrees, warm_up_trees

BATCH = {"cpu": 32, "cuda": 512}  # where Settings.batch is 0
BATCH_BY_VERSION = {"cpu": 256, "cuda": 512}  # the same in versions 1 to 3
BUILD_BATCH = 1024  # configurations of a roadmap drawn at once


def solve(
    start: ArrayLike,
    goals: ArrayLike,
    checker,
    settings: Settings = Settings(),
    seed: int = 0,
    roadmap: Roadmap | None = None,
    ranks: Exchange | None = None,
) -> PlanningResult:
    """Plan from start (dof,) to the goal that is nearest along the graph of goals, (dof,) or (G, dof); rad or m.

    roadmap: of `build`, for the same weights: searched first, checked again where obstacles have changed, and extended
        by the path that it lacked, unless that begins outside of the limits
    ranks: workers of versions 1 to 3 in place of `settings.workers` threads: each calls `solve` with the same problem
        and a checker of its own, and all get the same result; see distributed.Ranks

    -> PlanningResult. The same seed, settings and device give the same path unless the time limit ends the search.
    seed: any integer
    """
    check_call(checker, settings, Settings)
    seed = folded_seed(seed)
    if roadmap is not None and (not isinstance(roadmap, Roadmap) or roadmap.nodes.shape[1] != checker.robot.dof):
        raise SettingsError("roadmap is none of prm.build for a robot of as many joints; allowed: such a one, or None")
    batch = settings.batch or (BATCH_BY_VERSION if settings.version else BATCH)[checker.device.partition(":")[0]]
    if ranks is not None:
        if roadmap is not None:
            raise SettingsError("roadmap and ranks were both given; allowed: one of them")
        batch = versions.begin(ranks, start, goals, checker, settings, seed, batch, lambda: _warm_up(checker, settings))
        query = versions.opened(ranks, open_query(start, goals, checker, settings))
    else:
        _warm_up(checker, settings)
        query = open_query(start, goals, checker, settings)
    if not isinstance(query, Query):
        return query
    path, goal, drawn, log = None, -1, 0, {}
    if roadmap is not None:
        path, goal = _through(roadmap, query, settings)
    if path is None:
        path, goal, drawn, log = _search(query, settings, seed, batch, ranks)
        if path is not None and roadmap is not None and around(checker.robot, query.start) is checker.robot:
            numbers = roadmap.add_nodes(path) + np.arange(len(path))
            roadmap.add_edges(np.stack([numbers[:-1], numbers[1:]], axis=1), np.full(len(path) - 1, FREE))

    def result():
        if path is None:
            # by the samples: where another rank was late, this one's clock may not be
            failed = query.exhausted if drawn >= settings.max_samples else query.timed_out
            return explained(replace(failed(drawn), **log), checker)
        short = shortcut(path, checker, settings.shortcut_rounds, seed, query.weights, query.deadline)
        return query.solved(short, goal, drawn)

    return result() if ranks is None else versions.ended(ranks, query, result)


def build(checker, settings: Settings = Settings(), seed: int = 0) -> Roadmap:
    """-> Roadmap of `settings.roadmap_nodes` free configurations, drawn uniformly, each tried with its nearest ones,
    whatever the radius. It ends early at max_samples or time_limit_s. A continuous joint has the turn around zero.
    seed: any integer
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
        first = roadmap.add_nodes(q[free][: settings.roadmap_nodes - len(roadmap.nodes)])
        roadmap.connect(first, settings.neighbours(len(roadmap.nodes), robot.dof), checker, settings.lazy, deadline)
    return roadmap


def _warm_up(checker, settings):
    """Compile, or load from the cache, before the clock starts."""
    checker.warm_up()
    warm_up_trees(checker)
    warm_up_roadmaps()
    warm_up_shortcut(checker)
    if settings.version:
        versions.warm_up()


def _search(query, settings, seed, batch, ranks):
    """-> path (K, dof) or None, number of its goal, samples, the log of blocked extensions."""
    if settings.version:
        return *versions.grow_by_version(query, settings, seed, batch, ranks), {}
    with alone(query.checker, grow_trees):
        return _grown(GrowingTrees(query, settings, batch, seed), query, settings)


def _grown(trees, query, settings):
    """What `_search` says, by trees."""
    while not trees.met:
        if trees.drawn >= settings.max_samples or query.late():
            return None, -1, trees.drawn, trees.log()
        trees.grow(settings.max_samples)
    graph, first_goal = trees.graph(query.weights)
    chain = graph.shortest_path(0, first_goal + np.arange(len(query.goals)), query.checker, query.deadline)
    if chain:
        return graph.nodes[chain], chain[-1] - first_goal, trees.drawn, {}
    return *trees.way(), trees.drawn, {}  # there was no time for the shortest path


def _through(roadmap, query, settings):
    """-> path (K, dof) through a roadmap and the number of its goal, or None, -1."""
    checker, ends = query.checker, len(query.goals) + 1
    roadmap.revalidate(checker, settings.lazy, query.deadline)
    near = settings.neighbours(len(roadmap.nodes), len(query.start))
    visitors = np.concatenate([query.start[None], query.goals])
    with roadmap.visitors(visitors, near, checker, settings.lazy, query.deadline) as first:
        chain = roadmap.shortest_path(first, first + np.arange(1, ends), checker, query.deadline)
        return (roadmap.nodes[chain], chain[-1] - first - 1) if chain else (None, -1)
