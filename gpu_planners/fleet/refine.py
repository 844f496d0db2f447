"""Make a plan better: take some agents out, and let them find ways again among all others (MAPF-LNS; Li et al., IJCAI
2021).

An agent's way among others that stay as they are is found by safe interval path planning (Phillips and Likhachev, ICRA
2011): a state is a tile, a heading, and an interval of steps during which nobody else is there, of which only the
earliest arrival counts. A table holds who is on which tile at which step. Where a group is planned again, one agent
after the other, the new ways are kept if they do not cost more together.
"""

from typing import NamedTuple

import numpy as np

from ..device import lean_njit, njit
from ..parallel.team import clock_ns
from .lacam import _random

NOBODY = -1
MOST_STATES = 1 << 15  # of one search
MOST_GROUP = 32


class Traffic(NamedTuple):
    """All agents' ways; H steps.

    tile: (N, H + 1) int32; heading: (N, H + 1) uint8; who: (T + 1, H + 1) int32 agents or NOBODY
    cost: (N,) int32 the step from which on an agent stays at its goal, or H + 1
    alone: (N,) int32 moves from its start to its goal; least: (N,) int32 steps that it takes alone
    goal: (N,) int32 tiles, -1 none; field: (N,) int32
    nearer: (K, T + 1) uint8
    turning: do turns take a step each? following: may an agent enter what another one leaves in the same step?
    """

    tile: np.ndarray
    heading: np.ndarray
    who: np.ndarray
    cost: np.ndarray
    alone: np.ndarray
    least: np.ndarray
    goal: np.ndarray
    field: np.ndarray
    nearer: np.ndarray
    turning: bool
    following: bool


class States(NamedTuple):
    """States of one search: tile, when (arrival), until (the last step at which it may stay), heading, far (moves to go
    at least), up (parent), next (in its list), (MOST_STATES,) int32
    bucket: (H + 3,) int32 lists of states by what they cost at least
    table: (2 * MOST_STATES,) int32 states by tile, heading and interval
    used: (MOST_STATES,) int32 the slot of each state
    many: (2,) int64 states, and how many there may be
    """

    tile: np.ndarray
    when: np.ndarray
    until: np.ndarray
    heading: np.ndarray
    far: np.ndarray
    up: np.ndarray
    next: np.ndarray
    bucket: np.ndarray
    table: np.ndarray
    used: np.ndarray
    many: np.ndarray


def new_states(steps: int) -> States:
    arrays = {name: np.full(MOST_STATES, -1, np.int32) for name in States._fields[:7]}
    bucket, table = np.full(steps + 3, -1, np.int32), np.full(2 * MOST_STATES, -1, np.int32)
    used, many = np.zeros(MOST_STATES, np.int32), np.full(2, MOST_STATES, np.int64)
    return States(**arrays, bucket=bucket, table=table, used=used, many=many)


@lean_njit
def _turns(tile, heading, field, traffic):
    """-> quarter turns that an agent needs at least before it can come nearer to its goal"""
    bits = np.int64(traffic.nearer[field, tile])
    if not traffic.turning or bits == 0 or (bits >> heading) & 1:
        return 0
    return 1 if (bits >> ((heading + 1) & 3)) & 1 or (bits >> ((heading + 3) & 3)) & 1 else 2


@lean_njit
def _offer(tile, when, until, heading, far, up, field, bound, traffic, states):
    """Note that a state can be reached, unless it costs more than `bound` or is known. -> is there room for it?"""
    least = when + far + _turns(tile, heading, field, traffic)
    if least > bound:
        return True
    key = np.uint64(until) * np.uint64(0x9E3779B97F4A7C15)
    key += np.uint64(tile * 4 + heading) * np.uint64(0xBF58476D1CE4E5B9)
    slot = np.int64(key >> np.uint64(33)) & (len(states.table) - 1)
    while states.table[slot] >= 0:
        other = states.table[slot]
        if states.tile[other] == tile and states.until[other] == until and states.heading[other] == heading:
            break
        slot = (slot + 1) & (len(states.table) - 1)
    if states.table[slot] >= 0 and states.when[states.table[slot]] <= when:
        return True
    number = states.many[0]
    if number == states.many[1]:
        return False
    states.many[0] = number + 1
    states.used[number], states.table[slot] = slot, number
    states.tile[number], states.when[number], states.until[number] = tile, when, until
    states.heading[number], states.far[number], states.up[number] = heading, far, up
    states.next[number] = states.bucket[least]
    states.bucket[least] = number
    return True


