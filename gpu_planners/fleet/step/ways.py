"""Whole ways of agents that get errand after errand: to the goal, and on to a place where the agent may stay for good.

No two ways conflict, so wherever an agent stands when it gets a new goal, all can go on, and at the end of their ways
all can stay. An agent whose goal cannot be reached among the others' ways waits where its way ends, near its goal.
Ways are made better as those of a window are (window.py): an agent that is late or cannot get to its goal, and those in
its way, are planned anew one after the other (neighbourhood.py), each by safe intervals (sipp.py).
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit, njit
from ...parallel.team import clock_ns
from ..fields.next_hops import NOBODY
from ..neighbourhood import Group, join, make_replan, new_group, paths_of_standing, reserve
from ..plan.moves import chance
from ..plan.sipp import next_interval

LOOK = 512  # ticks of a way at first
MOST_LOOK = 4096  # and at most
KEPT = 64  # ticks that are over, after which ways begin anew
UNSERVED = 2 * MOST_LOOK  # cost of a way that does not reach its goal
MOST_STATES = 1 << 13  # of a search
MOST_GROUP = 12  # agents that are planned anew together
TRIES = 8  # to find an agent that loses much
NOW, MADE = range(2)  # places in `clock`


class Ways(NamedTuple):
    """Ways of K agents on T tiles, and what a search needs. Ticks 0 .. L; those before clock[NOW] are over."""

    tile: np.ndarray  # (K, L + 1) int32
    heading: np.ndarray  # (K, L + 1) int32
    cost: np.ndarray  # (K,) int32 the tick at which an agent comes to its goal, or UNSERVED
    weight: np.ndarray  # (K,) int32
    least: np.ndarray  # (K,) int32 the tick at which it would be there alone
    reserved: np.ndarray  # (T + 1, L + 1) int32 agents or NOBODY
    group: Group
    goal: np.ndarray  # (K,) int32 tiles, -1 none
    steps: np.ndarray  # (K, T + 1) int32 moves to an agent's goal
    neighbour: np.ndarray  # (T + 1, 4) int32 of Ground
    clock: np.ndarray  # (2,) int64 the tick now; states made since the step began
    random: np.ndarray  # (1,) int64
    turning: bool
    following: bool
    state: np.ndarray  # (MOST_STATES, 8) int32 tile, tick, last tick, heading, tick at the goal or -1, from, next, slot
    bucket: np.ndarray  # (L + 1,) int32 lists of states by the tick at the goal, at least
    table: np.ndarray  # (2 * MOST_STATES,) int32 states hashed
    made: np.ndarray  # (1,) int64 states of the last search

    def longer(self, ticks):
        """The same with so many ticks, at the last of which all stay."""
        more = ticks + 1 - self.tile.shape[1]
        tile, heading = (np.pad(way, ((0, 0), (0, more)), mode="edge") for way in (self.tile, self.heading))
        arrays = np.empty((len(self.reserved), ticks + 1), np.int32), np.full(ticks + 1, -1, np.int32)
        ways = self._replace(tile=tile, heading=heading, reserved=arrays[0], bucket=arrays[1])
        enter(ways := ways._replace(group=new_group(MOST_GROUP, heading)))
        return ways


def new_ways(tiles: np.ndarray, headings: np.ndarray, neighbour: np.ndarray, turning: bool, following: bool) -> Ways:
    """All agents stay where they are and have no goals."""
    n, count = len(tiles), len(neighbour)
    ways = Ways(
        *paths_of_standing(tiles, headings, count, LOOK, MOST_GROUP),
        goal=np.full(n, -1, np.int32),
        steps=np.zeros((n, count), np.int32),
        neighbour=neighbour,
        clock=np.zeros(2, np.int64),
        random=np.ones(1, np.int64),
        turning=turning,
        following=following,
        state=np.zeros((MOST_STATES, 8), np.int32),
        bucket=np.full(LOOK + 1, -1, np.int32),
        table=np.full(2 * MOST_STATES, -1, np.int32),
        made=np.zeros(1, np.int64),
    )
    ways.reserved[tiles] = np.arange(n)[:, None]
    return ways


@lean_njit
def _quarters(a, tile, heading, ways):
    """-> quarter turns that an agent needs at least before a move nearer to its goal"""
    least, here = 2, ways.steps[a, tile]
    if not ways.turning or here == 0:
        return 0
    for direction in range(4):
        if ways.steps[a, ways.neighbour[tile, direction]] < here:
            turns = (direction - heading) & 3
            least = min(least, 1 if turns == 3 else turns)
    return least


@lean_njit
def _offer(a, tile, when, until, heading, arrived, up, most, ways):
    """Add a state, unless it is beyond `most` or known. -> False: there is no room

    All numbers are int64: with others, too, Numba would compile it several times.
    """
    state, table = ways.state, ways.table
    least = arrived if arrived >= 0 else when + ways.steps[a, tile] + _quarters(a, tile, heading, ways)
    if least > most:
        return True
    there = np.int64(arrived >= 0)
    key = np.uint64(until) * np.uint64(0x9E3779B97F4A7C15)
    key += np.uint64(tile * 8 + heading * 2 + there) * np.uint64(0xBF58476D1CE4E5B9)
    slot = np.int64(key >> np.uint64(33)) & (len(table) - 1)
    while table[slot] >= 0:
        k = table[slot]
        same = state[k, 0] == tile and state[k, 2] == until and state[k, 3] == heading
        if same and (state[k, 4] >= 0) == (arrived >= 0):
            if state[k, 1] <= when:
                return True
            break
        slot = (slot + 1) & (len(table) - 1)
    k = ways.made[0]
    if k == MOST_STATES:
        return False
    ways.made[0] += 1
    state[k, 0], state[k, 1], state[k, 2], state[k, 3], state[k, 4] = tile, when, until, heading, arrived
    state[k, 5], state[k, 6], state[k, 7] = up, ways.bucket[least], slot
    table[slot] = ways.bucket[least] = k
    return True


@lean_njit
def _offer_next(a, k, most, ways):
    """Offer the tile ahead in each interval in which it can be entered. -> False: there is no room"""
    state, reserved, look = ways.state, ways.reserved, ways.tile.shape[1] - 1
    tile, when, until, heading = (
        np.int64(state[k, 0]),
        np.int64(state[k, 1]),
        np.int64(state[k, 2]),
        np.int64(state[k, 3]),
    )
    arrived, room = np.int64(state[k, 4]), True
    for direction in range(4):
        there = np.int64(ways.neighbour[tile, direction])
        if there == len(ways.neighbour) - 1 or (ways.turning and direction != heading):
            continue
        end = min(until + 1 if ways.following else until, look)
        if arrived < 0:
            end = min(end, most - ways.steps[a, there])
        arrival, stop = next_interval(tile, there, when + 1, end, ways.following, reserved)
        while arrival >= 0 and room:
            room = _offer(a, there, arrival, stop, heading, arrived, np.int64(k), most, ways)
            arrival, stop = next_interval(tile, there, stop + 2, end, ways.following, reserved)
    return room


@lean_njit
def _search(a, most, ways):
    """Find the way of agent a on which it is at its goal soonest, at `most` at the latest, and may stay in the end
    -> its last state; or, where there is none, that of a way to where it may stay, the nearest to its goal; or -1"""
    state, now, look = ways.state, ways.clock[NOW], ways.tile.shape[1] - 1
    for k in range(ways.made[0]):
        ways.table[state[k, 7]] = -1
    ways.made[0], ways.bucket[:] = 0, -1
    start, until = np.int64(ways.tile[a, now]), now
    while until < look and ways.reserved[start, until + 1] == NOBODY:
        until += 1
    none, best, nearest = np.int64(-1), np.int64(-1), 1 << 30
    arrived = now if ways.goal[a] < 0 else none
    latest = np.int64(min(most, look))
    room = _offer(a, start, now, until, np.int64(ways.heading[a, now]), arrived, none, latest, ways)
    least = now
    while least <= latest:
        k = np.int64(ways.bucket[least])
        if k < 0:
            least += 1
            continue
        ways.bucket[least] = state[k, 6]
        if ways.table[state[k, 7]] != k:
            continue  # it can be there sooner
        tile, when, until = np.int64(state[k, 0]), np.int64(state[k, 1]), np.int64(state[k, 2])
        heading, arrived = np.int64(state[k, 3]), np.int64(state[k, 4])
        if until == look:
            if arrived >= 0:
                return k
            if ways.steps[a, tile] < nearest:
                best, nearest = k, ways.steps[a, tile]
        if not room:
            continue
        if arrived < 0 and tile == ways.goal[a]:
            room = _offer(a, tile, when, until, heading, when, k, latest, ways)
            continue
        if ways.turning and when < until:
            for quarter in (1, 3):
                room = room and _offer(a, tile, when + 1, until, (heading + quarter) & 3, arrived, k, latest, ways)
        room = room and _offer_next(a, k, latest, ways)
    return best if most >= UNSERVED else none


@lean_njit
def _find_way(a, most, ways, _):
    """See `make_replan`."""
    k = _search(a, most, ways)
    ways.clock[MADE] += ways.made[0]
    if k < 0:
        return False
    state, end = ways.state, ways.tile.shape[1]
    ways.cost[a] = state[k, 4] if state[k, 4] >= 0 else UNSERVED
    while k >= 0:
        for tick in range(state[k, 1], end):
            ways.tile[a, tick], ways.heading[a, tick] = state[k, 0], state[k, 3]
        end = state[k, 1]
        k = np.int64(state[k, 5])
    return True


_replan = make_replan(_find_way)


@lean_njit
def _gather(seed, most, ways):
    """Fill the group: from some tick on, let a member go straight to its goal, and add all that are in its way; and so
    on. -> the group's size"""
    random, group, now, size = ways.random, ways.group, ways.clock[NOW], np.int64(0)
    look = ways.tile.shape[1] - 1
    size = join(seed, size, most, group)
    for _ in range(4 * most):
        if size == most:
            break
        a = group.agent[chance(random) % size]
        tick = now + chance(random) % max(1, min(ways.cost[a], look) - now)
        tile = ways.tile[a, tick]
        while ways.goal[a] >= 0 and tick < look and size < most and tile != ways.goal[a]:
            turn, here = chance(random) % 4, tile
            for k in range(4):
                there = ways.neighbour[here, (k + turn) & 3]
                if tile == here and ways.steps[a, there] < ways.steps[a, here]:
                    size = join(np.int64(ways.reserved[there, tick + 1]), size, most, group)
                    tile = there
            tick += 1
            if tile == here:
                break
        if ways.goal[a] < 0:
            there = ways.neighbour[tile, chance(random) % 4]
            size = join(np.int64(ways.reserved[there, tick]), size, most, group)
    return size


