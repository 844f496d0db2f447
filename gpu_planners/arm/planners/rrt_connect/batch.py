"""RRT-Connect for many problems in one call, which devices and workers may share."""

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ....arguments import instance, speaks
from ....device import model_of, resolve_devices
from ....distributed.executors import Split, devices_of, least_on, spread, workers_of
from ....distributed.progress import Progress
from ....errors import SettingsError
from ....parallel.sampling import folded_seed
from ...constraints import Constraint, KeepingChecker
from ...spaces.configurations import on_host
from ..plain_queries import PlainQueries, open_queries
from ..query import GREATEST_GOALS, Query, check_call
from ..results import PlanningResults
from .planner import Settings, engine_for
from .request import BatchShape

MOST_SHARED = 1024  # checkers that each worker gets all of; of more, each piece has its own
LEAST_ALIKE = 16384  # problems of a piece where CUDA devices are alike, and have equal parts of fewer


class Batch(NamedTuple):
    """A batch, or a part of one.

    starts, goals: a list or an array each, with an entry for each problem; an array is pickled thirty times as fast
    checkers: (n,), for workers that share them by their numbers;  seeds: (n,), whichever integers
    whole: of the whole batch
    """

    starts: Any
    goals: Any
    checkers: list
    settings: Settings
    seeds: Sequence[int]
    whole: BatchShape


def solve_batch(
    starts: Iterable,
    goals: Iterable,
    checkers,
    settings: Settings = Settings(),
    seed: int = 0,
    executor: Executor | None = None,
    devices: str | Sequence[str] | None = None,
    progress: Progress | None = None,
    constraints: Constraint | None = None,
) -> PlanningResults:
    """Many problems in one call: on CUDA each has a block, and more of the device when others are solved; on the CPU
    a thread.

    starts: (n, dof) or a sequence of (dof,);  goals: for each problem as `solve` takes them; both may be arrays of any
        library, on the host or on a CUDA device
    checkers: one for all, or one for each problem, all on the same device and for robots of the same size; such as a
        SceneBatch, which has one for each scene
    settings: for all;  seed: any integer; problem i is searched with seed + i
    executor: any concurrent.futures.Executor, whose workers share the problems (`distributed.executors`): a process
        pool (started by "spawn" or "forkserver"), mpi4py.futures.MPIPoolExecutor, Dask's Client.get_executor()
    devices: of each machine with workers, such as "cuda:0,cuda:1", or "cuda:all"; by default the CPU, or all CUDA
        devices, as the checkers' device is. Without an executor, threads of this process, one for each device
    constraints: what all motions are proven to keep, as `solve` takes it; give KeepingCheckers for one each
    progress: where workers share the problems, called with how many are done and with n; None: a bar on stderr, if
        that is a terminal

    -> PlanningResults, n PlanningResult: each problem has its own status, a bad one does not touch the others. Arrays
    of all are there at once, an object is made where it is asked for. time_limit_s is for the whole call, and time_s
    counts from its beginning; where workers share the problems, both are for each piece that one of them gets. The
    results are the same however the problems are shared, on devices of one kind, unless time ends a search.

    Raises SettingsError when the numbers of starts, goals and checkers differ; WorkerError where a worker
    failed or died.
    """
    batch = batch_of(starts, goals, checkers, settings, seed)
    if constraints is not None:
        instance("constraints", constraints, Constraint, "a Constraint of arm.constraints, or None")
        keeping = {id(checker): KeepingChecker(checker, constraints) for checker in batch.checkers}
        batch = batch._replace(checkers=[keeping[id(checker)] for checker in batch.checkers])
    if not len(batch.starts):
        return PlanningResults.of([], 0)
    if executor is None and devices is None:
        return solve_part(batch, batch.checkers[0].device)
    return spread_batch(batch, executor, devices, progress)


def batch_of(starts: Iterable, goals: Iterable, checkers, settings: Settings, seed: int) -> Batch:
    """What `solve_batch` takes, looked through. Raises SettingsError."""
    try:
        starts, goals = (on_host(each) if speaks(each) else each for each in (starts, goals))
        starts, goals = (each if isinstance(each, np.ndarray) and each.ndim else list(each) for each in (starts, goals))
    except Exception:  # whatever an object of the caller raises
        raise SettingsError(
            "solve_batch got starts or goals that are no sequences; allowed: one entry for each problem"
        ) from None
    one = not isinstance(checkers, Sequence) or isinstance(checkers, str | bytes)
    checkers = [checkers] * len(starts) if one else list(checkers)
    if not len(starts) == len(goals) == len(checkers):
        raise SettingsError(
            f"solve_batch got {len(starts)} starts, {len(goals)} goals and {len(checkers)} checkers; "
            "allowed: as many of each, or one checker for all"
        )
    folded_seed(seed)
    for checker in _distinct(checkers):
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


