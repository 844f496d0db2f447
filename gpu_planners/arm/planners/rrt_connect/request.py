"""What a search of RRT-Connect is asked and what it answers, as they lie in memory, and their host's side.

A request is a row of float32, a row of int32, and the answer's room behind the latter. On CUDA both rows lie in
page-locked memory.
"""

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....device import lean_njit
from ....parallel.sampling import halves, joined_halves
from ....parallel.team import left_ms
from ..node_store import whole_tiles
from ..query import Query
from ..result import PlanningResult, Status

NODES = 1 << 18  # of a tree, at most
# how a search ended; SEARCHING: it may go on
SEARCHING, SOLVED, FULL, STOPPED, START_COLLIDES, GOALS_COLLIDE = range(6)


class Order(NamedTuple):
    """The int32 request, in this order in memory.

    batch: samples of a round, at most; first: of the first rounds; until: samples drawn at most; mode: of the motion
    check; passes: of shortening; fresh: 0 where the search goes on where it stopped; left_ms: until the deadline
    split: how many workers share a leg of a path that is shortened; capacity: nodes of a tree
    trees: where they are kept, of many searches
    scene_floats, scene_ints: where the scene begins
    """

    dof: int
    goals: int
    batch: int
    first: int
    until: int
    seed_low: int
    seed_high: int
    mode: int
    passes: int
    fresh: int
    left_ms: int
    split: int
    capacity: int
    trees: int
    scene_floats: int
    scene_ints: int


class Answer(NamedTuple):
    """The int32 answer, behind the request.

    status: SEARCHING...; goal: which one was reached; samples: drawn; length: corners of the path; path_at: where it
    begins
    """

    status: int
    goal: int
    samples: int
    length: int
    path_at: int


class Problems(NamedTuple):
    """Many queries, a checker and a seed for each, and where its scene begins: places, (n, 2)."""

    queries: Sequence[Query]
    checkers: Sequence
    seeds: Sequence[int]
    places: np.ndarray

    def chosen(self, numbers: Sequence[int]) -> "Problems":
        """Those of these numbers."""
        lists: list[Any] = [[each[i] for i in numbers] for each in (self.queries, self.checkers, self.seeds)]
        return Problems(lists[0], lists[1], lists[2], self.places[numbers])


class BatchShape(NamedTuple):
    """Sizes of the full batch: its problems, and the most goals of one of them. They fix the passes, so a shard
    searches identically.

    stop: ends the searches on the CPU soon after it is set
    """

    problems: int
    goals: int
    stop: threading.Event | None = None


ANSWER = len(Order._fields)
INTS = ANSWER + len(Answer._fields)
RANGE, DOMAIN = 3 / 16, 3 / 4  # of the spread of random configurations: what settings of 0 mean
HEAD = 3  # scalars of the float32 request: step of the motion check, longest motion, radius of the dynamic domain
VECTORS = (
    3  # behind them, (dof,) each: lower, upper, weights; then the roots: the start and the goals, (1 + goals, dof)
)


class Request(NamedTuple):
    """A request as compiled code reads it. See Order, and

    mode: int32; seed: uint64; step: float32 of the motion check; reach: float32, longest motion that is added at once
    radius: float32 of the dynamic domain, 0: none; lower, upper, weights: (dof,) float32
    """

    dof: int
    goals: int
    batch: int
    first: int
    until: int
    passes: int
    fresh: bool
    split: int
    capacity: int
    mode: int
    seed: int
    step: float
    reach: float
    radius: float
    lower: np.ndarray
    upper: np.ndarray
    weights: np.ndarray


@lean_njit
def read_order(ints):
    """The int32 row as an Order."""
    return Order(
        int(ints[0]),
        int(ints[1]),
        int(ints[2]),
        int(ints[3]),
        int(ints[4]),
        int(ints[5]),
        int(ints[6]),
        int(ints[7]),
        int(ints[8]),
        int(ints[9]),
        int(ints[10]),
        int(ints[11]),
        int(ints[12]),
        int(ints[13]),
        int(ints[14]),
        int(ints[15]),
    )


@lean_njit
def read_request(order, floats):
    """The Request of an Order and of the float32 row, of which no more than `shared_size` numbers are needed."""
    dof = order.dof
    lower, upper, weights = HEAD, HEAD + dof, HEAD + 2 * dof
    return Request(
        dof,
        order.goals,
        order.batch,
        order.first,
        order.until,
        order.passes,
        order.fresh != 0,
        order.split,
        order.capacity,
        np.int32(order.mode),
        joined_halves(order.seed_low, order.seed_high),
        floats[0],
        floats[1],
        floats[2],
        floats[lower:upper],
        floats[upper:weights],
        floats[weights : weights + dof],
    )


@lean_njit
def shared_size(dof):
    """How many numbers of the float32 row come before the roots: those that are read again and again."""
    return HEAD + VECTORS * dof


