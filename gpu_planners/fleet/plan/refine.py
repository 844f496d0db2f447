"""Make a plan better (MAPF-LNS; Li et al., IJCAI 2021): take a group of agents out, plan them again one after the other
among all others, and keep the new ways if together they cost no more.
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit, njit
from ...parallel.team import NEVER, clock_ns
from ..clock import fits, late, part_of
from ..fields.next_hops import NOBODY
from .fleet_plan import OUT_OF_TIME
from .instance import TELL_NS
from .moves import chance
from .retime import timed
from .sipp import MOST_STATES, Traffic, find_way, new_states

MOST_GROUP = 12  # agents that are planned again together
REPLANS = 16  # between two looks at the clock
FEW_STATES = 2048  # of a search at first
ENOUGH = 0.02  # of the steps lost: a round with few states that gains more is followed by another such round
PATIENCE = 4000  # groups without a gain, after which a plan is left


class Moving:
    """A plan that is made better.

    tiles: (steps + 1, N), changed; message: what happened; least: (N,) int32 steps of each agent alone, None: not known
    proven: (N,) bool, agents of parts of the map whose costs are proven to be least
    """

    def __init__(self, instance, tiles, message, faces, model, least=None, deadline=NEVER):
        self.instance, self._motion, self._deadline, n = instance, (faces, model), deadline, len(instance.start)
        tiles, headings, ends, whole = timed(instance, tiles, faces, model, deadline=deadline)
        self.proven = np.zeros(n, bool)
        steps, self.message = tiles.shape[1], message if whole else OUT_OF_TIME
        cost = np.where(instance.goal < 0, 0, np.where(tiles[:, -1] == instance.goal, ends, steps)).astype(np.int32)
        ways = tiles, headings, np.zeros((0, 0), np.int32)
        bounds = instance.alone, np.zeros(n, np.int32) if least is None else least
        errands = instance.goal, instance.field, instance.nearer
        self.traffic = Traffic(*ways, cost, *bounds, *errands, *model)
        if least is None:
            longest = int((3 if model.turning else 1) * instance.alone.max(initial=0) + 2)
            states, lonely = new_states(longest), np.zeros((1, longest + 1), np.int32)
            with_goal = np.flatnonzero(instance.goal >= 0)
            alone = self.traffic._replace(who=lonely)
            ways_alone(with_goal, longest, alone, instance.ground, states, self.told_by(deadline))

    def told_by(self, deadline):
        """When the plan must be done, to be told by the deadline."""
        return deadline if deadline == NEVER else deadline - TELL_NS * self.traffic.tile.size

    def loss(self):
        """Steps that agents take beyond those that they would take alone."""
        some = self.instance.goal >= 0
        return int((self.traffic.cost - self.traffic.least)[some].sum(dtype=np.int64))

    def another(self, tiles):
        """Another plan of the same agents, that solves all, of tiles (steps + 1, N), changed."""
        return Moving(self.instance, tiles, "solved", *self._motion, self.traffic.least, self._deadline)

    def or_better(self, tiles):
        """-> this plan, or a better one that solves all, of tiles (steps + 1, N), changed"""
        other = self.another(tiles)
        other.proven = self.proven
        return self.or_other(other)

    def or_other(self, other):
        """-> the better one of this plan and another"""
        if other.message != "solved":
            return self
        return other if self.message != "solved" or other.loss() < self.loss() else self

    def with_tiles(self, agents, tiles):
        """-> (steps + 1, N) tiles of this plan with those of some agents (K,) instead: (their steps + 1, K)"""
        own = self.traffic.tile.T
        whole = np.repeat(own[-1:], max(len(own), len(tiles)), axis=0)
        whole[: len(own)] = own
        whole[: len(tiles), agents] = tiles
        whole[len(tiles) :, agents] = tiles[-1]
        return whole

    def improve(self, deadline, seed, memory_limit_bytes):
        """Make the plan better until the time is over, or nothing more is gained for long."""
        traffic, ground = self.traffic, self.instance.ground
        steps, n = traffic.tile.shape[1] - 1, len(traffic.cost)
        size = 4 * len(ground.ways) * (steps + 1)
        deadline = self.told_by(deadline)
        if n == 0 or size > memory_limit_bytes or not fits(part_of(deadline, 0.5), size):  # a nanosecond a byte
            return
        traffic = self.traffic = traffic._replace(who=np.full((len(ground.ways), steps + 1), -1, np.int32))
        if not put_all(np.flatnonzero(self.instance.start >= 0), traffic, deadline):
            return
        ways = np.zeros((MOST_GROUP, steps + 1), np.int32), np.zeros((MOST_GROUP, steps + 1), np.uint8)
        numbers = (np.zeros(MOST_GROUP, np.int32) for _ in range(2))
        states, group = new_states(steps), Group(*ways, *numbers, np.zeros(n, np.uint8))
        rng = np.random.default_rng(seed)
        random = np.array([rng.integers(1, 2**62)])
        gained, states.many[1] = 1, FEW_STATES
        while gained or states.many[1] == FEW_STATES:
            if gained <= ENOUGH * self.loss():
                states.many[1] = MOST_STATES
            order, gained = rng.permutation(n).astype(np.int32), 0
            for begin in range(0, n, REPLANS):
                gained += each_alone(order[begin : begin + REPLANS], traffic, ground, states, deadline)
                if late(deadline):
                    return
        idle, most = 0, min(MOST_GROUP, n)
        while idle < PATIENCE and n > 1 and (traffic.cost > traffic.least).any():
            gained = groups(REPLANS, most, traffic, ground, states, group, random, deadline)
            idle = 0 if gained else idle + REPLANS
            if late(deadline):
                return

    def plan(self, began, first_s):
        traffic, instance, message, steps = self.traffic, self.instance, self.message, self.traffic.tile.shape[1] - 1
        if (traffic.cost <= steps).all():
            steps, message = int(traffic.cost.max(initial=0)), "solved"
        told = instance.told(traffic.tile[:, : steps + 1], traffic.heading[:, : steps + 1], self._deadline)
        least = traffic.least if instance.bound is None else instance.bound
        optimal = instance.bound is None and (self.loss() == 0 or self.proven[instance.goal >= 0].all())
        return instance.plan_of(*told, traffic.cost, least, message, began, first_s, optimal)


@lean_njit
def put(who, agent, traffic):
    """Enter `who` (the agent itself, or NOBODY) along an agent's way."""
    for step in range(traffic.tile.shape[1]):
        traffic.who[traffic.tile[agent, step], step] = who


