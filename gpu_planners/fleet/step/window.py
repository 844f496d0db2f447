"""Whole ways within a window of many ticks, for up to some hundreds of agents that have time to think.

Every agent has a way for the next ticks, and no two ways conflict. A step carries out the first tick of all; the rest
is kept. Then ways are made better as long as there is time: large neighbourhood search (Li et al., IJCAI 2021; in
windows: Jiang et al., WPPL, 2024) takes the ways of an agent that is slower than it could be, and of those in its way,
and plans them anew one after the other by A* over tile, heading and tick; they are kept if their costs did not rise.

A way costs what its actions cost in the fields, WAIT for each tick without one, and what is left at its end. An agent
that has come to its goal costs nothing more, wherever it goes.
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit, njit
from ...parallel.team import clock_ns
from ..fields.cost_to_go import exits, gain
from ..fields.lanes import Lanes, ahead
from ..fields.next_hops import NOBODY
from .state import Agents, Rules

WINDOW = 15  # ticks
WAIT = 1.0  # of what a move costs
GROUP = 6  # agents that are planned anew together, at most
MOST_COST = 1024  # of ways, less that of the best one
MOST_NODES = 6000  # of a search
TRIES = 8  # to find one that is slower than it could be, or one in the way
PATIENCE = 8  # steps without coming nearer, after which an agent's way counts twice, three times, ...
NONE = 1 << 30


class Window(NamedTuple):
    """Ways of N agents, and what a search needs. Ticks count from now, 0 .. WINDOW."""

    tile: np.ndarray  # (N, WINDOW + 1) int32
    heading: np.ndarray  # (N, WINDOW + 1) int32
    cost: np.ndarray  # (N,) int32 of the ways
    weight: np.ndarray  # (N,) int32
    held: np.ndarray  # (tiles, WINDOW + 1) int32 who is on a tile, or NOBODY
    found: np.ndarray  # (2, WINDOW + 1) int32 tiles and headings of the way that was found last
    kept: np.ndarray  # (2, GROUP, WINDOW + 1) int32 ways of a group before it was planned anew
    kept_cost: np.ndarray  # (GROUP,) int32 of these
    bucket: np.ndarray  # (MOST_COST,) int32 lists of nodes, by cost
    node: np.ndarray  # (MOST_NODES, 7) int32 tile, heading, tick, cost to go, is the goal behind it?, from, next
    seen: np.ndarray  # number of the search that has been at a tile near the start, a heading and a tick
    number: np.ndarray  # (1,) int32 of the last search


def new_window(agents: Agents, tiles: int, headings: int) -> Window:
    """All agents stay where they are."""
    n, side = len(agents.tile), 2 * WINDOW + 1
    tile, heading = (np.repeat(values[:, None], WINDOW + 1, axis=1) for values in (agents.tile, agents.heading))
    numbers = (np.zeros(n, np.int32), np.ones(n, np.int32), np.full((tiles, WINDOW + 1), NOBODY, np.int32))
    scratch = np.zeros((2, WINDOW + 1), np.int32), np.zeros((2, GROUP, WINDOW + 1), np.int32), np.zeros(GROUP, np.int32)
    lists = np.full(MOST_COST, -1, np.int32), np.zeros((MOST_NODES, 7), np.int32)
    seen = np.zeros(side * side * headings * (WINDOW + 1) * 2, np.int32)
    return Window(tile, heading, *numbers, *scratch, *lists, seen, np.zeros(1, np.int32))


@lean_njit
def _hold(a, who, window):
    for tick in range(WINDOW + 1):
        window.held[window.tile[a, tick], tick] = who


@lean_njit
def _stay(a, window):
    for tick in range(1, WINDOW + 1):
        window.tile[a, tick], window.heading[a, tick] = window.tile[a, 0], window.heading[a, 0]


@njit
def go_on(stands, free, agents, window):
    """Begin the next window where agents are now.

    stands: (N,) uint8, who stays, as do those whose ways lead onto blocked tiles and all whose ways that blocks
    free: (tiles,) uint8
    """
    tile, heading, held = window.tile, window.heading, window.held
    n = len(tile)
    queue, count = np.empty(n, np.int32), 0
    for a in range(n):
        for tick in range(WINDOW + 1):
            held[tile[a, tick], tick] = NOBODY
    for a in range(n):
        if not agents.there[a]:
            continue
        as_planned = tile[a, 1] == agents.tile[a] and heading[a, 1] == agents.heading[a]
        tile[a, :-1], heading[a, :-1] = tile[a, 1:].copy(), heading[a, 1:].copy()
        tile[a, 0], heading[a, 0] = agents.tile[a], agents.heading[a]
        for tick in range(1, WINDOW + 1):
            if tile[a, tick] != tile[a, tick - 1] and not free[tile[a, tick]]:
                stands[a] = 1
        if stands[a] or not as_planned:
            stands[a] = 1
            _stay(a, window)
            queue[count] = a
            count += 1
    for a in range(n):
        if agents.there[a] and not stands[a]:
            _hold(a, a, window)
    at = 0
    while at < count:
        a = queue[at]
        at += 1
        for tick in range(WINDOW + 1):
            other = held[tile[a, 0], tick]
            if other != NOBODY and other != a:
                _hold(other, NOBODY, window)
                _stay(other, window)
                stands[other], queue[count] = 1, other
                count += 1
        _hold(a, a, window)


@lean_njit
def _blocker(a, here, there, tick, held, following):
    """Who keeps agent a, on tile `here` at a tick, from being on tile `there` at the next one? NOBODY: no one does."""
    other = held[there, tick + 1]
    if other != NOBODY and other != a:
        return other
    if here != there:
        other = held[there, tick]
        if other != NOBODY and other != a and (not following or held[here, tick + 1] == other):
            return other
        if not following:
            other = held[here, tick + 1]
            if other != NOBODY and other != a:
                return other
    return NOBODY


@lean_njit
def _search(a, alone, agents, values, lanes, rules, window):
    """Find the cheapest way of agent a among the ways that are held, or, `alone`, as if there were none; it is written
    to window.found. -> its cost, or NONE"""
    node, bucket, held, headings = window.node, window.bucket, window.held, lanes.headings
    slot, goal = agents.slot[a], agents.goal[a]
    window.number[0] += 1
    number, side = window.number[0], 2 * WINDOW + 1
    start_row, start_col = divmod(window.tile[a, 0], lanes.width)
    out = exits(window.tile[a, 0], goal, slot, values, lanes)
    node[0, 0], node[0, 1], node[0, 2], node[0, 3] = window.tile[a, 0], window.heading[a, 0], 0, 0
    node[0, 4], node[0, 5], node[0, 6] = slot < 0, -1, -1
    bucket[0] = 0
    at, highest, many, last = 0, 0, 1, -1
    while at <= highest:
        k = bucket[at]
        if k < 0:
            at += 1
            continue
        bucket[at] = node[k, 6]
        tile, heading, tick, left, arrived = node[k, 0], node[k, 1], node[k, 2], node[k, 3], node[k, 4]
        row, col = divmod(tile, lanes.width)
        place = (row - start_row + WINDOW) * side + col - start_col + WINDOW
        state = ((place * headings + heading) * (WINDOW + 1) + tick) * 2 + arrived
        if window.seen[state] == number:
            continue
        window.seen[state] = number
        if tick == WINDOW:
            last = k
            break
        if many + 6 > MOST_NODES:
            break
        for action in range(-1, 6):  # wait, turn, move; of equal ones that looked at last goes first
            there, turned, cost = tile, heading, 0
            if action == -1:
                cost = 0 if arrived else int(WAIT * lanes.unit)
            elif action < 2:
                if headings == 1:
                    continue
                turned, cost = (heading + 1 + 2 * action) % 4, lanes.turn
            else:
                direction = action - 2
                if headings == 4 and direction != heading:
                    continue
                there = tile + ahead(direction, lanes.width)
                if not lanes.free[there]:
                    continue
                cost = lanes.forward[tile, direction]
            if not alone and _blocker(a, tile, there, tick, held, rules.following) != NOBODY:
                continue
            now, came = left, arrived
            if arrived:
                cost = min(cost, 1)
            elif action >= 0:
                now += gain(tile, heading, there, turned, slot, values, lanes, out)
                came = int(there == goal)
            price = at + cost + now - left
            if price >= MOST_COST:
                continue
            node[many, 0], node[many, 1], node[many, 2], node[many, 3] = there, turned, tick + 1, now
            node[many, 4], node[many, 5], node[many, 6] = came, k, bucket[price]
            bucket[price] = many
            many, highest = many + 1, max(highest, price)
    for price in range(highest + 1):
        bucket[price] = -1
    if last < 0:
        return NONE
    k = last
    while k >= 0:
        window.found[0, node[k, 2]], window.found[1, node[k, 2]] = node[k, 0], node[k, 1]
        k = node[k, 5]
    return at


@lean_njit
def _take(a, cost, window):
    """Give agent a, which holds nothing, the way that was found."""
    for tick in range(WINDOW + 1):
        window.tile[a, tick], window.heading[a, tick] = window.found[0, tick], window.found[1, tick]
    window.cost[a] = cost
    _hold(a, a, window)


@lean_njit
def _cost_of(a, agents, values, lanes, window):
    """-> what the way of agent a costs"""
    slot, goal, cost, left = agents.slot[a], agents.goal[a], 0, 0
    arrived, out = slot < 0, exits(window.tile[a, 0], goal, slot, values, lanes)
    for tick in range(WINDOW):
        tile, heading = window.tile[a, tick], window.heading[a, tick]
        there, turned = window.tile[a, tick + 1], window.heading[a, tick + 1]
        if arrived:
            cost += there != tile or turned != heading
        elif there == tile and turned == heading:
            cost += int(WAIT * lanes.unit)
        else:
            if there == tile:
                cost += lanes.turn
            else:
                for direction in range(4):
                    if tile + ahead(direction, lanes.width) == there:
                        cost += lanes.forward[tile, direction]
            left += gain(tile, heading, there, turned, slot, values, lanes, out)
            arrived = there == goal
    return cost + left


@lean_njit
def _gather(seed, group, agents, values, lanes, rules, window):
    """Write agents to `group`: `seed` and those in its way. -> how many"""
    group[0], count = seed, 1
    if _search(seed, True, agents, values, lanes, rules, window) == NONE:
        return 0
    for tick in range(WINDOW):
        here, there = window.found[0, tick], window.found[0, tick + 1]
        other = _blocker(seed, here, there, tick, window.held, rules.following)
        count = _join(other, group, count, agents)
    tries = 0
    while count < min(GROUP, 3 + tries % 4) and tries < TRIES:  # some more near them
        tries += 1
        tick = np.random.randint(1, WINDOW + 1)
        of = group[np.random.randint(count)]
        tile = window.tile[of, tick] + ahead(np.random.randint(4), lanes.width)
        count = _join(window.held[tile, tick], group, count, agents)
    return count


@lean_njit
def _join(other, group, count, agents):
    """Add an agent to a group of `count`, if it may. -> how many there are"""
    if other == NOBODY or count == len(group) or agents.still[other]:
        return count
    for i in range(count):
        if group[i] == other:
            return count
    group[count] = other
    return count + 1


@lean_njit
def _plan_anew(group, count, agents, values, lanes, rules, window):
    """Plan the ways of a group one after the other; keep them if they cost no more."""
    before, after = np.int64(0), np.int64(0)
    for i in range(count):
        a = group[i]
        before += np.int64(window.cost[a]) * window.weight[a]
        for tick in range(WINDOW + 1):
            window.kept[0, i, tick], window.kept[1, i, tick] = window.tile[a, tick], window.heading[a, tick]
        window.kept_cost[i] = window.cost[a]
        _hold(a, NOBODY, window)
    done = 0
    for i in range(count):
        cost = _search(group[i], False, agents, values, lanes, rules, window)
        if cost == NONE:
            break
        after += np.int64(cost) * window.weight[group[i]]
        if after > before:
            break
        _take(group[i], cost, window)
        done += 1
    if done == count:
        return
    for i in range(done):
        _hold(group[i], NOBODY, window)
    for i in range(count):
        a = group[i]
        for tick in range(WINDOW + 1):
            window.tile[a, tick], window.heading[a, tick] = window.kept[0, i, tick], window.kept[1, i, tick]
        window.cost[a] = window.kept_cost[i]
        _hold(a, a, window)


@njit
def improve(order, stalled, seed, until_ns, agents: Agents, values, lanes: Lanes, rules: Rules, window: Window):
    """Make ways better until it is `until_ns` of clock_ns. order: (K,) agents by priority"""
    np.random.seed(seed)
    group = np.empty(GROUP, np.int32)
    for i in range(len(order)):
        a = order[i]
        window.weight[a] = 1 + stalled[a] // PATIENCE
        window.cost[a] = _cost_of(a, agents, values, lanes, window)
    for i in range(len(order)):
        group[0] = order[i]
        if not agents.still[order[i]]:
            _plan_anew(group, 1, agents, values, lanes, rules, window)
    while clock_ns() < until_ns and len(order):
        a = order[np.random.randint(len(order))]
        for _ in range(TRIES):
            if window.cost[a] > 0 and not agents.still[a]:
                break
            a = order[np.random.randint(len(order))]
        count = 0 if agents.still[a] else _gather(a, group, agents, values, lanes, rules, window)
        for i in range(count - 1):
            j = np.random.randint(i, count)
            group[i], group[j] = group[j], group[i]
        if count:
            _plan_anew(group, count, agents, values, lanes, rules, window)
