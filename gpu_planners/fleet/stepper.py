"""One step of a fleet: every agent gets an option, and no two options conflict.

Enhanced PIBT (Yukhnevich and Andreychuk, arXiv 2511.09193): all agents hold the tiles of the option that they have, at
first what is left of the one before. That, its heir, ends in waiting, so all heirs together are free of conflicts. One
agent after the other, by priority, takes the best of its options that nobody holds tiles of, or one agent alone: that
agent is pushed and has to find another option in turn, and so on; where it cannot, all goes back. So the options are
free of conflicts at any time, and a search may end whenever it likes.
"""

from typing import NamedTuple

import numpy as np
from numba import prange

from ..device import lean_njit, njit
from .occupancy import SEVERAL, drop, hold, in_the_way, take
from .state import NOBODY

DONE, FAILED, REFUSED = range(3)


class Search(NamedTuple):
    """Who is pushed by whom, and how often.

    agent, place, before, before_cost: (areas, depth) int32 stacks of agents that look for an option: which of their
        options they are at, and the option that they had
    open: (N,) uint8, is it on the stack? visits: (N,) int32 how often it was pushed in the pass `seen`, (N,) int64
    rank: (N,) int32 place in the order of priorities; weight: (N,) int64 of its costs against others'
    most_visits: of an agent in a pass
    """

    agent: np.ndarray
    place: np.ndarray
    before: np.ndarray
    before_cost: np.ndarray
    open: np.ndarray
    visits: np.ndarray
    seen: np.ndarray
    rank: np.ndarray
    weight: np.ndarray
    most_visits: int


class Area(NamedTuple):
    """Where a search may push agents: on tiles of these rows and columns. No other search goes on near it meanwhile.

    number: of its stack; width: of the map
    """

    number: int
    first_row: int
    last_row: int
    first_col: int
    last_col: int
    width: int


@lean_njit
def _push(depth, a, number, area, agents, options, rules, plans, search):
    """Put an agent on the stack: it holds nothing until it has found an option."""
    k = area.number
    search.agent[k, depth], search.place[k, depth] = a, 0
    search.before[k, depth], search.before_cost[k, depth] = plans.option[a], plans.cost[a]
    drop(a, agents, options, rules, plans)
    if search.seen[a] != number:
        search.seen[a], search.visits[a] = number, 0
    search.visits[a] += 1
    search.open[a] = 1


@lean_njit
def _may_be_pushed(a, root, number, improving, area, agents, search):
    """May the search that began with agent `root` in pass `number` push agent a?"""
    if agents.still[a] or search.open[a] or not (improving or search.rank[a] > search.rank[root]):
        return False
    if search.seen[a] == number and search.visits[a] >= search.most_visits:
        return False
    row, col = divmod(agents.tile[a], area.width)
    return area.first_row <= row <= area.last_row and area.first_col <= col <= area.last_col