@lean_njit
def find_way(agent, bound, lonely, traffic, ground, states):
    """The way of an agent among all others, who are in traffic.who (or, if `lonely`, as if nobody was there).

    bound: steps that it may take at most
    -> the last state, or -1 where there is no such way or it takes too long to find
    """
    field, goal, who = traffic.field[agent], traffic.goal[agent], traffic.who
    blocked, last = len(ground.ways) - 1, who.shape[1] - 1
    for k in range(states.many[0]):
        states.table[states.used[k]] = -1
    states.many[0] = 0
    states.bucket[:] = -1
    free_from, until, most = 0, bound, bound
    start, heading = traffic.tile[agent, 0], np.int64(traffic.heading[agent, 0])
    if not lonely:
        most, free_from, until = min(bound, last), last, 0
        while free_from >= 0 and who[goal, free_from] == NOBODY:
            free_from -= 1
        free_from += 1
        while until < last and who[start, until + 1] == NOBODY:
            until += 1
    room = _offer(start, 0, until, heading, traffic.alone[agent], -1, field, most, traffic, states)
    least = 0
    while room and least <= most:
        state = states.bucket[least]
        if state < 0:
            least += 1
            continue
        states.bucket[least] = states.next[state]
        if states.table[states.used[state]] != state:
            continue  # an earlier arrival was found
        tile, when, until, heading = states.tile[state], states.when[state], states.until[state], states.heading[state]
        if tile == goal and when >= free_from:
            return state
        if traffic.turning and when < until:
            for quarter in (1, 3):
                turned = (heading + quarter) & 3
                far = states.far[state]
                room &= _offer(tile, when + 1, until, turned, far, state, field, most, traffic, states)
        bits = np.int64(traffic.nearer[field, tile])
        for direction in range(4):
            there = ground.near[tile, direction]
            if there == blocked or (traffic.turning and direction != heading):
                continue
            far = states.far[state] + (-1 if (bits >> direction) & 1 else 1)
            if lonely:
                room &= _offer(there, when + 1, until, heading, far, state, field, most, traffic, states)
                continue
            end = min(until + 1 if traffic.following else until, most - far)
            arrival = when + 1
            while arrival <= end and room:
                before = who[there, arrival - 1]
                if who[there, arrival] != NOBODY or (
                    before != NOBODY and (not traffic.following or who[tile, arrival] == before)
                ):
                    arrival += 1
                    continue
                stop = arrival
                while stop < last and who[there, stop + 1] == NOBODY:
                    stop += 1
                room = _offer(there, arrival, stop, heading, far, state, field, most, traffic, states)
                arrival = stop + 2
    return -1


@lean_njit
def enter(agent, traffic):
    for step in range(traffic.tile.shape[1]):
        traffic.who[traffic.tile[agent, step], step] = agent


@lean_njit
def leave(agent, traffic):
    for step in range(traffic.tile.shape[1]):
        traffic.who[traffic.tile[agent, step], step] = NOBODY


@lean_njit
def _take(agent, state, traffic, states):
    """Let an agent go the way that leads to a state."""
    traffic.cost[agent] = states.when[state]
    end = traffic.tile.shape[1]
    while state >= 0:
        for step in range(states.when[state], end):
            traffic.tile[agent, step] = states.tile[state]
            traffic.heading[agent, step] = states.heading[state]
        end = states.when[state]
        state = states.up[state]


@lean_njit
def _can_gain(agent, traffic):
    return traffic.goal[agent] >= 0 and traffic.cost[agent] > traffic.least[agent]


@lean_njit
def better_alone(agent, traffic, ground, states):
    """Look for a shorter way of one agent. -> steps gained"""
    leave(agent, traffic)
    before = traffic.cost[agent]
    state = find_way(agent, before - 1, False, traffic, ground, states)
    if state >= 0:
        _take(agent, state, traffic, states)
    enter(agent, traffic)
    return before - traffic.cost[agent]


class Group(NamedTuple):
    """Agents that are planned again together: who (MOST_GROUP,) int32, their ways of before, tile and heading
    (MOST_GROUP, H + 1) and cost (MOST_GROUP,) int32; inside: (N,) uint8"""

    who: np.ndarray
    tile: np.ndarray
    heading: np.ndarray
    cost: np.ndarray
    inside: np.ndarray


def new_group(agents: int, steps: int) -> Group:
    def numbers(*shape):
        return np.zeros(shape, np.int32)

    tile, heading = numbers(MOST_GROUP, steps + 1), np.zeros((MOST_GROUP, steps + 1), np.uint8)
    return Group(numbers(MOST_GROUP), tile, heading, numbers(MOST_GROUP), np.zeros(agents, np.uint8))


@lean_njit
def _join(agent, size, most, traffic, group):
    """-> how many the group has, with an agent that may join it"""
    if agent == NOBODY or size == most or group.inside[agent] or traffic.goal[agent] < 0:
        return size
    if traffic.cost[agent] >= traffic.tile.shape[1]:
        return size
    group.who[size], group.inside[agent] = agent, 1
    return size + 1


