"""The grid benchmarks: peers against a plain Dijkstra, and every section once, on small maps."""

import numpy as np
import pytest
from grid_paths import random_costs

from benchmarks import (
    grid_experiments,
    grid_fields,
    grid_moving,
    grid_peers,
    grid_plots,
    grid_scenarios,
    grid_streamed,
    machine,
    problems,
    report,
)
from benchmarks.grid_timing import split_seconds
from benchmarks.harness import Context
from gpu_planners.grid import BlockPlanner, GridMap
from gpu_planners.grid.exact.values import unit_of
from gpu_planners.verify import costs_to_goal


@pytest.mark.parametrize("connectivity", [4, 8])
@pytest.mark.parametrize("highest", [1, 9, 255])
def test_peers_agree_with_a_plain_dijkstra(connectivity, highest):
    rng = np.random.default_rng(connectivity + highest)
    costs = random_costs(rng, 23, 31, 0.25, highest)
    costs[11, 15] = highest
    grid, goal = GridMap(costs, connectivity), np.array([11, 15])
    expected = np.where(grid.blocked, np.inf, costs_to_goal(costs, connectivity, goal))
    np.testing.assert_allclose(np.where(grid.blocked, np.inf, grid_peers.scipy_dijkstra(grid)(goal)), expected)
    units = grid_peers.BucketQueue(grid).field(goal)
    np.testing.assert_allclose(np.where(units < 0, np.inf, units / unit_of(connectivity)), expected)
    if connectivity == 4 and highest == 1:
        peer = grid_peers.Bfs(grid)
        found = peer.field(goal)
        assert np.array_equal(np.where(found < 0, np.inf, found), expected)
        starts = np.argwhere(np.isfinite(expected))
        moves, at = peer.paths(starts), 0
        for start in starts:
            row, col = start
            for move in moves[at : (at := at + int(expected[tuple(start)]))]:
                row, col = row + grid_peers.ROW_STEP[move], col + grid_peers.COL_STEP[move]
                assert not grid.blocked[row, col]
            assert (row, col) == tuple(goal)
        if mcp := grid_peers.skimage_mcp(grid):
            np.testing.assert_allclose(np.where(grid.blocked, np.inf, mcp(goal)), expected)


@pytest.mark.parametrize("algorithm", ["exact", "pba_star", "rtaa_star"])
def test_a_plan_from_nothing_is_timed_by_step(algorithm):
    grid, goal = GridMap(np.ones((40, 40)), 4), np.array([20, 20])
    starts = np.argwhere(grid.costs)
    taken, steps, paths = split_seconds(BlockPlanner(grid, algorithm, 8, "cpu"), starts, goal, most=3)
    assert len(taken) == 3 and (taken > 0).all() and paths.solved.all()
    assert {"field", "agents"} <= set(steps) and steps["agents"] > 0


def test_forgetting_leaves_the_answers_alone():
    grid, goal = GridMap(np.ones((20, 20)), 8), np.array([0, 0])
    planner = BlockPlanner(grid, device="cpu")
    first = planner.plan([[9, 19]], goal)
    planner._engine.forget()
    assert np.array_equal(planner.plan([[9, 19]], goal).path(0), first.path(0))


@pytest.mark.slow
@pytest.mark.skipif(problems.missing_data() is not None, reason=problems.missing_data() or "")
def test_every_section_on_small_maps(monkeypatch, tmp_path):
    context = Context(("cpu",), {}, quick=True)
    monkeypatch.setattr(grid_fields, "CASES", (grid_fields.Case(64, 4), grid_fields.Case(64, 8)))
    monkeypatch.setattr(grid_fields, "QUEUE_CASES", (grid_fields.Case(64, 8, 10),))
    monkeypatch.setattr(grid_streamed, "SMALL", (grid_streamed.Case(700, 1, connectivity=8, one_piece=True),))
    monkeypatch.setattr(grid_experiments, "SIZES", (32,))
    monkeypatch.setattr(grid_experiments, "RATES", (10, 25))
    few = {name: planner for name, planner in grid_experiments.PLANNERS.items() if name not in ("P-BA*-4", "P-BA*-32")}
    monkeypatch.setattr(grid_experiments, "PLANNERS", few)
    tables = []
    for benchmark in (
        grid_fields.BENCHMARKS
        + grid_moving.BENCHMARKS
        + grid_experiments.BENCHMARKS
        + grid_scenarios.BENCHMARKS
        + grid_streamed.BENCHMARKS
    ):
        rows = [row.as_dict() for row in benchmark.run(context)]
        assert any(row["figures"] for row in rows), benchmark.name
        assert {key for row in rows for key in row["figures"]} <= set(benchmark.columns), benchmark.name
        tables.append(
            {"name": benchmark.name, "title": benchmark.title, "text": "", "columns": benchmark.columns, "rows": rows}
        )
    results = {"machine": machine.describe(), "date": "", "quick": True, "command": "", "tables": tables}
    text = report.markdown(results)
    assert "P-BA\\*-16" in text and "exact, cpu" in text
    by_name = {table["name"]: table["rows"] for table in tables}
    for name in ("weighted_fields", "grid_moving"):
        assert all(row["figures"].get("identical", "yes") == "yes" for row in by_name[name])
    for row in by_name["grid_repair"]:
        if row["figures"]:
            done, asked = row["figures"]["identical"].split("/")
            assert done == asked
    assert all(row["figures"]["differing"] == 0 for row in by_name["grid_table"])
    assert grid_plots.plot(tmp_path / "grid.png", results) is None and (tmp_path / "grid.png").stat().st_size > 10_000
