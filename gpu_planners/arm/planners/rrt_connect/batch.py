"""A batch of problems that workers share: what they are sent, and how what comes back is joined."""

import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from ....device import model_of, resolve_devices
from ....distributed.executors import Split, devices_of, least_on, spread, workers_of
from ....distributed.progress import Progress
from ..result import PlanningResult
from .request import BatchShape
from .settings import Settings

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


def spread_batch(
    batch: Batch,
    solve: Callable[[Batch, str], list[PlanningResult]],
    executor: Executor | None,
    devices: str | Sequence[str] | None,
    progress: Progress | None,
) -> list[PlanningResult]:
    """Solve a batch as `solve_batch` says, by workers, each of which calls solve(part, device)."""
    distinct = list({id(checker): checker for checker in batch.checkers}.values())
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

    split = Split("problems", count, cut, functools.partial(_solve, solve), shared, least, lent=True)
    stop = threading.Event()
    if executor is None:
        batch = batch._replace(whole=batch.whole._replace(stop=stop))
        for checker in distinct:  # threads that pack scenes take turns, and would pack one twice
            _ = checker.scene_parts
    try:
        results = [result for part in spread(split, executor, names, progress) for result in part]
    except BaseException:  # also Ctrl-C, which threads do not see
        stop.set()
        raise
    return [result for _, result in sorted(zip(order, results), key=itemgetter(0))]


def _solve(solve, shared, part, device):
    return solve(part._replace(checkers=[shared[number] for number in part.checkers]) if shared else part, device)


def _alike(names, executor):
    """How many workers have CUDA devices that are alike, as those of an executor are taken to be; 0: none.

    They get equal parts: each part, however small, takes a device as long as its slowest problem.
    """
    if "cpu" in names:
        return 0
    if executor is None:
        return len(names) if len(set(map(model_of, names))) == 1 else 0
    return workers_of(executor)


def _chosen(values: Any, numbers: list[int]) -> Any:
    return values[numbers] if isinstance(values, np.ndarray) else [values[i] for i in numbers]
