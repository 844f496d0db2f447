"""A batch of problems that workers share: what they are sent, and how what comes back is joined."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import NamedTuple

from ....distributed.executors import Split, devices_of, spread
from ....distributed.progress import Progress
from ..result import PlanningResult
from .request import Whole
from .settings import Settings

MOST_SHARED = 1024  # checkers that each worker gets all of; of more, it gets those of its problems, and all robots


class Batch(NamedTuple):
    """A batch, or a part of one.

    starts, goals, checkers: a list each, with an entry for each problem
    seed: of the first problem; of the next one, seed + 1
    whole: of the whole batch
    """

    starts: list
    goals: list
    checkers: list
    settings: Settings
    seed: int
    whole: Whole


def spread_batch(
    batch: Batch,
    solve: Callable[[Batch, str], list[PlanningResult]],
    executor: Executor | None,
    devices: str | Sequence[str] | None,
    progress: Progress | None,
) -> list[PlanningResult]:
    """Solve a batch as `solve_batch` says, by workers, each of which calls solve(part, device)."""
    distinct = list({id(checker): checker for checker in batch.checkers}.values())
    robots = list({id(checker.robot): checker.robot for checker in distinct}.values())
    names = devices_of(devices, distinct[0].device)

    def cut(first: int, last: int) -> Batch:
        starts, goals, checkers = (each[first:last] for each in (batch.starts, batch.goals, batch.checkers))
        return batch._replace(starts=starts, goals=goals, checkers=checkers, seed=batch.seed + first)

    split = Split(
        "problems",
        len(batch.starts),
        cut,
        solve,
        tuple(distinct if len(distinct) <= MOST_SHARED else robots),
        many=True,
        lent=True,
    )
    if executor is None:  # threads that pack scenes take turns, and would pack one twice
        for checker in distinct:
            _ = checker.packed_scene
    parts = spread(split, executor, names, progress)
    return [result for part in parts for result in part]
