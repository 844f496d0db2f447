"""The message to RRT-Connect's compiled code (`host`) and back: how the host writes requests and reads answers.

A request is a row of float32, Request, Bounds and Ends, and a row of int32, Request and Answer.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from ....parallel.layout import Float32, Int32, floats, ints, layout
from ....parallel.sampling import halves
from ..plain_queries import PlainQueries, checkers_of
from ..query import Query
from ..result import PlanningResult, Status
from ..results import Found, rows_of

NODES = 1 << 18  # of a tree, at most
# how a search ended; SEARCHING: it may go on
SEARCHING, SOLVED, FULL, STOPPED, START_COLLIDES, GOALS_COLLIDE = range(6)


class Request(NamedTuple):
    """A request's numbers."""

    dof: int = ints()
    goal_count: int = ints()
    batch: int = ints()  # samples of a round, at most
    first: int = ints()  # of the first rounds: see `search.batch_after`
    until: int = ints()  # samples drawn at most
    seed_low: int = ints()
    seed_high: int = ints()
    mode: Int32 = ints()  # of the motion check
    passes: int = ints()  # of shortening
    fresh: bool = ints()  # else the search goes on where it stopped
    split: int = ints()  # workers that share a leg of a path that is shortened, or a motion of a small round
    capacity: int = ints()  # nodes of a tree
    shortest: int = ints()  # Round.shorter at most
    closest: int = ints()  # Round.closer at most
    trees: int = ints()  # of many searches: where this one's are kept
    scene_floats: int = ints()  # where the scene begins
    scene_ints: int = ints()
    walk: int = ints()  # steps of a walk at most, 0: motions go straight (`walk`)
    step: Float32 = floats()  # of the motion check
    reach: Float32 = floats()  # longest motion that is added at once
    radius: Float32 = floats()  # of the dynamic domain


class Bounds(NamedTuple):
    """What a request has for each joint.

    near_lower, near_upper: the part of lower .. upper that is within NEAR of the box around the start and the goals
    """

    lower: np.ndarray = floats("dof")
    upper: np.ndarray = floats("dof")
    near_lower: np.ndarray = floats("dof")
    near_upper: np.ndarray = floats("dof")
    weights: np.ndarray = floats("dof")


class Ends(NamedTuple):
    """Where the path begins, and where it may end."""

    start: np.ndarray = floats("dof")
    goals: np.ndarray = floats("goal_count * dof")


class Answer(NamedTuple):
    """What a request has become."""

    status: np.ndarray = ints("1")  # SEARCHING, ...
    goal: np.ndarray = ints("1")  # which one was reached
    samples: np.ndarray = ints("1")  # drawn
    length: np.ndarray = ints("1")  # corners of the path
    path_at: np.ndarray = ints("1")  # where it begins


request_sizes, open_request, write_request = layout(Request)
bounds_sizes, open_bounds, write_bounds = layout(Bounds, "dof")
ends_sizes, open_ends, write_ends = layout(Ends, "dof goal_count")
answer_sizes, open_answer, _ = layout(Answer)
HEAD, ANSWER = request_sizes.py_func()  # where Bounds and Answer begin
SAMPLES = ANSWER + Answer._fields.index("samples")
INTS = ANSWER + answer_sizes.py_func()[1]


class Queue(NamedTuple):
    """Requests that teams of blocks take one after the other, and room for their paths: one for which there is no room
    ends as FULL. They share a deadline.

    The team's own memory: barriers of all teams, then the trees, then what each team works in.
    """

    dof: int = ints()
    mode: Int32 = ints()  # each request has its own
    total: Int32 = ints()  # requests that lie here
    row: Int32 = ints()  # length of a float32 request
    room: Int32 = ints()  # length of `paths`
    asked: Int32 = ints()  # requests of this launch
    teams: Int32 = ints()
    blocks: Int32 = ints()  # of a team; 0: all
    barriers: Int32 = ints()  # int32 of all teams' barriers, however many these are
    trees: Int32 = ints()  # for which there is room
    keep: Int32 = ints()  # has each request trees of its own, which stay? Else each team has
    work_floats: Int32 = ints()  # lengths of what a team works in
    work_ints: Int32 = ints()
    left_ms: np.ndarray = ints("1")  # until the deadline
    taken: np.ndarray = ints("1")  # requests so far
    written: np.ndarray = ints("1")  # numbers of `paths` so far
    numbers: np.ndarray = ints("total")  # of the requests of this launch
    requests: np.ndarray = ints("total * INTS")
    step: Float32 = floats()
    rows: np.ndarray = floats("total * row")
    paths: np.ndarray = floats("room")