@lean_njit
def _loss(a, ways):
    return ways.weight[a] * (ways.cost[a] - ways.least[a])


@njit
def improve(fresh, effort, until_ns, ways):
    """Find ways for agents (F,) with new goals, and then better ways of all, as long as fewer than `effort` states are
    made, or it is not yet `until_ns` of clock_ns."""
    group, n = ways.group, len(ways.cost)
    ways.clock[MADE] = 0
    for k in range(len(fresh)):
        if until_ns > 0 and ways.clock[MADE] >= effort and clock_ns() >= until_ns:
            break
        join(np.int64(fresh[k]), np.int64(0), MOST_GROUP, group)
        _replan(np.int64(1), ways.group, ways, 0)
    idle = 0
    while ways.clock[MADE] < effort or clock_ns() < until_ns:
        seed, most = np.int64(-1), 0
        for _ in range(TRIES):
            a = chance(ways.random) % n
            loss = _loss(a, ways)
            if loss > most:
                seed, most = a, loss
        if seed < 0:
            idle += 1
            if idle == TRIES:
                break
            continue
        size = np.int64(1)
        if chance(ways.random) & 3:
            size = _gather(seed, min(n, 2 + chance(ways.random) % (MOST_GROUP - 1)), ways)
        else:
            join(seed, np.int64(0), MOST_GROUP, group)
        for k in range(size - 1, 0, -1):
            other = chance(ways.random) % (k + 1)
            group.agent[k], group.agent[other] = group.agent[other], group.agent[k]
        _replan(size, group, ways, 0)


@njit
def enter(ways):
    """Enter all ways into the table of reservations."""
    ways.reserved[:] = NOBODY
    for a in range(len(ways.cost)):
        reserve(a, a, ways)


def cost_of(ways: Ways, tile: np.ndarray) -> np.ndarray:
    """(K, L + 1) tiles of ways -> (K,) int32 their costs"""
    now = int(ways.clock[NOW])
    there = tile[:, now:] == ways.goal[:, None]
    cost = np.where(there.any(axis=1), now + there.argmax(axis=1), UNSERVED)
    return np.where(ways.goal < 0, now, cost).astype(np.int32)
