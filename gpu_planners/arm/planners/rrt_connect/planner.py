"""RRT-Connect (Kuffner and LaValle, ICRA 2000): two trees, from the start and from all goals, that grow towards
samples and then towards each other until they meet.

Departures: straight ways from the start to the goals come first; a round takes `batch` samples against the trees as
they are when it begins; nodes farther than `range` are approached in steps of that length, each proven free as a whole;
one sample extends the smaller tree, several extend both; a node that failed to extend takes only samples near it (the
dynamic domain of Yershova et al., ICRA 2005).

The search and the shortening of the path are compiled code, one source for the CPU and CUDA (`search`). On the CPU a
search is one thread's, and `solve` lets two race where a problem is hard (`cpu`). On CUDA `solve` is one launch that
all multiprocessors share, `solve_batch` a few launches in which each problem at work has a block or more
(`passes_cuda`).
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ....distributed.progress import Progress
from ....errors import SettingsError
from ....parallel.sampling import folded_seed
from ....parallel.team import clock_ns
from ..query import GREATEST_GOALS, Query, check_call, dry_query, open_queries, open_query
from ..result import PlanningResult, Status
from ..warm import warm_once
from .batch import Batch, spread_batch
from .cpu import CpuEngine
from .request import BatchShape
from .settings import Settings

RESTART, MOST_RESTARTS = 1 << 40, 100_000  # between the seeds of restarts; of a query


def solve(
    start: ArrayLike, goals: ArrayLike, checker, settings: Settings = Settings(), seed: int = 0
) -> PlanningResult:
    """Plan from start (dof,) to the goal that is reached first of goals, (dof,) or (G, dof); rad or m.

    -> PlanningResult; with restarts or optimise_s its history tells how the cost fell. The same seed, settings and
    device give the same path unless time ends the search. seed: any integer
    """
    check_call(checker, settings, Settings)
    seed = folded_seed(seed)
    engine = _engine(checker)
    query = open_query(start, goals, checker, settings, check=False)
    if not isinstance(query, Query):
        return query
    best = engine.solve(query, checker, settings, seed)
    return _improved(best, query, settings, seed, engine) if best.solved else best


def _improved(first, query, settings, seed, engine):
    """The shortest path of further searches: of `restarts`, and of those for which optimise_s has time."""
    searches, checker = settings.restarts, query.checker
    if settings.optimise_s:
        query = replace(query, deadline=min(query.deadline, clock_ns() + int(1e9 * settings.optimise_s)))
        searches = searches or MOST_RESTARTS
    if not searches:
        return first
    # of any path: straight to the nearest goal
    shortest = np.sqrt(((query.goals - query.start) ** 2 @ query.weights).min())
    best, samples, history = first, first.samples, [(first.samples, first.time_s, first.cost)]
    seeds = (folded_seed(seed + i * RESTART) for i in range(1, searches + 1))
    with closing(engine.solve_each(query, checker, settings, seeds)) as results:
        while best.cost > (1 + 1e-6) * shortest and not query.late() and (again := next(results, None)):
            samples += again.samples
            if again.status in (Status.TIMED_OUT, Status.WORLD_CHANGED):
                best = best if again.status is Status.TIMED_OUT else again
                break
            if again.cost < best.cost:
                best = again
                history.append((samples, max(history[-1][1], again.time_s), again.cost))
    return replace(best, samples=samples, time_s=query.elapsed(), history=np.array(history))


_cpu = CpuEngine()


def _engine(checker, many=False):
    """The engine for a checker, warm for it: compiled, or loaded from the cache, before the clock of a query starts."""
    checker.warm_up()
    if checker.device == "cpu":
        engine = _cpu
    else:
        from .cuda import engine_on

        engine = engine_on(checker.device, checker.robot.dof, checker.scratch_sizes)

    def run():
        query, few = dry_query(checker), Settings(max_samples=1)
        if many:
            engine.solve_many([query], [checker], few, [0], BatchShape(1, 1))
        else:
            engine.solve(query, checker, few, 0)

    many = many and checker.device != "cpu"
    warm_once(f"rrt_connect.solve{'_batch' if many else ''}", checker, run)
    return engine


def solve_part(batch: Batch, device: str) -> list[PlanningResult]:
    """Solve a batch, or a part of one, on one device; its checkers may be for another one."""
    on_device = {id(checker): checker.on(device) if checker.device != device else checker for checker in batch.checkers}
    checkers, settings = [on_device[id(checker)] for checker in batch.checkers], batch.settings
    seeds = [folded_seed(each) for each in batch.seeds]
    for checker in {type(checker): checker for checker in checkers}.values():  # one of each kind, which have one engine
        engine = _engine(checker, many=True)
    results: list[Any] = open_queries(batch.starts, batch.goals, checkers, settings)
    asked = [i for i, query in enumerate(results) if isinstance(query, Query)]
    if asked:
        chosen = ([each[i] for i in asked] for each in (results, checkers))
        answers = engine.solve_many(*chosen, settings, [seeds[i] for i in asked], batch.whole)
        for i, answer in zip(asked, answers):
            results[i] = engine.solve(results[i], checkers[i], settings, seeds[i]) if answer is None else answer
    return results


def solve_batch(
    starts: Iterable,
    goals: Iterable,
    checkers,
    settings: Settings = Settings(),
    seed: int = 0,
    executor: Executor | None = None,
    devices: str | Sequence[str] | None = None,
    progress: Progress | None = None,
) -> list[PlanningResult]:
    """Many problems in one call: on CUDA each has a block, and more of the device when others are solved; on the CPU
    a thread.

    starts: (n, dof) or a sequence of (dof,);  goals: for each problem as `solve` takes them
    checkers: one for all, or one for each problem, all on the same device and for robots of the same size
    settings: for all;  seed: any integer; problem i is searched with seed + i
    executor: any concurrent.futures.Executor, whose workers share the problems (`distributed.executors`): a process
        pool (started by "spawn" or "forkserver"), mpi4py.futures.MPIPoolExecutor, Dask's Client.get_executor()
    devices: of each machine with workers, such as "cuda:0,cuda:1", or "cuda:all"; by default the CPU, or all CUDA
        devices, as the checkers' device is. Without an executor, threads of this process, one for each device
    progress: where workers share the problems, called with how many are done and with n; None: a bar on stderr, if
        that is a terminal

    -> list of n PlanningResult: each problem has its own status, a bad one does not touch the others. time_limit_s is
    for the whole call, and time_s counts from its beginning; where workers share the problems, both are for each piece
    that one of them gets. The results are the same however the problems are shared, on devices of one kind, unless time
    ends a search.

    Raises SettingsError when the numbers of starts, goals and checkers differ; WorkerError where a worker
    failed or died.
    """
    batch = batch_of(starts, goals, checkers, settings, seed)
    if not len(batch.starts):
        return []
    if executor is None and devices is None:
        return solve_part(batch, batch.checkers[0].device)
    return spread_batch(batch, solve_part, executor, devices, progress)


def batch_of(starts: Iterable, goals: Iterable, checkers, settings: Settings, seed: int) -> Batch:
    """What `solve_batch` takes, looked through. Raises SettingsError."""
    try:
        starts, goals = (each if isinstance(each, np.ndarray) and each.ndim else list(each) for each in (starts, goals))
    except Exception:  # whatever an object of the caller raises
        raise SettingsError(
            "solve_batch got starts or goals that are no sequences; allowed: one entry for each problem"
        ) from None
    checkers = list(checkers) if isinstance(checkers, (list, tuple)) else [checkers] * len(starts)
    if not len(starts) == len(goals) == len(checkers):
        raise SettingsError(
            f"solve_batch got {len(starts)} starts, {len(goals)} goals and {len(checkers)} checkers; "
            "allowed: as many of each, or one checker for all"
        )
    folded_seed(seed)
    for checker in {id(checker): checker for checker in checkers}.values():
        check_call(checker, settings, Settings)
    kinds = {(each.device, each.robot.dof, each.device == "cpu" or each.scratch_sizes) for each in checkers}
    if len(kinds) > 1:
        raise SettingsError(
            "solve_batch got checkers of different devices or robots; allowed: one device, robots of one size"
        )
    settings = replace(settings, restarts=0, optimise_s=0.0, searches=1)
    whole = BatchShape(len(starts), max(map(_goal_count, goals), default=1))
    return Batch(starts, goals, checkers, settings, range(int(seed), int(seed) + len(starts)), whole)


def _goal_count(goals):
    """How many goals a problem has; 1 where they are nothing that can be searched, which its own result will say."""
    try:
        return len(goals) if np.ndim(goals[0]) and len(goals) <= GREATEST_GOALS else 1
    except Exception:  # whatever an object of the caller raises
        return 1
