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

from ...device import lean_njit, njit
from ...parallel.memory import item, set_item
from .fields import cost_to_go, difference

NOBODY, SEVERAL = -1, -2
NO_OPTION = np.int32(2**30)  # a rank that nobody has
FIRST_TIE = 4096  # what a unit of cost is worth against coming nearer early
DONE, FAILED, REFUSED = range(3)


class Agents(NamedTuple):
    """Agents, for compiled code; arrays (N,).

    tile: int32 where it stands, or what it moves to; heading: int32; origin: int32 the tile that it still leaves, or
        `tile`
    table: int32 of its options; goal: int32 tile or -1; slot: int32 its goal's field or -1
    there: int32, does it take part? still: int32, does it stand and obey nobody?
    left: int32 cost to go to its goal when it was at `was_tile`, heading `was_heading`; fresh: int32, is that unknown?
    """

    tile: np.ndarray
    heading: np.ndarray
    origin: np.ndarray
    table: np.ndarray
    goal: np.ndarray
    slot: np.ndarray
    there: np.ndarray
    still: np.ndarray
    left: np.ndarray
    was_tile: np.ndarray
    was_heading: np.ndarray
    fresh: np.ndarray


class Ranked(NamedTuple):
    """The options of every agent, the best one first.

    many: (N,) int32; option, cost: (N, most) int32; waiting costs 0
    """

    many: np.ndarray
    option: np.ndarray
    cost: np.ndarray


class Rules(NamedTuple):
    """When agents conflict.

    near: (K,) int32 how far tiles are from one that must be free of others while an agent is there; 0 is one of them
    following: may an agent move to a tile that another one leaves meanwhile?
    horizon: ticks that are looked ahead
    holding: do agents stay at their goals? Else they get new ones there
    plain: one tile is near, following is allowed, and actions take a tick
    """

    near: np.ndarray
    following: bool
    horizon: int
    holding: bool
    plain: bool


class Plans(NamedTuple):
    """Who holds what.

    option, cost: (N,) int32; held: (tiles, horizon + 1) int32 agents or NOBODY, by ticks from now
    """

    option: np.ndarray
    cost: np.ndarray
    held: np.ndarray


# ---------------------------------------------------------------------------------------------------- options


@lean_njit
def follow(a, agents, values, lanes):
    """Keep agents.left[a] true: after a move by the difference of the field, for a new goal by going down its field."""
    slot, tile, heading, headings = agents.slot[a], agents.tile[a], agents.heading[a], lanes.headings
    if slot < 0:
        agents.left[a] = 0
    elif agents.fresh[a]:
        agents.left[a] = cost_to_go(tile, heading, agents.goal[a], values[slot], lanes)
    else:
        was = agents.was_tile[a] * headings + agents.was_heading[a]
        agents.left[a] += difference(values[slot, tile * headings + heading], values[slot, was])
    agents.was_tile[a], agents.was_heading[a], agents.fresh[a] = tile, heading, 0


@lean_njit
def rank_options(a, agents, options, values, lanes, rules, step_cost, ranked):
    """Find the options of agent a on the map and sort them by cost.

    values: fields (slots, states); step_cost: (S, 3) int32 scratch: cost to go against now, the sum over ticks, tick of
        arrival or -1
    """
    table, heading, tile = agents.table[a], agents.heading[a], agents.tile[a]
    first, last = options.first_step[table], options.first_step[table + 1]
    slot, goal, headings = agents.slot[a], agents.goal[a], lanes.headings
    for step in range(first, last):
        parent = options.parent[step]
        here = tile + options.ahead[step, heading]
        row = step - first
        if parent < 0:
            step_cost[row, 0], step_cost[row, 1], step_cost[row, 2] = 0, 0, -1
            continue
        up = parent - first
        if step_cost[up, 0] == NO_OPTION or not lanes.free[here]:
            step_cost[row, 0] = NO_OPTION
            continue
        ticks = options.tick[step] - options.tick[parent]
        arrived, cost = step_cost[up, 2], step_cost[up, 0]
        if slot < 0:
            cost = options.moves[step]
        elif arrived < 0:
            there = tile + options.ahead[parent, heading]
            was = values[slot, there * headings + (heading + options.turn[parent]) % headings]
            cost += difference(values[slot, here * headings + (heading + options.turn[step]) % headings], was)
            if here == goal and not rules.holding:
                arrived = options.tick[step]
                cost -= (rules.horizon - arrived) * lanes.unit
        step_cost[row, 0], step_cost[row, 1], step_cost[row, 2] = cost, step_cost[up, 1] + ticks * cost, arrived
    count = 0
    for option in range(options.first_option[table], options.first_option[table + 1]):
        row = options.leaf[option] - first
        if step_cost[row, 0] == NO_OPTION:
            continue
        cost = step_cost[row, 0] * FIRST_TIE + step_cost[row, 1]
        count = _insert(ranked.option[a], ranked.cost[a], count, option, cost, options.track)
    ranked.many[a] = count


