"""Agents that are told in every tick whether to go on never overlap, however late they are, and do what was planned."""

import numpy as np
import pytest

from gpu_planners.fleet.tick_graph import TickGraph

LASTS = 3  # ticks of an action
AHEAD = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])


class Robots:
    """Squares of side 1 that move by thirds of a tile, by rules of their own.

    actions: lists of (tile, heading) after each action; done: (N,) thirds of the first one
    """

    def __init__(self, tiles, headings):
        self.tiles, self.headings = np.array(tiles, np.int64), np.array(headings, np.int64)
        self.actions, self.done = [[] for _ in tiles], np.zeros(len(tiles), np.int64)

    def tick(self, goes):
        for robot in np.flatnonzero(goes):
            tile, heading = self.actions[robot][0]
            self.done[robot] += 1
            if self.done[robot] == LASTS:
                self.tiles[robot], self.headings[robot], self.done[robot] = tile, heading, 0
                self.actions[robot].pop(0)
        places = self.tiles * LASTS
        for robot in np.flatnonzero(self.done):
            if (self.actions[robot][0][0] != self.tiles[robot]).any():
                places[robot] += self.done[robot] * AHEAD[self.headings[robot]]
        apart = np.abs(places[:, None] - places).max(axis=2) + LASTS * np.eye(len(places), dtype=int)
        assert apart.min() >= LASTS, "two robots overlap"


class Wanderers:
    """A fleet on paper: agents go ahead where nobody is or comes from, or turn, and stay now and then."""

    def __init__(self, seed, agents):
        self.rng = np.random.default_rng(seed)
        self.free = self.rng.random((12, 14)) > 0.15
        self.start(self.rng.permutation(np.argwhere(self.free))[:agents], self.rng.integers(0, 4, agents))
        self.graph, self.robots = TickGraph(self.free.shape, 4), Robots(self.tiles, self.headings)
        self.graph.add(self.tiles.copy(), self.headings.copy())

    def start(self, tiles, headings):
        self.tiles, self.headings = tiles.copy(), headings.copy()

    def plan(self, steps):
        """Some steps on, for the graph and the robots."""
        self.graph.widen(int(self.graph.planned.max()) + steps)
        for _ in range(steps):
            taken = {tuple(tile) for tile in self.tiles.tolist()}
            for agent in self.rng.permutation(len(self.tiles)).tolist():
                ahead = self.tiles[agent] + AHEAD[self.headings[agent]]
                inside = (ahead >= 0).all() and (ahead < self.free.shape).all()
                if (
                    inside
                    and self.free[tuple(ahead)]
                    and tuple(ahead.tolist()) not in taken
                    and self.rng.random() < 0.9
                ):
                    self.tiles[agent] = ahead
                    taken.add(tuple(ahead.tolist()))
                elif self.rng.random() < 0.7:
                    self.headings[agent] = (self.headings[agent] + self.rng.choice([1, 3])) % 4
                else:
                    continue
                end = self.tiles[agent].copy(), int(self.headings[agent])
                self.graph.plan(np.array([agent]), end[0][None], np.array([end[1]]))
                self.robots.actions[agent].append(end)

    def tick(self, late):
        """Who is not late goes on, if it may -> (N,) bool, who may"""
        goes = self.graph.go(self.robots.done)
        self.robots.tick(goes & ~late)
        self.graph.follow(self.robots.tiles, self.robots.headings)
        return goes


@pytest.mark.parametrize("seed", range(3))
def test_delayed_agents_do_all_that_was_planned_and_never_overlap(seed):
    fleet, late = Wanderers(seed, 60), np.zeros(60, np.int64)
    rng, graph, robots = fleet.rng, fleet.graph, fleet.robots
    fleet.plan(25)
    for _ in range(3000):
        late = np.where(late > 0, late - 1, (rng.random(60) < 0.03) * rng.integers(1, 15, 60))
        fleet.tick(late > 0)
        if not graph.planned.any():
            break
    assert not graph.planned.any() and not any(robots.actions)
    assert (robots.tiles == fleet.tiles).all() and (robots.headings == fleet.headings).all()


