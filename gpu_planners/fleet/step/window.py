"""Whole paths within a window of many ticks, for up to some hundreds of agents that have time to think.

Every agent has a path for the next ticks, and no two paths conflict. A step carries out the first tick of all; the rest
is kept. Then paths are made better as long as there is time (large neighbourhood search in windows: Jiang et al., WPPL,
2024): a group is an agent that is slower than it could be, and those in its way; each finds its path by A* over tile,
heading and tick (neighbourhood.py).

A path costs what its actions cost in the fields, WAIT for each tick without one, and what is left at its end. An agent
that has come to its goal costs nothing more, wherever it goes.
"""

from typing import NamedTuple

import numpy as np

from ...device import lean_njit, njit
from ...parallel.team import clock_ns
from ..fields.cost_to_go import exits, gain
from ..fields.lanes import Lanes, ahead
from ..fields.next_hops import NOBODY
from ..neighbourhood import Group, join, make_replan, paths_of_standing, reserve
from .state import Agents, Rules

WINDOW = 15  # ticks
WAIT = 1.0  # of what a move costs
GROUP = 6  # agents that are planned anew together, at most
MOST_COST = 1024  # of paths, less that of the best one
MOST_NODES = 6000  # of a search
TRIES = 8  # to find an agent that is slower than it could be, or one in the way
PATIENCE = 8  # steps without coming nearer, after which an agent's path counts twice, three times, ...
NONE = 1 << 30


class Window(NamedTuple):
    """Paths of N agents, and what a search needs. Ticks count from now, 0 .. WINDOW."""

    tile: np.ndarray  # (N, WINDOW + 1) int32
    heading: np.ndarray  # (N, WINDOW + 1) int32
    cost: np.ndarray  # (N,) int32 of the paths
    weight: np.ndarray  # (N,) int32
    least: np.ndarray  # (N,) int32 costs that are known to be needed: 0
    reserved: np.ndarray  # (tiles, WINDOW + 1) int32 who is on a tile, or NOBODY
    group: Group
    found: np.ndarray  # (2, WINDOW + 1) int32 tiles and headings of the path that was found last
    bucket: np.ndarray  # (MOST_COST,) int32 lists of nodes, by cost
    node: np.ndarray  # (MOST_NODES, 8) int32 tile, heading, tick, cost to go, is the goal behind it?, from, next, place
    seen: np.ndarray  # number of the search that has been at a place near the start, a heading and a tick
    number: np.ndarray  # (1,) int32 of the last search


class Errands(NamedTuple):
    """Where agents are to go, and what moves cost."""

    agents: Agents
    values: np.ndarray  # fields (slots, states)
    lanes: Lanes
    rules: Rules


def new_window(agents: Agents, tiles: int, headings: int) -> Window:
    """All agents stay where they are."""
    side = 2 * WINDOW + 1
    return Window(
        *paths_of_standing(agents.tile, agents.heading, tiles, WINDOW, GROUP),
        found=np.zeros((2, WINDOW + 1), np.int32),
        bucket=np.full(MOST_COST, -1, np.int32),
        node=np.zeros((MOST_NODES, 8), np.int32),
        seen=np.zeros(side * side * headings * (WINDOW + 1) * 2, np.int32),
        number=np.zeros(1, np.int32),
    )


@lean_njit
def _stay(a, window):
    for tick in range(1, WINDOW + 1):
        window.tile[a, tick], window.heading[a, tick] = window.tile[a, 0], window.heading[a, 0]


@njit
def go_on(stands, free, agents, window):
    """Begin the next window where agents are now.

    stands: (N,) uint8, who stays, as do those whose paths lead onto blocked tiles and all whose paths that blocks
    free: (tiles,) uint8
    """
    tile, heading, reserved = window.tile, window.heading, window.reserved
    n = len(tile)
    queue, count = np.empty(n, np.int32), 0
    for a in range(n):
        for tick in range(WINDOW + 1):
            reserved[tile[a, tick], tick] = NOBODY
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
            reserve(a, a, window)
    at = 0
    while at < count:
        a = queue[at]
        at += 1
        for tick in range(WINDOW + 1):
            other = reserved[tile[a, 0], tick]
            if other != NOBODY and other != a:
                reserve(other, NOBODY, window)
                _stay(other, window)
                stands[other], queue[count] = 1, other
                count += 1
        reserve(a, a, window)


@lean_njit
def _blocker(a, here, there, tick, reserved, following):
    """Who keeps agent a, on tile `here` at a tick, from being on tile `there` at the next one? NOBODY: no one does."""
    other = reserved[there, tick + 1]
    if other != NOBODY and other != a:
        return other
    if here != there:
        other = reserved[there, tick]
        if other != NOBODY and other != a and (not following or reserved[here, tick + 1] == other):
            return other
        if not following:
            other = reserved[here, tick + 1]
            if other != NOBODY and other != a:
                return other
    return NOBODY