@lean_njit
def _insert(option_of, cost_of, count, option, cost, track):
    """Put an option where it belongs, of every track only the cheapest. -> how many there are"""
    at = -1
    for i in range(count):
        if track[option_of[i]] == track[option]:
            if cost_of[i] <= cost:
                return count
            at = i
            break
    if at < 0:
        at, count = count, count + 1
    while at > 0 and cost_of[at - 1] > cost:
        option_of[at], cost_of[at] = option_of[at - 1], cost_of[at - 1]
        at -= 1
    option_of[at], cost_of[at] = option, cost
    return count


@njit(parallel=True)
def rank_all(agents, options, values, lanes, rules, ranked, most_steps, members):
    for member in prange(members):
        step_cost = np.empty((most_steps, 3), np.int32)
        for a in range(member, len(agents.tile), members):
            if agents.there[a] and not agents.still[a]:
                follow(a, agents, values, lanes)
                rank_options(a, agents, options, values, lanes, rules, step_cost, ranked)


# ---------------------------------------------------------------------------------------------------- holding


@lean_njit
def hold(a, option, agents, options, held, plain, who):
    """Let agent a hold the tiles of an option, as `who`: itself, or NOBODY to give them back."""
    track, heading, tile = options.track[option], agents.heading[a], int(agents.tile[a])
    if plain:
        ticks = held.shape[1]
        row = (track * options.here.shape[1] + heading) * ticks
        ahead_of, holders = options.here.reshape(options.here.size), held.reshape(held.size)
        for tick in range(1, ticks):
            set_item(holders, (tile + item(ahead_of, row + tick)) * ticks + tick, who)
        return
    rest = options.tick[options.first_step[agents.table[a]]]
    for tick in range(1, held.shape[1]):
        held[tile + options.here[track, heading, tick], tick] = who
        held[tile + options.also[track, heading, tick], tick] = who
        if tick < rest or agents.still[a]:
            held[agents.origin[a], tick] = who


@lean_njit
def _met(tile, tick, a, found, held, near):
    """Who but a is near a tile at a tick, together with those found already? -> an agent, NOBODY or SEVERAL"""
    for i in range(len(near)):
        other = held[tile + near[i], tick]
        if other != NOBODY and other != a and other != found:
            if found != NOBODY:
                return SEVERAL
            found = other
    return found


@lean_njit
def _swaps(a, tile, before, tick, held, near):
    """Does somebody who leaves the tile come to the one before? -> that agent or NOBODY"""
    for i in range(len(near)):
        other = held[tile + near[i], tick - 1]
        if other != NOBODY and other != a:
            for j in range(len(near)):
                if held[before + near[j], tick] == other:
                    return other
    return NOBODY


@lean_njit
def in_the_way(a, option, agents, options, held, rules):
    """Who holds what agent a, which holds nothing, would hold with an option? -> an agent, NOBODY or SEVERAL"""
    if rules.plain:
        return _in_the_plain_way(a, option, agents, options, held)
    track, heading, tile = options.track[option], agents.heading[a], agents.tile[a]
    rest = options.tick[options.first_step[agents.table[a]]]
    found = NOBODY
    before, before_also = tile, tile
    for tick in range(1, held.shape[1]):
        here, also = tile + options.here[track, heading, tick], tile + options.also[track, heading, tick]
        found = _met(here, tick, a, found, held, rules.near)
        if found != SEVERAL and also != here:
            found = _met(also, tick, a, found, held, rules.near)
        if found != SEVERAL and tick < rest:
            found = _met(agents.origin[a], tick, a, found, held, rules.near)
        if found != SEVERAL and here != before:
            if rules.following:
                other = _swaps(a, here, before, tick, held, rules.near)
                if other != NOBODY and other != found:
                    found = other if found == NOBODY else SEVERAL
            else:
                found = _met(here, tick - 1, a, found, held, rules.near)
                if tick == 1 and found != NOBODY and held[here, 0] == found:
                    return SEVERAL  # it is there now, whatever it does
        if found != SEVERAL and not rules.following:
            if before != here:
                found = _met(before, tick, a, found, held, rules.near)
            if found != SEVERAL and before_also != here and before_also != before:
                found = _met(before_also, tick, a, found, held, rules.near)
            if found != SEVERAL and tick <= rest:
                found = _met(agents.origin[a], tick, a, found, held, rules.near)
        if found == SEVERAL:
            return SEVERAL
        before, before_also = here, also
    return found