@lean_njit
def _gather(seed, most, traffic, ground, group, count):
    """Take into a group whoever is in an agent's way, when it goes straight to its goal from where it is at some step,
    and whoever is in the way of these. -> how many"""
    size, blocked, last = _join(seed, 0, most, traffic, group), len(ground.ways) - 1, traffic.tile.shape[1] - 1
    for _ in range(4 * most):
        if size == most or size == 0:
            break
        agent = group.who[_random(count, size)]
        step = _random(count, max(1, traffic.cost[agent]))
        tile = traffic.tile[agent, step]
        while step < last and size < most and tile != traffic.goal[agent]:
            bits, turn = np.int64(traffic.nearer[traffic.field[agent], tile]), _random(count, 4)
            for k in range(4):
                direction = (k + turn) & 3
                there = ground.near[tile, direction]
                if (bits >> direction) & 1 and there != blocked:
                    size = _join(traffic.who[there, step + 1], size, most, traffic, group)
                    tile = there
                    break
            step += 1
        if tile == traffic.goal[agent]:
            size = _join(traffic.who[tile, min(step, last)], size, most, traffic, group)
    return size


@lean_njit
def _copy(tile, heading, to_tile, to_heading):
    for step in range(len(tile)):
        to_tile[step], to_heading[step] = tile[step], heading[step]


@lean_njit
def better_together(seed, most, traffic, ground, states, group, count, deadline):
    """Plan a group again, unless that lasts beyond the deadline, of clock_ns(). -> steps gained; where they gain
    nothing, their ways may be others afterwards"""
    size = _gather(seed, most, traffic, ground, group, count)
    before, rest = 0, 0
    for k in range(size - 1, 0, -1):
        other = _random(count, k + 1)
        group.who[k], group.who[other] = group.who[other], group.who[k]
    for k in range(size):
        a = group.who[k]
        group.inside[a] = 0
        _copy(traffic.tile[a], traffic.heading[a], group.tile[k], group.heading[k])
        group.cost[k] = traffic.cost[a]
        before += traffic.cost[a]
        rest += traffic.least[a]
        leave(a, traffic)
    done, after, fine = 0, 0, True
    while done < size and fine:
        a = group.who[done]
        rest -= traffic.least[a]
        state = find_way(a, before - after - rest, False, traffic, ground, states)
        fine = state >= 0 and clock_ns() <= deadline
        if fine:
            _take(a, state, traffic, states)
            after += traffic.cost[a]
            enter(a, traffic)
            done += 1
    if fine:
        return before - after
    for k in range(done):
        leave(group.who[k], traffic)
    for k in range(size):
        a = group.who[k]
        _copy(group.tile[k], group.heading[k], traffic.tile[a], traffic.heading[a])
        traffic.cost[a] = group.cost[k]
        enter(a, traffic)
    return 0


@njit
def enter_all(traffic):
    for a in range(len(traffic.cost)):
        if traffic.tile[a, 0] >= 0:
            enter(a, traffic)


@njit
def ways_alone(agents, most, traffic, ground, states, deadline):
    """Write into traffic.least how many steps agents (K,) take alone, at most `most`; after the deadline, of
    clock_ns(), without turns."""
    for k in range(len(agents)):
        a = agents[k]
        if not traffic.turning or clock_ns() > deadline:
            traffic.least[a] = traffic.alone[a]
            continue
        state = find_way(a, most, True, traffic, ground, states)
        traffic.least[a] = states.when[state] if state >= 0 else traffic.alone[a]


@njit
def each_alone(order, begin, end, traffic, ground, states, deadline):
    """Let the agents order[begin:end] look for shorter ways until the deadline. -> steps gained"""
    gained = 0
    for k in range(begin, end):
        if _can_gain(order[k], traffic) and clock_ns() <= deadline:
            gained += better_alone(order[k], traffic, ground, states)
    return gained


@njit
def groups(rounds, most, traffic, ground, states, group, count, deadline):
    """Plan some groups again, of agents that lose much and those in their way, until the deadline. -> steps gained"""
    gained, agents = 0, len(traffic.cost)
    for _ in range(rounds):
        seed, loss = -1, 0
        for _ in range(8):
            a = _random(count, agents)
            if _can_gain(a, traffic) and traffic.cost[a] < traffic.tile.shape[1]:
                if traffic.cost[a] - traffic.least[a] > loss:
                    seed, loss = a, traffic.cost[a] - traffic.least[a]
        if seed >= 0 and clock_ns() <= deadline:
            size = 2 + _random(count, most - 1)
            gained += better_together(seed, size, traffic, ground, states, group, count, deadline)
    return gained
