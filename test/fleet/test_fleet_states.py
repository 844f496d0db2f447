"""A fleet to which everything may happen between steps: agents come, go, stop, are lost, and the map changes.

The model follows each agent by what `step` told it, tick by tick, and knows the map; nothing of the planner.
"""

from collections import deque
from dataclasses import dataclass, replace

import numpy as np
import pytest
from fleet_oracle import MOVES
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from state_machines import driven

from gpu_planners.errors import GridMapError
from gpu_planners.fleet import FleetPlanner, Settings
from gpu_planners.grid import GridMap

SEEDS = st.integers(0, 2**32 - 1)
BUDGETS = (0.0, 0.0, 0.004, 0.03)


@dataclass(frozen=True)
class Agent:
    """tile: it is on, or moves to; left: the tile that it still leaves, None: none; rest: ticks until it can act again

    speed: ticks of a move, of a turn; there: is it on the map? still: does it not move, whatever it is told?
    waits: has it nothing to begin in the next step?
    """

    tile: tuple
    heading: int
    speed: tuple
    left: tuple | None = None
    rest: int = 0
    there: bool = True
    still: bool = False
    waits: bool = False

    @property
    def held(self):
        return (self.tile,) if self.left is None else (self.tile, self.left)


class Fleet(RuleBasedStateMachine):
    """agents: of the model, by number; costs: the map; goals: (N, 2) of the next steps"""

    @initialize(
        seed=SEEDS,
        shape=st.tuples(st.integers(2, 9), st.integers(3, 10)),
        blocked=st.sampled_from([0.0, 0.1, 0.3]),
        motion=st.sampled_from(["four", "turning"]),
        following=st.booleans(),
        size=st.sampled_from([(1, 0), (1, 0), (1, 0), (2, 0), (1, 1)]),
        ticks=st.sampled_from([(1, 1), (1, 1), (2, 1), (1, 2), (3, 2)]),
        guidance=st.sampled_from(["auto", "plain", "lanes"]),
    )
    def make(self, seed, shape, blocked, motion, following, size, ticks, guidance):
        self.rng = np.random.default_rng(seed)
        self.costs = (self.rng.random(shape) >= blocked).astype(np.uint8)
        self.size, self.near, self.following = size[0], size[0] - 1 + size[1], following
        self.settings = Settings(
            size=size[0],
            safety_distance=size[1],
            following=following,
            ticks_per_move=ticks[0],
            ticks_per_turn=ticks[1],
            guidance=guidance,
        )
        self.fleet = FleetPlanner(GridMap(self.costs, 4), motion, "cpu", self.settings)
        self.turning, self.wait = motion == "turning", self.fleet.motion.wait
        self.agents = []
        self.goals = np.zeros((0, 2), int)

    # ----------------------------------------------------------------------------------------------- the model

    def covers_free(self, tile):
        """Is all that an agent on a tile covers inside and free?"""
        low = (self.size - 1) // 2
        rows, cols = (range(at - low, at - low + self.size) for at in tile)
        inside = rows[0] >= 0 and cols[0] >= 0 and rows[-1] < self.costs.shape[0] and cols[-1] < self.costs.shape[1]
        return inside and all(self.costs[row, col] for row in rows for col in cols)

    def too_near(self, tile, others):
        return any(max(abs(tile[0] - row), abs(tile[1] - col)) <= self.near for row, col in others)

    def stands_shut(self):
        """Tiles of agents that do not move: closed like blocked ones."""
        return {tile for agent in self.agents if agent.there and agent.still for tile in agent.held}

    def held_by_others(self, number=None):
        return [tile for k, agent in enumerate(self.agents) if agent.there and k != number for tile in agent.held]

    def places(self, rng, most):
        """At most so many tiles at which agents may start beside those that are there."""
        chosen, taken = [], self.held_by_others()
        for tile in map(tuple, rng.permutation(np.argwhere(self.costs)).tolist()):
            free = self.covers_free(tile) and not self.too_near(tile, taken) and tile not in self.stands_shut()
            if free and len(chosen) < most:
                chosen.append(tile)
                taken = [*taken, tile]
        return chosen

    def new_agents(self, rng, tiles):
        """-> headings, speeds for `start` and `add`, Agents"""
        count = len(tiles)
        headings = rng.integers(4, size=count) if rng.random() < 0.7 else None
        speeds = rng.integers(1, 4, (count, 2)) if rng.random() < 0.3 else None
        faces = [0] * count if headings is None or not self.turning else headings.tolist()
        usual = self.settings.ticks_per_move, self.settings.ticks_per_turn
        paces = [usual] * count if speeds is None else map(tuple, speeds.tolist())
        return headings, speeds, [Agent(*each) for each in zip(tiles, faces, paces, strict=True)]

    def new_goals(self, rng, count):
        goals = rng.integers(self.costs.shape, size=(count, 2))
        goals[rng.random(count) < 0.15] = -1
        return goals

    # ------------------------------------------------------------------------------------------------ agents

    @rule(seed=SEEDS, most=st.integers(0, 24))
    def start(self, seed, most):
        rng = np.random.default_rng(seed)
        self.agents = []
        tiles = self.places(rng, most)
        headings, speeds, self.agents = self.new_agents(rng, tiles)
        self.fleet.start(np.reshape(tiles, (-1, 2)).astype(int), headings, speeds)
        self.goals = self.new_goals(rng, len(tiles))

    @rule(seed=SEEDS, most=st.integers(0, 6))
    def add(self, seed, most):
        rng = np.random.default_rng(seed)
        tiles = self.places(rng, most)
        headings, speeds, new = self.new_agents(rng, tiles)
        numbers = self.fleet.add(np.reshape(tiles, (-1, 2)).astype(int), headings, speeds)
        assert numbers.tolist() == list(range(len(self.agents), len(self.agents) + len(new)))
        self.agents += new
        self.goals = np.concatenate([self.goals, self.new_goals(rng, len(new))])

    @rule(seed=SEEDS, share=st.sampled_from([0.0, 0.2, 1.0]))
    def remove(self, seed, share):
        rng = np.random.default_rng(seed)
        gone = [k for k, agent in enumerate(self.agents) if agent.there and rng.random() < share]
        self.fleet.remove(gone)
        for k in gone:
            self.agents[k] = replace(self.agents[k], there=False, still=False, left=None)

    @rule(seed=SEEDS, how=st.sampled_from(["on another", "blocked", "outside", "removed", "twice", "nobody's"]))
    def what_is_refused(self, seed, how):
        """Agents that are added or removed; nothing changes."""
        rng = np.random.default_rng(seed)
        good, there = self.places(rng, 1), [k for k, agent in enumerate(self.agents) if agent.there]
        blocked = np.argwhere(self.costs == 0).tolist()
        wrong = {
            "on another": [self.agents[k].tile for k in there],
            "blocked": blocked,
            "outside": [(-1, 0), (0, self.costs.shape[1])],
            "removed": [k for k, agent in enumerate(self.agents) if not agent.there],
            "twice": there,
            "nobody's": [-1, len(self.agents)],
        }[how]
        if not wrong:
            return
        one = wrong[rng.integers(len(wrong))]
        with pytest.raises(GridMapError):
            if how in ("on another", "blocked", "outside"):
                self.fleet.add([*good, one])
            else:
                self.fleet.remove([one] * (1 + (how == "twice")))

    @rule(seed=SEEDS, elsewhere=st.sampled_from([0.0, 0.2, 0.6]), stop=st.sampled_from([0.0, 0.2]))
    def observe(self, seed, elsewhere, stop):
        """Some are late, some lost, of some nothing is known; some do not move, some are busy."""
        rng = np.random.default_rng(seed)
        agents, unknown = list(self.agents), rng.random(len(self.agents)) < 0.2
        for k, agent in enumerate(agents):
            still, busy = agent.there and rng.random() < stop, agent.there and rng.random() < stop
            agent = replace(agent, still=still, waits=still or busy)
            if agent.there and not unknown[k] and rng.random() < elsewhere:
                near = [(agent.tile[0] + down, agent.tile[1] + right) for down, right in MOVES]
                near += [agent.tile if agent.left is None else agent.left, *self.places(rng, 1)]
                tile = near[rng.integers(len(near))]
                others = [tile for j, each in enumerate(agents) if each.there and j != k for tile in each.held]
                heading = int(rng.integers(4)) if self.turning else 0
                same = tile == agent.tile and heading == agent.heading
                if self.covers_free(tile) and not self.too_near(tile, others) and not same:
                    agent = replace(agent, tile=tile, heading=heading, left=None, rest=0, waits=True)
            agents[k] = agent
        tiles = np.reshape([agent.tile for agent in agents], (-1, 2)).astype(int)
        tiles[unknown] = -1
        headings = np.array([agent.heading for agent in agents], int)
        still = [k for k, agent in enumerate(agents) if agent.still]
        busy = [k for k, agent in enumerate(agents) if agent.waits and not agent.still and agent.there]
        self.fleet.observe(tiles, headings, still, busy)
        self.agents = agents

    @precondition(lambda self: sum(agent.there for agent in self.agents) > 1)
    @rule()
    def observe_two_on_one_tile(self):
        tiles = self.fleet.positions
        one, other = [k for k, agent in enumerate(self.agents) if agent.there][:2]
        tiles[one] = tiles[other]
        with pytest.raises(GridMapError, match="are both at"):
            self.fleet.observe(tiles)

    # ----------------------------------------------------------------------------------------------- the map

    @rule(seed=SEEDS, count=st.integers(0, 6), under=st.booleans())
    def update(self, seed, count, under):
        """under: also tiles that agents are on."""
        rng = np.random.default_rng(seed)
        tiles = rng.integers(self.costs.shape, size=(count, 2))
        if under and self.agents:
            tiles = np.concatenate([tiles, [self.agents[rng.integers(len(self.agents))].tile]])
        costs = rng.integers(2, size=len(tiles))
        self.fleet.update(*tiles.T, costs)
        for (row, col), cost in zip(tiles.tolist(), costs.tolist()):
            self.costs[row, col] = cost

    @rule()
    def update_that_is_refused(self):
        with pytest.raises(GridMapError):
            self.fleet.update([0, self.costs.shape[0]], [0, 0], [1 - self.costs[0, 0], 0])

    # ------------------------------------------------------------------------------------------------- steps

    @rule(seed=SEEDS, budget_s=st.sampled_from(BUDGETS), steps=st.integers(1, 12), new=st.sampled_from([0, 0.1, 1]))
    def step(self, seed, budget_s, steps, new):
        rng = np.random.default_rng(seed)
        for _ in range(steps if budget_s < 0.01 else 2):
            other = rng.random(len(self.goals)) < new
            self.goals[other] = self.new_goals(rng, int(other.sum()))
            self.follow(self.fleet.step(self.goals, budget_s))

    def follow(self, actions):
        """Each agent does what it was told, if that keeps all apart."""
        before = self.agents
        self.agents = [self.after(agent, int(action)) for agent, action in zip(before, actions, strict=True)]
        for k, (old, new) in enumerate(zip(before, self.agents)):
            if not new.there:
                continue
            assert not any(self.too_near(tile, self.held_by_others(k)) for tile in new.held), f"agent {k} meets another"
            if new.tile == old.tile:
                continue
            assert self.covers_free(new.tile), f"agent {k} enters {new.tile}"
            for j, (other, later) in enumerate(zip(before, self.agents)):
                if j != k and other.there and self.too_near(new.tile, other.held):
                    swaps = later.tile != other.tile and self.too_near(later.tile, old.held)
                    assert self.following and not swaps, f"agents {k} and {j}: {old} {new}, {other} {later}"

    def after(self, agent, action):
        """An agent after a tick in which it was told to begin an action."""
        free = replace(agent, waits=agent.still)
        if not agent.there or agent.waits or agent.rest:
            assert action == self.wait, f"{agent} is told to begin {action}"
            rest = agent.rest if agent.waits or not agent.rest else agent.rest - 1
            return replace(free, rest=rest, left=agent.left if rest else None)
        if action == self.wait:
            return free
        heading = agent.heading if self.turning else action
        if self.turning and action > 0:
            return replace(free, heading=(heading + (1 if action == 1 else 3)) % 4, rest=agent.speed[1] - 1)
        tile = agent.tile[0] + MOVES[heading][0], agent.tile[1] + MOVES[heading][1]
        rest = agent.speed[0] - 1
        return replace(free, tile=tile, rest=rest, left=agent.tile if rest else None)

    @rule(wrong=st.sampled_from(["one more", "outside", "a text", "no budget"]))
    def step_that_is_refused(self, wrong):
        goals, budget_s = self.goals.tolist(), 0.0
        if wrong == "one more":
            goals.append([0, 0])
        elif wrong == "no budget":
            budget_s = -1.0
        elif self.agents and self.agents[0].there:
            goals[0] = [0, self.costs.shape[1]] if wrong == "outside" else ["a", "b"]
        else:
            return
        with pytest.raises((GridMapError, ValueError)):
            self.fleet.step(goals, budget_s)

    @rule(seed=SEEDS)
    def ask(self, seed):
        """Whoever asks what ways cost gets what a new fleet says, and changes nothing. Some fields are ready."""
        rng = np.random.default_rng(seed)
        asked = self.new_goals(rng, len(self.goals))
        self.fleet.prepare(asked, least=int(rng.integers(3)))
        there = [k for k, agent in enumerate(self.agents) if agent.there and self.covers_free(agent.tile)]
        if any(agent.there and agent.still for agent in self.agents):
            return
        fresh = FleetPlanner(self.fleet.grid, self.fleet.motion.name, "cpu", self.settings, self.fleet.guidance)
        fresh.start(self.fleet.positions[there], self.fleet.headings[there])
        assert (fresh.steps_to_go(asked[there]) == self.fleet.steps_to_go(asked)[there]).all()

    @rule(seed=SEEDS)
    def one_that_is_alone_arrives(self, seed):
        """All others leave."""
        rng = np.random.default_rng(seed)
        here = [k for k, agent in enumerate(self.agents) if agent.there and not agent.still]
        if not here:
            return
        one = here[rng.integers(len(here))]
        gone = [k for k, agent in enumerate(self.agents) if agent.there and k != one]
        self.fleet.remove(gone)
        for k in gone:
            self.agents[k] = replace(self.agents[k], there=False, still=False, left=None)
        goal = self.farthest_from(self.agents[one].tile)
        self.goals[one] = goal
        for _ in range(int(4 * self.costs.size * max(self.agents[one].speed))):
            if self.agents[one].tile == goal:
                return
            self.follow(self.fleet.step(self.goals))
        raise AssertionError(f"agent {one} is at {self.agents[one].tile}, not at {goal}")

    def farthest_from(self, tile):
        """The farthest tile that an agent can go to, by a breadth-first search."""
        queue, known = deque([tile]), {tile}
        while queue:
            tile = queue.popleft()
            for down, right in MOVES:
                there = tile[0] + down, tile[1] + right
                if there not in known and self.covers_free(there):
                    known.add(there)
                    queue.append(there)
        return tile

    @invariant()
    def agents_are_where_they_should_be_on_the_map_that_should_be(self):
        if hasattr(self, "agents"):
            assert list(map(tuple, self.fleet.positions.tolist())) == [agent.tile for agent in self.agents]
            assert self.fleet.headings.tolist() == [agent.heading for agent in self.agents]
            assert np.array_equal(self.fleet.grid.costs, self.costs)


TestFleet = driven(Fleet, sequences=30, steps=25)
