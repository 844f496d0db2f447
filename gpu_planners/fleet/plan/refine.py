"""Make a plan better by large neighbourhood search (neighbourhood.py): each agent of a group finds its path by SIPP
(sipp.py)."""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit, njit
from ...parallel.team import NEVER, clock_ns
from ..clock import fits, late, part_of
from ..fields.next_hops import NOBODY, Ground
from ..neighbourhood import join, make_replan, new_group, reserve
from .fleet_plan import OUT_OF_TIME
from .instance import TELL_NS
from .moves import chance
from .retime import timed
from .sipp import MOST_STATES, States, Traffic, find_path, new_states

MOST_GROUP = 12  # agents that are planned again together
REPLANS = 16  # between two checks of the clock
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
        self.traffic = Traffic(
            tiles,
            headings,
            reserved=np.zeros((0, 0), np.int32),
            cost=cost,
            weight=np.ones(n, np.int32),
            alone=instance.alone,
            least=np.zeros(n, np.int32) if least is None else least,
            goal=instance.goal,
            field=instance.field,
            next_hops=instance.next_hops,
            turning=model.turning,
            following=model.following,
        )
        if least is None:
            longest = int((3 if model.turning else 1) * instance.alone.max(initial=0) + 2)
            states, lonely = new_states(longest), np.zeros((1, longest + 1), np.int32)
            with_goal = np.flatnonzero(instance.goal >= 0)
            alone = self.traffic._replace(reserved=lonely)
            steps_alone(with_goal, longest, alone, instance.ground, states, self.told_by(deadline))

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
        size = 4 * len(ground.neighbour) * (steps + 1)
        deadline = self.told_by(deadline)
        if n == 0 or size > memory_limit_bytes or not fits(part_of(deadline, 0.5), size):  # a nanosecond a byte
            return
        traffic = self.traffic = traffic._replace(reserved=np.full((len(ground.neighbour), steps + 1), -1, np.int32))
        if not reserve_all(np.flatnonzero(self.instance.start >= 0), traffic, deadline):
            return
        states, group = new_states(steps), new_group(MOST_GROUP, traffic.heading)
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


@njit
def reserve_all(agents, traffic, deadline):
    """-> done in time?"""
    for a in agents:
        if clock_ns() > deadline:
            return False
        reserve(a, a, traffic)
    return True


@lean_njit
def _take(agent, state, traffic, states):
    """Give an agent the path that leads to a state."""
    traffic.cost[agent] = states.when[state]
    end = traffic.tile.shape[1]
    while state >= 0:
        for step in range(states.when[state], end):
            traffic.tile[agent, step] = states.tile[state]
            traffic.heading[agent, step] = states.heading[state]
        end = states.when[state]
        state = states.up[state]


class Search(NamedTuple):
    """What a search for a path needs."""

    ground: Ground
    states: States
    deadline: int


@lean_njit
def _find_path(agent, most, traffic, search):
    """See `make_replan`; after the deadline none is found."""
    state = find_path(agent, most, False, traffic, search.ground, search.states)
    if state < 0 or clock_ns() > search.deadline:
        return False
    _take(agent, state, traffic, search.states)
    return True


_replan = make_replan(_find_path)


@lean_njit
def _join(agent, size, most, traffic, group):
    """Add an agent to a group if it has a goal and reaches it. -> the group's new size"""
    if agent == NOBODY or traffic.goal[agent] < 0 or traffic.cost[agent] >= traffic.tile.shape[1]:
        return size
    return join(agent, size, most, group)


@lean_njit
def _gather(seed, most, traffic, ground, group, random):
    """Fill a group: from a random step on, let a member go straight to its goal, and add all that are in its way; and
    so on. -> the group's size"""
    size = _join(seed, np.int64(0), most, traffic, group)
    blocked, last = len(ground.neighbour) - 1, traffic.tile.shape[1] - 1
    for _ in range(4 * most):
        if size == most or size == 0:
            break
        agent = group.agent[chance(random) % size]
        step = chance(random) % max(1, traffic.cost[agent])
        tile = traffic.tile[agent, step]
        while step < last and size < most and tile != traffic.goal[agent]:
            bits, turn = np.int64(traffic.next_hops[traffic.field[agent], tile]), chance(random) % 4
            for k in range(4):
                direction = (k + turn) & 3
                there = ground.neighbour[tile, direction]
                if (bits >> direction) & 1 and there != blocked:
                    size = _join(np.int64(traffic.reserved[there, step + 1]), size, most, traffic, group)
                    tile = there
                    break
            step += 1
        if tile == traffic.goal[agent]:
            size = _join(np.int64(traffic.reserved[tile, min(step, last)]), size, most, traffic, group)
    return size


@njit
def steps_alone(agents, most, traffic, ground, states, deadline):
    """Write into traffic.least the steps of agents (K,) alone, at most `most`; after the deadline without turns."""
    for k in range(len(agents)):
        a = agents[k]
        if not traffic.turning or clock_ns() > deadline:
            traffic.least[a] = traffic.alone[a]
            continue
        state = find_path(np.int64(a), most, True, traffic, ground, states)
        traffic.least[a] = states.when[state] if state >= 0 else traffic.alone[a]


@njit
def each_alone(some, traffic, ground, states, deadline):
    """Let agents one by one look for shorter paths until the deadline. -> steps gained"""
    gained = 0
    for a in some:
        if traffic.goal[a] >= 0 and traffic.cost[a] > traffic.least[a] and clock_ns() <= deadline:
            before = traffic.cost[a]
            reserve(a, NOBODY, traffic)
            state = find_path(np.int64(a), before - 1, False, traffic, ground, states)
            if state >= 0:
                _take(a, state, traffic, states)
            reserve(a, a, traffic)
            gained += before - traffic.cost[a]
    return gained


@njit
def groups(rounds, most, traffic, ground, states, group, random, deadline):
    """Plan groups again, of an agent that loses much and those in its way, until the deadline. -> steps gained"""
    gained, agents, search = 0, len(traffic.cost), Search(ground, states, deadline)
    for _ in range(rounds):
        seed, loss = np.int64(-1), 0
        for _ in range(8):
            a = chance(random) % agents
            more = traffic.cost[a] - traffic.least[a]
            if traffic.goal[a] >= 0 and traffic.cost[a] < traffic.tile.shape[1] and more > loss:
                seed, loss = a, more
        if seed >= 0 and clock_ns() <= deadline:
            size = 2 + chance(random) % (most - 1)
            size = _gather(seed, size, traffic, ground, group, random)
            for k in range(size - 1, 0, -1):
                other = chance(random) % (k + 1)
                group.agent[k], group.agent[other] = group.agent[other], group.agent[k]
            gained += _replan(size, group, traffic, search)
    return gained