@lean_njit
def improve(root, number, improving, area, agents, options, rules, ranked, plans, search):
    """Give an agent the best option that can be had by pushing others, or leave all as it is.

    number: of the pass; improving: take it only where the costs of all, weighted, do not rise; agents of higher
    priority may be pushed then
    -> has anything changed?
    """
    k, depth, loss, outcome = area.number, 0, -search.weight[root] * plans.cost[root], FAILED
    _push(0, root, number, area, agents, options, rules, plans, search)
    while outcome == FAILED:
        a, deeper = search.agent[k, depth], False
        while outcome == FAILED and not deeper and search.place[k, depth] < ranked.many[a]:
            place = search.place[k, depth]
            search.place[k, depth] += 1
            option, cost = ranked.option[a, place], ranked.cost[a, place]
            other = in_the_way(a, option, agents, options, plans.held, rules)
            if other == NOBODY:
                outcome = DONE if not improving or loss + search.weight[a] * cost <= 0 else REFUSED
                if outcome == DONE:
                    take(a, option, cost, agents, options, rules, plans)
            elif other != SEVERAL and depth + 1 < search.agent.shape[1]:
                if _may_be_pushed(other, root, number, improving, area, agents, search):
                    loss += search.weight[a] * cost - search.weight[other] * plans.cost[other]
                    _push(depth + 1, other, number, area, agents, options, rules, plans, search)
                    take(a, option, cost, agents, options, rules, plans)
                    deeper = True
        if deeper:
            depth += 1
        elif outcome == FAILED:  # it found nothing: whoever pushed it tries the next option
            search.open[a] = 0
            before, before_cost = search.before[k, depth], search.before_cost[k, depth]
            if depth == 0:
                take(a, before, before_cost, agents, options, rules, plans)
                return False
            depth -= 1
            pusher = search.agent[k, depth]
            drop(pusher, agents, options, rules, plans)
            loss += search.weight[a] * before_cost - search.weight[pusher] * plans.cost[pusher]
            take(a, before, before_cost, agents, options, rules, plans)
    if outcome == REFUSED:
        for i in range(depth):
            drop(search.agent[k, i], agents, options, rules, plans)
    for i in range(depth + 1):
        a = search.agent[k, i]
        search.open[a] = 0
        if outcome == REFUSED:
            take(a, search.before[k, i], search.before_cost[k, i], agents, options, rules, plans)
    return outcome == DONE


# ---------------------------------------------------------------------------------------------------- passes


class Areas(NamedTuple):
    """The map cut into squares of four colours; searches in squares of one colour do not meet.

    An agent's search stays in its square and so far around it that others of its colour are not reached, wherever
    agents go within the horizon. So what is found does not depend on how many threads there are.

    side: of a square; margin: so far from it agents may be pushed; rows, cols: how many squares there are
    row, col: where the first one begins, not positive
    """

    side: int
    margin: int
    rows: int
    cols: int
    row: int
    col: int
    width: int


@njit
def sort_by_area(order, areas, agents, first, sorted_agents):
    """Sort agents by square, those of a square in the same order as before.

    order, sorted_agents: (N,) int32; first: (squares + 1,) int32 where each square's agents begin
    """
    first[:] = 0
    square = np.empty(len(order), np.int32)
    for i in range(len(order)):
        row, col = divmod(agents.tile[order[i]], areas.width)
        square[i] = (row - areas.row) // areas.side * areas.cols + (col - areas.col) // areas.side
        first[square[i] + 1] += 1
    for k in range(1, len(first)):
        first[k] += first[k - 1]
    place = first[:-1].copy()
    for i in range(len(order)):
        sorted_agents[place[square[i]]] = order[i]
        place[square[i]] += 1


