"""Fields made by one queue over the whole map: by one thread, by several together, and where it has no room."""

import contextlib
import functools
import signal
import threading
import time

import numpy as np
import pytest
from grid_paths import random_costs

from gpu_planners.grid import BlockPlanner, GridMap
from gpu_planners.grid.exact import cpu
from gpu_planners.grid.exact.blocks import VALUES, Blocks, FieldShape
from gpu_planners.grid.exact.cpu import Fronts, costs_vary, has_numbers
from gpu_planners.grid.exact.values import INFINITE, unit_of
from gpu_planners.verify import costs_to_goal


def made(grid, goals, members):
    """-> fields (G, rows, cols) of goals in tile lengths, inf without a way, by so many threads; slots without room"""
    shape = FieldShape.of(grid, 32)
    values = np.zeros((len(goals), *shape.padded), np.int64)
    blocks, tiles = shape.blocks.of_tiles(goals[:, 0], goals[:, 1])
    asked = np.column_stack([blocks, tiles, goals.sum(axis=1) & 1, np.ones_like(blocks)]).astype(np.int32)
    failed = Fronts(shape, members).make(shape.map_array(grid), values, asked, list(range(len(goals))), members)
    inside = values[:, 1 : grid.rows + 1, 1 : grid.cols + 1]
    return np.where(inside < INFINITE, inside / unit_of(grid.connectivity), np.inf), failed


@pytest.mark.parametrize("connectivity", [4, 8])
@pytest.mark.parametrize("highest", [2, 255])
@pytest.mark.parametrize("stripe", [2, 64])
def test_threads_together_find_dijkstras_field(monkeypatch, connectivity, highest, stripe):
    """Stripes of two rows: every tile lies at the edge of one."""
    monkeypatch.setattr(cpu, "LEAST_TOGETHER", 0)
    monkeypatch.setattr(cpu, "STRIPE_ROWS", stripe)
    rng = np.random.default_rng(stripe)
    costs = random_costs(rng, 200, 150, 0.15, highest)
    costs[100, 70] = costs[0, 0] = highest
    for goal in ([100, 70], [0, 0]):
        field, failed = made(GridMap(costs, connectivity), np.array([goal]), 3)
        assert not failed
        np.testing.assert_allclose(field[0], costs_to_goal(costs, connectivity, goal), rtol=1e-10)


def test_fields_do_not_depend_on_who_makes_them(monkeypatch):
    monkeypatch.setattr(cpu, "LEAST_TOGETHER", 0)
    costs = random_costs(np.random.default_rng(3), 300, 300, 0.1, 1)
    grid, goals = GridMap(costs, 8), np.argwhere(costs)[[0, 20_000, 45_000, 60_000, 70_000]]
    alone, together = made(grid, goals, 1), made(grid, goals, 2)
    assert not alone[1] and not together[1]
    assert np.array_equal(alone[0], together[0])


@pytest.mark.parametrize("connectivity", [4, 8])
def test_a_field_without_room_is_made_by_rounds(monkeypatch, connectivity):
    costs = random_costs(np.random.default_rng(4), 120, 90, 0.2, 10)
    costs[60, 45] = 1
    failed = []

    class Narrow(Fronts):
        def make(self, *asked):
            failed.extend(super().make(*asked))
            return failed

    monkeypatch.setattr(cpu, "Fronts", functools.partial(Narrow, room=8))
    planner = BlockPlanner(GridMap(costs, connectivity), device="cpu")
    goal = np.array([60, 45])
    np.testing.assert_allclose(planner.field(goal), costs_to_goal(costs, connectivity, goal), rtol=1e-10)
    assert failed == [0]
    assert np.array_equal(planner.plan(np.array([[60, 46]]), goal).length >= 0, [True])


@pytest.mark.parametrize("connectivity", [4, 8])
@pytest.mark.parametrize("together", [0, np.inf])
def test_a_corridor_of_high_costs(monkeypatch, connectivity, together):
    """Most buckets are empty, and are passed over."""
    monkeypatch.setattr(cpu, "LEAST_TOGETHER", together)
    monkeypatch.setattr(cpu, "STRIPE_ROWS", 2)
    costs = np.zeros((33, 30), np.uint8)
    costs[::2] = np.random.default_rng(6).choice([1, 2, 200, 255], (17, 30))
    costs[1::4, -1] = costs[3::4, 0] = 255
    field, failed = made(GridMap(costs, connectivity), np.array([[16, 10]]), 3)
    assert not failed
    np.testing.assert_allclose(field[0], costs_to_goal(costs, connectivity, [16, 10]), rtol=1e-10)


def test_maps_whose_tiles_have_no_numbers_are_for_rounds():
    def numbered(rows, cols, size):
        return has_numbers(FieldShape(VALUES, Blocks(rows, cols, size), 8))

    assert numbered(44_700, 44_700, 32) and numbered(60_000_000, 1, 32) and numbered(1, 300_000_000, 4)
    assert not numbered(70_000_000, 1, 32) and not numbered(1, 2_000_000_000, 4)


def test_after_ctrl_c_no_field_is_half_made(monkeypatch):
    """It comes while threads make fields, each by itself."""
    monkeypatch.setattr(cpu, "LEAST_TOGETHER", np.inf)
    costs = random_costs(np.random.default_rng(7), 600, 600, 0.1, 200)
    goals = np.argwhere(costs)[[5, 60_000, 90_000, 110_000, 170_000, 230_000, 310_000, 320_000]]
    planner = BlockPlanner(GridMap(costs, 8), device="cpu")
    planner.field(goals[0])  # compiled
    planner._engine.forget()
    began = time.perf_counter()
    expected = [planner.field(goal) for goal in goals]
    took = time.perf_counter() - began
    others = signal.signal(signal.SIGINT, signal.default_int_handler)  # rclpy's, where a test before this one used it
    try:
        for part in (0.02, 0.05, 0.1):
            planner._engine.forget()
            timer = threading.Timer(part * took, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
            with contextlib.suppress(KeyboardInterrupt):
                timer.start()
                planner.prepare(goals)
                timer.join()
            for goal, field in zip(goals, expected, strict=True):
                assert np.array_equal(planner.field(goal), field)
    finally:
        signal.signal(signal.SIGINT, others or signal.default_int_handler)


def test_goals_are_prepared_once_however_often_they_are_named():
    costs = random_costs(np.random.default_rng(8), 60, 60, 0.1, 10)
    free = np.argwhere(costs)
    planner = BlockPlanner(GridMap(costs, 8), device="cpu")
    for goals in (free[[1, 1, 1]], free[[2, 3, 4]], free[[5, 5, 6, 6]]):
        planner.prepare(goals)
        for goal in goals:
            np.testing.assert_allclose(planner.field(goal), costs_to_goal(costs, 8, goal), rtol=1e-10)


def test_one_queue_is_for_maps_whose_costs_vary():
    """Not for those where most tiles cost the same, such as a costmap with narrow borders around what is in the way."""
    rng = np.random.default_rng(5)
    mostly_one = np.where(rng.uniform(size=(80, 90)) < 0.3, rng.integers(2, 255, (80, 90)), 1)
    assert costs_vary(random_costs(rng, 80, 90, 0.2, 10)) and not costs_vary(random_costs(rng, 80, 90, 0.2, 1))
    assert not costs_vary(mostly_one) and not costs_vary(np.zeros((80, 90), np.uint8))
