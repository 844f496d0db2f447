"""Batches as arrays: the same requests and results as query by query."""

import pickle

import numpy as np
import pytest
from robots_at_hand import desk_arm

from gpu_planners.arm import CollisionChecker, CollisionWorld, PlanningResults, Status
from gpu_planners.arm.planners.plain_queries import PlainQueries, open_queries
from gpu_planners.arm.planners.results import Found
from gpu_planners.arm.planners.rrt_connect import Settings
from gpu_planners.arm.planners.rrt_connect.request import (
    ANSWER,
    FULL,
    INTS,
    SEARCHING,
    SOLVED,
    Problems,
    read_answers,
    row_size,
    write_requests,
)
from gpu_planners.errors import SettingsError

N, GOALS = 60, 3


@pytest.fixture(scope="module")
def queries():
    robot = desk_arm()
    q = np.random.default_rng(0).uniform(robot.lower, robot.upper, (N, 1 + GOALS, robot.dof))
    checkers = [CollisionChecker(robot, CollisionWorld(), "cpu", margin=0.001 * (i % 4)) for i in range(5)]
    found = open_queries(q[:, 0], q[:, 1:], checkers, np.arange(N) % 5, Settings())
    assert isinstance(found, PlainQueries)
    return found


def requests(queries):
    dof = queries[0].start.size
    floats, ints = np.zeros((N, row_size(dof, GOALS)), np.float32), np.zeros((N, INTS), np.int32)
    places = np.arange(2 * N).reshape(N, 2)
    write_requests(floats, ints, Problems(queries, list(range(N)), places), Settings(), capacity=8192, split=1)
    return floats, ints


def answers(queries, seed=0):
    """Rows as a device leaves them, with paths that lie in any order, and gaps: solved, given up, or without room."""
    rng, dof = np.random.default_rng(seed), queries[0].start.size
    ints, lengths = np.zeros((N, INTS), np.int32), rng.integers(2, 7, N)
    ints[:, ANSWER] = rng.choice([SOLVED, SOLVED, SOLVED, SEARCHING, FULL], N)
    ints[:, ANSWER + 1], ints[:, ANSWER + 2] = rng.integers(0, GOALS, N), rng.integers(1, 99, N)
    order, at = rng.permutation(N), 5
    for i in order:
        ints[i, ANSWER + 3], ints[i, ANSWER + 4] = lengths[i], at * dof
        at += lengths[i] + rng.integers(0, 2)
    return ints, rng.normal(scale=3, size=at * dof).astype(np.float32)


def read(queries, names=range(N)):
    found = Found(N, queries[0].start.size)
    read_answers(found, list(names), *answers(queries), queries)
    return found


def test_requests_are_those_of_single_queries(queries):
    for some, others in zip(requests(queries), requests(list(queries)), strict=True):
        assert np.array_equal(some, others)
    chosen = queries.chosen([7, 3])
    assert np.array_equal(chosen[1].start, queries[3].start) and chosen[0].checker is queries[7].checker


def test_results_are_those_of_single_queries(queries):
    found, plain = read(queries), read(list(queries))
    full = np.flatnonzero(answers(queries)[0][:, ANSWER] == FULL).tolist()
    assert full and found.missing() == full == plain.missing()
    for each in (found, plain):
        for i in full:
            each.objects[i] = queries[i].exhausted(7)
    some, others = found.results(), plain.results()
    for name in ("codes", "costs", "goal_indices", "samples", "lengths", "paths"):
        assert np.array_equal(getattr(some, name), getattr(others, name))
    for i, (one, other) in enumerate(zip(some, others, strict=True)):
        assert one.status is other.status and one.message == other.message and one.cost == other.cost
        assert np.array_equal(one.path, other.path) and np.array_equal(one.path, some.path(i))
        assert one.goal_index == other.goal_index and one.moved_to_limits == other.moved_to_limits
        assert one.history.shape == other.history.shape and some[i] is one
    assert {one.status for one in some} == {Status.SOLVED, Status.SAMPLES_EXHAUSTED}
    robot = desk_arm()
    assert (some.paths >= robot.lower).all() and (some.paths <= robot.upper).all()


def test_parts_come_back_in_the_order_of_the_batch(queries):
    found = read(queries)
    for i in found.missing():
        found.objects[i] = queries[i].exhausted(7)
    whole, order = found.results(), np.random.default_rng(1).permutation(N)
    parts = []
    for rows in np.split(order, [10, 10, 37]):
        objects = [whole[i] for i in rows]
        parts.append(pickle.loads(pickle.dumps(PlanningResults.of(objects, whole.paths.shape[1]))))
    again = PlanningResults.joined(parts, order)
    for name in ("codes", "costs", "goal_indices", "samples", "times_s", "lengths", "paths", "firsts"):
        assert np.array_equal(getattr(again, name), getattr(whole, name))
    assert [one.status for one in again] == [one.status for one in whole]


def test_a_world_that_changes_spoils_its_own_problems_alone(queries):
    world = queries[1].checker.world
    world.add_sphere("late", 0.01, np.eye(4))
    try:
        found = read(queries)
        statuses = {i: one.status for i, one in found.objects.items()}
    finally:
        world.clear()
    solved = np.flatnonzero(answers(queries)[0][:, ANSWER] == SOLVED)
    assert all(statuses[i] is Status.WORLD_CHANGED for i in solved if i % 5 == 1)
    assert not any(i in statuses for i in solved if i % 5 != 1)


def test_arrays_of_results(queries):
    found = read(queries)
    for i in found.missing():
        found.objects[i] = queries[i].exhausted(7)
    results = found.results()
    padded = results.padded()
    assert padded.shape == (N, results.lengths.max(), desk_arm().dof)
    for i, one in enumerate(results):
        assert np.isnan(padded[i]).all() if not one.solved else np.array_equal(padded[i, : len(one.path)], one.path)
        assert not one.solved or np.array_equal(padded[i, -1], one.path[-1])
    assert np.array_equal(results.solved, [one.solved for one in results])
    assert results[-1] is results[N - 1] and len(results[3:9]) == 6
    with pytest.raises(IndexError):
        results[N]
    for number in (N, 1.5, "x"):
        with pytest.raises(SettingsError, match="number"):
            results.path(number)
    nothing = PlanningResults.of([], 3)
    assert nothing == [] and nothing.padded().shape == (0, 0, 3) and not nothing.solved.any()
