"""PlainQueries: the queries of a batch as arrays. A Query is made of one where somebody asks for it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, SupportsIndex, overload

import numpy as np

from ...parallel.team import clock_ns
from .query import Query, begun, dry_query, open_query, plain_rows, weights_of
from .result import PlanningResult
from .settings import PlannerSettings


class PlainQueries(Sequence[Query]):
    """n queries of one robot whose starts and goals are within its limits as they were given, with G goals each.

    starts: (n, dof) float64; goals: (n, G, dof) float64; lower, upper: (n, dof) float32; weights: (dof,) float32; as
        Query has them
    checkers, versions: (n,) lists
    """

    def __init__(self, columns: "Columns", began: int, deadline: int) -> None:
        self.columns, self.began, self.deadline = columns, began, deadline

    def chosen(self, numbers: Sequence[int]) -> "PlainQueries":
        """Those of these numbers."""
        starts, goals, lower, upper, weights, checkers, versions = self.columns
        rows = np.asarray(numbers, np.int64)
        of_each = [checkers[i] for i in numbers], [versions[i] for i in numbers]
        some = Columns(starts[rows], goals[rows], lower[rows], upper[rows], weights, *of_each)
        return PlainQueries(some, self.began, self.deadline)

    def changed(self) -> np.ndarray:
        """(n,) bool: whose obstacles have changed since the queries began?"""
        now: dict[int, Any] = {}
        checkers, versions = self.columns.checkers, self.columns.versions
        for checker in checkers:
            if id(checker) not in now:
                now[id(checker)] = checker.version
        return np.array([now[id(c)] != version for c, version in zip(checkers, versions)], dtype=bool)

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
        checker, version, number_of = one.checkers[i], one.versions[i], np.arange(len(goals))
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


def open_queries(
    starts: Sequence, goals: Sequence, checkers: Sequence, settings: PlannerSettings
) -> "PlainQueries | list[Query | PlanningResult]":
    """`open_query` without the collision check, for many problems of robots with the same joints."""
    began = clock_ns()
    deadline = began + int(1e9 * settings.time_limit_s)
    robot = checkers[0].robot
    taken, *rows = plain_rows(robot, starts, goals)
    if len(taken) != len(checkers):
        taken = np.zeros(len(checkers), dtype=bool)
    weights, timed_out = weights_of(settings, robot.dof), None
    if taken.all() and clock_ns() <= deadline and (found := _plain(rows, weights, checkers, robot, began, deadline)):
        return found
    queries: list[Query | PlanningResult] = []
    for i, checker in enumerate(checkers):
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


def _plain(rows, weights, checkers, robot, began, deadline):
    """PlainQueries of rows (starts, goals, lower, upper) that `query` has looked at, where all are of this robot and
    none keeps a constraint; else None."""
    distinct = {id(checker): checker for checker in checkers}
    for checker in distinct.values():
        if checker.robot is not robot or getattr(checker, "constraint", None) is not None:
            return None
    version = {key: checker.version for key, checker in distinct.items()}
    starts, goals, lower, upper = rows
    columns = Columns(starts, goals, lower, upper, weights, list(checkers), [version[id(c)] for c in checkers])
    return PlainQueries(columns, began, deadline)


def checkers_of(queries: Sequence[Query]) -> list:
    """The checker of each."""
    return queries.columns.checkers if isinstance(queries, PlainQueries) else [query.checker for query in queries]


def most_goals(queries: Sequence[Query]) -> int:
    """Of a query."""
    if isinstance(queries, PlainQueries):
        return queries.columns.goals.shape[1]
    return max(len(query.goals) for query in queries)
