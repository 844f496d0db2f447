"""A BlockPlanner whose map is changed again and again: whatever came before, it answers as scipy's Dijkstra on the map
as it is, and bit for bit as a new planner."""

import numpy as np
import pytest
from grid_paths import random_costs
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from state_machines import driven

from gpu_planners.errors import GridMapError
from gpu_planners.grid import AgentStatus, BlockPlanner, GridMap
from gpu_planners.grid.exact.fields import Settings
from gpu_planners.verify import broken_paths, costs_to_goal

SEEDS = st.integers(0, 2**32 - 1)
FEW_FIELDS = 120_000  # bytes: room for one to ten fields of these maps, so that fields are thrown away


class Updates(RuleBasedStateMachine):
    """costs: the map that the planner should have; kept: [(a map that it gave, its costs at that time)]"""

    @initialize(
        seed=SEEDS,
        shape=st.tuples(st.integers(1, 45), st.integers(1, 45)),
        connectivity=st.sampled_from([4, 8]),
        highest=st.sampled_from([1, 255]),
        blocked=st.sampled_from([0.0, 0.2, 0.4]),
        how=st.sampled_from(["exact", "exact in little memory", "astar"]),
        block_size=st.sampled_from([8, 32]),
    )
    def make(self, seed, shape, connectivity, highest, blocked, how, block_size):
        self.rng, self.highest = np.random.default_rng(seed), highest
        self.costs = random_costs(self.rng, *shape, blocked, highest)
        self.connectivity, self.block_size = connectivity, block_size
        self.algorithm = how.split()[0]
        settings = Settings(memory_limit_bytes=FEW_FIELDS) if how == "exact in little memory" else None
        self.planner = self.new_planner(settings)
        self.favourites = self.rng.integers(shape, size=(3, 2))  # goals that come again, whose fields are repaired
        self.kept = [(self.planner.grid, self.costs.copy())]

    def new_planner(self, settings=None):
        grid = GridMap(self.costs, self.connectivity)
        return BlockPlanner(grid, self.algorithm, self.block_size, "cpu", settings)

    def goal(self, again):
        return self.favourites[self.rng.integers(3)] if again else self.rng.integers(self.costs.shape)

    @rule(
        seed=SEEDS,
        count=st.integers(0, 60),
        near=st.booleans(),
        what=st.sampled_from(["blocked", "free", "both", "as before"]),
        one_cost=st.booleans(),
    )
    def change(self, seed, count, near, what, one_cost):
        """near: tiles within a few of each other. A tile may come twice: the last cost counts."""
        rng = np.random.default_rng(seed)
        tiles = rng.integers(self.costs.shape, size=(count, 2))
        if near and count:
            tiles = np.minimum(tiles[0] + tiles % 5, np.array(self.costs.shape) - 1)
        share = {"blocked": 1.0, "free": 0.0}.get(what, 0.5)
        costs = random_costs(rng, 1, count, share, self.highest)[0]
        if what == "as before":
            costs = self.costs[tuple(tiles.T)]
        if one_cost and count:
            costs = int(costs[0])
        self.planner.update(*tiles.T, costs)
        for k, (row, col) in enumerate(tiles.tolist()):
            self.costs[row, col] = costs if one_cost else costs[k]

    @rule(seed=SEEDS, wrong=st.sampled_from(["outside", "too dear", "no integer", "one short"]))
    def change_that_is_refused(self, seed, wrong):
        rows, cols = np.random.default_rng(seed).integers(self.costs.shape, size=(4, 2)).T
        costs = np.array([0, 1, 1, 0])
        if wrong == "outside":
            rows[2] = self.costs.shape[0]
        elif wrong == "too dear":
            costs[3] = 256
        elif wrong == "no integer":
            rows = rows + 0.5
        else:
            costs = costs[:3]
        with pytest.raises(GridMapError):
            self.planner.update(rows, cols, costs)

    @precondition(lambda self: self.algorithm == "exact")
    @rule(again=st.booleans())
    def ask_for_a_field(self, again):
        goal = self.goal(again)
        if self.costs[tuple(goal)] == 0:
            with pytest.raises(GridMapError, match="not a free tile"):
                self.planner.field(goal)
            return
        field = self.planner.field(goal)
        np.testing.assert_allclose(field, costs_to_goal(self.costs, self.connectivity, goal), rtol=1e-10)
        assert np.array_equal(field, self.new_planner().field(goal))

    @precondition(lambda self: self.algorithm == "exact")
    @rule(count=st.integers(0, 4))
    def prepare(self, count):
        goals = np.array([self.goal(again=k % 2 == 0) for k in range(count)]).reshape(-1, 2)
        self.planner.prepare(goals)

    @rule(agents=st.integers(0, 30), one_goal=st.booleans())
    def plan(self, agents, one_goal):
        starts = self.rng.integers(-1, self.costs.shape, size=(agents, 2))  # some outside, some blocked
        goals = np.array([self.goal(again=k % 3 > 0) for k in range(1 if one_goal else agents)]).reshape(-1, 2)
        paths, fresh = (planner.plan(starts, goals) for planner in (self.planner, self.new_planner()))
        assert not broken_paths(self.planner.grid, paths, starts, goals)
        goals = np.broadcast_to(goals, starts.shape)
        expected = [self.expected(*both) for both in zip(starts, goals)]
        assert [AgentStatus(status) for status in paths.status] == [status for status, _ in expected]
        np.testing.assert_allclose(paths.cost, [cost for _, cost in expected], rtol=1e-9)
        assert np.array_equal(paths.cost, fresh.cost) and np.array_equal(paths.paths()[0], fresh.paths()[0])

    def expected(self, start, goal):
        """-> AgentStatus and cost of an agent"""
        if (start < 0).any():
            return AgentStatus.START_OUTSIDE, np.inf
        if self.costs[tuple(start)] == 0:
            return AgentStatus.START_BLOCKED, np.inf
        if self.costs[tuple(goal)] == 0:
            return AgentStatus.GOAL_BLOCKED, np.inf
        cost = costs_to_goal(self.costs, self.connectivity, goal)[tuple(start)]
        return (AgentStatus.SOLVED if np.isfinite(cost) else AgentStatus.NO_PATH), cost

    @rule()
    def keep_the_map(self):
        self.kept.append((self.planner.grid, self.costs.copy()))

    @invariant()
    def maps_that_it_gave_stay_as_they_were(self):
        for grid, costs in getattr(self, "kept", ()):
            assert np.array_equal(grid.costs, costs)


TestUpdates = driven(Updates, sequences=15, steps=20)
