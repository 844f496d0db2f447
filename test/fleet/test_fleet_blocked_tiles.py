"""Tiles that are blocked between steps: nobody enters one from then on, and who is on one leaves it.

The oracle knows the map as it was told of it and where agents were, nothing of the planner.
"""

from collections import deque

import numpy as np
import pytest
from fleet_oracle import MODELS, MOVES
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_planners.fleet import FleetPlanner, Settings, conflicts
from gpu_planners.grid import GridMap

BUDGETS = (0.0, 0.005, 0.1)


def follow(fleet, costs, goals, steps, budget_s, following, change=None):
    """Steps of a fleet; change(step) -> tiles that are changed before it -> positions (steps + 1, N, 2)"""
    walked = [fleet.positions]
    for step in range(steps):
        for row, col, cost in change(step) if change else ():
            costs[row, col] = cost
            fleet.update([row], [col], [cost])
        before, now = fleet.positions, goals(step)
        fleet.step(now, budget_s)
        after = fleet.positions
        entered = (after != before).any(axis=1)
        assert costs[after[entered, 0], after[entered, 1]].all(), f"step {step}: {after[entered].tolist()}"
        assert np.abs(after - before).sum(axis=1).max(initial=0) <= 1
        assert conflicts(np.array([before, after]), following=following) == []
        walked.append(after)
    return np.array(walked)


@pytest.mark.parametrize("budget_s", BUDGETS)
@pytest.mark.parametrize(("motion", "following"), MODELS)
def test_a_ring_that_is_cut_ahead_of_an_agent(motion, following, budget_s):
    """The detour costs more than the way that is blocked."""
    costs = np.ones((3, 12), np.uint8)
    costs[1, 1:-1] = 0
    fleet = FleetPlanner(GridMap(costs, 4), motion, "cpu", Settings(following=following))
    fleet.start([[0, 0]])
    goals = np.array([[0, 11]])
    walked = follow(
        fleet, costs, lambda _: goals, 40, budget_s, following, lambda step: [(0, 6, 0)] if step == 4 else []
    )
    assert (walked == goals).all(axis=2).any()


@settings(max_examples=8, deadline=None)
@given(st.data())
@pytest.mark.parametrize(("motion", "following"), MODELS)
def test_nobody_enters_a_tile_that_was_blocked_before_the_step(motion, following, data):
    seed = data.draw(st.integers(0, 2**32 - 1))
    rng, agents = np.random.default_rng(seed), data.draw(st.integers(1, 16))
    costs = (rng.random((7, 9)) > 0.15).astype(np.uint8)
    tiles = np.argwhere(costs)
    agents, often = min(agents, len(tiles) // 2), data.draw(st.sampled_from([0.1, 0.5, 0.9]))
    chosen = Settings(following=following, horizon=data.draw(st.sampled_from([0, 2, 5])))
    fleet = FleetPlanner(GridMap(costs, 4), motion, "cpu", chosen)
    fleet.start(tiles[rng.permutation(len(tiles))[:agents]], rng.integers(4, size=agents))
    goals = tiles[rng.integers(len(tiles), size=agents)]
    budgets = data.draw(st.sampled_from([(0.0,), (0.005,), (0.005, 0.0), (0.1,)]))

    def change(step):
        """Tiles ahead of agents, under them, and anywhere."""
        if rng.random() > often:
            return []
        at = fleet.positions[rng.integers(agents)]
        near = [at + move for move in MOVES] + [at, *rng.integers(costs.shape, size=(3, 2))]
        inside = [(r, c) for r, c in near if 0 <= r < costs.shape[0] and 0 <= c < costs.shape[1]]
        many = rng.permutation(len(inside))[: rng.integers(1, 4)]
        return [(*inside[k], rng.integers(2)) for k in many]

    def now(step):
        there = (fleet.positions == goals).all(axis=1)
        goals[there] = rng.integers(costs.shape, size=(there.sum(), 2))
        return goals

    for budget_s in budgets:
        follow(fleet, costs, now, 6 if budget_s > 0.05 else 40, budget_s, following, change)


def steps_from(costs, place):
    """{tile: moves to it}, by a breadth-first search that begins on a tile of any kind."""
    known, queue = {place: 0}, deque([place])
    while queue:
        row, col = queue.popleft()
        for r, c in MOVES:
            there = row + r, col + c
            if 0 <= there[0] < costs.shape[0] and 0 <= there[1] < costs.shape[1]:
                if costs[there] and there not in known:
                    known[there] = known[row, col] + 1
                    queue.append(there)
    return known


@pytest.mark.parametrize("budget_s", [0.0, 0.005])
@pytest.mark.parametrize(("motion", "following"), MODELS)
def test_who_is_on_a_blocked_tile_leaves_it_by_the_shortest_way(motion, following, budget_s):
    """The goal is new to the planner, so its field was planned after the tile was blocked."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        costs = (rng.random((8, 8)) > 0.3).astype(np.uint8)
        place = tuple(rng.permutation(np.argwhere(costs))[0].tolist())
        fleet = FleetPlanner(GridMap(costs, 4), motion, "cpu", Settings(following=following, guidance="plain"))
        fleet.start([place], [rng.integers(4)])
        costs[place] = 0
        fleet.update([place[0]], [place[1]], [0])
        known = steps_from(costs, place)
        far = max(known, key=known.get)
        if far == place:
            continue
        goals, least = np.array([far]), known[far]
        walked = follow(fleet, costs, lambda _, goals=goals: goals, 3 * least + 3, budget_s, following)
        arrived = (walked[:, 0] == far).all(axis=1)
        assert arrived.any(), seed
        moves = (walked[: arrived.argmax() + 1, 0] != walked[0, 0]).any(axis=1).sum()
        assert moves >= least and (motion == "turning" or arrived.argmax() == least), seed


@pytest.mark.parametrize("budget_s", [0.0, 0.005])
def test_of_two_sides_of_a_door_an_agent_leaves_to_that_of_its_goal(budget_s):
    """A door closes under it; one side lies a long way from the goal, the other one next to it."""
    costs = np.ones((40, 41), np.uint8)
    costs[:, 20] = 0
    costs[39, 20] = 1  # from side to side it is 78 moves
    costs[0, 20] = 1
    for goal, heading in (([0, 25], 2), ([0, 15], 0)):
        now = costs.copy()
        fleet = FleetPlanner(GridMap(now, 4), "turning", "cpu")
        fleet.start([[0, 20]], [heading])
        now[0, 20] = 0
        fleet.update([0], [20], [0])
        walked = follow(fleet, now, lambda _, goal=goal: np.array([goal]), 12, budget_s, True)
        assert walked[-1, 0].tolist() == goal