@lean_njit
def _search(a, alone, most, window, errands):
    """Find the cheapest path of agent a among those that are reserved, or, `alone`, as if there were none; it is
    written to window.found. -> its cost, or NONE where that is more than `most`"""
    agents, values, lanes, rules = errands
    node, bucket, reserved, headings = window.node, window.bucket, window.reserved, lanes.headings
    slot, goal = agents.slot[a], agents.goal[a]
    window.number[0] += 1
    number, side = window.number[0], 2 * WINDOW + 1
    out = exits(window.tile[a, 0], goal, slot, values, lanes)
    node[0, 0], node[0, 1], node[0, 2], node[0, 3] = window.tile[a, 0], window.heading[a, 0], 0, 0
    node[0, 4], node[0, 5], node[0, 6], node[0, 7] = slot < 0, -1, -1, WINDOW * side + WINDOW
    bucket[0] = 0
    at, highest, many, last, most = 0, 0, 1, -1, min(most, MOST_COST - 1)
    while at <= highest:
        k = bucket[at]
        if k < 0:
            at += 1
            continue
        bucket[at] = node[k, 6]
        tile, heading, tick, left = node[k, 0], node[k, 1], node[k, 2], node[k, 3]
        arrived, place = node[k, 4], node[k, 7]
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
            there, turned, cost, beside = tile, heading, 0, place
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
                cost, beside = lanes.forward[tile, direction], place + ahead(direction, side)
            if not alone and _blocker(a, tile, there, tick, reserved, rules.following) != NOBODY:
                continue
            now, came = left, arrived
            if arrived:
                cost = min(cost, 1)
            elif action >= 0:
                now += gain(tile, heading, there, turned, slot, values, lanes, out)
                came = int(there == goal)
            price = at + cost + now - left
            if price > most:
                continue
            node[many, 0], node[many, 1], node[many, 2], node[many, 3] = there, turned, tick + 1, now
            node[many, 4], node[many, 5], node[many, 6], node[many, 7] = came, k, bucket[price], beside
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
def _find_path(a, most, window, errands):
    """See `make_replan`."""
    cost = _search(a, False, most, window, errands)
    if cost == NONE:
        return False
    for tick in range(WINDOW + 1):
        window.tile[a, tick], window.heading[a, tick] = window.found[0, tick], window.found[1, tick]
    window.cost[a] = cost
    return True


_replan = make_replan(_find_path)


@lean_njit
def _cost_of(a, window, errands):
    """-> what the path of agent a costs"""
    agents, values, lanes, _ = errands
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
def _gather(seed, window, errands):
    """Fill the group with `seed` and agents in its way. -> its size"""
    agents, lanes, group = errands.agents, errands.lanes, window.group
    if _search(seed, True, NONE, window, errands) == NONE:
        return 0
    size = join(seed, 0, GROUP, group)
    for tick in range(WINDOW):
        here, there = window.found[0, tick], window.found[0, tick + 1]
        size = _join(_blocker(seed, here, there, tick, window.reserved, errands.rules.following), size, agents, group)
    tries = 0
    while size < min(GROUP, 3 + tries % 4) and tries < TRIES:  # some more near them
        tries += 1
        tick = np.random.randint(1, WINDOW + 1)
        of = group.agent[np.random.randint(size)]
        tile = window.tile[of, tick] + ahead(np.random.randint(4), lanes.width)
        size = _join(window.reserved[tile, tick], size, agents, group)
    return size


@lean_njit
def _join(other, size, agents, group):
    return size if other == NOBODY or agents.still[other] else join(other, size, GROUP, group)


@njit
def improve(order, stalled, seed, until_ns, agents: Agents, values, lanes: Lanes, rules: Rules, window: Window):
    """Make paths better until it is `until_ns` of clock_ns. order: (K,) agents by priority"""
    np.random.seed(seed)
    errands, group = Errands(agents, values, lanes, rules), window.group
    for i in range(len(order)):
        a = order[i]
        window.weight[a] = 1 + stalled[a] // PATIENCE
        window.cost[a] = _cost_of(a, window, errands)
    for i in range(len(order)):
        if not agents.still[order[i]]:
            _replan(join(order[i], 0, GROUP, group), group, window, errands)
    while clock_ns() < until_ns and len(order):
        a = order[np.random.randint(len(order))]
        for _ in range(TRIES):
            if window.cost[a] > 0 and not agents.still[a]:
                break
            a = order[np.random.randint(len(order))]
        size = 0 if agents.still[a] else _gather(a, window, errands)
        for i in range(size - 1):
            j = np.random.randint(i, size)
            group.agent[i], group.agent[j] = group.agent[j], group.agent[i]
        if size:
            _replan(size, group, window, errands)