@pytest.mark.parametrize("many", [2, 5])
def test_a_queue_moves_on_after_a_tick_for_each_agent(many):
    tiles = np.array([[0, many - 1 - k] for k in range(many)])
    graph, robots = TickGraph((1, many + 4), 4), Robots(tiles, np.zeros(many))
    graph.add(tiles, np.zeros(many, np.int64))
    for step in range(1, 5):
        ends = tiles + [0, step]
        graph.plan(np.arange(many), ends, np.zeros(many, np.int64))
        for robot in range(many):
            robots.actions[robot].append((ends[robot], 0))
    ticks = 0
    while graph.planned.any():
        robots.tick(graph.go(robots.done))
        graph.follow(robots.tiles, robots.headings)
        ticks += 1
    assert ticks == 4 * LASTS + many - 1


def test_whoever_turns_off_is_waited_for():
    """The agent ahead leaves its tile to the side, so the one behind it comes when it has gone."""
    graph, robots = TickGraph((2, 2), 2), Robots([[0, 1], [0, 0]], [1, 0])
    graph.add(robots.tiles.copy(), robots.headings.copy())
    for robot, end, heading in ((0, [1, 1], 1), (1, [0, 1], 0)):
        graph.plan(np.array([robot]), np.array([end]), np.array([heading]))
        robots.actions[robot].append((np.array(end), heading))
    for tick in range(2 * LASTS):
        goes = graph.go(robots.done)
        assert goes[1] == (tick >= LASTS)
        robots.tick(goes)
        graph.follow(robots.tiles, robots.headings)
    assert not graph.planned.any()


@pytest.mark.parametrize("seed", range(5))
def test_a_forecast_says_what_happens_if_nobody_is_late(seed):
    fleet = Wanderers(seed, 50)
    rng, graph, robots = fleet.rng, fleet.graph, fleet.robots
    fleet.plan(12)
    for _ in range(7):  # somewhere on their ways
        fleet.tick(rng.random(50) < 0.4)
    before, expected = graph.planned.copy(), graph.forecast(9, LASTS, robots.done)
    for _ in range(9):
        assert fleet.tick(np.zeros(50, bool)).any()
    begun = before - graph.planned + (robots.done > 0)
    assert (begun == expected).all() and len(set(expected.tolist())) > 2


def test_what_nobody_has_begun_is_planned_anew():
    """Every ten ticks all but what will have begun is forgotten, and agents plan on from there: they get on, whoever is
    late, and nobody's plan waits for what is forgotten."""
    fleet, late, forgotten, moved = Wanderers(7, 50), np.zeros(50, np.int64), 0, np.zeros(50, np.int64)
    rng, graph, robots = fleet.rng, fleet.graph, fleet.robots
    for tick in range(400):
        if tick % 10 == 0:
            before, begun = graph.planned.copy(), graph.allowed.copy()
            ends, headings = graph.keep_only(graph.forecast(12, LASTS, robots.done))
            assert (graph.planned >= begun).all() and (graph.allowed == begun).all()
            assert len(np.unique(ends, axis=0)) == len(ends)
            forgotten += (before - graph.planned).sum()
            for robot, count in enumerate(graph.planned.tolist()):
                del robots.actions[robot][count:]
            fleet.start(ends, headings)
            fleet.plan(5)
        late = np.where(late > 0, late - 1, (rng.random(50) < 0.01) * rng.integers(5, 20, 50))
        was = robots.tiles.copy()
        fleet.tick(late > 0)
        moved += (was != robots.tiles).any(axis=1)
    assert forgotten > 100 and moved.min() > 3
    graph.keep_only(graph.allowed)
    for _ in range(LASTS * LASTS):
        fleet.tick(np.zeros(50, bool))
    assert not graph.planned.any()
