"""PlainQueries: the queries of a batch as arrays. A Query is made of one where somebody asks for it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, SupportsIndex, overload

import numpy as np

from ...parallel.team import clock_ns
from .query import Query, begun, dry_query, open_query, plain_rows, weights_of
from .result import PlanningResult
from .settings import PlannerSettings


class PlainQueries(Sequence[Query]):
    """n queries of one robot whose starts and goals are within its limits as they were given, with G goals each.

    starts: (n, dof) float64; goals: (n, G, dof) float64; lower, upper: (n, dof) float32; weights: (dof,) float32; as
        Query has them
    checkers, versions: (m,) lists; numbers: (n,) int64, which of them each query has
    """

    def __init__(self, columns: "Columns", began: int, deadline: int) -> None:
        self.columns, self.began, self.deadline = columns, began, deadline

    def chosen(self, numbers: Sequence[int] | np.ndarray) -> "PlainQueries":
        """Those of these numbers."""
        all_of, rows = self.columns, np.asarray(numbers, np.int64)
        some = {name: getattr(all_of, name)[rows] for name in ("starts", "goals", "lower", "upper", "numbers")}
        return PlainQueries(all_of._replace(**some), self.began, self.deadline)

    def changed(self) -> np.ndarray:
        """(n,) bool: whose obstacles have changed since the queries began?"""
        pairs = zip(self.columns.checkers, self.columns.versions)
        return np.array([checker.version != version for checker, version in pairs])[self.columns.numbers]

    def elapsed(self) -> float:
        """Seconds."""
        return (clock_ns() - self.began) / 1e9

    def __len__(self) -> int:
        return len(self.columns.starts)

    @overload
    def __getitem__(self, number: SupportsIndex) -> Query: ...
    @overload
    def __getitem__(self, number: slice) -> "PlainQueries": ...
    def __getitem__(self, number):
        if isinstance(number, slice):
            return self.chosen(range(*number.indices(len(self))))
        i = range(len(self))[number]  # IndexError beyond
        one = self.columns
        start, goals, lower, upper = (each[i] for each in one[:4])
        which, number_of = one.numbers[i], np.arange(len(goals))
        checker, version = one.checkers[which], one.versions[which]
        bounds = lower, upper, one.weights
        return Query(start, goals, number_of, *bounds, start, goals, self.began, self.deadline, checker, version)


class Columns(NamedTuple):
    """See PlainQueries."""

    starts: np.ndarray
    goals: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    weights: np.ndarray
    checkers: list
    versions: list
    numbers: np.ndarray


def numbered(checkers: Sequence) -> tuple[list, np.ndarray]:
    """-> the distinct ones; (n,) int64, which of them each is."""
    distinct = {id(checker): checker for checker in checkers}
    place = {key: number for number, key in enumerate(distinct)}
    return list(distinct.values()), np.fromiter(map(place.__getitem__, map(id, checkers)), np.int64, len(checkers))


def open_queries(
    starts: Sequence, goals: Sequence, checkers: Sequence, numbers: np.ndarray, settings: PlannerSettings
) -> "PlainQueries | list[Query | PlanningResult]":
    """`open_query` without the collision check, for many problems of robots with the same joints. numbers: as
    `numbered` has them"""
    began = clock_ns()
    deadline = began + int(1e9 * settings.time_limit_s)
    robot = checkers[0].robot
    taken, *rows = plain_rows(robot, starts, goals)
    if len(taken) != len(numbers):
        taken = np.zeros(len(numbers), dtype=bool)
    weights, timed_out = weights_of(settings, robot.dof), None
    plain = all(checker.robot is robot and getattr(checker, "constraint", None) is None for checker in checkers)
    if plain and taken.all() and clock_ns() <= deadline:
        a, b, low, high = rows
        columns = Columns(a, b, low, high, weights, list(checkers), [each.version for each in checkers], numbers)
        return PlainQueries(columns, began, deadline)
    queries: list[Query | PlanningResult] = []
    for i, checker in enumerate(checkers[number] for number in numbers):
        if timed_out is None and clock_ns() > deadline:
            timed_out = replace(dry_query(checker), began=began, deadline=deadline).timed_out()  # of all that follow
        if timed_out is not None:
            queries.append(timed_out)
        elif taken[i] and checker.robot is robot:
            a, b, low, high = (each[i] for each in rows)
            box = low, high, weights
            query = Query(a, b, np.arange(len(b)), *box, a, b, began, deadline, checker, checker.version)
            queries.append(begun(query, check=False))
        else:
            queries.append(open_query(starts[i], goals[i], checker, settings, check=False, began=began))
    return queries


def checkers_of(queries: Sequence[Query]) -> tuple[list, np.ndarray]:
    """Their checkers, `numbered`."""
    if isinstance(queries, PlainQueries):
        return queries.columns.checkers, queries.columns.numbers
    return numbered([query.checker for query in queries])


def most_goals(queries: Sequence[Query]) -> int:
    """Of a query."""
    if isinstance(queries, PlainQueries):
        return queries.columns.goals.shape[1]
    return max(len(query.goals) for query in queries)
