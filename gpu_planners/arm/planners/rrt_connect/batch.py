"""RRT-Connect for many problems in one call, which devices and workers may share."""

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ....arguments import as_array, instance, speaks
from ....device import model_of, resolve_devices
from ....distributed.executors import Split, devices_of, least_on, spread, workers_of
from ....distributed.progress import Progress
from ....errors import SettingsError
from ....parallel.sampling import SEED_BITS, folded_seed
from ...constraints import Constraint, KeepingChecker
from ...spaces.configurations import on_host
from ..plain_queries import PlainQueries, numbered, open_queries
from ..query import GREATEST_GOALS, Query, check_call
from ..results import PlanningResults
from .planner import Settings, engine_for
from .request import BatchShape

MOST_SHARED = 1024  # checkers that each worker gets all of; of more, each piece has its own
LEAST_ALIKE = 16384  # problems of a piece where CUDA devices are alike, and have equal parts of fewer


class Batch(NamedTuple):
    """A batch, or a part of one.

    starts, goals: a list or an array each, with an entry for each problem; an array is pickled thirty times as fast
    checkers: (m,), numbers: (n,) int64, which of them each has;  seeds: (n,) int64, folded
    whole: of the whole batch
    """

    starts: Any
    goals: Any
    checkers: list
    numbers: np.ndarray
    settings: Settings
    seeds: np.ndarray
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
        batch = batch._replace(checkers=[KeepingChecker(checker, constraints) for checker in batch.checkers])
    if not len(batch.starts):
        return PlanningResults.of([], 0)
    if executor is None and devices is None:
        return solve_part(batch, batch.checkers[0].device)
    return spread_batch(batch, executor, devices, progress)


def batch_of(starts: Iterable, goals: Iterable, checkers, settings: Settings, seed: int) -> Batch:
    """What `solve_batch` takes, looked through. Raises SettingsError."""
    try:
        starts, goals = (_rows(on_host(each) if speaks(each) else each) for each in (starts, goals))
    except Exception:  # whatever an object of the caller raises
        raise SettingsError(
            "solve_batch got starts or goals that are no sequences; allowed: one entry for each problem"
        ) from None
    one = not isinstance(checkers, Sequence) or isinstance(checkers, str | bytes)
    checkers, numbers = ([checkers], np.zeros(len(starts), np.int64)) if one else numbered(checkers)
    if not len(starts) == len(goals) == len(numbers):
        raise SettingsError(
            f"solve_batch got {len(starts)} starts, {len(goals)} goals and {len(numbers)} checkers; "
            "allowed: as many of each, or one checker for all"
        )
    first = folded_seed(seed)
    if first != seed or first + len(starts) >> SEED_BITS:
        seeds = np.array([folded_seed(int(seed) + i) for i in range(len(starts))], np.int64)
    else:
        seeds = np.arange(first, first + len(starts))
    for checker in checkers:
        check_call(checker, settings, Settings)
    kinds = {(each.device, each.robot.dof, each.device == "cpu" or each.scratch_sizes) for each in checkers}
    if len(kinds) > 1:
        raise SettingsError(
            "solve_batch got checkers of different devices or robots; allowed: one device, robots of one size"
        )
    settings = replace(settings, restarts=0, optimise_s=0.0, searches=1)
    counts = map(_goal_count, goals[:1] if isinstance(goals, np.ndarray) else goals)
    whole = BatchShape(len(starts), max(counts, default=1))
    return Batch(starts, goals, checkers, numbers, settings, seeds, whole)


def _rows(given):
    """An entry for each problem: an array where they are numbers of one shape, else a list."""
    rows = given if isinstance(given, np.ndarray) and given.ndim else list(given)
    array = as_array(rows)
    return rows if array is None or array.dtype.kind not in "iuf" else array


def _goal_count(goals):
    """How many goals a problem has; 1 where they are nothing that can be searched, which its own result will say."""
    try:
        return len(goals) if np.ndim(goals[0]) and len(goals) <= GREATEST_GOALS else 1
    except Exception:  # whatever an object of the caller raises
        return 1