@njit(parallel=True)
def pass_over(order, first, colour, number, improving, areas, agents, options, rules, ranked, plans, search):
    """Let every agent in squares of one colour look for something better, one after the other in each square.

    order, first: as `sort_by_area` makes them; colour: 0 .. 3; number: of the pass
    """
    down, across = (areas.rows - colour // 2 + 1) // 2, (areas.cols - colour % 2 + 1) // 2
    for i in prange(down * across):
        r, c = 2 * (i // across) + colour // 2, 2 * (i % across) + colour % 2
        k = r * areas.cols + c
        row, col = areas.row + r * areas.side, areas.col + c * areas.side
        area = Area(
            k,
            row - areas.margin,
            row + areas.side - 1 + areas.margin,
            col - areas.margin,
            col + areas.side - 1 + areas.margin,
            areas.width,
        )
        for j in range(first[k], first[k + 1]):
            a = order[j]
            if agents.there[a] and not agents.still[a] and search.seen[a] != number:
                improve(a, number, improving, area, agents, options, rules, ranked, plans, search)


@njit(parallel=True)
def inherit(broken, agents, options, rules, ranked, plans):
    """Let everybody hold the tiles of its option of before, or of the best one along the same tiles; the broken stand.

    broken: (N,) uint8, agents that are not where they were to be, or whose way is blocked
    plans.option: what is left of the options before; plans.held: NOBODY everywhere
    """
    for a in prange(len(agents.tile)):
        if agents.there[a]:
            _hold_origin(a, agents, plans)
    for a in prange(len(agents.tile)):  # who was seen on a tile that another one still leaves holds that tile
        if agents.there[a]:
            _inherit(a, broken, agents, options, rules, ranked, plans)


@lean_njit
def _hold_origin(a, agents, plans):
    plans.held[agents.origin[a], 0] = a


@lean_njit
def _inherit(a, broken, agents, options, rules, ranked, plans):
    plans.held[agents.tile[a], 0] = a
    if agents.still[a] or broken[a]:
        broken[a] = 1
        plans.option[a], plans.cost[a] = options.stay[agents.table[a]], 0
        return
    track = options.track[plans.option[a]]
    for place in range(ranked.many[a]):
        if options.track[ranked.option[a, place]] == track:
            plans.option[a], plans.cost[a] = ranked.option[a, place], ranked.cost[a, place]
    hold(a, plans.option[a], agents, options, plans.held, rules.plain, a)


@njit
def settle(broken, agents, options, rules, plans):
    """Let the broken hold their tiles, and stand who would come too near to them, and to those, and so on."""
    standing, count = np.empty(len(agents.tile), np.int32), 0
    for a in range(len(agents.tile)):
        if agents.there[a] and broken[a]:
            standing[count] = a
            count += 1
    at = 0
    while at < count:
        a = standing[at]
        other = _intruder(a, broken, agents, options, rules, plans)
        if other == NOBODY:
            hold(a, plans.option[a], agents, options, plans.held, rules.plain, a)
            at += 1
        else:
            drop(other, agents, options, rules, plans)
            plans.option[other], plans.cost[other] = options.stay[agents.table[other]], 0
            broken[other], standing[count] = 1, other
            count += 1


@lean_njit
def _intruder(a, broken, agents, options, rules, plans):
    """An agent that moves and would come too near to agent a, which stands, or NOBODY."""
    for tick in range(1, plans.held.shape[1]):
        for i in range(len(rules.near)):
            for tile in (agents.tile[a], agents.origin[a]):
                other = plans.held[tile + rules.near[i], tick]
                if other != NOBODY and other != a and broken[other] == 0:
                    return other
    return NOBODY


@njit
def find_blocked(broken, agents, options, free, plans):
    """Note agents whose options lead over tiles that are blocked now."""
    for a in range(len(agents.tile)):
        track, heading = options.track[plans.option[a]], agents.heading[a]
        for tick in range(1, plans.held.shape[1]):
            here = agents.tile[a] + options.here[track, heading, tick]
            if here != agents.tile[a] and not free[here]:
                broken[a] = 1


@njit
def advance(restless, agents, options, headings, speeds, rests, plans, action):
    """Let agents do the first tick of their options, and note what is left of these.

    restless: (N,) bool, who turns where it would only wait; headings: 1 or 4
    speeds: (K, 2) int32 ticks of a move and of a turn; rests: tables of a speed
    action: (N,) int32 what each begins to do, or waiting
    """
    for a in range(len(agents.tile)):
        if not agents.there[a] or agents.still[a]:
            continue
        option, table = plans.option[a], agents.table[a]
        rest, heading = table % rests, agents.heading[a]
        if restless[a] and option == options.stay[table]:
            option = options.fidget[table]
        plans.option[a] = options.heir[option]
        if rest > 0:
            agents.table[a] = table - 1
            if rest == 1:
                agents.origin[a] = agents.tile[a]
            continue
        opening = options.opening[option]
        action[a] = opening
        track = options.track[option]
        here = agents.tile[a] + options.here[track, heading, 1]
        turned = heading
        if headings == 4 and (opening == 1 or opening == 2):
            turned = (heading + (1 if opening == 1 else 3)) % 4
        if here == agents.tile[a] and turned == heading:
            continue
        ticks = speeds[table // rests, 0 if here != agents.tile[a] else 1]
        agents.table[a] = table + ticks - 1
        agents.origin[a] = agents.tile[a] if ticks > 1 else here
        agents.tile[a], agents.heading[a] = here, turned
