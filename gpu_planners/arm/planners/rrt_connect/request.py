"""Requests to a search of RRT-Connect and its answers: how they lie in memory, and the host's side of them.

A request is a row of float32 and a row of int32 with room for the answer; on CUDA in page-locked memory.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ....device import lean_njit
from ....parallel.layout import Float32, Int32, floats, ints, layout
from ....parallel.sampling import halves
from ....parallel.team import left_ms
from ..blocked import read_log
from ..query import Query
from ..result import PlanningResult, Status

NODES = 1 << 18  # of a tree, at most
# how a search ended; SEARCHING: it may go on
SEARCHING, SOLVED, FULL, STOPPED, START_COLLIDES, GOALS_COLLIDE = range(6)


class Request(NamedTuple):
    """A request's numbers, in their order in memory. Answer follows the int32 row, Bounds and roots the float32."""

    dof: int = ints()
    goals: int = ints()
    batch: int = ints()  # samples of a round, at most
    first: int = ints()  # of the first rounds: see `search.batch_after`
    until: int = ints()  # samples drawn at most
    seed_low: int = ints()
    seed_high: int = ints()
    mode: Int32 = ints()  # of the motion check
    passes: int = ints()  # of shortening
    fresh: bool = ints()  # else the search goes on where it stopped
    left_ms: int = ints()  # until the deadline
    split: int = ints()  # workers that share a leg of a path that is shortened, or a motion of a small round
    capacity: int = ints()  # nodes of a tree
    shortest: int = ints()  # Round.shorter at most
    closest: int = ints()  # Round.closer at most
    trees: int = ints()  # of many searches: where this one's are kept
    scene_floats: int = ints()  # where the scene begins
    scene_ints: int = ints()
    step: Float32 = floats()  # of the motion check
    reach: Float32 = floats()  # longest motion that is added at once
    radius: Float32 = floats()  # of the dynamic domain


class Bounds(NamedTuple):
    """What a request has for each joint. The roots follow: the start and the goals, (1 + goals, dof) float32.

    near_lower, near_upper: the part of lower .. upper that is within NEAR of the box around the start and the goals
    """

    lower: np.ndarray = floats("dof")
    upper: np.ndarray = floats("dof")
    near_lower: np.ndarray = floats("dof")
    near_upper: np.ndarray = floats("dof")
    weights: np.ndarray = floats("dof")


class Answer(NamedTuple):
    """The int32 answer, behind the request."""

    status: int  # SEARCHING, ...
    goal: int  # which one was reached
    samples: int  # drawn
    length: int  # corners of the path
    path_at: int  # where it begins


request_sizes, open_request = layout(Request)
bounds_sizes, open_bounds = layout(Bounds, "dof")
HEAD, ANSWER = request_sizes.py_func()  # where Bounds and Answer begin
INTS = ANSWER + len(Answer._fields)
LEFT_MS = Request._fields.index("left_ms")
INT_FIELDS = Request._fields[:ANSWER]


class Problems(NamedTuple):
    """Many queries, a seed for each, and where the scene of its checker begins: places, (n, 2)."""

    queries: Sequence[Query]
    seeds: Sequence[int]
    places: np.ndarray

    def chosen(self, numbers: Sequence[int]) -> "Problems":
        """Those of these numbers."""
        return Problems([self.queries[i] for i in numbers], [self.seeds[i] for i in numbers], self.places[numbers])


class BatchShape(NamedTuple):
    """Sizes of the full batch, problems and most goals of one; they fix the passes, so a shard searches identically.

    stop: ends the searches on the CPU soon after it is set
    """

    problems: int
    goals: int
    stop: threading.Event | None = None


NO_PLACES = np.zeros((1, 2), int)  # of a scene that lies at the beginning
RANGE, DOMAIN = 3 / 16, 3 / 4  # of the spread of random configurations: what settings of 0 mean
NEAR = 2.5  # rad or m beyond the start and the goals, from which the first samples are drawn
SHORTEST, CLOSEST = 139, 200  # blocked samples, by which these fall to a quarter, and to a seventh


@lean_njit
def write_answer(ints, answer):
    """ints: the int32 row. The status is written last."""
    ints[ANSWER + 1], ints[ANSWER + 2], ints[ANSWER + 3] = answer.goal, answer.samples, answer.length
    ints[ANSWER + 4] = answer.path_at
    ints[ANSWER] = answer.status


def request_size(dof: int, goals: int) -> int:
    """Length of the float32 row."""
    return HEAD + bounds_sizes.py_func(dof)[0] + (1 + goals) * dof


def set_fields(ints: np.ndarray, **fields: Any) -> None:
    """Set int32 fields of requests, (..., INTS), by their names."""
    for field, values in fields.items():
        ints[..., Request._fields.index(field)] = values


