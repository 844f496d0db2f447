"""What agents may do without waiting for others, carried out with delays."""

import numpy as np
import pytest

from gpu_planners.fleet import FleetPlanner, Settings
from gpu_planners.fleet.action_graph import ActionGraph
from gpu_planners.grid import GridMap

SHAPE = 14, 14


class Late:
    """Agents that plan by a FleetPlanner and act when they please, some actions behind the plan."""

    def __init__(self, seed, motion, following, near=0, ticks=1, most=3):
        self.rng, self.near, self.following = np.random.default_rng(seed), near, following
        grid = GridMap(self.rng.random(SHAPE) > 0.1, 4)
        settings = Settings(following=following, safety_distance=near, ticks_per_move=ticks, horizon=2 * ticks + 1)
        self.planner = FleetPlanner(grid, motion, "cpu", settings)
        self.free, starts = np.argwhere(~grid.blocked), np.zeros((0, 2), int)
        for tile in self.rng.permutation(self.free):
            if len(starts) < 20 - 12 * near and (np.abs(starts - tile).max(axis=1, initial=0) > near).all():
                starts = np.concatenate([starts, tile[None]])
        self.planner.start(starts)
        self.graph = ActionGraph(SHAPE, near, following, most)
        self.graph.add(starts, np.zeros(len(starts), int))
        self.goals = self.free[self.rng.integers(len(self.free), size=len(starts))]
        self.reached = self.acted = 0

    def observe(self, busy=()):
        tiles, headings = self.graph.ends()
        self.planner.observe(tiles, headings if self.planner.motion.headings > 1 else None, busy=busy)

    def step(self):
        graph, rng, planner = self.graph, self.rng, self.planner
        self.observe(busy=np.flatnonzero(graph.planned == graph.most))
        begun = np.flatnonzero(planner.step(self.goals) != planner.motion.wait)
        graph.plan(begun, planner.positions[begun], planner.headings[begun])
        graph.allow()
        if not self.following:
            self.check_apart()
        some = np.flatnonzero((graph.allowed > 0) & (rng.random(len(self.goals)) < 0.7))
        graph.arrive(some, np.minimum(graph.allowed[some], rng.integers(1, 3, len(some))))
        self.acted += len(some)
        there = (graph.tiles[:, 0] == self.goals).all(axis=1)
        self.reached += int(there.sum())
        self.goals[there] = self.free[rng.integers(len(self.free), size=there.sum())]

    def check_apart(self):
        """No agent is on, or may enter, a tile near one that another agent is on or may enter."""
        held = [self.graph.held(np.array([a])) for a in range(len(self.goals))]
        owner = np.repeat(np.arange(len(held)), [len(tiles) for tiles in held])
        tiles = np.concatenate(held)
        apart = np.abs(tiles[:, None] - tiles).max(axis=2) > self.near
        assert (apart | (owner[:, None] == owner)).all()


@pytest.mark.parametrize("near, ticks", [(0, 1), (0, 2), (1, 1)])
@pytest.mark.parametrize("following", [False, True])
@pytest.mark.parametrize("motion", ["turning", "four"])
def test_agents_that_act_when_they_please_keep_apart_and_get_on(motion, following, near, ticks):
    late = Late(3 * near + ticks, motion, following, near, ticks)
    for step in range(300):
        late.step()
        if step % 40 == 39:  # what is not allowed is forgotten and planned anew
            late.graph.forget()
            assert (late.graph.planned == late.graph.allowed).all()
            late.observe()
    assert late.reached > 10 and late.acted > 500 / ticks


def test_all_that_is_planned_is_done_in_the_end_and_nobody_holds_more_than_its_tile():
    late = Late(5, "turning", False)
    for _ in range(50):
        late.step()
    graph = late.graph
    for _ in range(100):
        graph.allow()
        graph.arrive(np.arange(len(late.goals)), graph.allowed.copy())
    assert (graph.planned == 0).all()
    free = np.argwhere(np.ones(SHAPE, bool))
    taken = set(map(tuple, graph.tiles[:, 0].tolist()))
    assert {tuple(tile) for tile in free[~graph.is_free(free)].tolist()} == taken


