"""A* against a plain Dijkstra, and against the lengths that MovingAI publishes."""

import itertools
import time

import numpy as np
import pytest
from grid_paths import random_costs
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.problems import data_dir, missing_data
from gpu_planners.errors import SettingsError
from gpu_planners.grid import AgentStatus, BlockPlanner, GridMap, load_movingai_map, load_movingai_scen
from gpu_planners.grid.astar import TILES_A_CALL, Astar, Settings
from gpu_planners.verify import broken_paths, costs_to_goal, walk


def plan(grid, starts, goals, **settings):
    return BlockPlanner(grid, "astar", device="cpu", settings=Settings(**settings)).plan(starts, goals)


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 14),
    st.integers(1, 14),
    st.sampled_from([4, 8]),
    st.sampled_from([1, 3, 255]),
    st.sampled_from([0.0, 0.2, 0.45]),
)
def test_costs_are_dijkstras(seed, rows, cols, connectivity, highest, blocked):
    rng = np.random.default_rng(seed)
    costs = random_costs(rng, rows, cols, blocked, highest)
    costs[rng.integers(rows), rng.integers(cols)] = highest
    grid = GridMap(costs, connectivity)
    free = np.argwhere(costs)
    goal = free[rng.integers(len(free))]
    paths = plan(grid, free, goal)
    expected = costs_to_goal(costs, connectivity, goal)[costs > 0]
    assert np.array_equal(paths.status == AgentStatus.SOLVED, np.isfinite(expected))
    assert set(paths.status) <= {AgentStatus.SOLVED, AgentStatus.NO_PATH}
    np.testing.assert_allclose(paths.cost, expected, rtol=1e-10)
    assert not broken_paths(grid, paths, free, goal)


@pytest.mark.skipif(missing_data() is not None, reason=missing_data() or "")
@pytest.mark.parametrize(
    ("name", "every"),
    [
        ("AR0400SR.map", 60),
        ("16room_000.map", 90),
        ("maze512-1-0.map", 800),
        ("random512-40-0.map", 150),
        ("den520d", 30),
        ("Berlin_1_256", 30),
    ],
)
def test_published_lengths(name, every):
    folder = data_dir() / "movingai"
    scenarios = load_movingai_scen(folder / (f"{name}.scen" if name.endswith(".map") else f"{name}-random-1.scen"))
    grid = load_movingai_map(folder / scenarios.map_name.split("/")[-1])
    chosen = slice(None, None, every)
    starts, goals = scenarios.starts[chosen], scenarios.goals[chosen]
    paths = plan(grid, starts, goals)
    assert paths.solved.all() and len(paths) >= 14
    assert (np.abs(paths.cost - scenarios.lengths[chosen]) <= scenarios.precisions[chosen]).all()
    assert not broken_paths(grid, paths, starts, goals)


def test_no_corner_is_cut():
    grid = GridMap([[1, 0], [1, 1]])
    paths = plan(grid, [[0, 0]], [1, 1])
    assert paths.path(0).tolist() == [[0, 0], [1, 0], [1, 1]] and paths.cost[0] == 2
    assert plan(GridMap([[1, 0], [0, 1]]), [[0, 0]], [1, 1]).status[0] == AgentStatus.NO_PATH


def test_a_costly_tile_is_gone_around():
    costs = np.array([[1, 9, 1], [1, 1, 1]])
    paths = plan(GridMap(costs, 4), [[0, 0]], [0, 2])
    assert paths.path(0).tolist() == [[0, 0], [1, 0], [1, 1], [1, 2], [0, 2]]
    assert walk(costs, 4, paths.path(0), (0, 0), (0, 2)) == paths.cost[0] == 4


def test_paths_longer_than_the_first_buffer():
    costs = np.ones((201, 201), np.uint8)  # a serpentine
    costs[1::4, :-1] = costs[3::4, 1:] = 0
    grid, starts = GridMap(costs, 4), [[0, 0], [200, 200], [0, 0]]
    paths = plan(grid, starts, [[200, 200], [0, 0], [0, 0]])
    assert paths.cost.tolist() == [costs_to_goal(costs, 4, (200, 200))[0, 0]] * 2 + [0]
    assert paths.length[0] * 2 > 1024 * 16
    assert not broken_paths(grid, paths, starts, [[200, 200], [0, 0], [0, 0]])


def test_the_same_paths_again_and_after_other_queries():
    rng = np.random.default_rng(4)
    grid = GridMap(random_costs(rng, 60, 50, 0.25, 1))
    free = np.argwhere(grid.costs)
    starts, goals = free[rng.integers(len(free), size=(2, 40))]
    planner = BlockPlanner(grid, "astar", device="cpu")
    first = planner.plan(starts, goals)
    planner.plan(goals, starts)
    again, alone = (
        planner.plan(starts, goals),
        [plan(grid, starts[i : i + 1], goals[i : i + 1]).path(0) for i in range(40)],
    )
    assert np.array_equal(first.paths()[0], again.paths()[0]) and np.array_equal(
        first.paths()[0], np.concatenate(alone)
    )


def test_a_changed_map_is_seen():
    planner = BlockPlanner(GridMap(np.full((3, 5), 4)), "astar", device="cpu")
    assert planner.plan([[1, 0]], [1, 4]).cost[0] == 16
    planner.update([0, 1, 2], [2, 2, 2], [0, 0, 1])
    assert planner.plan([[1, 0]], [1, 4]).cost[0] == pytest.approx(costs_to_goal(planner.grid.costs, 8, (1, 4))[1, 0])
    planner.update(2, 2, 0)
    assert planner.plan([[1, 0]], [1, 4]).status[0] == AgentStatus.NO_PATH


def test_agents_whose_search_has_not_begun_in_time_are_told_so(monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticks))  # a second from one look to the next
    costs = np.ones((200, 200))
    costs[198, 199] = costs[199, 198] = 0
    starts = np.zeros((30, 2), int)
    goals = np.repeat(
        [[0, 0], [199, 199]], (10, 20), axis=0
    )  # ten who are there, then those whose search sees every tile in vain
    searches = 2 * -(-TILES_A_CALL // costs.size)  # of two calls
    statuses = np.repeat(
        [AgentStatus.SOLVED, AgentStatus.NO_PATH, AgentStatus.TIMED_OUT], (10, searches, 20 - searches)
    )
    paths = Astar(GridMap(costs, 4), 32, "cpu", Settings(time_limit_s=2.5)).plan(starts, goals)
    assert paths.status.tolist() == statuses.tolist() and searches < 20
    assert not broken_paths(GridMap(costs, 4), paths, starts, goals)


def test_a_bad_time_limit_is_named():
    for limit in (0, -1.0, float("nan"), "long", True):
        with pytest.raises(SettingsError, match="time_limit_s"):
            Settings(time_limit_s=limit)