def write_requests(floats: np.ndarray, ints: np.ndarray, problems: Problems, settings, **same: int) -> None:
    """Fill the rows of queries: floats (n, size), ints (n, INTS). same: further fields, which all have alike"""
    queries, seeds, places = problems
    dof, at = len(queries[0].start), HEAD
    modes, steps = zip(*(query.checker.motion_args for query in queries))
    low, high = zip(*map(halves, seeds))
    goals = [len(query.goals) for query in queries]
    values = {
        "dof": dof, "goals": goals, "batch": 0, "first": 0, "until": settings.max_samples,
        "seed_low": low, "seed_high": high, "mode": modes,
        "passes": settings.shortcut_rounds, "fresh": 1, "left_ms": left_ms(queries[0].deadline), "trees": 0,
        "shortest": 0 if settings.range else SHORTEST, "closest": 0 if settings.dynamic_domain else CLOSEST,
        "scene_floats": places[:, 0], "scene_ints": places[:, 1], **same,
    }  # fmt: skip
    for k, field in enumerate(INT_FIELDS):
        ints[:, k] = values[field]
    ints[:, ANSWER:] = 0
    lower, upper, weights, starts = (
        np.array([getattr(query, field) for query in queries]) for field in ("lower", "upper", "weights", "start")
    )
    ends = np.concatenate([query.goals for query in queries])
    firsts = np.cumsum([0, *goals[:-1]])
    near_lower = np.maximum(lower, np.minimum(starts, np.minimum.reduceat(ends, firsts)) - NEAR)
    near_upper = np.minimum(upper, np.maximum(starts, np.maximum.reduceat(ends, firsts)) + NEAR)
    # how far two random configurations are apart, root mean square; periodic joints' values a turn apart are one place
    turns = np.where([query.checker.robot.periodic for query in queries], 2 * np.pi, np.inf)
    spread = np.sqrt((np.minimum(np.subtract(upper, lower, dtype=np.float64), turns) ** 2).sum(axis=-1) / 6)
    floats[:, 0], floats[:, 1] = steps, settings.range or RANGE * spread
    floats[:, 2] = settings.dynamic_domain or DOMAIN * spread
    for rows in (lower, upper, near_lower, near_upper, weights, starts):
        floats[:, at : at + dof] = rows
        at += dof
    if len(set(goals)) == 1:
        floats[:, at : at + goals[0] * dof] = ends.reshape(len(queries), -1)
    else:
        for row, query in zip(floats, queries):
            row[at : at + query.goals.size] = query.goals.ravel()


def _full(query, samples):
    message = f"no path after {samples} samples, which fill a tree of {NODES} nodes"
    return query.failed(Status.SAMPLES_EXHAUSTED, message, samples)


FAILURES = {  # (query, samples) -> the result of a search that ended without a path
    SEARCHING: Query.exhausted,
    FULL: _full,
    STOPPED: Query.timed_out,
    START_COLLIDES: lambda query, samples: query.start_collides(),
    GOALS_COLLIDE: lambda query, samples: query.goals_collide(),
}


def read_answer(
    ints: np.ndarray | list,
    paths: np.ndarray,
    query: Query,
    cost: float | None = None,
    samples: int | None = None,
    log: Callable[[], Any] | None = None,
) -> PlanningResult:
    """The result of a search that has ended; cost: of the path, if it is known; samples: of all searches of the query,
    where there was more than this one; log: -> the trees, whose log tells which extensions were blocked."""
    answer = Answer(*ints[ANSWER:INTS])
    status, samples = answer.status, int(answer.samples) if samples is None else samples
    if status == SOLVED:
        at, dof = answer.path_at, len(query.start)
        return query.solved(paths[at : at + answer.length * dof].reshape(-1, dof), answer.goal, samples, cost=cost)
    failure = FAILURES[status](query, samples)
    return replace(failure, **read_log(log())) if log and status in (SEARCHING, FULL, STOPPED) else failure


def read_answers(ints: np.ndarray, paths: np.ndarray, queries: Sequence[Query]) -> list[PlanningResult | None]:
    """The results of many searches; None where a tree or the paths found no room. All costs are added up at once, each
    in the same way wherever its path lies."""
    dof, rows = len(queries[0].start), np.array(ints)  # a plain array, no mapped one
    answers: Any = Answer(*rows[:, ANSWER:INTS].T)
    costs, solved = np.zeros(len(rows)), np.flatnonzero(answers.status == SOLVED)
    solved = solved[np.argsort(answers.path_at[solved])]
    if len(solved):
        begin = answers.path_at[solved[0]].copy()
        answers.path_at[solved] -= begin  # which writes to `rows`
        first = answers.path_at[solved] // dof
        last = first + answers.length[solved] - 1
        paths = paths[begin : begin + (last[-1] + 1) * dof].astype(np.float64)
        steps = np.diff(paths.reshape(-1, dof), axis=0) * np.sqrt(queries[0].weights)
        lengths = np.append(np.linalg.norm(steps, axis=1), 0.0)
        costs[solved] = np.add.reduceat(lengths, np.stack([first, last], axis=1).ravel())[::2] * (last > first)
    return [
        None if row[ANSWER] == FULL else read_answer(row, paths, query, cost)
        for row, query, cost in zip(rows.tolist(), queries, costs.tolist())
    ]