def test_one_that_is_late_stops_only_those_behind_it():
    """Three in a row on one tile each, a fourth elsewhere; the first one is late."""
    graph = ActionGraph((2, 6), 0, False, 2)
    graph.add(np.array([[0, 2], [0, 1], [0, 0], [1, 0]]), np.zeros(4, int))
    every = np.arange(4)
    for col in (1, 2):
        graph.plan(every, np.array([[0, 2 + col], [0, 1 + col], [0, col], [1, col]]), np.zeros(4, int))
    assert graph.allow().tolist() == [0, 3] and graph.allowed.tolist() == [2, 0, 0, 2]
    graph.arrive(np.array([3]), np.array([2]))
    assert graph.allow().tolist() == []
    graph.arrive(np.array([0]), np.array([1]))
    assert graph.allow().tolist() == [1] and graph.held(np.array([1])).tolist() == [[0, 1], [0, 2]]
    assert graph.holder(np.array([0, 2])) == 1 and graph.holder(np.array([1, 1])) == -1


def test_agents_in_a_ring_go_at_once_where_following_is_allowed_and_never_where_it_is_not():
    ring = np.array([[0, 0], [0, 1], [1, 1], [1, 0]])
    for following in (True, False):
        graph = ActionGraph((2, 2), 0, following, 1)
        graph.add(ring, np.zeros(4, int))
        graph.plan(np.arange(4), np.roll(ring, -1, axis=0), np.zeros(4, int))
        assert graph.allow().tolist() == ([0, 1, 2, 3] if following else [])


def test_agents_that_are_found_elsewhere_are_put_there_unless_somebody_else_is():
    graph = ActionGraph((3, 5), 0, False, 2)
    graph.add(np.array([[0, 0], [0, 1], [0, 2], [2, 4]]), np.zeros(4, int))
    some = np.array([0, 1, 2])
    places = np.array([[0, 1], [0, 0], [2, 4]])  # two have changed places, the third is said to be on another's tile
    assert graph.movable(some, places).tolist() == [True, True, False]
    assert graph.movable(some[:2], np.array([[1, 1], [1, 1]])).tolist() == [True, False]
    graph.remove(some[:2])
    graph.place(some[:2], places[:2], np.zeros(2, int))
    assert graph.ends()[0].tolist() == [[0, 1], [0, 0], [0, 2], [2, 4]]
    assert not graph.is_free(places).any() and graph.is_free(np.array([[1, 1]])).all()


def test_a_tile_that_an_agent_may_come_back_to_stays_its_own():
    """It drives ahead, turns round and comes back; after the first move nobody else may be put where it comes back."""
    graph = ActionGraph((1, 4), 0, True, 4)
    graph.add(np.array([[0, 0], [0, 3]]), np.zeros(2, int))
    agent, other = np.array([0]), np.array([1])
    for col, heading in ((1, 0), (1, 1), (1, 2), (0, 2)):
        graph.plan(agent, np.array([[0, col]]), np.array([heading]))
    graph.allow()
    assert graph.allowed.tolist() == [4, 0]
    graph.arrive(agent, np.array([1]))
    assert graph.holder(np.array([0, 0])) == 0 and not graph.is_free(np.array([[0, 0]]))[0]
    assert not graph.movable(other, np.array([[0, 0]]))[0]
    graph.arrive(agent, np.array([3]))
    assert graph.holder(np.array([0, 1])) == -1 and graph.movable(other, np.array([[0, 1]]))[0]


def test_a_tile_is_its_own_until_it_has_left_whoever_follows():
    graph = ActionGraph((1, 6), 0, True, 2)
    graph.add(np.array([[0, 1], [0, 0], [0, 5]]), np.zeros(3, int))
    first, second, third = np.arange(3)[:, None]
    graph.plan(np.array([0, 1]), np.array([[0, 2], [0, 1]]), np.zeros(2, int))
    assert graph.allow().tolist() == [0, 1]  # the first one is still on (0, 1)
    both = np.concatenate([second, third])
    assert graph.movable(both, np.array([[0, 4], [0, 1]])).tolist() == [True, False]
    graph.remove(second)
    assert graph.holder(np.array([0, 1])) == 0 and not graph.is_free(np.array([[0, 1]]))[0]
    graph.arrive(first, np.array([1]))
    assert graph.holder(np.array([0, 1])) == -1