queue_sizes, open_queue, write_queue = layout(Queue, "total row room")


class Problems(NamedTuple):
    """Many queries, a folded seed for each, (n,) int64, and where the scene of its checker begins: places, (n, 2)."""

    queries: Sequence[Query]
    seeds: Sequence[int] | np.ndarray
    places: np.ndarray

    def chosen(self, numbers: Sequence[int]) -> "Problems":
        """Those of these numbers."""
        queries = self.queries
        some = queries.chosen(numbers) if isinstance(queries, PlainQueries) else [queries[i] for i in numbers]
        return Problems(some, np.asarray(self.seeds)[numbers], self.places[numbers])


class BatchShape(NamedTuple):
    """Sizes of the full batch, problems and most goals of one; they fix the passes, so a shard searches identically.

    stop: ends the searches on the CPU soon after it is set
    """

    problems: int
    goals: int
    stop: threading.Event | None = None


WALK = 32  # steps of a walk at most, in spaces that have walks,
WALK_RANGE = 9 / 16  # where that is what RANGE is elsewhere: walks go on where straight motions would be blocked
NO_PLACES = np.zeros((1, 2), int)  # of a scene that lies at the beginning
RANGE = 3 / 16  # of the spread of random configurations, where Settings.range is 0
DOMAIN = 3 / 4  # of that spread, where Settings.dynamic_domain is 0
NEAR = 2.5  # rad or m beyond the start and the goals, from which the first samples are drawn
SHORTEST = 139  # blocked samples, by which the range falls to a quarter
CLOSEST = 200  # blocked samples, by which the domain falls to a seventh


def walk_of(checker: Any) -> int:
    """Request.walk for a checker: those that keep a constraint have walks."""
    return WALK if getattr(checker, "constraint", None) is not None else 0


def row_size(dof: int, goals: int) -> int:
    """Length of the float32 row."""
    return HEAD + bounds_sizes.py_func(dof)[0] + ends_sizes.py_func(dof, goals)[0]