def solve_part(batch: Batch, device: str) -> PlanningResults:
    """Solve a batch, or a part of one, on one device; its checkers may be for another one."""
    checkers, which = _used(batch.checkers, batch.numbers)
    checkers, settings = [each.on(device) if each.device != device else each for each in checkers], batch.settings
    for checker in {type(checker): checker for checker in checkers}.values():  # one of each kind, which have one engine
        engine = engine_for(checker, many=True, raw=not settings.shortcut_rounds)
    opened, dof = open_queries(batch.starts, batch.goals, checkers, which, settings), checkers[0].robot.dof
    if isinstance(opened, PlainQueries):
        return _solved(engine, opened, settings, batch.seeds, batch.whole)
    results: list[Any] = list(opened)
    asked = [i for i, query in enumerate(results) if isinstance(query, Query)]
    if asked:
        given = [results[i] for i in asked], settings, batch.seeds[asked], batch.whole
        for i, answer in zip(asked, _solved(engine, *given)):
            results[i] = answer
    return PlanningResults.of(results, dof)


def _solved(engine, queries, settings, seeds, whole):
    """The results of queries, with those by themselves that found no room in the batch."""
    found = engine.solve_many(queries, settings, seeds, whole)
    for i in found.missing():
        found.objects[i] = engine.solve(queries[i], settings, int(seeds[i]))
    return found.results()


def spread_batch(
    batch: Batch, executor: Executor | None, devices: str | Sequence[str] | None, progress: Progress | None
) -> PlanningResults:
    """Solve a batch as `solve_batch` says, by workers, each of which calls `solve_part`."""
    names, count = devices_of(devices, batch.checkers[0].device), len(batch.starts)
    names = resolve_devices(names) if executor is None else names
    least, alike = least_on(names), _alike(names, executor)
    if alike:
        least = max(least, min(LEAST_ALIKE, -(-count // alike)))
    # problems that are alike often follow each other: each part has every so many
    order = np.concatenate([np.arange(part, count, max(1, alike)) for part in range(max(1, alike))])
    shared = batch.checkers if len(batch.checkers) <= MOST_SHARED else None

    def cut(first: int, last: int) -> Batch:
        rows = order[first:last]
        starts, goals = (each[rows] if isinstance(each, np.ndarray) else [each[i] for i in rows] for each in batch[:2])
        checkers, numbers = [], batch.numbers[rows]
        if shared is None:
            checkers, numbers = _used(batch.checkers, numbers)
        return Batch(starts, goals, checkers, numbers, batch.settings, batch.seeds[rows], batch.whole)

    split = Split("problems", count, cut, _answer, shared, least, lent=True)
    stop = threading.Event()
    if executor is None:
        batch = batch._replace(whole=batch.whole._replace(stop=stop))
        for checker in batch.checkers:  # threads that pack scenes take turns, and would pack one twice
            if getattr(checker, "batch", None) is None:  # those of a SceneBatch are packed
                _ = checker.scene_parts
    try:
        parts = list(spread(split, executor, names, progress))
    except BaseException:  # also Ctrl-C, which threads do not see
        stop.set()
        raise
    return PlanningResults.joined(parts, order)


def _used(checkers, numbers):
    """The checkers that are among the numbers (n,), and (n,) which of these each has."""
    asked, which = np.unique(numbers, return_inverse=True)
    return [checkers[number] for number in asked], which


def _answer(shared, part, device):
    """`solve_part` in a worker. shared: the checkers that the part has numbers of, or None"""
    return solve_part(part if shared is None else part._replace(checkers=shared), device)


def _alike(names, executor):
    """How many workers have CUDA devices that are alike, as those of an executor are taken to be; 0: none.

    They get equal parts: each part, however small, takes a device as long as its slowest problem.
    """
    if "cpu" in names:
        return 0
    if executor is None:
        return len(names) if len(set(map(model_of, names))) == 1 else 0
    return workers_of(executor)