def solve_part(batch: Batch, device: str) -> PlanningResults:
    """Solve a batch, or a part of one, on one device; its checkers may be for another one."""
    on_device = {id(each): each.on(device) if each.device != device else each for each in batch.checkers}
    checkers, settings = [on_device[id(each)] for each in batch.checkers], batch.settings
    seeds = [folded_seed(each) for each in batch.seeds]
    for checker in {type(checker): checker for checker in checkers}.values():  # one of each kind, which have one engine
        engine = engine_for(checker, many=True, raw=not settings.shortcut_rounds)
    opened, dof = open_queries(batch.starts, batch.goals, checkers, settings), checkers[0].robot.dof
    if isinstance(opened, PlainQueries):
        return _solved(engine, opened, settings, seeds, batch.whole)
    results: list[Any] = list(opened)
    asked = [i for i, query in enumerate(results) if isinstance(query, Query)]
    if asked:
        given = [results[i] for i in asked], settings, [seeds[i] for i in asked], batch.whole
        for i, answer in zip(asked, _solved(engine, *given)):
            results[i] = answer
    return PlanningResults.of(results, dof)


def _solved(engine, queries, settings, seeds, whole):
    """The results of queries, with those by themselves that found no room in the batch."""
    found = engine.solve_many(queries, settings, seeds, whole)
    for i in found.missing():
        found.objects[i] = engine.solve(queries[i], settings, seeds[i])
    return found.results()


def spread_batch(
    batch: Batch, executor: Executor | None, devices: str | Sequence[str] | None, progress: Progress | None
) -> PlanningResults:
    """Solve a batch as `solve_batch` says, by workers, each of which calls `solve_part`."""
    distinct = _distinct(batch.checkers)
    names, count = devices_of(devices, distinct[0].device), len(batch.starts)
    names = resolve_devices(names) if executor is None else names
    least, alike = least_on(names), _alike(names, executor)
    if alike:
        least = max(least, min(LEAST_ALIKE, -(-count // alike)))
    # problems that are alike often follow each other: each part has every so many
    order = [i for part in range(max(1, alike)) for i in range(part, count, max(1, alike))]

    numbers = {id(checker): number for number, checker in enumerate(distinct)}
    shared = distinct if len(distinct) <= MOST_SHARED else None
    given = batch.checkers if shared is None else [numbers[id(checker)] for checker in batch.checkers]

    def cut(first: int, last: int) -> Batch:
        lists = batch.starts, batch.goals, given, batch.seeds
        starts, goals, checkers, seeds = (_chosen(each, order[first:last]) for each in lists)
        return batch._replace(starts=starts, goals=goals, checkers=checkers, seeds=seeds)

    split = Split("problems", count, cut, _answer, shared, least, lent=True)
    stop = threading.Event()
    if executor is None:
        batch = batch._replace(whole=batch.whole._replace(stop=stop))
        for checker in distinct:  # threads that pack scenes take turns, and would pack one twice
            if getattr(checker, "batch", None) is None:  # those of a SceneBatch are packed
                _ = checker.scene_parts
    try:
        parts = list(spread(split, executor, names, progress))
    except BaseException:  # also Ctrl-C, which threads do not see
        stop.set()
        raise
    return PlanningResults.joined(parts, order)


def _answer(shared, part, device):
    """`solve_part` in a worker. shared: the checkers that the part has numbers of, or None"""
    checkers = [shared[number] for number in part.checkers] if shared else part.checkers
    return solve_part(part._replace(checkers=checkers), device)


def _alike(names, executor):
    """How many workers have CUDA devices that are alike, as those of an executor are taken to be; 0: none.

    They get equal parts: each part, however small, takes a device as long as its slowest problem.
    """
    if "cpu" in names:
        return 0
    if executor is None:
        return len(names) if len(set(map(model_of, names))) == 1 else 0
    return workers_of(executor)


def _distinct(checkers):
    return list({id(checker): checker for checker in checkers}.values())


def _chosen(values: Any, numbers: list[int]) -> Any:
    return values[numbers] if isinstance(values, np.ndarray) else [values[i] for i in numbers]