def write_requests(floats: np.ndarray, ints: np.ndarray, problems: Problems, settings, **same: Any) -> None:
    """Fill the rows of queries: floats (n, size), ints (n, INTS). same: further fields, which all have alike"""
    queries, seeds, places = problems
    single = len(queries) == 1  # who asks for one path waits for each microsecond
    if isinstance(queries, PlainQueries) and not single:
        starts, goals, lower, upper, weights = queries.columns[:5]
        counts, goals = [goals.shape[1]] * len(goals), goals.reshape(-1, starts.shape[1])
        weights = np.broadcast_to(weights, starts.shape)
        periodic = queries.columns.checkers[0].robot.periodic
    else:
        rows = [(q.start, q.lower, q.upper, q.weights, q.checker.robot.periodic) for q in queries]
        starts, lower, upper, weights, periodic = (v[0][None] if single else np.array(v) for v in zip(*rows))
        counts = [len(query.goals) for query in queries]
        goals = queries[0].goals if single else np.concatenate([query.goals for query in queries])
    checkers, which = checkers_of(queries)
    kinds = zip(*((*checker.motion_args, walk_of(checker)) for checker in checkers))
    modes, steps, walks = (np.array(kind)[which] for kind in kinds)
    low, high = halves(np.asarray(seeds))  # type: ignore[arg-type]
    dof, firsts = starts.shape[1], [0, *accumulate(counts[:-1])]
    # how far two random configurations are apart, root mean square; periodic joints' values a turn apart are one place
    turns = np.where(periodic, 2 * np.pi, np.inf)
    spread = np.sqrt((np.minimum(np.subtract(upper, lower, dtype=np.float64), turns) ** 2).sum(axis=-1) / 6)
    request = {
        "dof": dof, "goal_count": counts, "batch": 0, "first": 0, "until": settings.max_samples,
        "seed_low": low, "seed_high": high, "mode": modes, "passes": settings.shortcut_rounds, "fresh": 1, "trees": 0,
        "shortest": 0 if settings.range else SHORTEST, "closest": 0 if settings.dynamic_domain else CLOSEST,
        "walk": walks, "scene_floats": places[:, 0], "scene_ints": places[:, 1],
        "step": steps, "reach": settings.range or np.where(walks > 0, WALK_RANGE, RANGE) * spread,
        "radius": settings.dynamic_domain or DOMAIN * spread,
    }  # fmt: skip
    request |= same
    if single:
        request = {name: value if isinstance(value, int | float) else value[0] for name, value in request.items()}
        write_request(floats[0], ints[0], **request)
    else:
        write_request(floats, ints, **request)
    ints[:, ANSWER:] = 0
    write_bounds(
        floats[:, HEAD:],
        ints,
        dof,
        lower=lower,
        upper=upper,
        near_lower=np.maximum(lower, np.minimum(starts, np.minimum.reduceat(goals, firsts)) - NEAR),
        near_upper=np.minimum(upper, np.maximum(starts, np.maximum.reduceat(goals, firsts)) + NEAR),
        weights=weights,
    )
    ends = floats[:, HEAD + bounds_sizes.py_func(dof)[0] :]
    write_ends(ends, ints, dof, start=starts)
    if len(set(counts)) == 1:
        write_ends(ends, ints, dof, counts[0], goals=goals.reshape(len(queries), -1))
    else:
        for row, query in zip(ends, queries):
            write_ends(row, ints, dof, len(query.goals), goals=query.goals.ravel())


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
    log: Callable[[], dict[str, Any]] | None = None,
) -> PlanningResult:
    """The result of a search that has ended; cost: of the path, if it is known; samples: of all searches of the query,
    where there was more than this one; log: -> which extensions were blocked, as `read_log` has them."""
    answer: Any = Answer(*ints[ANSWER:INTS])
    status, samples = answer.status, int(answer.samples) if samples is None else samples
    if status == SOLVED:
        at, dof = answer.path_at, len(query.start)
        return query.solved(paths[at : at + answer.length * dof].reshape(-1, dof), answer.goal, samples, cost=cost)
    failure = FAILURES[status](query, samples)
    return replace(failure, **log()) if log and status in (SEARCHING, FULL, STOPPED) else failure


def read_answers(
    found: Found, numbers: Sequence[int], ints: np.ndarray, paths: np.ndarray, queries: Sequence[Query]
) -> None:
    """Put the results of many searches into `found` under their numbers, but for those where a tree or the paths found
    no room. All costs are added up at once, each in the same way wherever its path lies."""
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
    left = answers.status != FULL
    if isinstance(queries, PlainQueries) and len(solved):
        solved = solved[~queries.chosen(solved).changed()]
        left[solved] = False
        _put(
            found,
            np.asarray(numbers)[solved],
            Answer(*(each[solved] for each in answers)),
            costs[solved],
            paths,
            queries,
            solved,
        )
    for i in np.flatnonzero(left).tolist():
        found.objects[numbers[i]] = read_answer(rows[i].tolist(), paths, queries[i], float(costs[i]))


def _put(found, numbers, answers, costs, paths, queries, rows):
    """Plain paths, as `Query.solved` has them. rows: (n,) of which queries"""
    robot, (starts, goals, *_) = queries.columns.checkers[0].robot, queries.columns
    lengths = answers.length.astype(np.int64)
    path = paths.reshape(-1, len(robot.lower))[rows_of(answers.path_at.astype(np.int64) // robot.dof, lengths)]
    inside = np.minimum(np.maximum(path, robot.lower), robot.upper)  # a float32 may lie a hair beyond a limit
    path = np.where(robot.continuous, path, inside)
    ends = np.cumsum(lengths)
    path[ends - lengths] = starts[rows]
    path[ends - 1] = goals[rows, answers.goal]
    found.put(numbers, costs, answers.goal, answers.samples, queries.elapsed(), lengths, path)