@lean_njit
def write_answer(ints, answer):
    """ints: the int32 row. The status is written last."""
    ints[ANSWER + 1], ints[ANSWER + 2], ints[ANSWER + 3] = answer.goal, answer.samples, answer.length
    ints[ANSWER + 4] = answer.path_at
    ints[ANSWER] = answer.status


def request_size(dof: int, goals: int) -> int:
    """Length of the float32 row."""
    return HEAD + (VECTORS + 1 + goals) * dof


def room_for(nodes: int, goals: int) -> int:
    """The capacity of trees of so many nodes besides the goals."""
    return whole_tiles(nodes + goals)


def order_of(
    query: Query, settings, batch: int, split: int, seed: int, checker, capacity: int, first: int = 0
) -> Order:
    """The int32 request of one query. first: samples of the first rounds, 0: as many as of the others"""
    mode, _ = checker.motion_args
    return Order(
        dof=len(query.start),
        goals=len(query.goals),
        batch=batch,
        first=first or batch,
        until=settings.max_samples,
        seed_low=halves(seed)[0],
        seed_high=halves(seed)[1],
        mode=mode,
        passes=settings.shortcut_rounds,
        fresh=1,
        left_ms=left_ms(query.deadline),
        split=split,
        capacity=capacity,
        trees=0,
        scene_floats=0,
        scene_ints=0,
    )


def spread_of(lower: np.ndarray, upper: np.ndarray, periodic: np.ndarray) -> np.ndarray:
    """(..., dof) limits -> (...) root mean square distance of two random configurations. A turn counts at most of a
    joint whose values a turn apart are one place (periodic)."""
    ranges = np.subtract(upper, lower, dtype=np.float64)
    return np.sqrt((np.where(periodic, np.minimum(ranges, 2 * np.pi), ranges) ** 2).sum(axis=-1) / 6)


def write_request(floats: np.ndarray, ints: np.ndarray, order: Order, query: Query, settings, checker) -> None:
    """Fill the rows of one query."""
    ints[:ANSWER], ints[ANSWER:INTS] = order, Answer(SEARCHING, 0, 0, 0, 0)
    _, step = checker.motion_args
    spread = spread_of(query.lower, query.upper, checker.robot.periodic)
    floats[:HEAD] = step, settings.range or RANGE * spread, settings.dynamic_domain or DOMAIN * spread
    vectors = np.concatenate([query.lower, query.upper, query.weights, query.start, query.goals.ravel()])
    floats[HEAD : HEAD + len(vectors)] = vectors


def write_requests(
    floats: np.ndarray, ints: np.ndarray, problems: Problems, settings, split: int, capacity: int
) -> None:
    """Fill the rows of many queries: floats (n, size), ints (n, INTS). What they share is written once."""
    queries, checkers, seeds, places = problems
    n, dof = len(queries), len(queries[0].start)
    shared = order_of(queries[0], settings, settings.batch, split, seeds[0], checkers[0], capacity)
    write_request(floats[0], ints[0], shared, queries[0], settings, checkers[0])
    ints[1:n] = ints[0]
    modes, steps = np.array([checker.motion_args for checker in checkers]).T
    for field, values in {
        "goals": [len(query.goals) for query in queries],
        "seed_low": [halves(seed)[0] for seed in seeds],
        "seed_high": [halves(seed)[1] for seed in seeds],
        "mode": modes,
        "scene_floats": places[:, 0],
        "scene_ints": places[:, 1],
    }.items():
        ints[:n, Order._fields.index(field)] = values
    periodic = {id(checker.robot): checker.robot.periodic for checker in checkers}
    lower, upper = (np.array([getattr(query, field) for query in queries]) for field in ("lower", "upper"))
    spread = spread_of(lower, upper, np.array([periodic[id(checker.robot)] for checker in checkers]))
    floats[:n, 0], at = steps, HEAD
    floats[:n, 1], floats[:n, 2] = settings.range or RANGE * spread, settings.dynamic_domain or DOMAIN * spread
    for field in ("lower", "upper", "weights", "start"):
        floats[:n, at : at + dof] = [getattr(query, field) for query in queries]
        at += dof
    if len({len(query.goals) for query in queries}) == 1:
        floats[:n, at : at + queries[0].goals.size] = np.array([query.goals for query in queries]).reshape(n, -1)
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
    ints: np.ndarray | list, paths: np.ndarray, query: Query, cost: float | None = None, samples: int | None = None
) -> PlanningResult:
    """The result of a search that has ended; cost: of the path, if it is known; samples: of all searches of the query,
    where there was more than this one."""
    answer = Answer(*ints[ANSWER:INTS])
    status, samples = answer.status, int(answer.samples) if samples is None else samples
    if status == SOLVED:
        at, dof = answer.path_at, len(query.start)
        return query.solved(paths[at : at + answer.length * dof].reshape(-1, dof), answer.goal, samples, cost=cost)
    return FAILURES[status](query, samples)


def read_answers(ints: np.ndarray, paths: np.ndarray, queries: Sequence[Query]) -> list[PlanningResult | None]:
    """The same for many queries; None where a tree or the paths found no room. All costs are added up at once, each in
    the same way wherever its path lies."""
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
