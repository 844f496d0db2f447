"""An agent's path among others that stay as they are: safe interval path planning (Phillips and Likhachev, ICRA 2011).

A state is a tile, a heading, and an interval of steps during which nobody else is on the tile; only the earliest
arrival in it counts.
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit
from ..fields.next_hops import NOBODY, Ground

MOST_STATES = 1 << 15  # of one search


class Traffic(NamedTuple):
    """All agents' paths; H steps."""

    tile: np.ndarray  # (N, H + 1) int32
    heading: np.ndarray  # (N, H + 1) uint8
    reserved: np.ndarray  # (T + 1, H + 1) int32 agents or NOBODY
    cost: np.ndarray  # (N,) int32 the step from which on an agent stays at its goal, or H + 1
    weight: np.ndarray  # (N,) int32 of its costs: 1
    alone: np.ndarray  # (N,) int32 moves from its start to its goal
    least: np.ndarray  # (N,) int32 steps that it takes alone
    goal: np.ndarray  # (N,) int32 tiles, -1 none
    field: np.ndarray  # (N,) int32
    next_hops: np.ndarray  # (K, T + 1) uint8
    turning: bool  # of instance.Model
    following: bool


class States(NamedTuple):
    """States of one search; S = MOST_STATES."""

    tile: np.ndarray  # (S,) int32
    when: np.ndarray  # (S,) int32 arrival
    until: np.ndarray  # (S,) int32 the last step at which it may stay
    heading: np.ndarray  # (S,) int32
    far: np.ndarray  # (S,) int32 moves to go at least
    up: np.ndarray  # (S,) int32 parent
    next: np.ndarray  # (S,) int32 in its list
    used: np.ndarray  # (S,) int32 its slot in the table
    bucket: np.ndarray  # (H + 3,) int32 lists of states by their lower bounds
    table: np.ndarray  # (2 S,) int32 states hashed by tile, heading and interval
    many: np.ndarray  # (2,) int64 how many states there are, and may be


class Query(NamedTuple):
    """A search for an agent's path."""

    field: int  # of the agent
    bound: int  # steps that it may take
    lonely: bool  # ignores all others
    traffic: Traffic
    ground: Ground
    states: States


def new_states(steps):
    arrays = (np.full(MOST_STATES, -1, np.int32) for _ in range(8))
    bucket, table = np.full(steps + 3, -1, np.int32), np.full(2 * MOST_STATES, -1, np.int32)
    return States(*arrays, bucket, table, np.full(2, MOST_STATES, np.int64))


@lean_njit
def _turns(tile, heading, query):
    """-> quarter turns that an agent needs at least before a move nearer to its goal"""
    bits = np.int64(query.traffic.next_hops[query.field, tile])
    if not query.traffic.turning or bits == 0 or (bits >> heading) & 1:
        return 0
    return 1 if (bits >> ((heading + 1) & 3)) & 1 or (bits >> ((heading + 3) & 3)) & 1 else 2


@lean_njit
def _offer(tile, when, until, heading, far, up, query):
    """Add a state, unless its lower bound is beyond the search's or it is known. -> False: there is no room

    All numbers are int64: with others, too, Numba would compile it several times.
    """
    states, least = query.states, when + far + _turns(tile, heading, query)
    if least > query.bound:
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
def next_interval(tile, there, first, end, following, reserved):
    """-> (arrival, last tick) of the first free interval of the tile `there` that can be entered from `tile` in the
    ticks first .. end, or (-1, -1)

    reserved: (T + 1, H + 1) int32 agents or NOBODY, the agent that moves is not among them
    """
    last = reserved.shape[1] - 1
    for arrival in range(first, end + 1):
        before = reserved[there, arrival - 1]
        if reserved[there, arrival] != NOBODY or (
            before != NOBODY and (not following or reserved[tile, arrival] == before)
        ):
            continue
        stop = arrival
        while stop < last and reserved[there, stop + 1] == NOBODY:
            stop += 1
        return np.int64(arrival), np.int64(stop)
    return np.int64(-1), np.int64(-1)


@lean_njit
def _offer_next(state, direction, query):
    """Offer the next tile in each interval in which it can be entered. -> False: there is no room"""
    traffic, states, reserved = query.traffic, query.states, query.traffic.reserved
    tile, when, until = np.int64(states.tile[state]), np.int64(states.when[state]), np.int64(states.until[state])
    there, heading = np.int64(query.ground.neighbour[tile, direction]), np.int64(states.heading[state])
    following, room = traffic.following, True
    far = np.int64(states.far[state]) + (-1 if (np.int64(traffic.next_hops[query.field, tile]) >> direction) & 1 else 1)
    if query.lonely:
        return _offer(there, when + 1, until, heading, far, state, query)
    end = min(until + 1 if following else until, query.bound - far)
    arrival, stop = next_interval(tile, there, when + 1, end, following, reserved)
    while arrival >= 0 and room:
        room = _offer(there, arrival, stop, heading, far, state, query)
        arrival, stop = next_interval(tile, there, stop + 2, end, following, reserved)
    return room


@lean_njit
def find_path(agent, bound, lonely, traffic, ground, states):
    """Find an agent's path of at most `bound` steps among those in traffic.reserved; `lonely`: as if it was alone.

    -> the last state, or -1 where there is no such path or the states did not suffice
    """
    goal, reserved, blocked = traffic.goal[agent], traffic.reserved, len(ground.neighbour) - 1
    last = reserved.shape[1] - 1
    for k in range(states.many[0]):
        states.table[states.used[k]] = -1
    states.many[0] = 0
    states.bucket[:] = -1
    free_from, until, most = 0, bound, bound
    start, heading = np.int64(traffic.tile[agent, 0]), np.int64(traffic.heading[agent, 0])
    far, nobody = np.int64(traffic.alone[agent]), np.int64(-1)
    if not lonely:
        most, free_from, until = min(bound, last), last, 0
        while free_from >= 0 and reserved[goal, free_from] == NOBODY:
            free_from -= 1
        free_from += 1
        while until < last and reserved[start, until + 1] == NOBODY:
            until += 1
    query = Query(traffic.field[agent], most, lonely, traffic, ground, states)
    room, least = _offer(start, np.int64(0), until, heading, far, nobody, query), 0
    while room and least <= most:
        state = np.int64(states.bucket[least])
        if state < 0:
            least += 1
            continue
        states.bucket[least] = states.next[state]
        if states.table[states.used[state]] != state:
            continue  # an earlier arrival was found
        tile, when, until = np.int64(states.tile[state]), np.int64(states.when[state]), np.int64(states.until[state])
        heading, far = np.int64(states.heading[state]), np.int64(states.far[state])
        if tile == goal and when >= free_from:
            return state
        if traffic.turning and when < until:
            for quarter in (1, 3):
                room &= _offer(tile, when + 1, until, (heading + quarter) & 3, far, state, query)
        for direction in range(4):
            if ground.neighbour[tile, direction] != blocked and (not traffic.turning or direction == heading):
                room = room and _offer_next(state, direction, query)
    return -1