@njit
def put_all(agents, traffic, deadline):
    """-> done in time?"""
    for a in agents:
        if clock_ns() > deadline:
            return False
        put(a, a, traffic)
    return True


@lean_njit
def _take(agent, state, traffic, states):
    """Give an agent the way that leads to a state."""
    traffic.cost[agent] = states.when[state]
    end = traffic.tile.shape[1]
    while state >= 0:
        for step in range(states.when[state], end):
            traffic.tile[agent, step] = states.tile[state]
            traffic.heading[agent, step] = states.heading[state]
        end = states.when[state]
        state = states.up[state]


class Group(NamedTuple):
    """Agents that are planned again together, and their ways of before."""

    tile: np.ndarray  # (MOST_GROUP, H + 1) int32
    heading: np.ndarray  # (MOST_GROUP, H + 1) uint8
    who: np.ndarray  # (MOST_GROUP,) int32
    cost: np.ndarray  # (MOST_GROUP,) int32
    inside: np.ndarray  # (N,) uint8


@lean_njit
def _join(agent, size, most, traffic, group):
    """Add an agent to a group if it may join. -> the group's new size"""
    if agent == NOBODY or size == most or group.inside[agent] or traffic.goal[agent] < 0:
        return size
    if traffic.cost[agent] >= traffic.tile.shape[1]:
        return size
    group.who[size], group.inside[agent] = agent, 1
    return size + 1


