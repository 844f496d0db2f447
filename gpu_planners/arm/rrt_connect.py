"""RRT-Connect (Kuffner and LaValle, ICRA 2000): two trees, from the start and from all goals, that grow towards
samples and then towards each other until they meet.

Departures: straight ways from the start to the goals come first; a round takes `batch` samples against the trees as they
are when it begins; nodes farther than `range` are approached in steps of that length, each proven free as a whole; one
sample extends the smaller tree, several extend both; a node that failed to extend takes only samples near it (the dynamic
domain of Yershova et al., ICRA 2005).

The search and the shortening of the path are compiled code, one source for the CPU and CUDA (`rrt_connect_search`). On
CUDA `solve` is one launch that all multiprocessors share, `solve_batch` one launch with a block for each problem at work.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from ..device import njit
from ..errors import SettingsError
from ..team import left_ms
from . import rrt_connect_search as core
from .nearest import BLOCK
from .path import Status
from .query import Query, check_call, check_setting, check_shared, dry_query, open_queries, open_query
from .sampling import SEED_BITS, folded_seed

CHUNK = 64  # samples between two returns to Python on the CPU, so that Ctrl-C is noticed
RESTART = 1 << 40  # between the seeds of restarts
NODES = 1 << 18  # of a tree, at most


@dataclass(frozen=True)
class Settings:
    """range: longest motion added at once, joint-space L2, rad
    dynamic_domain: radius in rad within which a node that failed to extend still takes samples; 0: no restriction
    batch: samples of a round; 0: one on the CPU, 64 on CUDA, 4 for each problem of a batch on CUDA
    restarts: searches after the first, each with samples of its own, while time is left and a shorter path is possible; the
        shortest counts. solve_batch makes none
    max_samples: configurations drawn at most in a search;  time_limit_s: seconds for the query, or the whole batch, at most
    shortcut_rounds: passes of shortening afterwards; 0 returns the raw path
    weights: one number per joint for the cost of a motion, sqrt(sum of weight * change squared); none: 1 each
    limit_tolerance: values of start and goals so far outside the joint limits are taken to the limit, rad or m
    """

    range: float = 1.0
    dynamic_domain: float = 4.0
    batch: int = 0
    restarts: int = 0
    max_samples: int = 1_000_000
    time_limit_s: float = 10.0
    shortcut_rounds: int = 3
    weights: tuple = ()
    limit_tolerance: float = 1e-3

    def __post_init__(self):
        check_setting(self, "range", 1e-3, 100.0)
        check_setting(self, "dynamic_domain", 0.0, 1000.0)
        check_setting(self, "batch", 0, 4096, integer=True)
        check_setting(self, "restarts", 0, 100_000, integer=True)
        check_shared(self)


def solve(start, goals, checker, settings=Settings(), seed=0):
    """Plan from start (dof,) to the goal that is reached first of goals, (dof,) or (G, dof); rad or m.

    -> PlanningResult; with restarts its history tells how the cost fell. The same seed, settings and device give the same
    path unless the time limit ends the search. seed: any integer
    """
    check_call(checker, settings, Settings)
    seed = folded_seed(seed)
    engine = _engine(checker)
    query = open_query(start, goals, checker, settings, check=False)
    if not isinstance(query, Query):
        return query
    best = engine.solve(query, checker, settings, seed)
    if not settings.restarts or not best.solved:
        return best
    samples, history = best.samples, [(best.samples, best.time_s, best.cost)]
    shortest = np.sqrt(((query.goals - query.start) ** 2 @ query.weights).min())  # of any path: straight to the nearest goal
    for i in range(1, settings.restarts + 1):
        if best.cost <= (1 + 1e-6) * shortest or query.late():
            break
        again = engine.solve(query, checker, settings, folded_seed(seed + i * RESTART))
        samples += again.samples
        if again.status in (Status.TIMED_OUT, Status.WORLD_CHANGED):
            best = best if again.status is Status.TIMED_OUT else again
            break
        if again.cost < best.cost:
            best = again
            history.append((samples, again.time_s, again.cost))
    return replace(best, samples=samples, time_s=query.elapsed(), history=np.array(history))


def write_request(R, K, query, settings, batch, split, seed, checker, capacity):
    """Fill the request of one query: rows R and K, see rrt_connect_search."""
    mode, step = checker.motion_args
    low, high = halves(seed)
    K[:core.STATUS + 1] = (len(query.start), len(query.goals), batch, settings.max_samples, low, high, mode, settings.shortcut_rounds, 1,
                           left_ms(query.deadline), split, capacity, 0, 0, core.SEARCHING)
    R[:core.VECTORS] = step, settings.range, settings.dynamic_domain
    R[core.VECTORS:request_size(query)] = np.concatenate([query.lower, query.upper, query.weights, query.start, query.goals.ravel()])


def write_requests(R, K, queries, checkers, settings, batch, seeds, capacity):
    """The same for many queries: the first rows of R and K. What they share is written once."""
    n, dof, at = len(queries), len(queries[0].start), core.VECTORS
    write_request(R[0], K[0], queries[0], settings, batch, 1, seeds[0], checkers[0], capacity)
    R[1:n, :at], K[1:n] = R[0, :at], K[0]
    K[:n, core.GOALS], K[:n, [core.SEED, core.SEED_HIGH]] = [len(query.goals) for query in queries], [halves(seed) for seed in seeds]
    K[:n, core.MODE], R[:n, core.STEP] = np.array([checker.motion_args for checker in checkers]).T
    for field in ("lower", "upper", "weights", "start"):
        R[:n, at:at + dof] = [getattr(query, field) for query in queries]
        at += dof
    if len({len(query.goals) for query in queries}) == 1:
        R[:n, at:at + queries[0].goals.size] = np.array([query.goals for query in queries]).reshape(n, -1)
    else:
        for row, query in zip(R, queries):
            row[at:at + query.goals.size] = query.goals.ravel()


def halves(seed):
    """A folded seed as two int32 that are not negative."""
    return seed & 0x7FFFFFFF, seed >> SEED_BITS // 2


def request_size(query):
    """Length of R for a query."""
    return core.VECTORS + (4 + len(query.goals)) * len(query.start)


def read_answer(K, P, query, cost=None):
    """-> PlanningResult of a search that has ended; cost: of the path, if it is known."""
    status, samples = K[core.STATUS], int(K[core.SAMPLES])
    if status == core.SOLVED:
        at, dof = K[core.PATH_AT], len(query.start)
        return query.solved(P[at:at + K[core.LENGTH] * dof].reshape(-1, dof), K[core.GOAL], samples, cost=cost)
    if status == core.START_COLLIDES:
        return query.start_collides()
    if status == core.GOALS_COLLIDE:
        return query.goals_collide()
    if status == core.SEARCHING:
        return query.exhausted(samples)
    if status == core.FULL:
        return query.failed(Status.SAMPLES_EXHAUSTED, f"no path after {samples} samples, which fill a tree of {NODES} nodes", samples)
    return query.timed_out(samples)


def read_answers(K, P, queries):
    """The same for many queries: -> list; None where a tree or the paths found no room. All costs are added up at once."""
    dof = len(queries[0].start)
    K = K[:len(queries)].copy()
    solved = K[:, core.STATUS] == core.SOLVED
    at, length = K[:, core.PATH_AT] // dof * solved, K[:, core.LENGTH] * solved
    P = P[:(at + length).max() * dof].astype(np.float64)
    so_far = np.zeros(len(P) // dof + 2)
    so_far[2:-1] = np.cumsum(np.linalg.norm(np.diff(P.reshape(-1, dof), axis=0) * np.sqrt(queries[0].weights), axis=1))
    costs = so_far[at + length] - so_far[at + 1]
    return [None if k[core.STATUS] == core.FULL else read_answer(k, P, query, cost)
            for k, query, cost in zip(K.tolist(), queries, costs.tolist())]


class _CpuEngine:
    """One thread searches, CHUNK samples at a time. Memory is only touched as far as trees grow."""

    def __init__(self):
        self._warm = set()

    def warm_up(self, checker, many=False):
        """Compile the search for a kind of checker, or load it from the cache, before the clock of a query starts."""
        kind = type(checker.new_scratch())
        if kind not in self._warm:
            self._warm.add(kind)
            self.solve(dry_query(checker), checker, Settings(max_samples=1), 0)

    def solve(self, query, checker, settings, seed):
        if query.late():
            return query.timed_out()
        batch = settings.batch or 1
        dof, capacity = len(query.start), -(-(NODES + len(query.goals)) // BLOCK) * BLOCK
        floats, ints = core.state_sizes(dof, capacity, batch, 1)
        A, N = np.empty(floats, dtype=np.float32), np.empty(ints, dtype=np.int32)
        R, K = np.empty(request_size(query), dtype=np.float32), np.zeros(core.INTS, dtype=np.int32)
        P = np.empty(core.CORNERS * dof, dtype=np.float32)
        write_request(R, K, query, settings, batch, 1, seed, checker, capacity)
        scratch, scene = checker.new_scratch(), checker.packed_scene
        K[core.UNTIL] = 0
        while K[core.STATUS] == core.SEARCHING and K[core.UNTIL] < settings.max_samples:
            K[core.UNTIL], K[core.LIMIT] = min(K[core.UNTIL] + CHUNK, settings.max_samples), left_ms(query.deadline)
            _solve(R, K, P, *scene, A, N, scratch)
            K[core.FRESH] = 0
        return read_answer(K, P, query)

    def solve_many(self, queries, checkers, settings, seeds):
        answers, numbers, threads = [None] * len(queries), iter(range(len(queries))), os.cpu_count()

        def work(_):
            for i in numbers:
                answers[i] = self.solve(queries[i], checkers[i], settings, seeds[i])

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))
        return answers


_cpu = _CpuEngine()


def _engine(checker, many=False):
    """The engine for a checker, warm for it."""
    checker.warm_up()
    if checker.device == "cpu":
        engine = _cpu
    else:
        from .rrt_connect_kernels import engine_on

        engine = engine_on(checker)
    engine.warm_up(checker, many)
    return engine


@njit
def _solve(R, K, P, F, I, A, N, S):
    dof = K[core.DOF]
    qa, qb, distances = np.empty(dof, dtype=np.float32), np.empty(dof, dtype=np.float32), np.empty(BLOCK, dtype=np.float32)
    core.solve_one(R, K, P, F, I, A, N, S, qa, qb, distances, 0, 1, 0, 0, 1)


def solve_batch(starts, goals, checkers, settings=Settings(), seed=0):
    """Many problems in one call: on CUDA a launch with a block for each problem at work, on the CPU a thread.

    starts: (n, dof) or a sequence of (dof,);  goals: for each problem as `solve` takes them
    checkers: one for all, or one for each problem, all on the same device and for robots of the same size
    settings: for all;  seed: any integer; problem i is searched with seed + i

    -> list of n PlanningResult: each problem has its own status, a bad one does not touch the others. time_limit_s is for the
    whole call, and time_s counts from its beginning. Raises SettingsError when the numbers of starts, goals and checkers differ.
    """
    try:
        starts, goals = list(starts), list(goals)
    except TypeError:
        raise SettingsError("solve_batch got starts or goals that are no sequences; allowed: one entry for each problem") from None
    checkers = list(checkers) if isinstance(checkers, (list, tuple)) else [checkers] * len(starts)
    if not len(starts) == len(goals) == len(checkers):
        raise SettingsError(f"solve_batch got {len(starts)} starts, {len(goals)} goals and {len(checkers)} checkers; allowed: as many of each, "
                            "or one checker for all")
    folded_seed(seed)
    for checker in {id(checker): checker for checker in checkers}.values():
        check_call(checker, settings, Settings)
    if not starts:
        return []
    if len({(checker.device, checker.robot.dof, checker.device == "cpu" or checker.scratch_sizes) for checker in checkers}) > 1:
        raise SettingsError("solve_batch got checkers of different devices or robots; allowed: one device, robots of one size")
    seeds, settings = [folded_seed(int(seed) + i) for i in range(len(starts))], replace(settings, restarts=0)
    for checker in {type(checker): checker for checker in checkers}.values():  # one of each kind, which have one engine
        engine = _engine(checker, many=True)
    results = open_queries(starts, goals, checkers, settings)
    asked = [i for i, query in enumerate(results) if isinstance(query, Query)]
    if asked:
        answers = engine.solve_many([results[i] for i in asked], [checkers[i] for i in asked], settings, [seeds[i] for i in asked])
        for i, answer in zip(asked, answers):
            results[i] = engine.solve(results[i], checkers[i], settings, seeds[i]) if answer is None else answer
    return results