@lean_njit
def _in_the_plain_way(a, option, agents, options, held):
    """The same for rules that are `plain`."""
    tile, ticks = int(agents.tile[a]), held.shape[1]
    row = (options.track[option] * options.here.shape[1] + agents.heading[a]) * ticks
    ahead_of, holders = options.here.reshape(options.here.size), held.reshape(held.size)
    found, before = NOBODY, tile
    for tick in range(1, ticks):
        here = tile + item(ahead_of, row + tick)
        at = here * ticks + tick
        other = item(holders, at)
        if other != NOBODY and other != found:
            if found != NOBODY:
                return SEVERAL
            found = other
        if here != before:
            other = item(holders, at - 1)
            if other != NOBODY and other != found and item(holders, before * ticks + tick) == other:
                if found != NOBODY:
                    return SEVERAL
                found = other
        before = here
    return found


# ---------------------------------------------------------------------------------------------------- search


class Search(NamedTuple):
    """Who is pushed by whom, and how often.

    agent, place, before, before_cost: (areas, depth) int32 stacks of agents that look for an option: which of their
        options they are at, and the option that they had
    open: (N,) uint8, is it on the stack? visits: (N,) int32 how often it was pushed in the pass `seen`, (N,) int32
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
def take(a, option, cost, agents, options, rules, plans):
    """Give agent a an option whose tiles nobody holds."""
    plans.option[a], plans.cost[a] = option, cost
    hold(a, option, agents, options, plans.held, rules.plain, a)


@lean_njit
def drop(a, agents, options, rules, plans):
    hold(a, plans.option[a], agents, options, plans.held, rules.plain, NOBODY)


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
            _inherit(a, broken, agents, options, rules, ranked, plans)


@lean_njit
def _inherit(a, broken, agents, options, rules, ranked, plans):
    plans.held[agents.tile[a], 0] = a
    plans.held[agents.origin[a], 0] = a
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
def settle(broken, agents, options, rules, plans, search):
    """Let the broken hold their tiles, and stand who cannot go on because of them."""
    for first in range(len(agents.tile)):
        if agents.there[first] and broken[first] == 1:
            _stand(first, broken, agents, options, rules, plans, search)


@lean_njit
def _stand(first, broken, agents, options, rules, plans, search):
    """Let an agent that is `broken` stand, and whoever comes too near to it, and so on."""
    depth = 0
    search.agent[0, 0] = first
    broken[first] = 2
    while depth >= 0:
        a = search.agent[0, depth]
        other = _intruder(a, broken, agents, options, rules, plans)
        if other == NOBODY or depth + 1 == search.agent.shape[1]:
            hold(a, plans.option[a], agents, options, plans.held, rules.plain, a)
            depth -= 1
            continue
        if broken[other] == 0:
            drop(other, agents, options, rules, plans)
            plans.option[other], plans.cost[other] = options.stay[agents.table[other]], 0
        broken[other] = 2
        depth += 1
        search.agent[0, depth] = other


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
def advance(agents, options, headings, speeds, rests, plans, action):
    """Let agents do the first tick of their options, and note what is left of these.

    headings: 1 or 4; speeds: (2,) int32 ticks of a move and of a turn; rests: tables of a speed
    action: (N,) int32 what each begins to do, or waiting
    """
    for a in range(len(agents.tile)):
        if not agents.there[a] or agents.still[a]:
            continue
        option, table = plans.option[a], agents.table[a]
        rest, heading = table % rests, agents.heading[a]
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
        ticks = speeds[0] if here != agents.tile[a] else speeds[1]
        agents.table[a] = table + ticks - 1
        agents.origin[a] = agents.tile[a] if ticks > 1 else here
        agents.tile[a], agents.heading[a] = here, turned