@lean_njit
def _gather(seed, most, traffic, ground, group, random):
    """Fill a group: from a random step on, let a member go straight to its goal, and add all that are in its way; and
    so on. -> the group's size"""
    size = _join(seed, np.int64(0), most, traffic, group)
    blocked, last = len(ground.ways) - 1, traffic.tile.shape[1] - 1
    for _ in range(4 * most):
        if size == most or size == 0:
            break
        agent = group.who[chance(random) % size]
        step = chance(random) % max(1, traffic.cost[agent])
        tile = traffic.tile[agent, step]
        while step < last and size < most and tile != traffic.goal[agent]:
            bits, turn = np.int64(traffic.nearer[traffic.field[agent], tile]), chance(random) % 4
            for k in range(4):
                direction = (k + turn) & 3
                there = ground.near[tile, direction]
                if (bits >> direction) & 1 and there != blocked:
                    size = _join(np.int64(traffic.who[there, step + 1]), size, most, traffic, group)
                    tile = there
                    break
            step += 1
        if tile == traffic.goal[agent]:
            size = _join(np.int64(traffic.who[tile, min(step, last)]), size, most, traffic, group)
    return size


@lean_njit
def _copy(tile, heading, to_tile, to_heading):
    for step in range(len(tile)):
        to_tile[step], to_heading[step] = tile[step], heading[step]


@lean_njit
def better_together(seed, most, traffic, ground, states, group, random, deadline):
    """Plan a group again, unless that takes longer than the deadline. -> steps gained; with 0, ways may have changed"""
    size = _gather(seed, most, traffic, ground, group, random)
    before, rest = 0, 0
    for k in range(size - 1, 0, -1):
        other = chance(random) % (k + 1)
        group.who[k], group.who[other] = group.who[other], group.who[k]
    for k in range(size):
        a = group.who[k]
        group.inside[a] = 0
        _copy(traffic.tile[a], traffic.heading[a], group.tile[k], group.heading[k])
        group.cost[k] = traffic.cost[a]
        before += traffic.cost[a]
        rest += traffic.least[a]
        put(NOBODY, a, traffic)
    done, after, fine = 0, 0, True
    while done < size and fine:
        a = group.who[done]
        rest -= traffic.least[a]
        state = find_way(np.int64(a), before - after - rest, False, traffic, ground, states)
        fine = state >= 0 and clock_ns() <= deadline
        if fine:
            _take(a, state, traffic, states)
            after += traffic.cost[a]
            put(a, a, traffic)
            done += 1
    if fine:
        return before - after
    for k in range(done):
        put(NOBODY, group.who[k], traffic)
    for k in range(size):
        a = group.who[k]
        _copy(group.tile[k], group.heading[k], traffic.tile[a], traffic.heading[a])
        traffic.cost[a] = group.cost[k]
        put(a, a, traffic)
    return 0


@njit
def ways_alone(agents, most, traffic, ground, states, deadline):
    """Write into traffic.least the steps of agents (K,) alone, at most `most`; after the deadline without turns."""
    for k in range(len(agents)):
        a = agents[k]
        if not traffic.turning or clock_ns() > deadline:
            traffic.least[a] = traffic.alone[a]
            continue
        state = find_way(np.int64(a), most, True, traffic, ground, states)
        traffic.least[a] = states.when[state] if state >= 0 else traffic.alone[a]


@njit
def each_alone(some, traffic, ground, states, deadline):
    """Let agents one by one look for shorter ways until the deadline. -> steps gained"""
    gained = 0
    for a in some:
        if traffic.goal[a] >= 0 and traffic.cost[a] > traffic.least[a] and clock_ns() <= deadline:
            before = traffic.cost[a]
            put(NOBODY, a, traffic)
            state = find_way(np.int64(a), before - 1, False, traffic, ground, states)
            if state >= 0:
                _take(a, state, traffic, states)
            put(a, a, traffic)
            gained += before - traffic.cost[a]
    return gained


@njit
def groups(rounds, most, traffic, ground, states, group, random, deadline):
    """Plan groups again, of an agent that loses much and those in its way, until the deadline. -> steps gained"""
    gained, agents = 0, len(traffic.cost)
    for _ in range(rounds):
        seed, loss = np.int64(-1), 0
        for _ in range(8):
            a = chance(random) % agents
            more = traffic.cost[a] - traffic.least[a]
            if traffic.goal[a] >= 0 and traffic.cost[a] < traffic.tile.shape[1] and more > loss:
                seed, loss = a, more
        if seed >= 0 and clock_ns() <= deadline:
            size = 2 + chance(random) % (most - 1)
            gained += better_together(seed, size, traffic, ground, states, group, random, deadline)
    return gained
