"""An action graph under all that a node does with it, against lists of who is to be on each tile when.

Agents plan moves that are free of conflicts in the order of planning, and act when they please. The model keeps the
states that each agent has planned.
"""

from importlib import import_module

import numpy as np
from fleet_oracle import MOVES
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from state_machines import driven

import gpu_planners.fleet

ActionGraph = getattr(gpu_planners.fleet, "ActionGraph", None)
ActionGraph = ActionGraph or import_module("gpu_planners.fleet.action_graph").ActionGraph
SEEDS = st.integers(0, 2**32 - 1)


class Plan:
    """states: [(tile, heading)] from where the agent is to the end of its plan; allowed: how many actions it may do"""

    def __init__(self, tile, heading):
        self.states, self.allowed = [(tile, heading)], 0

    @property
    def held(self):
        """Tiles that it is on, or may enter."""
        return [tile for tile, _ in self.states[: self.allowed + 1]]

    @property
    def end(self):
        return self.states[-1]


class Actions(RuleBasedStateMachine):
    """plans: of all agents, by number"""

    @initialize(
        seed=SEEDS,
        shape=st.tuples(st.integers(1, 6), st.integers(2, 7)),
        near=st.sampled_from([0, 0, 1]),
        following=st.booleans(),
        most=st.integers(1, 4),
    )
    def make(self, seed, shape, near, following, most):
        self.shape, self.near, self.following, self.most = shape, near, following, most
        self.graph = ActionGraph(shape, near, following, most)
        self.plans, self.visits = [], []
        self.add(seed, 6)

    def too_near(self, tile, others):
        return any(max(abs(tile[0] - row), abs(tile[1] - col)) <= self.near for row, col in others)

    def free_tiles(self):
        """Tiles where nobody is, or is going to be."""
        taken = [tile for plan in self.plans for tile, _ in plan.states]
        return [tile for tile in np.ndindex(*self.shape) if not self.too_near(tile, taken)]

    @rule(seed=SEEDS, most=st.integers(0, 3))
    def add(self, seed, most):
        rng, tiles = np.random.default_rng(seed), []
        for tile in map(tuple, rng.permutation(np.reshape(self.free_tiles(), (-1, 2))).astype(int).tolist()):
            if len(tiles) < most and not self.too_near(tile, tiles):
                tiles.append(tile)
        headings = rng.integers(4, size=len(tiles))
        self.graph.add(np.reshape(tiles, (-1, 2)).astype(int), headings)
        self.plans += [Plan(tile, heading) for tile, heading in zip(tiles, headings.tolist())]

    @rule(seed=SEEDS, steps=st.integers(1, 4))
    def plan(self, seed, steps):
        """Steps of all agents: each moves, turns or waits, so that the ends of all plans are without conflicts."""
        rng = np.random.default_rng(seed)
        for _ in range(steps):
            now = [plan.end for plan in self.plans]
            new, agents = list(now), []
            for k in rng.permutation(len(self.plans)).tolist():
                if len(self.plans[k].states) > self.most or rng.random() < 0.2:
                    continue
                (row, col), heading = now[k]
                down, right = MOVES[heading]
                ahead = row + down, col + right
                if rng.random() < 0.3 or not (0 <= ahead[0] < self.shape[0] and 0 <= ahead[1] < self.shape[1]):
                    new[k] = (row, col), (heading + int(rng.choice([1, 3]))) % 4
                elif self.may_enter(k, ahead, now, new):
                    new[k] = ahead, heading
                else:
                    continue
                agents.append(k)
            agents = np.array(sorted(agents), int)
            tiles = np.reshape([new[k][0] for k in agents], (-1, 2)).astype(int)
            self.graph.plan(agents, tiles, np.array([new[k][1] for k in agents], int))
            for k in agents:
                self.plans[k].states.append(new[k])

    def may_enter(self, number, tile, now, new):
        for k, (before, after) in enumerate(zip(now, new)):
            if k == number:
                continue
            if self.too_near(tile, [after[0]]) or self.too_near(tile, [before[0]]) and not self.following:
                return False
            if self.too_near(tile, [before[0]]) and self.too_near(after[0], [now[number][0]]):
                return False  # they would change places
            if self.following and self.too_near(tile, [before[0]]) and after == before:
                return False
        return True

    @rule(seed=SEEDS, halt=st.booleans(), block=st.booleans())
    def allow(self, seed, halt, block):
        """halt: some are allowed no more; block: some tiles are blocked."""
        rng, before = np.random.default_rng(seed), [plan.allowed for plan in self.plans]
        halted = rng.random(len(self.plans)) < 0.3 if halt else None
        blocked = rng.random(self.shape) < 0.3 if block else None
        more = self.graph.allow(halted, blocked)
        for plan, allowed in zip(self.plans, self.graph.allowed.tolist()):
            plan.allowed = allowed
        now = [plan.allowed for plan in self.plans]
        assert more.tolist() == [k for k in range(len(now)) if now[k] > before[k]]
        for k, plan in enumerate(self.plans):
            if now[k] > before[k]:
                assert halted is None or not halted[k]
                steps = plan.states[before[k] : now[k] + 1]
                entered = [after[0] for old, after in zip(steps, steps[1:]) if after[0] != old[0]]
                assert blocked is None or not any(blocked[tile] for tile in entered)

    @rule(seed=SEEDS)
    def arrive(self, seed):
        """Some have done some of what they were allowed."""
        rng = np.random.default_rng(seed)
        done = np.array([int(rng.integers(plan.allowed + 1)) for plan in self.plans], int)
        agents = np.flatnonzero(rng.random(len(done)) < 0.7)
        self.graph.arrive(agents, done[agents])
        for k in agents:
            plan = self.plans[k]
            del plan.states[: done[k]]
            plan.allowed -= int(done[k])

    @rule()
    def forget(self):
        self.forgotten()

    def forgotten(self):
        """Forget what is not allowed yet."""
        tiles, headings = self.graph.forget()
        for plan in self.plans:
            del plan.states[plan.allowed + 1 :]
        assert list(map(tuple, tiles.tolist())) == [plan.end[0] for plan in self.plans]
        assert headings.tolist() == [plan.end[1] for plan in self.plans]

    @rule(seed=SEEDS)
    def some_leave(self, seed):
        """The others get new numbers, in order."""
        gone = np.random.default_rng(seed).random(len(self.plans)) < 0.3
        self.forgotten()
        self.graph.remove(np.flatnonzero(gone))
        self.graph.keep(np.flatnonzero(~gone))
        self.plans = [plan for plan, leaves in zip(self.plans, gone) if not leaves]

    @rule(seed=SEEDS)
    def some_are_found_elsewhere(self, seed):
        """They are put there where that brings nobody too near to another one."""
        rng = np.random.default_rng(seed)
        self.forgotten()
        agents = np.flatnonzero(rng.random(len(self.plans)) < 0.4)
        tiles = np.reshape([rng.integers(self.shape) for _ in agents], (-1, 2)).astype(int)
        moves = self.graph.movable(agents, tiles)
        agents, tiles, headings = agents[moves], tiles[moves], rng.integers(4, size=moves.sum())
        places = dict(zip(agents.tolist(), map(tuple, tiles.tolist())))
        for k, tile in places.items():
            others = [[places[j]] if j in places else plan.held for j, plan in enumerate(self.plans) if j != k]
            assert not self.too_near(tile, sum(others, []))
        self.graph.remove(agents)
        self.graph.place(agents, tiles, headings)
        for k, heading in zip(agents.tolist(), headings.tolist()):
            self.plans[k] = Plan(places[k], heading)

    @rule(more=st.integers(0, 2))
    def widen(self, more):
        self.graph.widen(self.most + more)
        self.most += more

    @precondition(lambda self: self.plans)
    @rule()
    def all_is_done_in_the_end(self):
        """Nobody waits for ever, since what is planned has no conflicts; each holds its last tile alone then."""
        for _ in range(len(self.plans) * self.most + 1):
            self.graph.allow()
            self.graph.arrive(np.arange(len(self.plans)), self.graph.allowed.copy())
        stuck = np.flatnonzero(self.graph.planned)
        for k in stuck:  # it may not be in one state twice, else a report would not tell which of them it is
            raise AssertionError(f"agent {k} still waits to do {self.plans[k].states}")
        for plan in self.plans:
            plan.states, plan.allowed = plan.states[-1:], 0

    @invariant()
    def the_graph_is_as_the_plans_say(self):
        if not hasattr(self, "plans"):
            return
        graph, count = self.graph, len(self.plans)
        assert graph.planned.tolist() == [len(plan.states) - 1 for plan in self.plans]
        assert graph.allowed.tolist() == [plan.allowed for plan in self.plans]
        for k, plan in enumerate(self.plans):
            tiles = list(map(tuple, graph.tiles[k, : len(plan.states)].tolist()))
            assert list(zip(tiles, graph.headings[k, : len(plan.states)].tolist())) == plan.states
            assert sorted(map(tuple, graph.held(np.array([k])).tolist())) == sorted(plan.held)
        every = np.array([*np.ndindex(*self.shape)])
        free = set(self.free_tiles())
        assert graph.is_free(every).tolist() == [tuple(tile) in free for tile in every.tolist()]
        for k in range(count):
            for j in range(k):
                self.check_apart(self.plans[k], self.plans[j])

    def check_apart(self, one, other):
        """However late two are with what they are allowed, they are never too near to each other. Where agents may
        follow each other at the same time, they are apart once both have done it."""
        mine, others = (one.held[-1:], other.held[-1:]) if self.following else (one.held, other.held)
        assert not any(self.too_near(tile, others) for tile in mine), f"{one.held} and {other.held}"


TestActions = driven(Actions, sequences=60, steps=30)
